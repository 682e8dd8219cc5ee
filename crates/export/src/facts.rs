//! What a call tells a filter.

use mpiprobe_model::filter::{Facts, Field};
use mpiprobe_trace::{Call, Communicator, Definitions, LocationId, Partner, Row, Transfer};

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

    pub(crate) fn facts(&self, location: LocationId, row: &Row, call: &Call) -> Facts<'a> {
        let function = call.function().function();
        let operation = &call.operation;
        let bytes = |transfer: Option<Transfer>| match transfer {
            Some(transfer) => transfer.bytes.at_most(),
            None => Some(0),
        };
        let (sent, received) = (bytes(operation.send), bytes(operation.receive));
        let both = sent.zip(received).map(|(sent, received)| sent.saturating_add(received));
        let message = operation.send.or(operation.receive);
        let peer = message.and_then(|transfer| match transfer.partner {
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
