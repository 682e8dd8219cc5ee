//! One function: what it is in each rank, and in all.

use mpiprobe_model::{
    FunctionRow, RankProfile,
    analyse::{FunctionChange, RankChange, RankId},
};

use super::{
    FunctionSum, TableData,
    cells::{bandwidth, counted, counted_per_second, duration_of, known_unless, number, rank_number, share, time},
    layers,
    sums::functions,
};
use crate::content::{Cell, Column, Content, Grid, Location, Row, RowId};

const COLUMNS: &[Column] = &[
    Column::right("rank", 6, 0),
    Column::left("wall %", 14, 1),
    Column::right("time", 8, 0),
    Column::right("calls", 13, 0),
    Column::right("calls/s", 8, 3),
    Column::right("open", 5, 2),
    Column::right("min", 8, 6),
    Column::right("p50", 8, 4),
    Column::right("p99", 8, 2),
    Column::right("max", 8, 5),
    Column::right("bytes/s", 8, 3),
];

pub(super) fn grid(data: &TableData<'_>, name: &'static str) -> Grid {
    let ranks = data.profile.ranks.iter().zip(data.ids).zip(&data.change.ranks);
    let rows = ranks.filter_map(|((rank, id), (change, functions))| {
        let (of_rank, done) = rank.functions.iter().zip(functions).find(|(row, _)| row.name == name)?;
        Some(row(data, (rank, *id, *change), of_rank, *done))
    });
    let sum = functions(data).into_iter().find(|function| function.profile.all.name == name);
    let all = sum.map(|sum| all(data, &sum));
    let layers = all.as_ref().and_then(|all| layers(data, name, all));
    Grid {
        title: format!("{name} by rank, {}; p50, p99 and max since the beginning", data.span()),
        columns: COLUMNS,
        rows: all.into_iter().chain(layers).chain(rows).collect(),
        empty: "No rank has called it.",
        natural: (2, true),
    }
}

/// Before the ranks, whichever way they are sorted by their numbers.
fn all(data: &TableData<'_>, function: &FunctionSum<'_>) -> Row {
    let row = &function.profile.all;
    let whole = known_unless(row.untimed_calls, share(function.wall_percent));
    let mut cells = vec![Cell::number(-1.0, "all".into()), whole];
    cells.extend(figures(data, row, function.change));
    Row { id: RowId::Function(row.name), cells, marked: false, opens: Some(Location::Histogram(row.name, None)) }
}

/// Where tools stand before it: leads to them, and stays behind the row of all ranks however they are sorted.
fn layers(data: &TableData<'_>, name: &'static str, all: &Row) -> Option<Row> {
    layers::of(data, name)?;
    let empty = |cell: &Cell| Cell { content: Content::Text(String::new()), ..cell.clone() };
    let behind = all.cells.iter().skip(1).map(empty);
    let cells = [Cell::number(-0.5, "layers".into())].into_iter().chain(behind).collect();
    Some(Row { id: RowId::Layer(None), cells, marked: false, opens: Some(Location::Layers(name)) })
}

fn row(
    data: &TableData<'_>,
    (rank, id, of_rank): (&RankProfile, RankId, RankChange),
    row: &FunctionRow,
    change: FunctionChange,
) -> Row {
    let whole = of_rank.thread_wall_ns.max(1) as f64;
    let part = known_unless(row.untimed_calls, share(100.0 * change.time_ns as f64 / whole));
    let mut cells = vec![rank_number(rank), part];
    cells.extend(figures(data, row, change));
    Row { id: RowId::Rank(id), cells, marked: false, opens: Some(Location::Histogram(row.name, Some(id))) }
}

/// From the time on.
fn figures(data: &TableData<'_>, row: &FunctionRow, change: FunctionChange) -> [Cell; 9] {
    let timed = row.calls.saturating_sub(row.untimed_calls);
    [
        known_unless(row.untimed_calls, time(change.time_ns)),
        counted(change.calls, row),
        counted_per_second(data.change, change.calls, row),
        number(row.open_calls),
        duration_of(timed, row.min_ns as f64),
        duration_of(timed, row.p50_ns as f64),
        duration_of(timed, row.p99_ns as f64),
        duration_of(timed, row.max_ns as f64),
        bandwidth(data.change, change.bytes),
    ]
}
