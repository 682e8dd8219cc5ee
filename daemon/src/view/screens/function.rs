//! One function: what it is in each rank, and in all.

use super::{
    FunctionSum, Known,
    cells::{bandwidth, duration_of, number, per_second, rank_number, share, time},
    sums::functions,
};
use crate::{
    analyse::{FunctionChange, RankChange, RankId},
    model::{FunctionRow, RankProfile},
    view::state::{Cell, Column, Grid, Place, Row, RowId},
};

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

pub(super) fn grid(known: &Known<'_>, name: &'static str) -> Grid {
    let ranks = known.profile.ranks.iter().zip(known.ids).zip(&known.change.ranks);
    let rows = ranks.filter_map(|((rank, id), (change, functions))| {
        let (of_rank, done) = rank.functions.iter().zip(functions).find(|(row, _)| row.name == name)?;
        Some(row(known, (rank, *id, *change), of_rank, *done))
    });
    let all =
        functions(known).into_iter().filter(|function| function.profile.all.name == name).map(|sum| all(known, &sum));
    Grid {
        title: format!("{name} by rank, {}; p50, p99 and max since the beginning", known.span()),
        columns: COLUMNS,
        rows: all.chain(rows).collect(),
        empty: "No rank has called it.",
        natural: (2, true),
    }
}

/// Before the ranks, whichever way they are sorted by their numbers.
fn all(known: &Known<'_>, function: &FunctionSum<'_>) -> Row {
    let row = &function.profile.all;
    let mut cells = vec![Cell::number(-1.0, "all".into()), share(function.wall_percent)];
    cells.extend(figures(known, row, function.change));
    Row { id: RowId::Function(row.name), cells, marked: false, opens: Some(Place::Histogram(row.name, None)) }
}

fn row(
    known: &Known<'_>,
    (rank, id, of_rank): (&RankProfile, RankId, RankChange),
    row: &FunctionRow,
    change: FunctionChange,
) -> Row {
    let whole = of_rank.thread_wall_ns.max(1) as f64;
    let mut cells = vec![rank_number(rank), share(100.0 * change.time_ns as f64 / whole)];
    cells.extend(figures(known, row, change));
    Row { id: RowId::Rank(id), cells, marked: false, opens: Some(Place::Histogram(row.name, Some(id))) }
}

/// From the time on.
fn figures(known: &Known<'_>, row: &FunctionRow, change: FunctionChange) -> [Cell; 9] {
    [
        time(change.time_ns),
        number(change.calls),
        per_second(known.change, change.calls),
        number(row.open_calls),
        duration_of(row.calls, row.min_ns as f64),
        duration_of(row.calls, row.p50_ns as f64),
        duration_of(row.calls, row.p99_ns as f64),
        duration_of(row.calls, row.max_ns as f64),
        bandwidth(known.change, change.bytes),
    ]
}
