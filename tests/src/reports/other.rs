//! What programs read, against the JSON: CSV, mpiP's form, folded stacks, and files for the Cube browser, read by their users' library.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use libtest_mimic::Failed;
use serde_json::Value;

use super::{
    expected::{Flow, array, flows, number, rank_name, text},
    figure::says,
};
use crate::wheel::read;

/// A row of CSV by column; no cell has a line in it.
type Row = BTreeMap<String, String>;

fn rows(directory: &Path, table: &str) -> Result<Vec<Row>, Failed> {
    let path = directory.join(table).with_extension("csv");
    let text = if path.exists() { fs::read_to_string(path)? } else { return Ok(Vec::new()) };
    let mut lines = text.lines().map(cells);
    let head = lines.next().ok_or("no heading")?;
    Ok(lines.map(|line| head.iter().cloned().zip(line).collect()).collect())
}

/// RFC 4180.
fn cells(line: &str) -> Vec<String> {
    let (mut cells, mut quoted) = (vec![String::new()], false);
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if quoted && letters.peek() == Some(&'"') => {
                letters.next();
                cells.last_mut().unwrap_or(&mut String::new()).push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => cells.push(String::new()),
            letter => cells.last_mut().unwrap_or(&mut String::new()).push(letter),
        }
    }
    cells
}

/// The rows of a table are these of the JSON, in the same order; every column that the JSON has, or has by another name, is the same.
fn same(table: &str, rows: &[Row], wanted: &[Value], names: &[(&str, &str)]) -> Result<(), Failed> {
    if rows.len() != wanted.len() {
        return Err(format!("{table}: {} rows instead of {}", rows.len(), wanted.len()).into());
    }
    for (row, wanted) in rows.iter().zip(wanted) {
        let mut compared = 0;
        for (column, cell) in row {
            let pointer = names
                .iter()
                .find(|(name, _)| name == column)
                .map_or_else(|| format!("/{column}"), |(_, at)| (*at).to_owned());
            let Some(value) = wanted.pointer(&pointer) else { continue };
            let is_same = match value {
                Value::Null => cell.is_empty(),
                Value::Number(_) => cell.parse::<f64>().ok() == value.as_f64(),
                Value::String(text) => text == cell,
                Value::Bool(is) => cell == if *is { "yes" } else { "no" },
                _ => continue,
            };
            if !is_same {
                return Err(format!("{table}: {column} is {cell:?} instead of {value} in {row:?}").into());
            }
            compared += 1;
        }
        if compared < 2 {
            return Err(format!("{table}: of {row:?} nothing is in {wanted}").into());
        }
    }
    Ok(())
}

const FUNCTION: [(&str, &str); 8] = [
    ("function", "/name"),
    ("imbalance", "/time_over_ranks_ns/imbalance"),
    ("sent_messages", "/traffic/sent/messages"),
    ("sent_bytes", "/traffic/sent/bytes"),
    ("received_messages", "/traffic/received/messages"),
    ("received_bytes", "/traffic/received/bytes"),
    ("received_at_most_bytes", "/traffic/received_at_most_bytes"),
    ("calls_of_unknown_bytes", "/traffic/calls_of_unknown_bytes"),
];

/// Tables in a directory.
pub(super) fn csv(directory: &Path, profile: &Value) -> Result<(), Failed> {
    let of = |table: &str| rows(directory, table);
    same("ranks", &of("ranks")?, array(profile, "ranks"), &[])?;
    same("functions", &of("functions")?, array(profile, "functions"), &FUNCTION)?;
    let of_groups = [
        ("imbalance", "/time_over_ranks_ns/imbalance"),
        ("sent_bytes", "/traffic/sent_bytes"),
        ("received_bytes", "/traffic/received_bytes"),
    ];
    same("groups", &of("groups")?, array(profile, "groups"), &of_groups)?;
    let by_rank: Vec<Value> =
        array(profile, "ranks").iter().flat_map(|rank| array(rank, "functions")).cloned().collect();
    same("functions_by_rank", &of("functions_by_rank")?, &by_rank, &FUNCTION)?;
    for row in of("efficiency")? {
        for name in ["parallel", "load_balance", "communication"] {
            let share = row[&format!("{name}_percent")].parse::<f64>()?;
            assert!((share - 100.0 * number(&profile["totals"]["efficiency"][name])).abs() < 1e-9, "{name}: {row:?}");
        }
    }
    let traffic = &profile["traffic"];
    same("communicators", &of("communicators")?, array(traffic, "communicators"), &[])?;
    same("partners", &of("partners")?, array(traffic, "partners"), &[])?;
    let of_ranks = |name: &str| -> Vec<Value> {
        array(profile, "ranks").iter().flat_map(|rank| array(rank, name)).cloned().collect()
    };
    same("open_calls", &of("open_calls")?, &of_ranks("open_calls"), &[])?;
    let pending: Vec<Value> =
        array(profile, "ranks").iter().flat_map(|rank| array(&rank["traffic"], "pending")).cloned().collect();
    let not_shown = [("started_by", "/none"), ("tag", "/tag")];
    same("requests", &of("requests")?, &pending, &not_shown)?;
    same("phases", &of("phases")?, array(profile, "phases"), &[("wall_ns", "/wall_over_ranks_ns/sum")])?;
    same("cost", &of("cost")?, std::slice::from_ref(&profile["own_cost"]), &[])?;
    same("findings", &of("findings")?, array(profile, "findings"), &[("name", "/none"), ("found", "/none")]).or_else(
        |error| if array(profile, "findings").is_empty() { Err(error) } else { findings(&of("findings")?, profile) },
    )?;
    let several: Vec<Value> = array(profile, "ranks")
        .iter()
        .filter(|rank| number(&rank["threads_in_mpi"]) > 1.0)
        .flat_map(|rank| array(rank, "threads"))
        .cloned()
        .collect();
    same("threads", &of("threads")?, &several, &[])?;
    buckets(&of("durations")?, profile, "from_ns", "calls", |function| vec![array(function, "durations")])?;
    buckets(&of("sizes")?, profile, "from_bytes", "messages", |function| {
        ["sent", "received"].map(|way| array(&function["traffic"][way], "sizes")).to_vec()
    })?;
    call_sites(&of("call_sites")?, profile)
}

fn findings(rows: &[Row], profile: &Value) -> Result<(), Failed> {
    let costs = |value: &Value| value["cost_ns"].as_u64().map_or_else(String::new, |ns| ns.to_string());
    let wanted: Vec<String> = array(profile, "findings").iter().map(costs).collect();
    let found: Vec<String> = rows.iter().map(|row| row["cost_ns"].clone()).collect();
    if found == wanted { Ok(()) } else { Err(format!("findings: {found:?} instead of {wanted:?}").into()) }
}

/// Each bucket that is not empty is a row.
fn buckets<'a>(
    rows: &[Row],
    profile: &'a Value,
    from: &str,
    number_of: &str,
    of: impl Fn(&'a Value) -> Vec<&'a [Value]>,
) -> Result<(), Failed> {
    let mut wanted = Vec::new();
    for function in array(profile, "functions") {
        for buckets in of(function) {
            for (place, calls) in buckets.iter().enumerate().filter(|(_, calls)| calls.as_u64() != Some(0)) {
                let low = if place == 0 { 0 } else { 1_u64 << (place - 1) };
                wanted.push((text(function, "name"), low.to_string(), calls.to_string()));
            }
        }
    }
    let row = |row: &Row| (row["function"].clone(), row[from].clone(), row[number_of].clone());
    let found: Vec<_> = rows.iter().map(row).collect();
    if found == wanted { Ok(()) } else { Err(format!("{from}: {found:?} instead of {wanted:?}").into()) }
}

fn call_sites(rows: &[Row], profile: &Value) -> Result<(), Failed> {
    let mut sites: BTreeMap<(String, String, String), Flow> = BTreeMap::new();
    for (_, flow) in flows(profile) {
        let started_by = if flow.call == flow.function { String::new() } else { flow.call.clone() };
        sites.entry((flow.function.clone(), started_by, flow.site.clone())).or_default().add(&flow);
    }
    assert_eq!(rows.len(), sites.len());
    for row in rows {
        let key = (row["function"].clone(), row["started_by"].clone(), row["site"].clone());
        let site = sites.get(&key).ok_or_else(|| format!("there is no {key:?}"))?;
        let Flow { calls, time_ns, sent_bytes, received_bytes, completed, pending_ns, waited_ns, .. } = site;
        for (column, wanted) in [
            ("calls", calls),
            ("time_ns", time_ns),
            ("sent_bytes", sent_bytes),
            ("received_bytes", received_bytes),
            ("completed", completed),
            ("pending_ns", pending_ns),
            ("waited_ns", waited_ns),
        ] {
            assert_eq!(row[column].parse::<f64>().ok(), Some(*wanted), "{column} of {row:?}");
        }
        let line = row["line"].parse::<u32>();
        assert!(line.is_ok_and(|line| row["site"].starts_with(&format!("{}:{line}", row["file"]))), "{row:?}");
    }
    Ok(())
}

/// mpiP has three digits, and so do we.
fn nearly(text: &str, value: f64) -> bool {
    text.parse::<f64>().is_ok_and(|said| (said - value).abs() <= 0.0051 * value.abs() + 1e-12)
}

pub(super) fn mpip(report: &str, profile: &Value) -> Result<(), Failed> {
    let section = |title: &str| -> Vec<Vec<&str>> {
        let lines = report.lines().skip_while(|line| !line.trim_start_matches("@--- ").starts_with(title)).skip(2);
        let rows = lines.skip(1).take_while(|line| !line.starts_with("---"));
        rows.map(|line| line.split_whitespace().collect::<Vec<_>>()).filter(|words| !words.is_empty()).collect()
    };
    let ranks = array(profile, "ranks");
    let tasks = section("MPI Time (seconds)");
    assert_eq!(tasks.len(), ranks.len() + 1, "{tasks:?}");
    for (task, rank) in tasks.iter().zip(ranks) {
        let seconds = |name: &str| number(&rank[name]) / 1e9;
        let is_right = matches!(task.as_slice(), [name, app, mpi, share] if *name == rank_name(rank)
            && nearly(app, seconds("thread_wall_ns")) && nearly(mpi, seconds("mpi_ns")) && rank["mpi_percent"].as_f64().map_or(*share == "nan", |percent| says(share, percent)));
        assert!(is_right, "{task:?}: {rank}");
    }
    // Of each site: its call, and where it is.
    let mut places = BTreeMap::new();
    for site in section("Callsites: ") {
        let [id, _, file, line, _, call] = site.as_slice() else { return Err(format!("{site:?}").into()) };
        places.insert((*call, *id), format!("{file}:{line}"));
    }
    let mut wanted: BTreeMap<(String, String, String), Flow> = BTreeMap::new();
    let mut everybody: BTreeMap<(String, String), Flow> = BTreeMap::new();
    for (rank, flow) in flows(profile) {
        let call = flow.call.trim_start_matches("MPI_").to_owned();
        let place = flow.site.split(" in ").next().unwrap_or_default().to_owned();
        wanted.entry((call.clone(), place.clone(), rank)).or_default().add(&flow);
        everybody.entry((call, place)).or_default().add(&flow);
    }
    // A persistent operation that is started and one that is made at the same place are two sites of one call.
    let mut rows = 0;
    let mut sums: BTreeMap<(String, String, String), [f64; 2]> = BTreeMap::new();
    for row in section("Callsite Time statistics") {
        let [call, id, rank, count, _, mean, _, _, _] = row.as_slice() else { return Err(format!("{row:?}").into()) };
        let place = places.get(&(*call, *id)).ok_or("a site that is not listed")?;
        let sum = sums.entry(((*call).to_owned(), place.clone(), (*rank).to_owned())).or_default();
        let count: f64 = count.parse()?;
        *sum = [sum[0] + count, sum[1] + count * mean.parse::<f64>()?];
        rows += usize::from(*rank != "*");
    }
    assert!(rows >= wanted.len() && !wanted.is_empty(), "{rows} rows");
    for ((call, place, rank), [count, time_ms]) in sums {
        let flow = if rank == "*" {
            everybody.get(&(call.clone(), place.clone()))
        } else {
            wanted.get(&(call.clone(), place.clone(), rank.clone()))
        };
        let flow = flow.ok_or_else(|| format!("there is no {call} at {place} in {rank}"))?;
        assert!(
            (count - flow.calls).abs() < 0.5,
            "{call} at {place} in {rank}: {count} calls instead of {}",
            flow.calls
        );
        let wanted = flow.time_ns / 1e6;
        assert!(
            (time_ms - wanted).abs() <= 0.0051 * wanted + 1e-9,
            "{call} at {place} in {rank}: {time_ms} ms instead of {wanted}"
        );
    }
    let mut sent: BTreeMap<(String, String), f64> = BTreeMap::new();
    for row in ["Callsite Message Sent", "Callsite I/O", "Callsite RMA"].into_iter().flat_map(section) {
        let [call, id, rank, _, _, _, _, sum] = row.as_slice() else { return Err(format!("{row:?}").into()) };
        if *rank == "*" {
            let place = places.get(&(*call, *id)).ok_or("a site that is not listed")?;
            *sent.entry(((*call).to_owned(), place.clone())).or_default() += sum.parse::<f64>()?;
        }
    }
    let of_json = everybody.iter().filter(|(_, flow)| flow.sent_bytes > 0.0);
    assert_eq!(of_json.clone().map(|(key, _)| key).collect::<Vec<_>>(), sent.keys().collect::<Vec<_>>());
    for ((key, flow), sum) in of_json.zip(sent.values()) {
        assert!(
            (sum - flow.sent_bytes).abs() <= 0.0051 * flow.sent_bytes,
            "{key:?}: {sum} instead of {}",
            flow.sent_bytes
        );
    }
    Ok(())
}

/// Time of each function at each place, ns.
pub(super) fn folded(stacks: &str, profile: &Value) -> Result<(), Failed> {
    let mut found: BTreeMap<(String, String), f64> = BTreeMap::new();
    for line in stacks.lines() {
        let (stack, ns) = line.rsplit_once(' ').ok_or("no time")?;
        let mut frames = stack.rsplit(';');
        let (call, place) = frames.next().zip(frames.next()).ok_or("no frames")?;
        *found.entry((call.to_owned(), place.to_owned())).or_default() += ns.parse::<f64>()?;
    }
    let mut wanted: BTreeMap<(String, String), f64> = BTreeMap::new();
    for (_, flow) in flows(profile).into_iter().filter(|(_, flow)| flow.time_ns > 0.0) {
        let place = flow.site.split(" in ").next().unwrap_or_default().to_owned();
        *wanted.entry((flow.call, place)).or_default() += flow.time_ns;
    }
    assert_eq!(found, wanted);
    Ok(())
}

/// Whether JSON in a file is as the schema in another one says.
pub(super) fn schema(schema: &Path, json: &Path) -> Result<(), Failed> {
    read("schema.py", [schema, json]).map(drop)
}

type Measure = fn(&Flow) -> f64;

pub(super) fn cube(file: &Path, profile: &Value) -> Result<(), Failed> {
    let cube: Value = serde_json::from_str(&read("cube.py", [file])?)?;
    // On one node, ranks are in their order.
    let ranks: Vec<String> = array(profile, "ranks").iter().map(rank_name).collect();
    assert_eq!(cube["locations"].as_u64(), Some(ranks.len() as u64));
    let measures: [(&str, Measure); 4] = [
        ("visits", |flow| flow.calls),
        ("time", |flow| flow.time_ns),
        ("bytes_sent", |flow| flow.sent_bytes),
        ("bytes_received", |flow| flow.received_bytes),
    ];
    for (metric, of) in measures {
        let mut found: BTreeMap<(String, String, String), f64> = BTreeMap::new();
        for row in array(&cube["metrics"], metric) {
            let mut path = array(row, "path").iter().rev().filter_map(Value::as_str);
            let (call, place) = (path.next().unwrap_or_default(), path.next().unwrap_or_default());
            for (rank, value) in ranks.iter().zip(array(row, "values")).filter(|(_, value)| number(value) != 0.0) {
                *found.entry((call.to_owned(), place.to_owned(), rank.clone())).or_default() += number(value);
            }
        }
        let mut wanted: BTreeMap<(String, String, String), f64> = BTreeMap::new();
        for (rank, flow) in flows(profile).into_iter().filter(|(_, flow)| of(flow) != 0.0) {
            let place = flow.site.split(" in ").next().unwrap_or_default().to_owned();
            *wanted.entry((flow.call.clone(), place, rank)).or_default() += of(&flow);
        }
        assert_eq!(found, wanted, "{metric}");
    }
    Ok(())
}
