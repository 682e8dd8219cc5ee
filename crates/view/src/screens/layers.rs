//! What tools on MPI's profiling interface, and the library below them, cost the calls of one function.

use mpiprobe_model::{FunctionLayers, ToolLayer};
use mpiprobe_report::present::library;

use super::{
    TableData,
    cells::{duration_of, number, share, time},
};
use crate::content::{Cell, Column, Grid, Row, RowId, SortKey, Tone};

const COLUMNS: &[Column] = &[
    Column::text("layer", 20, 0),
    Column::right("calls", 13, 0),
    Column::right("time", 8, 2),
    Column::right("cost", 8, 0),
    Column::right("a call", 8, 1),
    Column::left("cost %", 14, 0),
    Column::right("own calls", 10, 3),
    Column::right("in them", 8, 4),
];

pub(super) fn grid(data: &TableData<'_>, name: &'static str) -> Grid {
    let function = of(data, name);
    let rows = function.map(|function| {
        let mut rows: Vec<Vec<Cell>> = function.tools.iter().filter(|tool| tool.calls > 0).flat_map(of_tool).collect();
        rows.extend(of_library(function, library(data.profile)));
        rows
    });
    Grid {
        title: format!("{name} through tools to MPI, all ranks, since the beginning"),
        columns: COLUMNS,
        rows: (0..).zip(rows.unwrap_or_default()).map(|(place, cells)| row(place, cells)).collect(),
        empty: "No call of it has passed a tool.",
        natural: (0, false),
    }
}

/// Whether tools stand before a function, and what they do with its calls.
pub(super) fn of<'a>(data: &TableData<'a>, name: &str) -> Option<&'a FunctionLayers> {
    data.profile.layers.iter().find(|layers| layers.function == name)
}

/// In the order in which calls pass them.
fn row(place: u32, mut cells: Vec<Cell>) -> Row {
    if let Some(name) = cells.first_mut() {
        name.key = SortKey::Number(place.into());
    }
    Row { id: RowId::Layer(Some(place)), cells, marked: false, opens: None }
}

/// The tool, then the functions that it has called itself meanwhile.
fn of_tool(tool: &ToolLayer) -> Vec<Vec<Cell>> {
    let mut cells = layer(&tool.tool, tool.calls, tool.time_ns, (tool.cost_ns, tool.cost_percent));
    cells.extend([number(tool.own_calls), time(tool.own_calls_ns)]);
    let own = tool.own.iter().map(|own| {
        let name = Cell::text(format!("  its own {}", own.function)).toned(Tone::Dim);
        let mut cells = vec![name];
        cells.resize(COLUMNS.len() - 2, Cell::unknown(""));
        cells.extend([number(own.calls), time(own.time_ns)]);
        cells
    });
    [cells].into_iter().chain(own).collect()
}

fn of_library(function: &FunctionLayers, name: &str) -> Option<Vec<Cell>> {
    let below = &function.library;
    (below.calls > 0).then(|| {
        let mut cells = layer(name, below.calls, below.time_ns, (below.time_ns, below.percent));
        cells.resize(COLUMNS.len(), Cell::unknown(""));
        cells
    })
}

fn layer(name: &str, calls: u64, time_ns: u64, (cost_ns, cost_percent): (u64, f64)) -> Vec<Cell> {
    let each = cost_ns as f64 / calls as f64;
    vec![Cell::text(name), number(calls), time(time_ns), time(cost_ns), duration_of(calls, each), share(cost_percent)]
}
