//! The last calls of one rank, as they were executed: one row for each, the newest last.

use mpiprobe_model::{
    ArgumentValue, CommunicatorArgument, NamedArgument, RankProfile, RecentCallInfo,
    analyse::{RankId, longest},
    filter::facts,
};
use mpiprobe_report::present::{
    doing,
    units::{count, duration},
};

use super::{TableData, cells::who};
use crate::{
    content::{Cell, Column, Grid, Location, Row, RowId, SortKey, Tone},
    source::Running,
};

const COLUMNS: &[Column] = &[
    Column::right("entered", 12, 0),
    Column::right("took", 8, 0),
    Column::text("call", 40, 0),
    Column::text("call site", 20, 1),
    Column::right("thread", 8, 2),
];

const NOT_NOTED: &str = "Calls are written down from now on; those of the last moments come with the next look.";
const NO_CALL: &str = "No call has returned since they are written down.";
const NOT_OPEN: &str = "The job has ended. Calls are written down only while this screen is open.";
const NOT_KEPT: &str =
    "Recent calls are seen only while a job is observed with this screen open; recordings have none.";
const NO_RANK: &str = "There is no rank.";

/// The rank whose calls are shown: the one asked for, if it is there.
pub(crate) fn shown_rank(ids: &[RankId], wanted: Option<RankId>) -> Option<usize> {
    let found = wanted.and_then(|wanted| ids.iter().position(|id| *id == wanted));
    found.or((!ids.is_empty()).then_some(0))
}

pub(super) fn grid(data: &TableData<'_>) -> Grid {
    let empty = |empty| Grid { title: "Recent calls".into(), columns: COLUMNS, empty, ..Grid::default() };
    let Some(index) = shown_rank(data.ids, data.recent.of) else { return empty(NO_RANK) };
    let (Some(rank), Some(&id)) = (data.profile.ranks.get(index), data.ids.get(index)) else { return empty(NO_RANK) };
    let Some(recent) = &rank.recent else {
        let why = match data.recent.running {
            Running::Live => NOT_NOTED,
            Running::Ended => NOT_OPEN,
            Running::Replay => NOT_KEPT,
        };
        return Grid { title: format!("Recent calls of rank {}", who(rank)), ..empty(why) };
    };
    let now = longest(rank).map(|call| format!(", now {}", doing(call))).unwrap_or_default();
    let missed = recent.missed();
    let missed = if missed > 0 { format!(", {} between not seen", count(missed)) } else { String::new() };
    let title = match &recent.why_not {
        Some(why) => format!("Recent calls of rank {}: {why}", who(rank)),
        None => format!("Last {} calls of rank {}{missed}{now}", recent.calls.len(), who(rank)),
    };
    Grid { title, columns: COLUMNS, rows: rows(data, rank, id, &recent.calls), empty: NO_CALL, natural: (0, false) }
}

/// With a row wherever calls are missing, unless a filter leaves some out.
fn rows(data: &TableData<'_>, rank: &RankProfile, id: RankId, calls: &[RecentCallInfo]) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut next = None;
    for call in calls {
        let missing = next.map_or(0, |next| call.number.saturating_sub(next));
        next = Some(call.number.saturating_add(1));
        if missing > 0 && data.filter.is_none() {
            rows.push(gap(id, call.number, missing));
        }
        let named: Vec<Argument<'_>> =
            call.arguments.iter().map(|argument| Argument::of(data, rank, argument)).collect();
        if keeps(data, rank, call) {
            rows.push(row(data, id, call, &named));
        }
    }
    rows
}

/// An argument, and its value in words.
struct Argument<'a> {
    argument: &'a NamedArgument,
    shown: String,
}

impl<'a> Argument<'a> {
    fn of(data: &TableData<'_>, rank: &RankProfile, argument: &'a NamedArgument) -> Self {
        let shown = match &argument.value {
            ArgumentValue::Integer(value) => value.to_string(),
            ArgumentValue::Constant(name) => name.clone().into_owned(),
            ArgumentValue::Address(0) => "NULL".to_owned(),
            ArgumentValue::Address(word) | ArgumentValue::Handle(word) => format!("{word:#x}"),
            ArgumentValue::Communicator(communicator) => {
                let name = predefined(communicator).or_else(|| communicator_name(data, rank, communicator));
                name.map_or_else(|| format!("{:#x}", communicator.handle), str::to_owned)
            }
            ArgumentValue::Unknown => "?".to_owned(),
        };
        Self { argument, shown }
    }

    /// Addresses tell least.
    fn is_address(&self) -> bool {
        matches!(self.argument.value, ArgumentValue::Address(_))
    }
}

/// As the standard calls it.
fn predefined(communicator: &CommunicatorArgument) -> Option<&str> {
    communicator.name.as_deref().filter(|name| matches!(*name, "MPI_COMM_WORLD" | "MPI_COMM_SELF"))
}

/// As other screens and filters call it.
fn communicator_name<'a>(
    data: &TableData<'a>,
    rank: &RankProfile,
    communicator: &'a CommunicatorArgument,
) -> Option<&'a str> {
    let of_all = data.communicator(rank, communicator.number).map(|of| of.name.as_str());
    of_all.or(communicator.name.as_deref())
}

/// "MPI_Recv(count=1, datatype=MPI_INT, source=0, tag=7, comm=world, buf=0x7ffd0, status=MPI_STATUS_IGNORE)"
fn text(call: &RecentCallInfo, arguments: &[Argument<'_>]) -> String {
    let (last, first): (Vec<&Argument<'_>>, Vec<_>) = arguments.iter().partition(|argument| argument.is_address());
    let shown = first.into_iter().chain(last).map(|one| format!("{}={}", one.argument.name, one.shown));
    let error = call.error.map(|code| format!(" = error {code}")).unwrap_or_default();
    format!("{}({}){error}", call.function, shown.collect::<Vec<_>>().join(", "))
}

fn keeps(data: &TableData<'_>, rank: &RankProfile, call: &RecentCallInfo) -> bool {
    if data.filter.is_none() {
        return true;
    }
    let communicator = call.arguments.iter().find_map(|argument| match &argument.value {
        ArgumentValue::Communicator(communicator) => communicator_name(data, rank, communicator),
        _ => None,
    });
    data.keeps(&facts::recent(facts::whose(rank, &data.profile.host), call, communicator))
}

fn row(data: &TableData<'_>, id: RankId, call: &RecentCallInfo, arguments: &[Argument<'_>]) -> Row {
    let entered_ns = data.profile.observed_ns.saturating_sub(call.entered_ago_ns);
    let text = Cell::text(text(call, arguments));
    Row {
        id: RowId::RecentCall(id, call.number),
        cells: vec![
            // Of several threads, calls are in the order of their returns.
            Cell::number(call.number as f64, format!("{:.6}", entered_ns as f64 / 1e9)),
            Cell::number(call.ns as f64, duration(call.ns as f64)),
            if call.error.is_some() { text.toned(Tone::Alarm) } else { text },
            call.site.as_deref().map_or_else(|| Cell::unknown("?"), Cell::text),
            Cell::number(call.tid.into(), call.tid.to_string()),
        ],
        marked: call.error.is_some(),
        opens: Some(Location::Function(call.function)),
    }
}

/// Calls that are missing before the one of that number.
fn gap(id: RankId, before: u64, missing: u64) -> Row {
    let place = Cell { key: SortKey::Number(before as f64 - 0.5), ..Cell::unknown("") };
    let shown = if missing == 1 { "1 call not seen".to_owned() } else { format!("{} calls not seen", count(missing)) };
    Row {
        id: RowId::RecentGap(id, before),
        cells: vec![place, Cell::unknown(""), Cell::unknown(&shown), Cell::unknown(""), Cell::unknown("")],
        marked: false,
        opens: None,
    }
}
