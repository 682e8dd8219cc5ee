//! What events refer to, as it was said last.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use super::definition::Definition;
use crate::definitions::{ClockPair, Location, LocationId, NodeId, Process, ProcessId, SiteId};

/// Pairs of clocks that are kept of a node: one a second, of two hours.
const MOST_PAIRS: usize = 8192;

/// All that was defined. A copy shares what does not change in one of them, and is cheap.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    entries: BTreeMap<Key, Arc<Definition>>,
    pairs: BTreeMap<NodeId, VecDeque<ClockPair>>,
}

/// What a definition is of, in the order in which they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Node(NodeId),
    Process(ProcessId),
    Location(LocationId),
    CallSite(SiteId),
    Communicator(ProcessId, u32),
    Window(ProcessId, u32),
    File(ProcessId, u32),
}

impl Known {
    pub(super) fn take(&mut self, definition: Definition) {
        let key = match &definition {
            // Those of this program are written in any case.
            Definition::Functions(_) | Definition::End => return,
            Definition::Clock(id, pair) => {
                let pairs = self.pairs.entry(*id).or_default();
                if pairs.len() >= MOST_PAIRS {
                    pairs.pop_front();
                }
                pairs.push_back(*pair);
                return;
            }
            Definition::Node(id, _) => Key::Node(*id),
            Definition::Process(id, _) => Key::Process(*id),
            Definition::Location(id, _) => Key::Location(*id),
            Definition::CallSite(id, _) => Key::CallSite(*id),
            Definition::Communicator(local) => Key::Communicator(local.process, local.number),
            Definition::Window { process, number, .. } => Key::Window(*process, *number),
            Definition::File { process, number, .. } => Key::File(*process, *number),
        };
        self.entries.insert(key, Arc::new(definition));
    }

    pub(super) fn process(&self, id: ProcessId) -> Option<&Process> {
        match self.entries.get(&Key::Process(id)).map(Arc::as_ref) {
            Some(Definition::Process(_, process)) => Some(process),
            _ => None,
        }
    }

    pub(super) fn location(&self, id: LocationId) -> Option<&Location> {
        match self.entries.get(&Key::Location(id)).map(Arc::as_ref) {
            Some(Definition::Location(_, location)) => Some(location),
            _ => None,
        }
    }

    /// Of pairs before a time, the last one is enough.
    pub(super) fn forget_pairs(&mut self, from_ns: u64) {
        for pairs in self.pairs.values_mut() {
            while pairs.get(1).is_some_and(|pair| pair.monotonic_ns <= from_ns) {
                pairs.pop_front();
            }
        }
    }

    pub(super) fn definitions(&self) -> impl Iterator<Item = Definition> + '_ {
        let last_node = Key::Node(NodeId(u32::MAX));
        let entries = |range| self.entries.range(range).map(|(_, definition)| Definition::clone(definition));
        let pairs =
            self.pairs.iter().flat_map(|(&id, pairs)| pairs.iter().map(move |&pair| Definition::Clock(id, pair)));
        let nodes = entries((std::ops::Bound::Unbounded, std::ops::Bound::Included(last_node)));
        nodes.chain(pairs).chain(entries((std::ops::Bound::Excluded(last_node), std::ops::Bound::Unbounded)))
    }
}
