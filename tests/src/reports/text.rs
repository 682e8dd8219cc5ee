//! The text report against the JSON.

use std::collections::BTreeMap;

use libtest_mimic::Failed;
use serde_json::Value;

use super::{
    expected::{Flow, array, flows, number, rank_name, text},
    figure::says,
    table::{Row, table},
};

/// What a cell must say.
#[derive(Debug, Clone)]
enum Cell {
    Text(String),
    Figure(f64),
    /// Nothing, because there is none of it.
    Empty,
}

/// A figure that is left out where it is none.
fn unless_zero(value: f64) -> Cell {
    if value == 0.0 { Cell::Empty } else { Cell::Figure(value) }
}

/// Cells by headings; those of text are what a row is found by.
type Wanted = Vec<(&'static str, Cell)>;

fn is(row: &Row, wanted: &[(&str, Cell)], by_text: bool) -> Result<(), String> {
    for (heading, cell) in wanted {
        let found = row.get(*heading).map_or("", String::as_str);
        let is_it = match cell {
            Cell::Text(text) => found == text,
            Cell::Figure(_) | Cell::Empty if by_text => true,
            Cell::Figure(value) if value.is_nan() => found == "?",
            Cell::Figure(value) => says(found, *value),
            Cell::Empty => found.is_empty(),
        };
        if !is_it {
            return Err(format!("{heading}: {found:?} instead of {cell:?}"));
        }
    }
    Ok(())
}

/// The table has these rows and no others, in whatever order.
fn same(report: &str, title: &str, wanted: &[Wanted]) -> Result<(), Failed> {
    let rows = match table(report, title) {
        None if wanted.is_empty() => return Ok(()),
        None => return Err(format!("there is no table {title:?} in\n{report}").into()),
        Some(rows) => rows,
    };
    compare(title, rows, wanted)
}

fn compare(title: &str, mut rows: Vec<Row>, wanted: &[Wanted]) -> Result<(), Failed> {
    if rows.len() != wanted.len() {
        return Err(format!("{title}: {} rows instead of {}: {rows:#?}", rows.len(), wanted.len()).into());
    }
    for row in wanted {
        // Of several with the same texts, that with the figures.
        let with_text: Vec<usize> = (0..rows.len()).filter(|&at| is(&rows[at], row, true).is_ok()).collect();
        let whole = with_text.iter().find(|&&at| is(&rows[at], row, false).is_ok());
        match (whole, with_text.first()) {
            (Some(&at), _) => drop(rows.remove(at)),
            (None, Some(&at)) => {
                let why = is(&rows[at], row, false).err().unwrap_or_default();
                return Err(format!("{title}: {why} in {:?}", rows[at]).into());
            }
            (None, None) => return Err(format!("{title}: no row for {row:?} in {rows:#?}").into()),
        }
    }
    Ok(())
}

/// Every figure of every table. `report` shows all rows (`-v`), and there are so few ranks that they have columns of their own.
pub(super) fn check(report: &str, profile: &Value) -> Result<(), Failed> {
    efficiency(report, profile)?;
    ranks(report, profile)?;
    groups(report, profile)?;
    functions(report, profile)?;
    by_rank(report, profile)?;
    sites(report, profile)?;
    communicators(report, profile)?;
    sizes(report, profile)?;
    matrix(report, profile)?;
    requests(report, profile)?;
    phases(report, profile)?;
    transfers(report, profile, "I/O", "I/O, all ranks", ["written", "read"])?;
    transfers(report, profile, "one-sided", "One-sided, all ranks", ["put", "got"])?;
    threads(report, profile)?;
    cost(report, profile)
}

fn efficiency(report: &str, profile: &Value) -> Result<(), Failed> {
    let found = &profile["totals"]["efficiency"];
    let row = |name: &str, field: &str| {
        vec![("", Cell::Text(name.into())), ("%", Cell::Figure(100.0 * number(&found[field])))]
    };
    let rows = [
        row("parallel efficiency", "parallel"),
        row("load balance", "load_balance"),
        row("communication efficiency", "communication"),
    ];
    same(report, "Efficiency", if found.is_null() { &[] } else { &rows })
}

fn ranks(report: &str, profile: &Value) -> Result<(), Failed> {
    let mut wanted: Vec<Wanted> = array(profile, "ranks")
        .iter()
        .map(|rank| {
            vec![
                ("rank", Cell::Text(rank_name(rank))),
                ("pid", Cell::Text(rank["pid"].to_string())),
                ("wall", Cell::Figure(number(&rank["wall_ns"]))),
                ("MPI time", Cell::Figure(number(&rank["mpi_ns"]))),
                ("MPI %", Cell::Figure(number(&rank["mpi_percent"]))),
                ("calls", Cell::Figure(number(&rank["calls"]))),
                ("threads", Cell::Figure(number(&rank["threads_in_mpi"]))),
                ("state", Cell::Text(text(rank, "state"))),
            ]
        })
        .collect();
    let totals = &profile["totals"];
    let is_any_known = array(profile, "ranks").iter().any(|rank| !rank["mpi_percent"].is_null());
    let if_known = |share: f64| Cell::Figure(if is_any_known { share } else { f64::NAN });
    for over in ["sum", "mean", "min", "max"] {
        let share = if over == "sum" { &totals["mpi_percent_of_all"] } else { &totals["mpi_percent"][over] };
        wanted.push(vec![
            ("rank", Cell::Text(over.into())),
            ("wall", Cell::Figure(number(&totals["wall_ns"][over]))),
            ("MPI time", Cell::Figure(number(&totals["mpi_ns"][over]))),
            ("MPI %", if over == "sum" { Cell::Figure(number(share)) } else { if_known(number(share)) }),
            ("calls", if over == "sum" { Cell::Figure(number(&totals["calls"])) } else { Cell::Empty }),
        ]);
    }
    let surplus = |name: &str| Cell::Figure(100.0 * number(&totals[name]["imbalance"]));
    wanted.push(vec![
        ("rank", Cell::Text("imbalance".into())),
        ("wall", surplus("wall_ns")),
        ("MPI time", surplus("mpi_ns")),
        ("MPI %", if_known(100.0 * number(&totals["mpi_percent"]["imbalance"]))),
    ]);
    same(report, "Ranks", &wanted)
}

fn groups(report: &str, profile: &Value) -> Result<(), Failed> {
    let row = |row: &Value| -> Wanted {
        let traffic = &row["traffic"];
        let moved = |bytes: &str, rate: &str| {
            let bytes = number(&traffic[bytes]);
            [unless_zero(bytes), if bytes == 0.0 { Cell::Empty } else { Cell::Figure(number(&row[rate]).round()) }]
        };
        let [sent, sent_rate] = moved("sent_bytes", "sent_bytes_per_s");
        let [received, received_rate] = moved("received_bytes", "received_bytes_per_s");
        vec![
            ("group", Cell::Text(text(row, "group"))),
            ("calls", Cell::Figure(number(&row["calls"]))),
            ("time", Cell::Figure(number(&row["time_ns"]))),
            ("wall %", Cell::Figure(number(&row["wall_percent"]))),
            ("MPI %", Cell::Figure(number(&row["mpi_percent"]))),
            ("imbalance", Cell::Figure(100.0 * number(&row["time_over_ranks_ns"]["imbalance"]))),
            ("sent", sent),
            ("a second", sent_rate),
            ("received", received),
            ("a second#2", received_rate),
        ]
    };
    same(report, "Groups, all ranks", &array(profile, "groups").iter().map(row).collect::<Vec<_>>())
}

/// Bytes one way, and in a message.
fn volume(volume: &Value) -> [Cell; 2] {
    let (messages, bytes) = (number(&volume["messages"]), number(&volume["bytes"]));
    if messages == 0.0 {
        return [Cell::Empty, Cell::Empty];
    }
    [Cell::Figure(bytes), Cell::Figure((bytes / messages).floor())]
}

fn functions(report: &str, profile: &Value) -> Result<(), Failed> {
    let row = |row: &Value| -> Wanted {
        let [sent, sent_each] = volume(&row["traffic"]["sent"]);
        let [received, received_each] = volume(&row["traffic"]["received"]);
        let in_calls = ["time_ns", "open_ns", "began_before_ns"].map(|name| number(&row[name])).iter().sum();
        let field = |name: &str| Cell::Figure(number(&row[name]));
        vec![
            ("function", Cell::Text(text(row, "name"))),
            ("calls", field("calls")),
            ("open", unless_zero(number(&row["open_calls"]))),
            ("time", Cell::Figure(in_calls)),
            ("mean", field("mean_ns")),
            ("min", field("min_ns")),
            ("p50", field("p50_ns")),
            ("p99", field("p99_ns")),
            ("max", field("max_ns")),
            ("wall %", field("wall_percent")),
            ("MPI %", field("mpi_percent")),
            ("imbalance", Cell::Figure(100.0 * number(&row["time_over_ranks_ns"]["imbalance"]))),
            ("sent", sent),
            ("each", sent_each),
            ("received", received),
            ("each#2", received_each),
        ]
    };
    same(report, "Functions, all ranks", &array(profile, "functions").iter().map(row).collect::<Vec<_>>())
}

/// "1.23 s (300)", as two figures.
fn time_and_calls(cell: &str, time_ns: f64, calls: f64) -> bool {
    let parts = cell.strip_suffix(')').and_then(|cell| cell.rsplit_once(" ("));
    parts.is_some_and(|(time, number)| says(time, time_ns) && says(number, calls))
}

fn by_rank(report: &str, profile: &Value) -> Result<(), Failed> {
    let rows = table(report, "Functions by rank").ok_or("no table of functions by rank")?;
    assert_eq!(rows.len(), array(profile, "functions").len());
    for row in rows {
        for rank in array(profile, "ranks") {
            let found =
                array(rank, "functions").iter().find(|function| function["name"] == row["time (calls)"].as_str());
            let cell = row.get(&rank_name(rank)).map_or("", String::as_str);
            let is_right = match found {
                Some(found) => {
                    time_and_calls(cell, number(&found["time_ns"]) + number(&found["open_ns"]), number(&found["calls"]))
                }
                None => cell.is_empty(),
            };
            assert!(is_right, "{row:?} of rank {}: {found:?}", rank_name(rank));
        }
    }
    Ok(())
}

/// Amounts as they stand in tables.
fn amounts(flow: &Flow) -> Wanted {
    vec![
        ("calls", Cell::Figure(flow.calls)),
        ("time", Cell::Figure(flow.time_ns)),
        ("sent", unless_zero(flow.sent_bytes)),
        ("received", unless_zero(flow.received_bytes)),
    ]
}

/// All of it, and time of each rank, ns.
type Site = (Flow, BTreeMap<String, f64>);

fn sites(report: &str, profile: &Value) -> Result<(), Failed> {
    let mut sites: BTreeMap<(String, String), Site> = BTreeMap::new();
    for (rank, flow) in flows(profile) {
        let site = sites.entry((flow.called.clone(), flow.site.clone())).or_default();
        *site.1.entry(rank).or_default() += flow.time_ns;
        site.0.add(&flow);
    }
    let ranks = array(profile, "ranks").len() as f64;
    let row = |((called, place), (all, times)): (&(String, String), &Site)| {
        let most = times.values().copied().fold(0.0, f64::max);
        let mean = all.time_ns / ranks;
        let mut row = vec![
            ("function", Cell::Text(called.clone())),
            ("called at", Cell::Text(place.clone())),
            ("mean", Cell::Figure(all.time_ns / all.calls.max(1.0))),
            ("MPI %", Cell::Figure(100.0 * all.time_ns / number(&profile["totals"]["mpi_ns"]["sum"]))),
            ("imbalance", Cell::Figure(if mean > 0.0 { 100.0 * (most / mean - 1.0) } else { 0.0 })),
            ("its time", Cell::Figure(most)),
        ];
        row.extend(amounts(all));
        row
    };
    same(report, "Call sites, all ranks", &sites.iter().map(row).collect::<Vec<_>>())
}

fn communicators(report: &str, profile: &Value) -> Result<(), Failed> {
    let traffic = &profile["traffic"];
    let used = |row: &&Value| number(&row["calls"]) > 0.0;
    let row = |row: &Value| {
        let mut cells = vec![
            ("communicator", Cell::Text(text(row, "name"))),
            ("size", Cell::Figure(number(&row["size"]))),
            ("most time in", Cell::Text(text(&row["functions"][0], "function"))),
        ];
        cells.extend(amounts(&Flow::of(row)));
        cells
    };
    let rows: Vec<Wanted> = array(traffic, "communicators").iter().filter(used).map(row).collect();
    same(report, "Communicators, all ranks", &rows)?;
    let row = |row: &Value| {
        let mut cells = vec![
            ("size", Cell::Figure(number(&row["size"]))),
            ("communicators", Cell::Figure(number(&row["communicators"]))),
        ];
        cells.extend(amounts(&Flow::of(row)));
        cells
    };
    let rows: Vec<Wanted> = array(traffic, "communicator_sizes").iter().filter(used).map(row).collect();
    same(report, "Communicators by size", if rows.len() < 2 { &[] } else { &rows })
}

fn sizes(report: &str, profile: &Value) -> Result<(), Failed> {
    let messages = |direction: &str| {
        let mut sizes: Vec<f64> = Vec::new();
        for function in array(profile, "functions") {
            for (place, messages) in array(&function["traffic"][direction], "sizes").iter().enumerate() {
                sizes.resize(sizes.len().max(place + 1), 0.0);
                sizes[place] += number(messages);
            }
        }
        sizes
    };
    let (sent, received) = (messages("sent"), messages("received"));
    let rows = table(report, "Messages by size").ok_or("no table of sizes")?;
    let cells = |name: &str| rows.iter().map(|row| row.get(name).cloned().unwrap_or_default()).collect::<Vec<_>>();
    for (name, share, messages) in [("sent", "%", &sent), ("received", "%#2", &received)] {
        // In the same order; rows of sizes that no message has are left out.
        let at = |place: usize| [&sent, &received].map(|messages| messages.get(place).copied().unwrap_or(0.0));
        let used = (0..sent.len().max(received.len())).filter(|&place| at(place).iter().any(|number| *number > 0.0));
        let wanted: Vec<f64> = used.map(|place| messages.get(place).copied().unwrap_or(0.0)).collect();
        let (found, shares, all) = (cells(name), cells(share), messages.iter().sum::<f64>());
        assert_eq!(found.len(), wanted.len(), "{found:?} {wanted:?}");
        for ((found, share), wanted) in found.iter().zip(shares).zip(wanted) {
            let is_right = if wanted == 0.0 {
                found.is_empty() && share.is_empty()
            } else {
                says(found, wanted) && says(&share, 100.0 * wanted / all)
            };
            assert!(is_right, "{name}: {found:?} {share:?} instead of {wanted}");
        }
    }
    Ok(())
}

fn matrix(report: &str, profile: &Value) -> Result<(), Failed> {
    let rows = table(report, "Sent from rank to rank, collectives left out").ok_or("no matrix")?;
    for row in &rows {
        for rank in array(profile, "ranks") {
            let is_it =
                |pair: &&Value| pair["rank"].as_u64() == row["from"].parse().ok() && pair["peer"] == rank["rank"];
            let pair = array(&profile["traffic"], "partners").iter().find(is_it);
            let cell = row.get(&rank_name(rank)).map_or("", String::as_str);
            let is_right = pair.map_or(cell.is_empty(), |pair| says(cell, number(&pair["sent_bytes"])));
            assert!(is_right, "{row:?}: {pair:?}");
        }
    }
    Ok(())
}

fn requests(report: &str, profile: &Value) -> Result<(), Failed> {
    let mut functions: BTreeMap<String, Flow> = BTreeMap::new();
    for (_, flow) in flows(profile).into_iter().filter(|(_, flow)| flow.completed > 0.0) {
        functions.entry(flow.function.clone()).or_default().add(&flow);
    }
    let row = |(function, all): (&String, &Flow)| {
        vec![
            ("function", Cell::Text(function.clone())),
            ("completed", Cell::Figure(all.completed)),
            ("under way, mean", Cell::Figure(all.pending_ns / all.completed)),
            ("waited for", Cell::Figure(all.waited_ns)),
            ("mean", Cell::Figure(all.waited_ns / all.completed)),
        ]
    };
    same(report, "Requests completed, all ranks", &functions.iter().map(row).collect::<Vec<_>>())?;
    let mut places: BTreeMap<(String, String), (f64, f64)> = BTreeMap::new();
    for pending in array(profile, "ranks").iter().flat_map(|rank| array(&rank["traffic"], "pending")) {
        let place = places.entry((text(pending, "function"), text(pending, "site"))).or_default();
        *place = (place.0 + 1.0, place.1.max(number(&pending["age_ns"])));
    }
    let row = |((function, site), (requests, oldest)): (&(String, String), &(f64, f64))| {
        vec![
            ("function", Cell::Text(function.clone())),
            ("made at", Cell::Text(site.clone())),
            ("requests", Cell::Figure(*requests)),
            ("oldest", Cell::Figure(*oldest)),
        ]
    };
    same(report, "Requests not complete", &places.iter().map(row).collect::<Vec<_>>())
}

/// Below the row of a phase come those of its functions.
fn phases(report: &str, profile: &Value) -> Result<(), Failed> {
    let phases = array(profile, "phases");
    let wanted = |phase: &Value| -> Vec<Wanted> {
        let whole = vec![
            ("phase", Cell::Text(text(phase, "name"))),
            ("level", Cell::Figure(number(&phase["level"]))),
            ("function", Cell::Empty),
            ("opened", Cell::Figure(number(&phase["opened"]))),
            ("wall, mean", Cell::Figure(number(&phase["wall_over_ranks_ns"]["mean"]))),
            ("calls", Cell::Figure(number(&phase["calls"]))),
            ("time", Cell::Figure(number(&phase["mpi_ns"]))),
        ];
        let function = |row: &Value| {
            let moved = |way: &str| Cell::Figure(number(&row["traffic"][way]["bytes"]));
            vec![
                ("phase", Cell::Empty),
                ("function", Cell::Text(text(row, "name"))),
                ("calls", Cell::Figure(number(&row["calls"]))),
                ("time", Cell::Figure(number(&row["time_ns"]))),
                ("mean", Cell::Figure(number(&row["mean_ns"]))),
                ("sent", moved("sent")),
                ("received", moved("received")),
            ]
        };
        std::iter::once(whole).chain(array(phase, "functions").iter().map(function)).collect()
    };
    same(
        report,
        "Phases, all ranks: calls in the innermost one open",
        &phases.iter().flat_map(wanted).collect::<Vec<_>>(),
    )?;
    let rows = table(report, "Phases by rank").unwrap_or_default();
    assert_eq!(rows.len(), phases.len());
    for row in rows {
        for rank in array(profile, "ranks") {
            let found = array(rank, "phases").iter().find(|phase| phase["name"] == row["time (calls)"].as_str());
            let cell = row.get(&rank_name(rank)).map_or("", String::as_str);
            let is_right = found.map_or(cell.is_empty(), |found| {
                time_and_calls(cell, number(&found["mpi_ns"]), number(&found["calls"]))
            });
            assert!(is_right, "{row:?}: {found:?}");
        }
    }
    Ok(())
}

fn transfers(
    report: &str,
    profile: &Value,
    group: &str,
    title: &str,
    [sent, received]: [&'static str; 2],
) -> Result<(), Failed> {
    let of_group = array(profile, "functions").iter().filter(|row| row["group"] == group && !row["traffic"].is_null());
    let row = |row: &Value| {
        let [out, out_each] = volume(&row["traffic"]["sent"]);
        let [back, back_each] = volume(&row["traffic"]["received"]);
        let moved = number(&row["traffic"]["sent"]["bytes"]) + number(&row["traffic"]["received"]["bytes"]);
        let rate =
            if moved == 0.0 { Cell::Empty } else { Cell::Figure((moved / (number(&row["time_ns"]) / 1e9)).round()) };
        vec![
            ("function", Cell::Text(text(row, "name"))),
            ("calls", Cell::Figure(number(&row["calls"]))),
            ("time", Cell::Figure(number(&row["time_ns"]))),
            (sent, out),
            ("each", out_each),
            (received, back),
            ("each#2", back_each),
            ("in a second of it", rate),
        ]
    };
    same(report, title, &of_group.map(row).collect::<Vec<_>>())
}

fn threads(report: &str, profile: &Value) -> Result<(), Failed> {
    let of_several = array(profile, "ranks").iter().filter(|rank| number(&rank["threads_in_mpi"]) > 1.0);
    let row = |rank: &Value| -> Vec<Wanted> {
        let of_thread = |thread: &Value| {
            vec![
                ("rank", Cell::Text(rank_name(rank))),
                ("thread", Cell::Text(thread["tid"].to_string())),
                ("state", Cell::Text(text(thread, "state"))),
                ("calls", Cell::Figure(number(&thread["calls"]))),
                ("MPI time", Cell::Figure(number(&thread["mpi_ns"]))),
            ]
        };
        array(rank, "threads").iter().map(of_thread).collect()
    };
    same(report, "Threads", &of_several.flat_map(row).collect::<Vec<_>>())
}

/// "mpiprobe's own cost: 1.52 µs a call × 8,532 calls = 13.0 ms (0.02 % of wall time)"
fn cost(report: &str, profile: &Value) -> Result<(), Failed> {
    let cost = &profile["own_cost"];
    let line = report.lines().find_map(|line| line.strip_prefix("mpiprobe's own cost: ")).ok_or("no own cost")?;
    let (each, rest) = line.split_once(" a call × ").ok_or("no cost of a call")?;
    let (calls, rest) = rest.split_once(" calls = ").ok_or("no calls")?;
    let (total, rest) = rest.split_once(" (").ok_or("no total")?;
    let share = rest.split_once(" of wall").ok_or("no share")?.0;
    for (said, name) in [(each, "per_call_ns"), (calls, "calls"), (total, "total_ns"), (share, "percent_of_wall")] {
        assert!(says(said, number(&cost[name])), "{name}: {line}");
    }
    Ok(())
}
