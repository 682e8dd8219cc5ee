//! Words for the numbers in the tables: functions, partners, amounts of a flow.

use mpiprobe_common::{Flow, flow::peer};
use mpiprobe_functions::{Function, FunctionId, Group};

use super::SelfCost;
use crate::{Amounts, Partner};

/// The function of an id in the tables.
pub(super) fn function(id: u32) -> Option<&'static Function> {
    FunctionId::from_index(u16::try_from(id).ok()?).map(FunctionId::function)
}

/// Its name; what the table does not know cannot have been probed.
pub(super) fn name(id: u32) -> &'static str {
    function(id).map_or("unknown function", |function| function.name)
}

pub(super) fn group(id: u32) -> Group {
    function(id).map_or(Group::Other, |function| function.group)
}

/// Of a persistent operation, by whom it was started.
pub(super) fn started_by(function_plus_1: u16) -> Option<&'static str> {
    function_plus_1.checked_sub(1).map(|function| name(function.into()))
}

/// A rank of a key, or one of [`peer`].
pub(super) fn partner(value: i32) -> (Partner, Option<u32>) {
    match value {
        peer::NONE => (Partner::Nobody, None),
        peer::NULL => (Partner::ProcNull, None),
        peer::ANY => (Partner::AnySource, None),
        rank => u32::try_from(rank).map_or((Partner::Unknown, None), |rank| (Partner::Rank, Some(rank))),
    }
}

/// What goes with a flow, without what tells it from others. A flow that has no time of its own (of what a call receives that sends,
/// too) has no own cost either.
pub(super) fn amounts(flow: &Flow, self_cost: SelfCost) -> Amounts {
    Amounts {
        calls: flow.calls,
        time_ns: flow.time_ns - self_cost.within(flow.calls, flow.time_ns),
        sent_bytes: flow.sent,
        received_bytes: flow.received,
        received_at_most_bytes: flow.received_at_most,
        calls_of_unknown_bytes: flow.unknown,
    }
}
