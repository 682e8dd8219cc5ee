//! Chunks that are kept in memory, of which the oldest are dropped whole, and what is known of those that were.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use serde::{Deserialize, Serialize};

use super::{
    definition::Definition,
    dump::Dump,
    error::WriteError,
    known::Known,
    stored::{Chunk, Stored},
};
use crate::{
    definitions::{LocationId, Losses, ProcessId},
    event::{Event, PhaseChange},
};

/// The last chunks of a trace. A copy shares them.
#[derive(Clone, Debug, Default)]
pub(super) struct Kept {
    pub(super) known: Known,
    /// By location: what is not there any more.
    dropped: Vec<Dropped>,
    /// By process, the oldest first.
    chunks: BTreeMap<ProcessId, OfProcess>,
    bytes: u64,
}

#[derive(Clone, Debug, Default)]
struct OfProcess {
    chunks: VecDeque<Arc<Chunk>>,
    calls: u64,
}

/// What came before the chunks of a location.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Dropped {
    calls: u64,
    /// Up to when, ns; 0: nothing was dropped.
    until_ns: u64,
    phase: Option<PhaseChange>,
    /// What was missing by then.
    losses: Losses,
}

impl Kept {
    /// Something that events refer to from now on, or more of what is known of it.
    pub(super) fn define(&mut self, definition: Definition) {
        self.known.take(definition);
    }

    /// A further chunk; gives whose it is. `None`: its location was not defined.
    pub(super) fn keep(&mut self, stored: Stored, calls: u64, phase: Option<PhaseChange>) -> Option<ProcessId> {
        let location = self.known.location(LocationId(stored.head.location))?;
        let (process, losses) = (location.process, location.losses);
        let chunk = Chunk { stored, calls, phase, losses };
        self.bytes += chunk.size();
        let kept = self.chunks.entry(process).or_default();
        kept.calls += chunk.calls;
        kept.chunks.push_back(Arc::new(chunk));
        Some(process)
    }

    /// Drops chunks of a process that has so many calls without them.
    pub(super) fn drop_beyond(&mut self, process: ProcessId, calls: u64) {
        let Some(kept) = self.chunks.get_mut(&process) else { return };
        while kept.chunks.front().is_some_and(|oldest| kept.calls - oldest.calls >= calls) {
            self.bytes -= kept.drop_front(&mut self.dropped);
        }
    }

    /// Drops what has ended before a time.
    pub(super) fn drop_before(&mut self, from_ns: u64) {
        for kept in self.chunks.values_mut() {
            while kept.chunks.front().is_some_and(|chunk| chunk.stored.head.until_ns < from_ns) {
                self.bytes -= kept.drop_front(&mut self.dropped);
            }
        }
    }

    /// Drops the oldest chunks of all until no more than so many bytes are left, but for `least` of each process; tells whether it has
    /// dropped any.
    pub(super) fn make_room(&mut self, limit: u64, least: usize) -> bool {
        let mut is_short = false;
        while self.bytes > limit {
            let with_oldest = self.chunks.values_mut().filter(|kept| kept.chunks.len() > least);
            let oldest = with_oldest.min_by_key(|kept| kept.chunks.front().map(|chunk| chunk.stored.head.until_ns));
            let Some(oldest) = oldest else { break };
            self.bytes -= oldest.drop_front(&mut self.dropped);
            is_short = true;
        }
        is_short
    }

    /// All chunks, in the order of time.
    pub(super) fn chunks(&self) -> Vec<Arc<Chunk>> {
        let mut chunks: Vec<Arc<Chunk>> = self.chunks.values().flat_map(|kept| kept.chunks.iter().cloned()).collect();
        chunks.sort_by_key(|chunk| chunk.stored.head.until_ns);
        chunks
    }

    /// By location: what is not there any more.
    pub(super) fn dropped(&self) -> &[Dropped] {
        &self.dropped
    }

    /// Nothing is kept yet of what others have kept, and they had dropped that before.
    pub(super) fn after(dropped: Vec<Dropped>) -> Self {
        Self { dropped, ..Self::default() }
    }

    /// Where the oldest event begins, ns; `None`: there is none.
    pub(super) fn oldest_ns(&self) -> Option<u64> {
        self.chunks.values().filter_map(|kept| kept.chunks.front()).map(|chunk| chunk.stored.head.from_ns).min()
    }

    /// How much memory chunks take, bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// All that is kept, and events that are true only now: calls that are open.
    pub(super) fn dump(&self, open_calls: &[(LocationId, Event)]) -> Result<Dump, WriteError> {
        let mut known = self.known.clone();
        for (id, dropped) in (0..).map(LocationId).zip(&self.dropped).filter(|(_, dropped)| dropped.until_ns > 0) {
            let Some(location) = self.known.location(id) else { continue };
            let mut location = location.clone();
            location.losses = dropped.losses_since(&location.losses);
            let process = location.process;
            known.take(Definition::Location(id, location));
            if let Some(mut of) = known.process(process).cloned() {
                of.recorded_from_ns = of.recorded_from_ns.max(dropped.until_ns);
                of.began_before = true;
                known.take(Definition::Process(process, of));
            }
        }
        let chunks = self.chunks();
        let mut phases = Vec::new();
        let mut seen = vec![false; self.dropped.len()];
        for chunk in &chunks {
            let location = LocationId(chunk.stored.head.location);
            let Some(is_seen) = seen.get_mut(location.index()).filter(|is_seen| !**is_seen) else { continue };
            *is_seen = true;
            // It has begun before, and holds from the beginning on.
            let phase = self.dropped.get(location.index()).and_then(|dropped| dropped.phase.clone());
            let at_ns = chunk.stored.head.from_ns;
            phases.extend(phase.map(|phase| (location, Event::Phase(PhaseChange { at_ns, ..phase }))));
        }
        Dump::new(known, &phases, chunks, open_calls)
    }
}

impl OfProcess {
    /// Gives back how much memory, bytes.
    fn drop_front(&mut self, dropped: &mut Vec<Dropped>) -> u64 {
        let Some(chunk) = self.chunks.pop_front() else { return 0 };
        let location = chunk.stored.head.location as usize;
        if dropped.len() <= location {
            dropped.resize_with(location + 1, Dropped::default);
        }
        if let Some(before) = dropped.get_mut(location) {
            before.calls += chunk.calls;
            before.until_ns = before.until_ns.max(chunk.stored.head.until_ns);
            before.losses = chunk.losses;
            if chunk.phase.is_some() {
                before.phase.clone_from(&chunk.phase);
            }
        }
        self.calls -= chunk.calls;
        chunk.size()
    }
}

impl Dropped {
    /// What is missing in the rest: of `all` that is missing, what was not by then. The calls before it are outside the time that was recorded, whether they
    /// had been recorded or not.
    fn losses_since(&self, all: &Losses) -> Losses {
        let before = self.losses;
        let (out, out_before) = (all.left_out, before.left_out);
        let mut rest = Losses {
            lost: all.lost.saturating_sub(before.lost),
            lost_changes: all.lost_changes.saturating_sub(before.lost_changes),
            damaged: all.damaged.saturating_sub(before.damaged),
            left_without_return: all.left_without_return.saturating_sub(before.left_without_return),
            ..Losses::default()
        };
        rest.left_out.by_function = out.by_function.saturating_sub(out_before.by_function);
        rest.left_out.by_communicator = out.by_communicator.saturating_sub(out_before.by_communicator);
        rest.left_out.by_duration = out.by_duration.saturating_sub(out_before.by_duration);
        rest.left_out.by_pressure = out.by_pressure.saturating_sub(out_before.by_pressure);
        let missing_before = before.missing().saturating_add(out_before.calls().saturating_sub(out_before.by_time));
        rest.left_out.by_time = out.by_time.saturating_add(self.calls).saturating_add(missing_before);
        rest
    }
}
