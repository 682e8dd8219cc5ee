//! One row for each function, over all ranks.

use super::{
    FunctionSum, TableData,
    cells::{bandwidth, counted, counted_per_second, duration_of, imbalance, known_unless, number, share, time},
    sums::functions,
};
use crate::content::{Cell, Column, Grid, Location, Row, RowId};

const COLUMNS: &[Column] = &[
    Column::text("function", 20, 0),
    Column::left("wall %", 14, 1),
    Column::right("time", 8, 0),
    Column::right("calls", 13, 0),
    Column::right("calls/s", 8, 3),
    Column::right("open", 5, 4),
    Column::right("mean", 8, 7),
    Column::right("p50", 8, 5),
    Column::right("p99", 8, 2),
    Column::right("max", 8, 8),
    Column::right("bytes/s", 8, 6),
    Column::right("imbalance", 10, 3),
    Column::left("group", 16, 9),
];

pub(super) fn grid(data: &TableData<'_>) -> Grid {
    Grid {
        title: format!("Functions, all ranks, {}; p50, p99 and max since the beginning", data.span()),
        columns: COLUMNS,
        rows: functions(data).iter().map(|function| row(data, function)).collect(),
        empty: "No call has been seen yet.",
        natural: (2, true),
    }
}

fn row(data: &TableData<'_>, function: &FunctionSum<'_>) -> Row {
    let (all, change) = (&function.profile.all, function.change);
    let mean = if change.calls == 0 { 0.0 } else { change.time_ns as f64 / change.calls as f64 };
    Row {
        id: RowId::Function(all.name),
        cells: vec![
            Cell::text(all.name),
            known_unless(all.untimed_calls, share(function.wall_percent)),
            known_unless(all.untimed_calls, time(change.time_ns)),
            counted(change.calls, all),
            counted_per_second(data.change, change.calls, all),
            number(all.open_calls),
            known_unless(all.untimed_calls, duration_of(change.calls, mean)),
            duration_of(all.calls - all.untimed_calls.min(all.calls), all.p50_ns as f64),
            duration_of(all.calls - all.untimed_calls.min(all.calls), all.p99_ns as f64),
            duration_of(all.calls - all.untimed_calls.min(all.calls), all.max_ns as f64),
            bandwidth(data.change, change.bytes),
            known_unless(all.untimed_calls, imbalance(function.over_ranks_ns.imbalance)),
            Cell::text(all.group),
        ],
        marked: false,
        opens: Some(Location::Function(all.name)),
    }
}
