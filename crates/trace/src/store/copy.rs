//! A trace, or a part of one, as a file.

use std::io::Write;

use super::{
    definition::{Definition, LocalCommunicator},
    error::WriteError,
    writer::TraceWriter,
};
use crate::{
    definitions::{CommunicatorId, CommunicatorKind, Definitions, FileId, NodeId, ProcessId, SiteId, WindowId},
    source::{ReadError, Trace, in_order},
    span::Span,
};

/// Why a trace could not be copied.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CopyError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// Writes what is in a span as one file. In each process, numbers are the ids that the trace has.
pub fn copy<W: Write>(trace: &dyn Trace, span: Span, to: W) -> Result<W, CopyError> {
    copy_into(trace, span, TraceWriter::new(to)?)
}

/// The same to a file that has been begun.
pub fn copy_into<W: Write>(trace: &dyn Trace, span: Span, mut writer: TraceWriter<W>) -> Result<W, CopyError> {
    let definitions = trace.definitions();
    define(definitions, |definition| writer.define(definition));
    for event in in_order(trace, definitions.location_ids(), span) {
        let (location, event) = event?;
        writer.push(location, &event)?;
    }
    Ok(writer.finish()?)
}

pub(super) fn define(definitions: &Definitions, mut define: impl FnMut(Definition)) {
    let nodes = (0..).map(NodeId).zip(definitions.nodes.iter().cloned());
    nodes.for_each(|(id, node)| define(Definition::Node(id, node)));
    let processes = (0..).map(ProcessId).zip(definitions.processes.iter().cloned());
    processes.for_each(|(id, process)| define(Definition::Process(id, process)));
    let locations = definitions.location_ids().zip(definitions.locations.iter().cloned());
    locations.for_each(|(id, location)| define(Definition::Location(id, location)));
    let sites = (0..).map(SiteId).zip(definitions.call_sites.iter().cloned());
    sites.for_each(|(id, site)| define(Definition::CallSite(id, site)));
    for (id, process) in (0..).map(ProcessId).zip(&definitions.processes) {
        for (number, known) in (0..).zip(&definitions.communicators) {
            let rank = process.rank.and_then(|rank| known.rank_of(rank));
            let is_in = known.kind == CommunicatorKind::Own || rank.is_some() || known.members.is_empty();
            if !is_in || (known.job.is_some() && known.job != process.job) {
                continue;
            }
            // Each side of an inter-communicator calls the other one remote.
            let is_remote =
                process.rank.is_some_and(|rank| known.is_inter() && known.remote_members.contains(&Some(rank)));
            let (own, other) = (&known.members, &known.remote_members);
            let (own, other) = if is_remote { (other, own) } else { (own, other) };
            let size = |members: &[Option<u32>]| u32::try_from(members.len()).unwrap_or(u32::MAX);
            define(Definition::Communicator(LocalCommunicator {
                process: id,
                number,
                name: known.name.clone(),
                kind: known.kind,
                // Keeps those with the same members apart.
                context: u64::from(number) + 1,
                size: size(own),
                remote_size: size(other),
                // One that is not known is nobody else's.
                rank: rank.unwrap_or(u32::MAX - id.0),
                parent: known.parent.map(|CommunicatorId(parent)| parent),
                made_by: None,
                outline: outline(own, other),
                members: own.clone(),
                remote_members: other.clone(),
                neighbours: rank.and_then(|rank| known.neighbours.get(&rank).cloned()),
                was_made: known.was_made,
                first_ns: number.into(),
                freed_ns: None,
            }));
        }
        for (WindowId(number), window) in (0..).map(WindowId).zip(&definitions.windows) {
            let communicator = window.communicator.map(|CommunicatorId(id)| id);
            define(Definition::Window { process: id, number, communicator });
        }
        for (FileId(number), file) in (0..).map(FileId).zip(&definitions.files) {
            let communicator = file.communicator.map(|CommunicatorId(id)| id);
            define(Definition::File { process: id, number, communicator, file: file.clone() });
        }
    }
}

/// Some members of a communicator, of whose groups these are.
fn outline(own: &[Option<u32>], other: &[Option<u32>]) -> [Option<u32>; 3] {
    let at = |members: &[Option<u32>], place: usize| members.get(place).copied().flatten();
    let last = if other.is_empty() { at(own, own.len().saturating_sub(1)) } else { at(other, 0) };
    [at(own, 0), at(own, own.len() / 2), last]
}
