//! What a profile says, as tables of data: what CSV and Markdown are made of.

use std::cmp::Reverse;

use mpiprobe_model::{
    Amounts, CommunicatorProfile, Finding, FunctionProfile, FunctionRow, PartnerRow, Profile, RankProfile, Volume,
};
use serde::Serialize;

use super::sites::sites;
use crate::{
    By,
    present::{FindingText, units},
};

/// A table of one kind of thing.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) title: &'static str,
    /// Names as in the JSON, with units.
    pub(crate) columns: Vec<&'static str>,
    pub(crate) rows: Vec<Vec<Cell>>,
}

/// A figure, or what it is of.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cell {
    Text(String),
    /// A number of something, or a number that something has.
    Count(u64),
    Ns(f64),
    Bytes(u64),
    Percent(f64),
    Ratio(f64),
    Unknown,
}

impl Cell {
    /// As a figure that programs read: the same as in the JSON.
    pub(crate) fn exact(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Count(number) | Self::Bytes(number) => number.to_string(),
            Self::Ns(number) | Self::Percent(number) | Self::Ratio(number) => number.to_string(),
            Self::Unknown => String::new(),
        }
    }

    /// As people read it.
    pub(crate) fn readable(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Count(number) => units::count(*number),
            Self::Ns(ns) => units::duration(*ns),
            Self::Bytes(bytes) => units::bytes(*bytes),
            Self::Percent(percent) => format!("{} %", units::percent(*percent)),
            Self::Ratio(ratio) => format!("{ratio:.2}"),
            Self::Unknown => "?".to_owned(),
        }
    }

    pub(crate) fn is_number(&self) -> bool {
        !matches!(self, Self::Text(_))
    }

    fn ns(ns: u64) -> Self {
        Self::Ns(ns as f64)
    }

    fn maybe<T>(value: Option<T>, cell: impl FnOnce(T) -> Self) -> Self {
        value.map_or(Self::Unknown, cell)
    }

    fn rank(rank: Option<u32>) -> Self {
        Self::maybe(rank, |rank| Self::Count(rank.into()))
    }

    fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// Names of all tables, in their order: of files, and of `--table`.
pub(crate) const NAMES: [&str; 18] = [
    "findings",
    "efficiency",
    "ranks",
    "groups",
    "functions",
    "functions_by_rank",
    "durations",
    "call_sites",
    "communicators",
    "partners",
    "sizes",
    "requests",
    "phases",
    "threads",
    "layers",
    "open_calls",
    "cost",
    "losses",
];

/// What tables are made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Content<'a> {
    pub(crate) profile: &'a Profile,
    /// Of everything, whatever is shown.
    pub(crate) findings: &'a [Finding],
    /// Rows with most of this first.
    pub(crate) by: Option<By>,
}

/// The table of a name; of what the profile does not have it is empty.
pub(crate) fn table(name: &'static str, content: Content<'_>) -> Table {
    let Content { profile, findings, by } = content;
    match name {
        "findings" => self::findings(findings),
        "efficiency" => efficiency(profile),
        "ranks" => ranks(profile, by),
        "groups" => groups(profile),
        "functions" => functions(profile, by),
        "functions_by_rank" => functions_by_rank(profile),
        "durations" => durations(profile),
        "call_sites" => call_sites(profile, by),
        "communicators" => communicators(profile, by),
        "partners" => partners(profile, by),
        "sizes" => sizes(profile),
        "requests" => requests(profile),
        "phases" => phases(profile),
        "threads" => threads(profile),
        "layers" => layers(profile),
        "open_calls" => open_calls(profile),
        "cost" => cost(profile),
        _ => losses(profile),
    }
}

fn findings(findings: &[Finding]) -> Table {
    let rows = findings.iter().map(|finding| {
        let text = FindingText::of(finding);
        let cost = Cell::maybe(finding.cost_ns, Cell::ns);
        vec![Cell::text(text.name), cost, Cell::Text(text.found), Cell::text(text.meaning), Cell::text(text.advice)]
    });
    Table { title: "Findings", columns: vec!["name", "cost_ns", "found", "meaning", "advice"], rows: rows.collect() }
}

fn efficiency(profile: &Profile) -> Table {
    let rows = profile.totals.efficiency.map(|found| {
        vec![
            Cell::Percent(100.0 * found.parallel),
            Cell::Percent(100.0 * found.load_balance),
            Cell::Percent(100.0 * found.communication),
        ]
    });
    Table {
        title: "Efficiency (POP)",
        columns: vec!["parallel_percent", "load_balance_percent", "communication_percent"],
        rows: rows.into_iter().collect(),
    }
}

fn ranks(profile: &Profile, by: Option<By>) -> Table {
    let mut ranks: Vec<&RankProfile> = profile.ranks.iter().collect();
    if let Some(by) = by {
        ranks.sort_by_key(|rank| Reverse(by.of_rank(rank)));
    }
    let rows = ranks.into_iter().map(|rank| {
        let moved = rank.moved_bytes();
        vec![
            Cell::rank(rank.rank),
            Cell::text(rank.job.as_deref().unwrap_or_default()),
            Cell::text(&rank.host),
            Cell::Count(rank.pid.into()),
            Cell::text(&rank.executable),
            Cell::Text(named(&rank.state)),
            Cell::ns(rank.wall_ns),
            Cell::ns(rank.thread_wall_ns),
            Cell::ns(rank.mpi_ns),
            Cell::maybe(rank.mpi_percent, Cell::Percent),
            Cell::ns(rank.unseen_ns),
            Cell::Count(rank.calls),
            Cell::Count(rank.untimed_calls),
            Cell::Count(rank.threads_in_mpi),
            Cell::maybe(moved, |(sent, _)| Cell::Bytes(sent)),
            Cell::maybe(moved, |(_, received)| Cell::Bytes(received)),
        ]
    });
    Table {
        title: "Ranks",
        columns: vec![
            "rank",
            "job",
            "host",
            "pid",
            "executable",
            "state",
            "wall_ns",
            "thread_wall_ns",
            "mpi_ns",
            "mpi_percent",
            "unseen_ns",
            "calls",
            "untimed_calls",
            "threads_in_mpi",
            "sent_bytes",
            "received_bytes",
        ],
        rows: rows.collect(),
    }
}

/// As in the JSON.
fn named(value: &impl Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(ToOwned::to_owned)).unwrap_or_default()
}

fn groups(profile: &Profile) -> Table {
    let rows = profile.groups.iter().map(|group| {
        let row = &group.all;
        let traffic = row.traffic.as_ref();
        vec![
            Cell::text(row.group),
            Cell::Count(row.calls),
            Cell::Count(row.untimed_calls),
            Cell::ns(row.time_ns),
            Cell::Percent(row.wall_percent),
            Cell::Percent(row.mpi_percent),
            Cell::Ratio(group.time_over_ranks_ns.imbalance),
            Cell::maybe(traffic, |traffic| Cell::Bytes(traffic.sent_bytes)),
            Cell::maybe(traffic, |traffic| Cell::Bytes(traffic.received_bytes)),
        ]
    });
    let columns = [
        "group",
        "calls",
        "untimed_calls",
        "time_ns",
        "wall_percent",
        "mpi_percent",
        "imbalance",
        "sent_bytes",
        "received_bytes",
    ];
    Table { title: "Groups, all ranks", columns: columns.into(), rows: rows.collect() }
}

const FUNCTION: [&str; 23] = [
    "function",
    "calls",
    "untimed_calls",
    "estimated_calls",
    "estimated_calls_low",
    "estimated_calls_high",
    "open_calls",
    "time_ns",
    "open_ns",
    "mean_ns",
    "min_ns",
    "p50_ns",
    "p90_ns",
    "p99_ns",
    "max_ns",
    "wall_percent",
    "mpi_percent",
    "sent_messages",
    "sent_bytes",
    "received_messages",
    "received_bytes",
    "received_at_most_bytes",
    "calls_of_unknown_bytes",
];

fn function(row: &FunctionRow) -> Vec<Cell> {
    let timed = row.calls > row.untimed_calls;
    let if_timed = |ns: f64| if timed { Cell::Ns(ns) } else { Cell::Unknown };
    let traffic = row.traffic.as_ref();
    let volume = |of: Option<&Volume>, what: fn(&Volume) -> Cell| Cell::maybe(of, what);
    let (sent, received) = (traffic.map(|traffic| &traffic.sent), traffic.map(|traffic| &traffic.received));
    vec![
        Cell::text(row.name),
        Cell::Count(row.calls),
        Cell::Count(row.untimed_calls),
        Cell::maybe(row.estimated, |estimate| Cell::Count(estimate.calls)),
        Cell::maybe(row.estimated, |estimate| Cell::Count(estimate.calls_low)),
        Cell::maybe(row.estimated.and_then(|estimate| estimate.calls_high), Cell::Count),
        Cell::Count(row.open_calls),
        Cell::ns(row.time_ns),
        Cell::ns(row.open_ns),
        if_timed(row.mean_ns),
        if_timed(row.min_ns as f64),
        if_timed(row.p50_ns as f64),
        if_timed(row.p90_ns as f64),
        if_timed(row.p99_ns as f64),
        if_timed(row.max_ns as f64),
        Cell::Percent(row.wall_percent),
        Cell::Percent(row.mpi_percent),
        volume(sent, |volume| Cell::Count(volume.messages)),
        volume(sent, |volume| Cell::Bytes(volume.bytes)),
        volume(received, |volume| Cell::Count(volume.messages)),
        volume(received, |volume| Cell::Bytes(volume.bytes)),
        Cell::maybe(traffic, |traffic| Cell::Bytes(traffic.received_at_most_bytes)),
        Cell::maybe(traffic, |traffic| Cell::Count(traffic.calls_of_unknown_bytes)),
    ]
}

fn functions(profile: &Profile, by: Option<By>) -> Table {
    let mut functions: Vec<&FunctionProfile> = profile.functions.iter().collect();
    if let Some(by) = by {
        functions.sort_by_key(|function| Reverse(by.of_function(&function.all)));
    }
    let rows = functions.into_iter().map(|row| {
        let mut cells = function(&row.all);
        cells.push(Cell::Ratio(row.time_over_ranks_ns.imbalance));
        cells
    });
    let columns = FUNCTION.into_iter().chain(["imbalance"]).collect();
    Table { title: "Functions, all ranks", columns, rows: rows.collect() }
}

fn functions_by_rank(profile: &Profile) -> Table {
    let rows = profile.ranks.iter().flat_map(|rank| {
        rank.functions.iter().map(|row| {
            let mut cells = vec![Cell::rank(rank.rank), Cell::Count(rank.pid.into())];
            cells.extend(function(row));
            cells
        })
    });
    let columns = ["rank", "pid"].into_iter().chain(FUNCTION).collect();
    Table { title: "Functions by rank", columns, rows: rows.collect() }
}

/// Calls by how long they took: of 0 ns, and then by powers of two.
fn durations(profile: &Profile) -> Table {
    let mut rows = Vec::new();
    for row in profile.functions.iter().map(|function| &function.all) {
        let found = (0_u32..).zip(&row.durations).filter(|(_, calls)| **calls > 0);
        rows.extend(found.map(|(bits, &calls)| vec![Cell::text(row.name), Cell::ns(lowest(bits)), Cell::Count(calls)]));
    }
    Table { title: "Calls by duration", columns: vec!["function", "from_ns", "calls"], rows }
}

/// Of what needs so many bits.
fn lowest(bits: u32) -> u64 {
    bits.checked_sub(1).map_or(0, |shift| 1_u64.checked_shl(shift).unwrap_or(u64::MAX))
}

const AMOUNTS: [&str; 6] =
    ["calls", "time_ns", "sent_bytes", "received_bytes", "received_at_most_bytes", "calls_of_unknown_bytes"];

fn amounts(amounts: &Amounts) -> [Cell; AMOUNTS.len()] {
    [
        Cell::Count(amounts.calls),
        Cell::ns(amounts.time_ns),
        Cell::Bytes(amounts.sent_bytes),
        Cell::Bytes(amounts.received_bytes),
        Cell::Bytes(amounts.received_at_most_bytes),
        Cell::Count(amounts.calls_of_unknown_bytes),
    ]
}

/// Those with most first.
fn sort_by<T>(rows: &mut [T], by: Option<By>, of: impl Fn(&T) -> &Amounts) {
    if let Some(by) = by {
        rows.sort_by_key(|row| Reverse(by.of_amounts(of(row))));
    }
}

fn call_sites(profile: &Profile, by: Option<By>) -> Table {
    let mut sites = sites(profile);
    sort_by(&mut sites, by, |site| &site.all);
    let rows = sites.into_iter().map(|site| {
        let slowest = site.slowest();
        let place = site.place;
        let mut cells = vec![
            Cell::text(site.function),
            Cell::text(site.started_by.unwrap_or_default()),
            Cell::Text(place.text),
            Cell::Text(place.file.unwrap_or_default()),
            Cell::maybe(place.line, |line| Cell::Count(line.into())),
            Cell::Text(place.function.unwrap_or_default()),
            Cell::Text(place.caller.unwrap_or_default()),
            Cell::Count(site.ranks.len() as u64),
        ];
        cells.extend(amounts(&site.all));
        cells.extend([
            Cell::Ratio(site.time_over_ranks_ns.imbalance),
            Cell::rank(slowest.and_then(|(rank, _)| profile.ranks.get(rank)?.rank)),
            Cell::maybe(slowest, |(_, time_ns)| Cell::ns(time_ns)),
            Cell::Count(site.completed),
            Cell::ns(site.pending_ns),
            Cell::ns(site.waited_ns),
        ]);
        cells
    });
    let columns = ["function", "started_by", "site", "file", "line", "in", "inlined_into", "ranks"].into_iter();
    let more = ["imbalance", "slowest_rank", "slowest_ns", "completed", "pending_ns", "waited_ns"];
    Table {
        title: "Call sites, all ranks",
        columns: columns.chain(AMOUNTS).chain(more).collect(),
        rows: rows.collect(),
    }
}

fn communicators(profile: &Profile, by: Option<By>) -> Table {
    let mut all: Vec<&CommunicatorProfile> =
        profile.traffic.iter().flat_map(|traffic| &traffic.communicators).collect();
    sort_by(&mut all, by, |one| &one.amounts);
    let rows = all.into_iter().map(|one| {
        let mut cells = vec![
            Cell::Count(one.id.into()),
            Cell::text(&one.name),
            Cell::maybe(one.size, |size| Cell::Count(size.into())),
            Cell::Count(one.ranks.into()),
        ];
        cells.extend(amounts(&one.amounts));
        cells
    });
    let columns = ["id", "name", "size", "ranks"].into_iter().chain(AMOUNTS).collect();
    Table { title: "Communicators", columns, rows: rows.collect() }
}

fn partners(profile: &Profile, by: Option<By>) -> Table {
    let mut all: Vec<&PartnerRow> = profile.traffic.iter().flat_map(|traffic| &traffic.partners).collect();
    sort_by(&mut all, by, |one| &one.amounts);
    let rows = all.into_iter().map(|one| {
        let mut cells = vec![
            Cell::text(one.job.as_deref().unwrap_or_default()),
            Cell::Count(one.rank.into()),
            Cell::Count(one.peer.into()),
        ];
        cells.extend(amounts(&one.amounts));
        cells
    });
    let columns = ["job", "rank", "peer"].into_iter().chain(AMOUNTS).collect();
    Table { title: "Pairs of ranks", columns, rows: rows.collect() }
}

/// Messages by size: of no bytes, and then by powers of two.
fn sizes(profile: &Profile) -> Table {
    let mut rows = Vec::new();
    for row in &profile.functions {
        let Some(traffic) = &row.all.traffic else { continue };
        for (direction, volume) in [("sent", &traffic.sent), ("received", &traffic.received)] {
            let found = (0_u32..).zip(&volume.sizes).filter(|(_, messages)| **messages > 0);
            rows.extend(found.map(|(bits, &messages)| {
                vec![Cell::text(row.all.name), Cell::text(direction), Cell::Bytes(lowest(bits)), Cell::Count(messages)]
            }));
        }
    }
    Table { title: "Messages by size", columns: vec!["function", "direction", "from_bytes", "messages"], rows }
}

/// Operations under way at the end, or never completed.
fn requests(profile: &Profile) -> Table {
    let rows = profile.ranks.iter().flat_map(|rank| {
        rank.traffic.iter().flat_map(|traffic| &traffic.pending).map(|row| {
            vec![
                Cell::rank(rank.rank),
                Cell::text(row.function),
                Cell::text(row.started_by.unwrap_or_default()),
                Cell::rank(row.peer),
                Cell::Text(row.tag.map_or_else(String::new, |tag| tag.to_string())),
                Cell::maybe(row.sent_bytes, Cell::Bytes),
                Cell::maybe(row.received_bytes, Cell::Bytes),
                Cell::ns(row.age_ns),
                Cell::Text(row.site.clone().unwrap_or_else(|| format!("{:#x}", row.call_site))),
            ]
        })
    });
    Table {
        title: "Requests not complete",
        columns: vec![
            "rank",
            "function",
            "started_by",
            "peer",
            "tag",
            "sent_bytes",
            "received_bytes",
            "age_ns",
            "site",
        ],
        rows: rows.collect(),
    }
}

/// Of all ranks.
fn threads(profile: &Profile) -> Table {
    let rows = profile.ranks.iter().filter(|rank| rank.threads_in_mpi > 1).flat_map(|rank| {
        rank.threads.iter().map(|row| {
            vec![
                Cell::rank(rank.rank),
                Cell::Count(row.tid.into()),
                Cell::Text(named(&row.state)),
                Cell::Count(row.calls),
                Cell::ns(row.mpi_ns),
                Cell::ns(row.wall_ns),
            ]
        })
    });
    let columns = vec!["rank", "tid", "state", "calls", "mpi_ns", "wall_ns"];
    Table { title: "Threads, of ranks with several in MPI", columns, rows: rows.collect() }
}

fn layers(profile: &Profile) -> Table {
    let rows = profile.layers.iter().flat_map(|layers| {
        layers.tools.iter().map(|tool| {
            vec![
                Cell::text(layers.function),
                Cell::text(&tool.tool),
                Cell::Count(tool.calls),
                Cell::ns(tool.time_ns),
                Cell::ns(tool.cost_ns),
                Cell::Percent(tool.cost_percent),
                Cell::Count(tool.own_calls),
            ]
        })
    });
    let columns = vec!["function", "tool", "calls", "time_ns", "cost_ns", "cost_percent", "own_calls"];
    Table { title: "Tools between program and library", columns, rows: rows.collect() }
}

fn open_calls(profile: &Profile) -> Table {
    let rows = profile.ranks.iter().flat_map(|rank| {
        rank.open_calls.iter().map(|call| {
            vec![
                Cell::rank(rank.rank),
                Cell::Count(call.tid.into()),
                Cell::text(call.function),
                Cell::ns(call.open_ns),
                Cell::text(call.site.as_deref().unwrap_or_default()),
                Cell::text(if call.ended_inside { "yes" } else { "no" }),
                Cell::text(if call.began_before { "yes" } else { "no" }),
            ]
        })
    });
    let columns = vec!["rank", "tid", "function", "open_ns", "site", "ended_inside", "began_before"];
    Table { title: "Calls still open", columns, rows: rows.collect() }
}

fn cost(profile: &Profile) -> Table {
    let cost = &profile.own_cost;
    let row = vec![
        Cell::Ns(cost.per_call_ns),
        Cell::maybe(cost.inside_ns, Cell::Ns),
        Cell::ns(cost.subtracted_ns),
        Cell::Count(cost.calls),
        Cell::Ns(cost.total_ns),
        Cell::Percent(cost.percent_of_wall),
    ];
    let columns = vec!["per_call_ns", "inside_ns", "subtracted_ns", "calls", "total_ns", "percent_of_wall"];
    Table { title: "Cost of observing", columns, rows: vec![row] }
}

fn phases(profile: &Profile) -> Table {
    let rows = profile.phases.iter().map(|phase| {
        vec![
            Cell::text(&phase.name),
            Cell::Text(phase.level.to_string()),
            Cell::Count(phase.ranks as u64),
            Cell::Count(phase.opened),
            Cell::Count(phase.calls),
            Cell::ns(phase.mpi_ns),
            Cell::Ns(phase.wall_over_ranks_ns.sum),
        ]
    });
    Table {
        title: "Phases",
        columns: vec!["name", "level", "ranks", "opened", "calls", "mpi_ns", "wall_ns"],
        rows: rows.collect(),
    }
}

fn losses(profile: &Profile) -> Table {
    let lost = profile.losses.described().into_iter().filter(|(count, _)| *count > 0);
    let rows = lost.map(|(count, what)| vec![Cell::text(what), Cell::Count(count)]);
    Table { title: "Losses", columns: vec!["what", "count"], rows: rows.collect() }
}

#[cfg(test)]
mod tests {
    use mpiprobe_model::sample;

    use super::*;

    #[test]
    fn every_table_has_as_many_cells_as_columns() {
        let mut profile = sample::profile(sample::ranks(2));
        profile.functions = vec![sample::function("MPI_Send", 3, 10)];
        profile.losses.returns_without_entry = 7;
        let of = |name| table(name, Content { profile: &profile, findings: &[], by: None });
        for table in NAMES.into_iter().map(of) {
            assert!(table.rows.iter().all(|row| row.len() == table.columns.len()), "{table:?}");
        }
        assert_eq!(of("functions").rows[0][1], Cell::Count(3));
        assert_eq!(of("losses").rows.len(), 1);
    }

    #[test]
    fn rows_with_most_of_what_was_asked_for_come_first() {
        let mut profile = sample::profile(sample::ranks(2));
        profile.functions = vec![sample::function("MPI_Send", 3, 1000), sample::function("MPI_Recv", 30, 10)];
        let first = |by| table("functions", Content { profile: &profile, findings: &[], by }).rows[0][0].clone();
        assert_eq!(first(None), Cell::Text("MPI_Send".into()));
        assert_eq!(first(Some(By::Calls)), Cell::Text("MPI_Recv".into()));
        assert_eq!(first(Some(By::Time)), Cell::Text("MPI_Send".into()));
    }
}
