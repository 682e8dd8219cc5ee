//! What rows tell.

use std::borrow::Cow;

use super::Field;
use crate::{
    Amounts, ArgumentValue, CommunicatorProfile, FlowRow, FunctionAmounts, FunctionProfile, FunctionRow, PartnerRow,
    PendingRow, RankProfile, RankState, RecentCallInfo, analyse::longest,
};

/// A value of a field.
#[derive(Clone, Debug, PartialEq)]
pub enum Fact<'a> {
    Number(f64),
    Text(Cow<'a, str>),
}

/// What a row tells: fields that it has, and their values where they are known. Texts are the row's own: there are many rows.
#[derive(Debug, Default, PartialEq)]
pub struct Facts<'a>(Vec<(Field, Option<Fact<'a>>)>);

/// Of those that hold for many rows; there is room for what a row adds.
impl Clone for Facts<'_> {
    fn clone(&self) -> Self {
        const MOST: usize = 20;
        let mut facts = Vec::with_capacity(self.0.len() + MOST);
        facts.extend_from_slice(&self.0);
        Self(facts)
    }
}

impl<'a> Facts<'a> {
    /// The value of a field, `Some(None)` if it is not known; `None`: the row has no such field.
    pub fn get(&self, field: Field) -> Option<Option<&Fact<'a>>> {
        // The last one is the nearest to the row.
        self.0.iter().rev().find(|(known, _)| *known == field).map(|(_, fact)| fact.as_ref())
    }

    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|(_, fact)| match fact {
            Some(Fact::Text(text)) => Some(text.as_ref()),
            _ => None,
        })
    }

    #[must_use]
    pub fn number(self, field: Field, value: impl Into<f64>) -> Self {
        self.maybe_number(field, Some(value))
    }

    #[must_use]
    pub fn maybe_number(mut self, field: Field, value: Option<impl Into<f64>>) -> Self {
        self.0.push((field, value.map(|value| Fact::Number(value.into()))));
        self
    }

    /// Counts, bytes and ns, to as many digits as a filter needs.
    #[must_use]
    fn count(self, field: Field, value: u64) -> Self {
        self.number(field, value as f64)
    }

    #[must_use]
    pub fn maybe_text(mut self, field: Field, value: Option<&'a str>) -> Self {
        self.0.push((field, value.map(|text| Fact::Text(text.into()))));
        self
    }

    #[must_use]
    pub fn text(self, field: Field, value: &'a str) -> Self {
        self.maybe_text(field, Some(value))
    }

    #[must_use]
    fn moved(self, sent: u64, received: u64) -> Self {
        self.count(Field::Sent, sent)
            .count(Field::Received, received)
            .count(Field::Bytes, sent.saturating_add(received))
    }
}

/// Of whom the rows of a rank are.
pub fn whose<'a>(rank: &'a RankProfile, host: &'a str) -> Facts<'a> {
    let state = match rank.state {
        RankState::Running if rank.stopped => "stopped",
        RankState::Running => "running",
        RankState::Ended => "ended",
        RankState::Execed => "execed",
    };
    Facts::default()
        .maybe_number(Field::Rank, rank.rank)
        .number(Field::Pid, rank.pid)
        .text(Field::Host, host)
        .maybe_text(Field::Job, rank.job.as_deref())
        .text(Field::Program, &rank.executable)
        .text(Field::State, state)
        // Where times are not known, it would be too little.
        .maybe_number(Field::Mpi, rank.mpi_percent.filter(|_| rank.untimed_calls == 0))
}

/// A rank.
pub fn rank<'a>(rank: &'a RankProfile, host: &'a str) -> Facts<'a> {
    whose(rank, host)
        .count(Field::Calls, rank.calls)
        .count(Field::Open, rank.open_calls.len() as u64)
        .count(Field::Time, rank.mpi_ns)
        .maybe_number(Field::Age, longest(rank).map(|call| call.open_ns as f64))
}

/// A function in `facts`, which say of whom it is.
#[must_use]
pub fn function<'a>(facts: Facts<'a>, row: &'a FunctionRow) -> Facts<'a> {
    let completed = |ns: u64| (row.calls > row.untimed_calls).then_some(ns as f64);
    let facts = facts
        .text(Field::Function, row.name)
        .text(Field::Group, row.group)
        .count(Field::Calls, row.calls)
        .count(Field::Open, row.open_calls)
        .count(Field::Time, row.spent_ns())
        .maybe_number(Field::P50, completed(row.p50_ns))
        .maybe_number(Field::P99, completed(row.p99_ns))
        .maybe_number(Field::Max, completed(row.max_ns));
    match &row.traffic {
        Some(traffic) => facts.moved(traffic.sent.bytes, traffic.received.bytes),
        None => facts,
    }
}

/// A function over ranks.
pub fn of_all_ranks(row: &FunctionProfile) -> Facts<'_> {
    function(Facts::default(), &row.all).number(Field::Imbalance, 100.0 * row.time_over_ranks_ns.imbalance)
}

/// The group that a function is in, as far as the function's name tells.
fn group(function: &str) -> Option<&'static str> {
    mpiprobe_functions::by_name(function).map(|id| id.function().group.title())
}

/// A flow of a rank over a communicator of that name.
#[must_use]
pub fn flow<'a>(facts: Facts<'a>, row: &'a FlowRow, communicator: Option<&'a CommunicatorProfile>) -> Facts<'a> {
    let facts = over(facts, communicator)
        .text(Field::Function, row.function)
        .maybe_text(Field::Group, group(row.function))
        .maybe_number(Field::Peer, row.peer)
        .maybe_text(Field::Site, row.site.as_deref());
    amounts(facts, &row.amounts)
}

/// A request of a rank.
#[must_use]
pub fn pending<'a>(facts: Facts<'a>, row: &'a PendingRow, communicator: Option<&'a CommunicatorProfile>) -> Facts<'a> {
    over(facts, communicator)
        .text(Field::Function, row.function)
        .maybe_text(Field::Group, group(row.function))
        .maybe_number(Field::Peer, row.peer)
        .maybe_number(Field::Tag, row.tag)
        .maybe_text(Field::Site, row.site.as_deref())
        .count(Field::Age, row.age_ns)
        .maybe_number(Field::Sent, row.sent_bytes.map(|bytes| bytes as f64))
        .maybe_number(Field::Received, row.received_bytes.map(|bytes| bytes as f64))
        .maybe_number(Field::Bytes, row.sent_bytes.or(row.received_bytes).map(|bytes| bytes as f64))
}

/// A call of a rank that has returned, over a communicator of that name.
#[must_use]
pub fn recent<'a>(facts: Facts<'a>, call: &'a RecentCallInfo, communicator: Option<&'a str>) -> Facts<'a> {
    let tag = call.arguments.iter().find_map(|argument| match argument.value {
        ArgumentValue::Integer(tag) if argument.name.ends_with("tag") => Some(tag as f64),
        _ => None,
    });
    facts
        .text(Field::Function, call.function)
        .maybe_text(Field::Group, group(call.function))
        .maybe_text(Field::Communicator, communicator)
        .maybe_number(Field::Tag, tag)
        .maybe_text(Field::Site, call.site.as_deref())
        .count(Field::Time, call.ns)
}

fn over<'a>(facts: Facts<'a>, communicator: Option<&'a CommunicatorProfile>) -> Facts<'a> {
    facts
        .maybe_text(Field::Communicator, communicator.map(|communicator| communicator.name.as_str()))
        .maybe_number(Field::Size, communicator.and_then(|communicator| communicator.size))
}

/// A communicator.
pub fn communicator(row: &CommunicatorProfile) -> Facts<'_> {
    amounts(over(Facts::default(), Some(row)).maybe_text(Field::Job, row.job.as_deref()), &row.amounts)
}

/// A function over a communicator.
pub fn of_communicator<'a>(communicator: &'a CommunicatorProfile, row: &'a FunctionAmounts) -> Facts<'a> {
    let facts = over(Facts::default(), Some(communicator)).maybe_text(Field::Job, communicator.job.as_deref());
    let facts = facts.text(Field::Function, row.function).maybe_text(Field::Group, group(row.function));
    amounts(facts, &row.amounts)
}

/// What one rank did with another one.
pub fn pair(row: &PartnerRow) -> Facts<'_> {
    let facts = Facts::default()
        .number(Field::Rank, row.rank)
        .number(Field::Peer, row.peer)
        .maybe_text(Field::Job, row.job.as_deref());
    amounts(facts, &row.amounts)
}

fn amounts<'a>(facts: Facts<'a>, amounts: &Amounts) -> Facts<'a> {
    facts
        .count(Field::Calls, amounts.calls)
        .count(Field::Time, amounts.time_ns)
        .moved(amounts.sent_bytes, amounts.received_bytes)
}
