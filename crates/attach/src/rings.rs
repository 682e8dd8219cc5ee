//! The rings that the programs write calls to, and what lines in them refer to: read by a thread of its own while observations go on.

use std::{
    fmt, io,
    mem::offset_of,
    os::fd::{AsFd as _, OwnedFd},
    sync::{Arc, OnceLock, atomic::Ordering},
};

use mpiprobe_common::{
    Communicator, CommunicatorKey, CommunicatorName, EndedThread, EndedThreadKey, Flow, FlowKey, Layout, Phase,
    PhaseKey, ProcessCounters, ThreadState,
    ended_thread::ENDED_THREAD_PLACES,
    flow::{Topology, handle_of},
    tables::{self, Word},
    trace::{Line, RingHead},
};
use mpiprobe_observe::{CommunicatorSnapshot, Referred, Rings, SHARED, SharedArray, ThreadSnapshot, communicator};

use crate::{
    AttachError, Engine,
    kernel::bpf,
    observer::{distinct_communicators, read_thread},
};

/// Processors that there may be, by whose numbers programs choose rings. Read once, which confined processes must do before they are.
pub fn possible_processors() -> u32 {
    static NUMBER: OnceLock<u32> = OnceLock::new();
    *NUMBER.get_or_init(|| aya::util::nr_cpus().ok().and_then(|number| u32::try_from(number).ok()).unwrap_or(1))
}

/// Those of all processors, which all processes write to.
pub struct KernelRings {
    heads: SharedArray<RingHead>,
    lines: SharedArray<Line>,
    control: SharedArray<u64>,
}

impl fmt::Debug for KernelRings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KernelRings").field("rings", &self.heads.len()).finish_non_exhaustive()
    }
}

impl KernelRings {
    /// `None`: the programs were loaded that know nothing of rings.
    pub fn of(engine: &Engine) -> Result<Option<Self>, AttachError> {
        let tables = &engine.tables;
        if tables.config().rings == 0 {
            return Ok(None);
        }
        let (heads, lines) = (tables.mapped(tables::RINGS)?, tables.mapped(tables::LINES)?);
        Ok(Some(Self { heads, lines, control: tables.mapped(tables::CONTROL)? }))
    }

    /// Has calls written to them from now on, or not any more.
    pub fn switch(&self, is_on: bool) {
        if let Some(word) = self.control.word_of(Word::Record as usize, 0) {
            word.store(is_on.into(), Ordering::Release);
        }
    }
}

impl Rings for KernelRings {
    fn count(&self) -> u32 {
        u32::try_from(self.heads.len()).unwrap_or(u32::MAX)
    }

    fn lines(&self) -> u64 {
        (self.lines.len() / self.heads.len().max(1)) as u64
    }

    fn heads(&self, to: &mut [u64]) -> io::Result<()> {
        const HEAD: usize = offset_of!(RingHead, head) / size_of::<u64>();
        for (ring, to) in to.iter_mut().enumerate() {
            *to = self.heads.word_of(ring, HEAD).map_or(0, |word| word.load(Ordering::Acquire));
        }
        Ok(())
    }

    fn read(&self, ring: u32, first: u64, to: &mut [Line]) -> io::Result<()> {
        let lines = self.lines();
        let start = u64::from(ring) * lines + first % lines.max(1);
        let start = usize::try_from(start).map_err(|_| io::ErrorKind::InvalidInput)?;
        for (index, to) in (start..).zip(to) {
            // Its first word, the state, is copied first.
            *to = self.lines.read(index).ok_or(io::ErrorKind::InvalidInput)?;
        }
        Ok(())
    }

    fn set_tail(&self, ring: u32, tail: u64) -> io::Result<()> {
        const TAIL: usize = offset_of!(RingHead, tail) / size_of::<u64>();
        let word = self.heads.word_of(ring as usize, TAIL).ok_or(io::ErrorKind::InvalidInput)?;
        word.store(tail, Ordering::Release);
        Ok(())
    }
}

/// The tables that lines refer to.
pub struct ReferredTables {
    flows: SharedArray<Flow>,
    communicators: SharedArray<Communicator>,
    names: SharedArray<CommunicatorName>,
    topologies: SharedArray<Topology>,
    layouts: SharedArray<Layout>,
    phases: SharedArray<Phase>,
    processes: SharedArray<ProcessCounters>,
    threads: SharedArray<ThreadState>,
    control: SharedArray<u64>,
    ended_threads: OwnedFd,
    communicator_of: OwnedFd,
}

impl fmt::Debug for ReferredTables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReferredTables").finish_non_exhaustive()
    }
}

impl ReferredTables {
    pub fn of(engine: &Engine) -> Result<Self, AttachError> {
        let tables = &engine.tables;
        let failed = |table: &'static str| move |source: io::Error| AttachError::Table { table, source };
        let ended_threads = tables.fd(tables::ENDED_THREADS)?.try_clone_to_owned();
        let communicator_of = tables.fd(tables::COMMUNICATOR_OF)?.try_clone_to_owned();
        Ok(Self {
            flows: tables.mapped(tables::FLOWS)?,
            communicators: tables.mapped(tables::COMMUNICATORS)?,
            names: tables.mapped(tables::COMMUNICATOR_NAMES)?,
            topologies: tables.mapped(tables::TOPOLOGIES)?,
            layouts: tables.mapped(tables::LAYOUTS)?,
            phases: tables.mapped(tables::PHASES)?,
            processes: tables.mapped(tables::PROCESSES)?,
            threads: tables.mapped(tables::THREADS)?,
            control: tables.mapped(tables::CONTROL)?,
            ended_threads: ended_threads.map_err(failed(tables::ENDED_THREADS.name))?,
            communicator_of: communicator_of.map_err(failed(tables::COMMUNICATOR_OF.name))?,
        })
    }

    /// What lines of a process refer to.
    pub fn process(self: &Arc<Self>, slot: u32) -> KernelReferred {
        KernelReferred { tables: Arc::clone(self), slot }
    }

    /// When a process was last known to be alive, if one of its threads has ended, ns.
    pub fn last_end_ns(&self, process: u32) -> Option<u64> {
        const LAST: usize = offset_of!(ProcessCounters, last_end_ns) / size_of::<u64>();
        let word = self.processes.word_of(process as usize, LAST)?.load(Ordering::Acquire);
        (word != 0).then_some(word)
    }

    fn living(&self, process: u32) -> Vec<ThreadSnapshot> {
        const PROCESS: usize = offset_of!(ThreadState, process) / size_of::<u64>();
        let used = self.control.read(Word::NextThread as usize).unwrap_or(0);
        let used = usize::try_from(used).unwrap_or(usize::MAX).min(self.threads.len());
        let is_own = |&slot: &usize| {
            let word = self.threads.word_of(slot, PROCESS).map_or(0, |word| word.load(Ordering::Acquire));
            word & u64::from(u32::MAX) == u64::from(process)
        };
        let living = (0..used).filter(is_own).filter_map(|slot| {
            let state = read_thread(&self.threads, slot).filter(|state| state.process == process)?;
            Some(ThreadSnapshot { tid: u32::try_from(state.id & u64::from(u32::MAX)).ok()?, slot, state })
        });
        living.collect()
    }

    fn ended(&self, process: u32) -> io::Result<Vec<EndedThread>> {
        const ENDED: usize = offset_of!(ProcessCounters, ended_threads) / size_of::<u64>();
        let ended = self.processes.word_of(process as usize, ENDED).map_or(0, |word| word.load(Ordering::Acquire));
        if ended == 0 {
            return Ok(Vec::new());
        }
        // Place 0 is the first thread's, whose end may come at any time.
        let places = u32::try_from(ended).unwrap_or(u32::MAX).saturating_add(1).min(ENDED_THREAD_PLACES);
        let mut all = Vec::new();
        for place in 0..places {
            let ended: Option<EndedThread> =
                bpf::look_up(self.ended_threads.as_fd(), &EndedThreadKey { process, place })?;
            all.extend(ended);
        }
        Ok(all)
    }
}

/// What lines of a process refer to.
#[derive(Debug)]
pub struct KernelReferred {
    tables: Arc<ReferredTables>,
    slot: u32,
}

impl Referred for KernelReferred {
    /// Each writes to the ring of the processor that it is on.
    fn has_threads_in_order(&self) -> bool {
        false
    }

    fn flow(&mut self, plus_1: u32) -> Option<FlowKey> {
        let mut key = self.tables.flows.read(plus_1.checked_sub(1)? as usize)?.key;
        if key.process != self.slot {
            return None;
        }
        if key.communicator >= distinct_communicators(self.tables.communicators.len()) {
            key.communicator = SHARED;
        }
        Some(key)
    }

    fn communicator(&mut self, number: u32) -> Option<CommunicatorSnapshot> {
        let tables = &self.tables;
        if number == 0 || number >= distinct_communicators(tables.communicators.len()) {
            return None;
        }
        let facts = tables.communicators.read(number as usize).filter(|facts| facts.key.process == self.slot)?;
        communicator(number, facts, &tables.names.read(number as usize)?)
    }

    fn communicators(&mut self) -> u32 {
        let used = self.tables.control.read(Word::NextCommunicator as usize).unwrap_or(0);
        let most = distinct_communicators(self.tables.communicators.len()).saturating_sub(1);
        u32::try_from(used).unwrap_or(u32::MAX).min(most)
    }

    fn topology(&mut self, plus_1: u32) -> Option<Topology> {
        self.tables.topologies.read(plus_1.checked_sub(1)? as usize)
    }

    fn communicator_of(&mut self, handle: u64) -> Option<u32> {
        let key = CommunicatorKey { process: self.slot, kind: handle_of::COMMUNICATOR, handle };
        bpf::look_up(self.tables.communicator_of.as_fd(), &key).ok().flatten()
    }

    fn layout(&mut self) -> Layout {
        self.tables.layouts.read(self.slot as usize).unwrap_or_default()
    }

    fn phase(&mut self, plus_1: u32) -> Option<PhaseKey> {
        let key = self.tables.phases.read(plus_1.checked_sub(1)? as usize)?.key;
        (key.process == self.slot).then_some(key)
    }

    fn threads(&mut self) -> Option<(Vec<ThreadSnapshot>, Vec<EndedThread>)> {
        // In this order: who ends meanwhile is in one of them, or in both.
        let living = self.tables.living(self.slot);
        let ended = self.tables.ended(self.slot).ok()?;
        Some((mpiprobe_observe::alive(living, &ended), ended))
    }
}
