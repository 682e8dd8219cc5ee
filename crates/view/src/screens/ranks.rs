//! One row for each rank: what it does now, and how its time is spent.

use std::collections::BTreeSet;

use mpiprobe_model::{
    RankProfile,
    analyse::{FunctionChange, ProcessWaits, RankChange, RankId},
};

use super::{
    TableData,
    cells::{
        bandwidth, is_stuck, known_unless, maybe_share, number, per_second, rank_number, share, since, state, time,
    },
    sums::groups,
};
use crate::content::{Cell, Column, Content, Grid, Location, Row, RowId, SortKey, Tone};

const COLUMNS: [Column; 10] = [
    Column::right("rank", 6, 0),
    Column::text("now", 28, 0),
    Column::right("for", 8, 0),
    Column::left("MPI %", 14, 1),
    Column::left("by group", 16, 4),
    Column::right("calls/s", 8, 2),
    Column::right("bytes/s", 8, 3),
    Column::right("calls", 14, 6),
    Column::right("pid", 8, 5),
    Column::left("host", 12, 7),
];

/// Where it is found out who waits for whom.
const COLUMNS_OF_WAITS: [Column; 13] = [
    Column::right("rank", 6, 0),
    Column::text("now", 28, 0),
    Column::right("for", 8, 0),
    Column::left("MPI %", 14, 2),
    Column::left("waits %", 14, 0),
    Column::left("mostly by", 22, 3),
    Column::right("caused", 8, 1),
    Column::left("by group", 16, 6),
    Column::right("calls/s", 8, 4),
    Column::right("bytes/s", 8, 5),
    Column::right("calls", 14, 8),
    Column::right("pid", 8, 7),
    Column::left("host", 12, 9),
];

/// The same where a job is on several nodes: theirs are together, so the host comes first, and of what ranks do now there is less.
#[expect(clippy::indexing_slicing, reason = "the compiler does it, and refuses what is out of bounds")]
const fn of_nodes<const N: usize>(columns: [Column; N]) -> [Column; N] {
    let mut of_nodes = columns;
    let mut place = 1;
    while place < N {
        of_nodes[place] = columns[place - 1];
        place += 1;
    }
    of_nodes[0] = Column::left("host", 12, 0);
    of_nodes[2] = Column::text("now", 20, 0);
    of_nodes
}

pub(super) fn grid(data: &TableData<'_>) -> Grid {
    let rows = data.profile.ranks.iter().zip(data.ids).zip(&data.change.ranks);
    // Also while a filter shows those of one only: columns do not jump about.
    let nodes = data.all.profile.ranks.iter().map(|rank| &rank.host).collect::<BTreeSet<_>>().len();
    let on_nodes = if nodes > 1 { format!(" on {nodes} nodes") } else { String::new() };
    let mut rows: Vec<Row> =
        rows.map(|((rank, id), (change, functions))| row(data, rank, *id, *change, functions)).collect();
    let waits = data.change.waits.as_deref();
    if let Some(waits) = waits {
        // Of what has been forgotten meanwhile, nobody knows how much of the span it was.
        let is_short = data.all.profile.wait_states.as_ref().is_some_and(|states| states.is_short);
        for ((row, rank), (change, _)) in rows.iter_mut().zip(&data.profile.ranks).zip(&data.change.ranks) {
            let own = waits.processes.get(rank.rank, &rank.host, rank.pid).copied().unwrap_or_default();
            let cells = if is_short { [(); 3].map(|()| Cell::unknown("?")) } else { waited(own, *change) };
            row.cells.splice(4..4, cells);
        }
    }
    if nodes > 1 {
        for row in &mut rows {
            row.cells.rotate_right(1);
        }
    }
    Grid {
        title: format!("{} ranks{on_nodes}, {}", data.profile.ranks.len(), data.span()),
        columns: match waits {
            Some(_) if nodes > 1 => const { &of_nodes(COLUMNS_OF_WAITS) },
            Some(_) => &COLUMNS_OF_WAITS,
            None if nodes > 1 => const { &of_nodes(COLUMNS) },
            None => &COLUMNS,
        },
        rows,
        empty: "No MPI process is observed yet.",
        natural: (0, false),
    }
}

fn row(data: &TableData<'_>, rank: &RankProfile, id: RankId, change: RankChange, functions: &[FunctionChange]) -> Row {
    let marked = is_stuck(data.all.profile, rank) || rank.stopped;
    let names = rank.functions.iter().map(|row| row.name);
    Row {
        id: RowId::Rank(id),
        cells: vec![
            rank_number(rank),
            state(rank, marked),
            since(rank, marked),
            known_unless(rank.untimed_calls, maybe_share(change.mpi_percent())),
            known_unless(rank.untimed_calls, split(change, names.zip(functions.iter().copied()))),
            per_second(data.change, change.calls),
            bandwidth(data.change, change.bytes),
            number(rank.calls),
            Cell::number(rank.pid.into(), rank.pid.to_string()),
            Cell { key: SortKey::Text(by_number(&rank.host)), ..Cell::text(rank.host.as_str()) },
        ],
        marked,
        opens: Some(Location::Rank(id)),
    }
}

/// How much of its time it has waited for others, by what kind most, and how long others have waited for it.
fn waited(own: ProcessWaits, change: RankChange) -> [Cell; 3] {
    let of_time = own.waited_ns as f64 * 100.0 / change.thread_wall_ns.max(1) as f64;
    let most = own.most.map_or_else(|| Cell::text(""), |(kind, _)| Cell::text(kind.title()));
    [share(of_time), most, time(own.caused_ns)]
}

/// A name in which numbers are equally long, so that node10 comes after node9.
fn by_number(name: &str) -> String {
    const DIGITS: usize = 10;
    let mut key = String::new();
    let mut rest = name;
    while let Some(start) = rest.find(|letter: char| letter.is_ascii_digit()) {
        let (text, number) = rest.split_at(start);
        let end = number.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(number.len());
        let (number, after) = number.split_at(end);
        key.push_str(text);
        key.push_str(&"0".repeat(DIGITS.saturating_sub(number.len())));
        key.push_str(number);
        rest = after;
    }
    key + rest
}

/// Shares of the groups of functions in the time of the rank's threads, as a bar.
fn split(change: RankChange, functions: impl Iterator<Item = (&'static str, FunctionChange)>) -> Cell {
    let whole = change.thread_wall_ns.max(1) as f64;
    let parts = groups(functions).into_iter().filter(|(_, ns)| *ns > 0);
    let parts = parts.map(|(group, ns)| (Tone::Group(group.index()), ns as f64 / whole)).collect();
    Cell {
        content: Content::Parts(parts),
        key: SortKey::Number(change.mpi_percent().unwrap_or(-1.0)),
        tone: Tone::Plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{content::Span, screens::Rows};
    use mpiprobe_model::analyse::{Change, identify};
    use mpiprobe_model::sample::{profile, ranks};

    /// Title, and host and rank of the rows in the order that nobody has asked for.
    fn shown(hosts: &[&str]) -> (String, Vec<String>) {
        let mut ranks = ranks(u32::try_from(hosts.len()).unwrap());
        for (rank, host) in ranks.iter_mut().zip(hosts) {
            rank.host = (*host).into();
        }
        let profile = profile(ranks);
        let (change, ids) = (Change::since(None, &profile), identify(&profile.ranks).collect::<Vec<_>>());
        let rows = Rows { profile: &profile, change: &change, ids: &ids };
        let mut grid = grid(&TableData::new(rows, rows, Span::Start, None));
        assert!(grid.rows.iter().all(|row| row.cells.len() == grid.columns.len()));
        let (column, descending) = grid.natural;
        grid.sort(column, descending);
        let cell = |row: &Row, title: &str| {
            let column = grid.columns.iter().position(|column| column.title == title).unwrap();
            row.cells[column].plain()
        };
        let rows = grid.rows.iter().map(|row| format!("{} {}", cell(row, "host"), cell(row, "rank")));
        (grid.title.clone(), rows.collect())
    }

    #[test]
    fn ranks_of_a_node_are_together() {
        let (title, rows) = shown(&["node10", "node9", "node10", "node9"]);
        assert!(title.starts_with("4 ranks on 2 nodes, "), "{title}");
        assert_eq!(rows, ["node9 1", "node9 3", "node10 0", "node10 2"]);
    }

    #[test]
    fn on_one_node_they_are_by_rank() {
        let (title, rows) = shown(&["node1", "node1"]);
        assert!(title.starts_with("2 ranks, "), "{title}");
        assert_eq!(rows, ["node1 0", "node1 1"]);
    }
}
