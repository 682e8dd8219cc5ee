//! What a profile says, as tables of data: what CSV and Markdown are made of.

use crate::present::units;
use mpiprobe_model::{Amounts, FunctionRow, Profile, Volume};

use super::sites::sites;

/// A table of one kind of thing.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    /// In one word: name of the file, and of `--table`.
    pub(crate) name: &'static str,
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

    fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// Names of all tables, in their order.
pub(crate) const NAMES: [&str; 10] = [
    "efficiency",
    "ranks",
    "functions",
    "functions_by_rank",
    "call_sites",
    "communicators",
    "partners",
    "sizes",
    "phases",
    "losses",
];

/// All tables; those of what the profile does not have are empty.
pub(crate) fn tables(profile: &Profile) -> [Table; NAMES.len()] {
    [
        efficiency(profile),
        ranks(profile),
        functions(profile),
        functions_by_rank(profile),
        call_sites(profile),
        communicators(profile),
        partners(profile),
        sizes(profile),
        phases(profile),
        losses(profile),
    ]
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
        name: "efficiency",
        title: "Efficiency (POP)",
        columns: vec!["parallel_percent", "load_balance_percent", "communication_percent"],
        rows: rows.into_iter().collect(),
    }
}

fn ranks(profile: &Profile) -> Table {
    let rows = profile.ranks.iter().map(|rank| {
        vec![
            Cell::maybe(rank.rank, |rank| Cell::Count(rank.into())),
            Cell::text(rank.job.as_deref().unwrap_or_default()),
            Cell::text(&rank.host),
            Cell::Count(rank.pid.into()),
            Cell::text(&rank.executable),
            Cell::ns(rank.wall_ns),
            Cell::ns(rank.mpi_ns),
            Cell::maybe(rank.mpi_percent, Cell::Percent),
            Cell::Count(rank.calls),
            Cell::Count(rank.threads_in_mpi),
        ]
    });
    Table {
        name: "ranks",
        title: "Ranks",
        columns: vec![
            "rank",
            "job",
            "host",
            "pid",
            "executable",
            "wall_ns",
            "mpi_ns",
            "mpi_percent",
            "calls",
            "threads_in_mpi",
        ],
        rows: rows.collect(),
    }
}

const FUNCTION: [&str; 16] = [
    "function",
    "calls",
    "time_ns",
    "open_ns",
    "mean_ns",
    "min_ns",
    "p50_ns",
    "p99_ns",
    "max_ns",
    "wall_percent",
    "mpi_percent",
    "sent_messages",
    "sent_bytes",
    "received_messages",
    "received_bytes",
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
        Cell::ns(row.time_ns),
        Cell::ns(row.open_ns),
        if_timed(row.mean_ns),
        if_timed(row.min_ns as f64),
        if_timed(row.p50_ns as f64),
        if_timed(row.p99_ns as f64),
        if_timed(row.max_ns as f64),
        Cell::Percent(row.wall_percent),
        Cell::Percent(row.mpi_percent),
        volume(sent, |volume| Cell::Count(volume.messages)),
        volume(sent, |volume| Cell::Bytes(volume.bytes)),
        volume(received, |volume| Cell::Count(volume.messages)),
        volume(received, |volume| Cell::Bytes(volume.bytes)),
        Cell::maybe(traffic, |traffic| Cell::Count(traffic.calls_of_unknown_bytes)),
    ]
}

fn functions(profile: &Profile) -> Table {
    let rows = profile.functions.iter().map(|row| {
        let mut cells = function(&row.all);
        cells.push(Cell::Ratio(row.time_over_ranks_ns.imbalance));
        cells
    });
    let columns = FUNCTION.into_iter().chain(["imbalance"]).collect();
    Table { name: "functions", title: "Functions, all ranks", columns, rows: rows.collect() }
}

fn functions_by_rank(profile: &Profile) -> Table {
    let rows = profile.ranks.iter().flat_map(|rank| {
        rank.functions.iter().map(|row| {
            let mut cells = vec![Cell::maybe(rank.rank, |rank| Cell::Count(rank.into())), Cell::Count(rank.pid.into())];
            cells.extend(function(row));
            cells
        })
    });
    let columns = ["rank", "pid"].into_iter().chain(FUNCTION).collect();
    Table { name: "functions_by_rank", title: "Functions by rank", columns, rows: rows.collect() }
}

const AMOUNTS: [&str; 4] = ["calls", "time_ns", "sent_bytes", "received_bytes"];

fn amounts(amounts: &Amounts) -> [Cell; 4] {
    [
        Cell::Count(amounts.calls),
        Cell::ns(amounts.time_ns),
        Cell::Bytes(amounts.sent_bytes),
        Cell::Bytes(amounts.received_bytes),
    ]
}

fn call_sites(profile: &Profile) -> Table {
    let rows = sites(profile).into_iter().map(|site| {
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
        cells
    });
    let columns = ["function", "started_by", "site", "file", "line", "in", "inlined_into", "ranks"].into_iter();
    Table {
        name: "call_sites",
        title: "Call sites, all ranks",
        columns: columns.chain(AMOUNTS).collect(),
        rows: rows.collect(),
    }
}

fn communicators(profile: &Profile) -> Table {
    let rows = profile.traffic.iter().flat_map(|traffic| &traffic.communicators).map(|one| {
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
    Table { name: "communicators", title: "Communicators", columns, rows: rows.collect() }
}

fn partners(profile: &Profile) -> Table {
    let rows = profile.traffic.iter().flat_map(|traffic| &traffic.partners).map(|one| {
        let mut cells = vec![
            Cell::text(one.job.as_deref().unwrap_or_default()),
            Cell::Count(one.rank.into()),
            Cell::Count(one.peer.into()),
        ];
        cells.extend(amounts(&one.amounts));
        cells
    });
    let columns = ["job", "rank", "peer"].into_iter().chain(AMOUNTS).collect();
    Table { name: "partners", title: "Pairs of ranks", columns, rows: rows.collect() }
}

/// Messages by size: of no bytes, and then by powers of two.
fn sizes(profile: &Profile) -> Table {
    let mut rows = Vec::new();
    for row in &profile.functions {
        let Some(traffic) = &row.all.traffic else { continue };
        for (direction, volume) in [("sent", &traffic.sent), ("received", &traffic.received)] {
            let found = (0_u32..).zip(&volume.sizes).filter(|(_, messages)| **messages > 0);
            rows.extend(found.map(|(bits, &messages)| {
                let low = bits.checked_sub(1).map_or(0, |shift| 1_u64.checked_shl(shift).unwrap_or(u64::MAX));
                vec![Cell::text(row.all.name), Cell::text(direction), Cell::Bytes(low), Cell::Count(messages)]
            }));
        }
    }
    Table {
        name: "sizes",
        title: "Messages by size",
        columns: vec!["function", "direction", "from_bytes", "messages"],
        rows,
    }
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
        name: "phases",
        title: "Phases",
        columns: vec!["name", "level", "ranks", "opened", "calls", "mpi_ns", "wall_ns"],
        rows: rows.collect(),
    }
}

fn losses(profile: &Profile) -> Table {
    let lost = profile.losses.described().into_iter().filter(|(count, _)| *count > 0);
    let rows = lost.map(|(count, what)| vec![Cell::text(what), Cell::Count(count)]);
    Table { name: "losses", title: "Losses", columns: vec!["what", "count"], rows: rows.collect() }
}

#[cfg(test)]
mod tests {
    use mpiprobe_model::sample;

    use super::*;

    #[test]
    fn every_table_has_its_name_and_as_many_cells_as_columns() {
        let mut profile = sample::profile(sample::ranks(2));
        profile.functions = vec![sample::function("MPI_Send", 3, 10)];
        profile.losses.returns_without_entry = 7;
        let all = tables(&profile);
        assert_eq!(all.iter().map(|table| table.name).collect::<Vec<_>>(), NAMES);
        for table in &all {
            assert!(table.rows.iter().all(|row| row.len() == table.columns.len()), "{table:?}");
        }
        assert_eq!(all[2].rows[0][1], Cell::Count(3));
        assert_eq!(all[9].rows.len(), 1);
    }
}
