//! One rank: its threads together, and its functions.

use mpiprobe_model::{
    FunctionRow, RankProfile,
    analyse::{FunctionChange, RankChange, RankId, longest},
};
use mpiprobe_report::present::{doing, units::count};

use super::{
    TableData,
    cells::{bandwidth, counted, counted_per_second, duration_of, known_unless, number, per_second, share, time, who},
};
use crate::content::{Cell, Column, Grid, Location, Row, RowId, Tone};

const COLUMNS: &[Column] = &[
    Column::text("function", 20, 0),
    Column::left("wall %", 14, 1),
    Column::right("time", 8, 0),
    Column::right("calls", 13, 0),
    Column::right("calls/s", 8, 3),
    Column::right("open", 5, 4),
    Column::right("p50", 8, 5),
    Column::right("p99", 8, 2),
    Column::right("max", 8, 6),
    Column::right("bytes/s", 8, 3),
    Column::left("group", 16, 7),
];

pub(super) fn grid(data: &TableData<'_>, id: RankId) -> Grid {
    let found = data.ids.iter().position(|data| *data == id);
    let rank = found.and_then(|index| Some((data.profile.ranks.get(index)?, data.change.ranks.get(index)?)));
    let Some((rank, (change, functions))) = rank else {
        return Grid { title: "This rank".into(), empty: "It is not there any more.", ..Grid::default() };
    };
    let now = longest(rank).map(|call| {
        let site = call.site.as_ref().map(|site| format!(", called at {site}")).unwrap_or_default();
        format!(": {}{site}", doing(call))
    });
    Grid {
        title: format!("Rank {}, {}{}", who(rank), data.span(), now.unwrap_or_default()),
        columns: COLUMNS,
        rows: threads(data, rank, id, *change)
            .into_iter()
            .chain(rank.functions.iter().zip(functions).map(|(row, done)| self::row(data, row, *change, *done)))
            .collect(),
        empty: "No call has been seen yet.",
        natural: (2, true),
    }
}

/// Of several threads all calls together: it leads to the threads.
fn threads(data: &TableData<'_>, rank: &RankProfile, id: RankId, change: RankChange) -> Option<Row> {
    let unknown = || Cell::unknown("");
    let row = || Row {
        id: RowId::Rank(id),
        cells: vec![
            Cell::text(format!("{} threads", count(rank.threads_in_mpi))).toned(Tone::Title),
            known_unless(rank.untimed_calls, share(100.0 * change.mpi_ns as f64 / change.thread_wall_ns.max(1) as f64)),
            known_unless(rank.untimed_calls, time(change.mpi_ns)),
            number(change.calls),
            per_second(data.change, change.calls),
            number(rank.open_calls.len() as u64),
            unknown(),
            unknown(),
            unknown(),
            bandwidth(data.change, change.bytes),
            unknown(),
        ],
        marked: false,
        opens: Some(Location::Threads(id)),
    };
    (rank.threads_in_mpi > 1).then(row)
}

fn row(data: &TableData<'_>, row: &FunctionRow, rank: RankChange, change: FunctionChange) -> Row {
    let whole = rank.thread_wall_ns.max(1) as f64;
    Row {
        id: RowId::Function(row.name),
        cells: vec![
            Cell::text(row.name),
            known_unless(row.untimed_calls, share(100.0 * change.time_ns as f64 / whole)),
            known_unless(row.untimed_calls, time(change.time_ns)),
            counted(change.calls, row),
            counted_per_second(data.change, change.calls, row),
            number(row.open_calls),
            duration_of(row.calls - row.untimed_calls.min(row.calls), row.p50_ns as f64),
            duration_of(row.calls - row.untimed_calls.min(row.calls), row.p99_ns as f64),
            duration_of(row.calls - row.untimed_calls.min(row.calls), row.max_ns as f64),
            bandwidth(data.change, change.bytes),
            Cell::text(row.group),
        ],
        marked: false,
        opens: Some(Location::Function(row.name)),
    }
}
