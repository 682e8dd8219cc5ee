//! What a call tells a filter.

use std::iter;

use mpiprobe_functions::Operation as When;
use mpiprobe_model::filter::{Facts, Field};
use mpiprobe_trace::{
    Call, Change, ChangeRow, Communicator, Definitions, LocationId, Operation, Partner, Row, Shape, Transfer,
};

use crate::text;

/// What a call has moved, with the requests that it has started and completed, bytes; `None`: that is not known exactly.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moved {
    pub(crate) sent: Option<u64>,
    pub(crate) received: Option<u64>,
}

impl Moved {
    /// `posts`: it gives back a request. `changed`: what it has done to requests, and of which operations.
    pub(crate) fn of<'a>(
        call: &Call,
        posts: bool,
        changed: &(impl Iterator<Item = (Change, &'a Operation)> + Clone),
    ) -> Self {
        let of =
            |what: Change| changed.clone().filter(move |(change, _)| *change == what).map(|(_, operation)| operation);
        // What is persistent moves nothing when it is made, and its amounts each time that it is started.
        let is_made_only = call.function().function().operation == When::Persistent;
        // What is posted has not come yet.
        let has_come = call.operation.receive.filter(|_| !posts && !is_made_only);
        let has_gone = call.operation.send.filter(|_| !is_made_only);
        Self {
            sent: together(iter::once(has_gone).chain(of(Change::Started).map(|operation| operation.send))),
            received: together(iter::once(has_come).chain(of(Change::Completed).map(|operation| operation.receive))),
        }
    }
}

/// All that is moved, if that is known exactly.
fn together(transfers: impl Iterator<Item = Option<Transfer>>) -> Option<u64> {
    let mut amounts = transfers.flatten().map(|transfer| text::exact(transfer.bytes));
    amounts.try_fold(0u64, |sum, bytes| Some(sum.saturating_add(bytes?)))
}

/// What calls have done to requests, and of which operations.
pub(crate) fn changed<'a>(
    changes: &'a [ChangeRow],
    shapes: &'a [Shape],
) -> impl Iterator<Item = (Change, &'a Operation)> + Clone {
    changes.iter().filter_map(|change| match shapes.get(change.shape as usize)? {
        Shape::Change(shape) => Some((shape.change, &shape.operation)),
        _ => None,
    })
}

/// What is known of threads, for one call after the other.
pub(crate) struct Known<'a> {
    definitions: &'a Definitions,
    /// By location.
    whose: Vec<Facts<'a>>,
}

impl<'a> Known<'a> {
    pub(crate) fn new(definitions: &'a Definitions) -> Self {
        let whose = definitions.locations.iter().map(|location| {
            let Some(process) = definitions.process(location.process) else { return Facts::default() };
            let host = definitions.nodes.get(process.node.index()).map(|node| node.host.as_str());
            Facts::default()
                .maybe_number(Field::Rank, process.rank)
                .maybe_text(Field::Job, process.job.as_deref())
                .maybe_text(Field::Host, host)
                .text(Field::Program, &process.executable)
                .number(Field::Pid, process.pid)
        });
        Self { definitions, whose: whose.collect() }
    }

    pub(crate) fn facts(&self, location: LocationId, row: &Row, call: &Call, moved: Moved) -> Facts<'a> {
        let function = call.function().function();
        let operation = &call.operation;
        let Moved { sent, received } = moved;
        let both = sent.zip(received).map(|(sent, received)| sent.saturating_add(received));
        let message = operation.send.or(operation.receive);
        let peer = operation.partner().and_then(|partner| match partner {
            Partner::Rank(rank) => Some(rank),
            _ => None,
        });
        let communicator = operation.communicator.and_then(|id| self.definitions.communicator(id));
        let site = call.call_site.and_then(|site| self.definitions.call_site(site));
        let own = self.whose.get(location.index()).cloned().unwrap_or_default();
        let number = |bytes: Option<u64>| bytes.map(|bytes| bytes as f64);
        own.text(Field::Function, function.name)
            .text(Field::Group, function.group.title())
            .maybe_number(Field::Peer, peer)
            .maybe_number(Field::Tag, message.and_then(|transfer| transfer.tag))
            .maybe_text(Field::Communicator, communicator.map(|communicator| communicator.name.as_str()))
            .maybe_number(Field::Size, communicator.and_then(Communicator::size).map(|size| size as f64))
            .maybe_text(Field::Site, site.map(|site| site.text.as_str()))
            .maybe_number(Field::Sent, number(sent))
            .maybe_number(Field::Received, number(received))
            .maybe_number(Field::Bytes, number(both))
            .number(Field::Time, row.end_ns.saturating_sub(row.begin_ns) as f64)
    }
}
