//! Calls as rows of a table, in the order of their entries.

use std::io;

use mpiprobe_model::filter::Filter;
use mpiprobe_replay::{Slice, Slices};
use mpiprobe_trace::{Call, Change, ChangeRow, Definitions, LocationId, Operation, Row, Shape, Trace};

use crate::{
    error::ExportError,
    facts::{Known, Moved, changed},
    summary::{Exported, Selection},
    text,
};

/// Names of the columns that are there for each call.
pub const COLUMNS: [&str; 22] = [
    "job",
    "host",
    "rank",
    "tid",
    "number",
    "function",
    "operation_group",
    "start_ns",
    "duration_ns",
    "depth",
    "site",
    "communicator",
    "destination",
    "source",
    "tag",
    "sent_bytes",
    "received_bytes",
    "root",
    "request",
    "completes",
    "result",
    "returned",
];

/// One call. What it has completed by requests is told of the operations by which it was the first to be.
pub(crate) struct CallRow<'a> {
    pub(crate) location: LocationId,
    pub(crate) row: &'a Row,
    pub(crate) call: &'a Call,
    pub(crate) request: Option<u64>,
    pub(crate) completes: u64,
    /// What it has sent, with what it has started.
    pub(crate) sent: Option<u64>,
    /// Of the messages that are received by it, from whom, if there is one; and how much has come in all.
    pub(crate) source: Option<i64>,
    pub(crate) received: Option<u64>,
}

impl CallRow<'_> {
    pub(crate) fn destination(&self) -> Option<i64> {
        let Operation { send, target, .. } = self.call.operation;
        let partner = send.map(|send| send.partner).or(target.map(|target| target.partner));
        partner.and_then(text::partner)
    }

    pub(crate) fn tag(&self) -> Option<i32> {
        let Operation { send, receive, .. } = self.call.operation;
        send.or(receive).and_then(|transfer| transfer.tag)
    }
}

/// Shows all calls that are selected.
pub(crate) fn all(
    trace: &dyn Trace,
    selection: &Selection<'_>,
    progress: &dyn Fn(u64),
    mut take: impl FnMut(&CallRow<'_>) -> io::Result<()>,
) -> Result<Exported, ExportError> {
    let Selection { clocks, span, threads, filter, .. } = *selection;
    let definitions = trace.definitions();
    let locations = definitions.location_ids().filter(|&location| selection.has(location));
    let mut slices = Slices::new(trace, clocks, locations, span, threads);
    let filter = filter.map(|filter| (filter, Known::new(definitions)));
    let mut exported = Exported::default();
    while let Some(slice) = slices.next_slice()? {
        of_slice(&slice, selection, filter.as_ref(), &mut exported, &mut take)?;
        progress(slice.rows());
    }
    exported.damaged = slices.damaged();
    Ok(exported)
}

struct Placed<'a> {
    location: LocationId,
    row: &'a Row,
    shapes: &'a [Shape],
    changes: &'a [ChangeRow],
}

fn of_slice(
    slice: &Slice,
    selection: &Selection<'_>,
    filter: Option<&(&Filter, Known<'_>)>,
    exported: &mut Exported,
    take: &mut impl FnMut(&CallRow<'_>) -> io::Result<()>,
) -> io::Result<()> {
    let mut order: Vec<Placed<'_>> = Vec::new();
    for of_location in &slice.locations {
        for part in &of_location.parts {
            let mut changes = part.changes.as_slice();
            for row in &part.rows {
                let (own, rest) = changes.split_at(changes.len().min(row.changes as usize));
                changes = rest;
                order.push(Placed { location: of_location.location, row, shapes: &part.shapes, changes: own });
            }
        }
    }
    order.sort_by_key(|one| (one.row.begin_ns, one.location));
    let span = selection.span;
    for Placed { location, row, shapes, changes } in order {
        let Some(Shape::Call { call, posts }) = shapes.get(row.shape as usize) else { continue };
        if row.begin_ns < span.from_ns || row.end_ns > span.until_ns {
            exported.cut_calls += 1;
            continue;
        }
        let changed = || changed(changes, shapes);
        let moved = Moved::of(call, *posts, &changed());
        if filter.is_some_and(|(filter, known)| !filter.keeps(&known.facts(location, row, call, moved))) {
            continue;
        }
        exported.calls += 1;
        let completed = || changed().filter(|(change, _)| *change == Change::Completed);
        let first = call.operation.receive.or_else(|| completed().find_map(|(_, operation)| operation.receive));
        take(&CallRow {
            location,
            row,
            call,
            request: posts.then_some(row.request),
            completes: completed().count() as u64,
            source: first.and_then(|transfer| text::partner(transfer.partner)),
            sent: moved.sent,
            received: moved.received,
        })?;
    }
    Ok(())
}

/// What rows say of a thread.
pub(crate) struct Whose<'a> {
    pub(crate) job: Option<&'a str>,
    pub(crate) host: &'a str,
    pub(crate) rank: Option<u32>,
    pub(crate) tid: u32,
}

/// By location.
pub(crate) fn threads(definitions: &Definitions) -> Vec<Whose<'_>> {
    let thread = |location: &mpiprobe_trace::Location| {
        let process = definitions.process(location.process)?;
        let host = definitions.nodes.get(process.node.index()).map_or("", |node| node.host.as_str());
        Some(Whose { job: process.job.as_deref(), host, rank: process.rank, tid: location.tid })
    };
    let nobody = |tid| Whose { job: None, host: "", rank: None, tid };
    definitions.locations.iter().map(|location| thread(location).unwrap_or_else(|| nobody(location.tid))).collect()
}
