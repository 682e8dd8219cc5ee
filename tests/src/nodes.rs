//! A trace as several nodes would have written it, each in a file of its own, by a clock of its own.

use std::{fs::File, io::BufWriter, path::Path};

use libtest_mimic::Failed;
use mpiprobe_trace::{
    Definitions, Location, LocationId, NodeId, Part, Parts, Process, ProcessId, ReadError, Span, Trace, store,
};

/// What one node has seen.
struct OfNode<'a> {
    trace: &'a dyn Trace,
    definitions: Definitions,
    /// What the node's locations are in the whole trace.
    locations: Vec<LocationId>,
    clock: &'a (dyn Fn(u64) -> u64 + Sync),
}

impl<'a> OfNode<'a> {
    fn new(trace: &'a dyn Trace, has: impl Fn(&Process) -> bool, clock: &'a (dyn Fn(u64) -> u64 + Sync)) -> Self {
        let whole = trace.definitions();
        let mut definitions = whole.clone();
        let is_here: Vec<bool> = whole.processes.iter().map(&has).collect();
        let here = |id: ProcessId| is_here.get(id.index()) == Some(&true);
        let new_id = |id: ProcessId| {
            let before = is_here.iter().take(id.index()).filter(|&&is_here| is_here).count();
            ProcessId(u32::try_from(before).unwrap_or(u32::MAX))
        };
        let processes = whole.processes.iter().filter(|process| has(process)).cloned();
        definitions.processes = processes.map(|process| Process { node: NodeId(0), ..process }).collect();
        let node = whole.processes.iter().find(|process| has(process)).map_or(NodeId(0), |process| process.node);
        definitions.nodes = whole.nodes.get(node.index()).cloned().into_iter().collect();
        let locations = whole.location_ids().zip(&whole.locations).filter(|(_, location)| here(location.process));
        let (ids, of_node) = locations
            .map(|(id, location)| (id, Location { process: new_id(location.process), ..location.clone() }))
            .unzip();
        definitions.locations = of_node;
        Self { trace, definitions, locations: ids, clock }
    }

    fn shown(&self, span: Span) -> Span {
        Span { from_ns: (self.clock)(span.from_ns), until_ns: (self.clock)(span.until_ns) }
    }
}

impl Trace for OfNode<'_> {
    fn definitions(&self) -> &Definitions {
        &self.definitions
    }

    fn span(&self) -> Span {
        self.shown(self.trace.span())
    }

    fn span_of(&self, location: LocationId) -> Option<Span> {
        Some(self.shown(self.trace.span_of(*self.locations.get(location.index())?)?))
    }

    fn event_count(&self) -> u64 {
        self.trace.event_count()
    }

    fn parts(&self, location: LocationId, _: Span) -> Parts<'_> {
        let Some(&location) = self.locations.get(location.index()) else { return Box::new(std::iter::empty()) };
        let shown = move |part: Result<Part, ReadError>| {
            let mut part = part?;
            for row in &mut part.rows {
                (row.begin_ns, row.end_ns) = ((self.clock)(row.begin_ns), (self.clock)(row.end_ns));
            }
            Ok(part)
        };
        Box::new(self.trace.parts(location, Span::ALL).map(shown))
    }
}

/// Writes what ranks of a trace have done as the file of a node, whose name and clock those are.
pub fn write_node(
    trace: &dyn Trace,
    has_rank: impl Fn(u32) -> bool,
    name: &str,
    clock: &(dyn Fn(u64) -> u64 + Sync),
    to: &Path,
) -> Result<(), Failed> {
    let mut node = OfNode::new(trace, |process| process.rank.is_some_and(&has_rank), clock);
    for known in &mut node.definitions.nodes {
        (known.host, known.boot) = (name.into(), format!("boot of {name}"));
        known.clock.clear();
    }
    let file = BufWriter::new(File::create_new(to)?);
    store::copy(&node, Span::ALL, file)?.into_inner().map_err(|error| error.to_string())?;
    Ok(())
}
