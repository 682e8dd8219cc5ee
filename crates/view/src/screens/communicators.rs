//! One row for each communicator; and the functions of one.

use mpiprobe_model::{Amounts, CommunicatorProfile, FunctionAmounts, filter::facts};
use mpiprobe_report::present::units::or_unknown;

use super::{
    TableData,
    cells::{number, time},
    sites::{NO_TRAFFIC, moved},
};
use crate::content::{Cell, Column, Grid, Location, Row, RowId};

const COLUMNS: &[Column] = &[
    Column::text("communicator", 20, 0),
    Column::right("size", 9, 0),
    Column::right("time", 8, 0),
    Column::right("calls", 13, 0),
    Column::right("sent", 10, 1),
    Column::right("received", 10, 2),
    Column::left("most time in", 18, 3),
    Column::right("observed", 9, 4),
    Column::left("", 6, 5),
    Column::left("made by", 20, 6),
];

const FUNCTION_COLUMNS: &[Column] = &[
    Column::text("function", 20, 0),
    Column::right("time", 8, 0),
    Column::right("calls", 13, 0),
    Column::right("sent", 10, 1),
    Column::right("received", 10, 1),
];

pub(super) fn grid(data: &TableData<'_>) -> Grid {
    let Some(traffic) = &data.profile.traffic else {
        return Grid { title: "Communicators".into(), empty: NO_TRAFFIC, ..Grid::default() };
    };
    let others =
        traffic.other_communicators.map(|others| format!("; {} others are not told apart", others.communicators));
    Grid {
        title: format!("Communicators, all ranks, since the beginning{}", others.unwrap_or_default()),
        columns: COLUMNS,
        rows: traffic.communicators.iter().map(row).collect(),
        empty: "No communicator has been used yet.",
        natural: (2, true),
    }
}

fn row(communicator: &CommunicatorProfile) -> Row {
    let most = communicator.functions.first().map_or("", |most| most.function);
    let mut cells = vec![Cell::text(communicator.name.as_str()), size(communicator)];
    cells.extend(amounts(&communicator.amounts));
    cells.extend([
        Cell::text(most),
        number(communicator.ranks.into()),
        Cell::text(if communicator.freed { "freed" } else { "" }),
        Cell::text(communicator.made_by.unwrap_or("")),
    ]);
    Row {
        id: RowId::Communicator(communicator.id),
        cells,
        marked: false,
        opens: Some(Location::Communicator(communicator.id)),
    }
}

/// "4", "4+2" between two groups.
fn size(communicator: &CommunicatorProfile) -> Cell {
    let Some(size) = communicator.size else { return Cell::unknown("?") };
    match communicator.remote_size {
        Some(remote) => Cell::number(f64::from(size) + f64::from(remote), format!("{size}+{remote}")),
        None => Cell::number(size.into(), size.to_string()),
    }
}

fn amounts(amounts: &Amounts) -> [Cell; 4] {
    let [sent, received] = moved(amounts);
    [time(amounts.time_ns), number(amounts.calls), sent, received]
}

/// One communicator: its functions.
pub(super) fn functions(data: &TableData<'_>, id: u32) -> Grid {
    let all = data.all.profile.traffic.iter().flat_map(|traffic| &traffic.communicators);
    let Some(communicator) = all.into_iter().find(|communicator| communicator.id == id) else {
        return Grid { title: "This communicator".into(), empty: "It is not told apart any more.", ..Grid::default() };
    };
    let row = |function: &FunctionAmounts| {
        let mut cells = vec![Cell::text(function.function)];
        cells.extend(amounts(&function.amounts));
        Row {
            id: RowId::Function(function.function),
            cells,
            marked: false,
            opens: Some(Location::Function(function.function)),
        }
    };
    let functions = communicator.functions.iter().filter(|of| data.keeps(&facts::of_communicator(communicator, of)));
    Grid {
        title: format!("{}{}, since the beginning", communicator.name, members(communicator)),
        columns: FUNCTION_COLUMNS,
        rows: functions.map(row).collect(),
        empty: "No call over it has been completed yet.",
        natural: (1, true),
    }
}

/// ": ranks 4, 5, 6, 7"
fn members(communicator: &CommunicatorProfile) -> String {
    /// More are not read.
    const NAMED: usize = 12;
    let Some(members) = &communicator.members else { return String::new() };
    let named: Vec<String> = members.iter().take(NAMED).map(|&rank| or_unknown(rank)).collect();
    let more = members.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!(": ranks {}{more}", named.join(", "))
}
