//! Reads everything that the programs write.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, btree_map::Entry},
    mem::offset_of,
    os::fd::{AsFd, BorrowedFd},
    sync::{Arc, atomic::Ordering},
};

use aya::maps::{MapData, RingBuf};
use mpiprobe_common::{
    CALIBRATION_SLOT, Communicator, CommunicatorName, EndedThread, Flow, FunctionStats, InnerStats, Layout, Loss,
    Phase, ProcessCounters, ProcessLayers, RecentCall, Request, ThreadState,
    flow::{self, peer},
    layer::{EARLY_QUERIES, EarlyQuery},
    process::{entries_only, level},
    recent::{RECENT_CALLS, entry_of},
    request::state,
    tables::{self, Word},
};
use mpiprobe_observe::{
    ByFunction, CommunicatorSnapshot, PendingRequest, PhaseSnapshot, ProcessSnapshot, SHARED, SharedArray, Snapshot,
    StatsReader, ThreadSnapshot, ToolsSnapshot, alive, by_end, monotonic_ns,
};

use crate::{AttachError, Engine, Notice};

/// How often a thread's state is read again if it changed while it was copied.
const TORN_ATTEMPTS: usize = 4;

/// How often probes were hit in a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hits {
    /// Its slot.
    pub process: u32,
    /// Calls by function.
    pub calls: Vec<(u32, u64)>,
    /// Calls made inside MPI by MPI.
    pub inner_calls: u64,
}

/// A reader of all tables.
pub struct Observer {
    stats: StatsReader,
    processes: SharedArray<ProcessCounters>,
    threads: SharedArray<ThreadState>,
    layouts: SharedArray<Layout>,
    layers: SharedArray<ProcessLayers>,
    phases: SharedArray<Phase>,
    flows: SharedArray<Flow>,
    communicators: SharedArray<Communicator>,
    names: SharedArray<CommunicatorName>,
    control: SharedArray<u64>,
    levels: SharedArray<u64>,
    /// A ring for each process slot; `None`: calls are not written down.
    recent: Option<SharedArray<RecentCall>>,
    events: RingBuf<MapData>,
}

impl std::fmt::Debug for Observer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Observer").finish_non_exhaustive()
    }
}

impl Observer {
    pub fn new(engine: &mut Engine) -> Result<Self, AttachError> {
        let tables = &mut engine.tables;
        let events = tables.take(tables::EVENTS)?;
        let observer = Self {
            stats: tables.stats()?,
            processes: tables.mapped(tables::PROCESSES)?,
            threads: tables.mapped(tables::THREADS)?,
            layouts: tables.mapped(tables::LAYOUTS)?,
            layers: tables.mapped(tables::LAYERS)?,
            phases: tables.mapped(tables::PHASES)?,
            flows: tables.mapped(tables::FLOWS)?,
            communicators: tables.mapped(tables::COMMUNICATORS)?,
            names: tables.mapped(tables::COMMUNICATOR_NAMES)?,
            control: tables.mapped(tables::CONTROL)?,
            levels: tables.mapped(tables::LEVELS)?,
            recent: if tables.config().recent == 0 { None } else { Some(tables.mapped(tables::RECENT)?) },
            events: RingBuf::try_from(events).map_err(|source| AttachError::Object { source: Box::new(source) })?,
        };
        // Slot 0 is the calibration's.
        observer.next_process()?.fetch_max(u64::from(CALIBRATION_SLOT) + 1, Ordering::Relaxed);
        Ok(observer)
    }

    /// Takes a free process slot for a process; `None` if there is none left.
    pub fn take_slot(&self, tgid: u32) -> Option<u32> {
        let next = self.next_process().ok()?;
        if next.load(Ordering::Relaxed) >= self.processes.len() as u64 {
            return None;
        }
        let slot = usize::try_from(next.fetch_add(1, Ordering::Relaxed)).ok()?;
        // The first word of the counters is the process id, and zero beside it.
        self.processes.word_of(slot, 0)?.store(u64::from(tgid), Ordering::Relaxed);
        u32::try_from(slot).ok()
    }

    /// What has happened since the last time.
    pub fn notices(&mut self) -> Vec<Notice> {
        let mut notices = Vec::new();
        while let Some(item) = self.events.next() {
            notices.extend(Notice::read(&item));
        }
        notices
    }

    /// How many notices there was no room for, of all processes.
    pub fn dropped_notices(&self) -> u64 {
        const DROPPED: usize = offset_of!(ProcessCounters, losses) / size_of::<u64>() + Loss::EventDropped as usize;
        let slots = 0..self.used(Word::NextProcess, self.processes.len());
        slots.filter_map(|slot| Some(self.processes.word_of(slot, DROPPED)?.load(Ordering::Relaxed))).sum()
    }

    /// The processes that became targets by exec, by slot.
    pub fn executed(&self) -> Vec<(u32, ProcessCounters)> {
        let slots = 1..self.used(Word::NextProcess, self.processes.len());
        let executed = |slot| Some((u32::try_from(slot).ok()?, self.processes.read(slot)?));
        slots.filter_map(executed).filter(|(_, counters)| counters.exec_ns > 0).collect()
    }

    /// Everything as it is now.
    pub fn snapshot(&self, engine: &Engine) -> Result<Snapshot, AttachError> {
        engine.locate_open_calls();
        let taken_ns = monotonic_ns();
        // In this order: what a thread has done is added to its process, then written down, and then it is forgotten.
        let mut threads = self.threads_by_process();
        let mut ended = self.ended_threads_by_process(engine)?;
        let slots = 1..self.used(Word::NextProcess, self.processes.len());
        let counters: Vec<_> = slots.filter_map(|slot| Some((slot, self.processes.read(slot)?))).collect();
        let mut inner = inner_by_process(engine)?;
        let mut tools = tools_by_process(engine)?;
        let mut phases = self.phases_by_process();
        let mut flows = self.flows_by_process();
        let mut communicators = self.communicators_by_process();
        let mut requests = self.requests_by_process(engine)?;
        let processes = counters.into_iter().filter_map(|(slot, counters)| {
            let process = u32::try_from(slot).ok()?;
            let phases = phases.remove(&process).unwrap_or_default();
            let ended_threads = by_end(ended.remove(&process).unwrap_or_default());
            Some(ProcessSnapshot {
                process,
                counters,
                layout: self.layouts.read(slot).unwrap_or_default(),
                functions: together(self.stats.read_all(process), &phases),
                phases,
                threads: alive(threads.remove(&process).unwrap_or_default(), &ended_threads),
                ended_threads,
                flows: flows.remove(&process).unwrap_or_default(),
                communicators: communicators.remove(&process).unwrap_or_default(),
                requests: requests.remove(&process).unwrap_or_default(),
                datatypes: Vec::new(),
                awaited: Vec::new(),
                windows: Vec::new(),
                groups: Vec::new(),
                inner: inner.remove(&process).unwrap_or_default(),
                recent: None,
                began_before: None,
                tools: tools.remove(&process).unwrap_or_default(),
            })
        });
        let unassigned = |loss: Loss| {
            let counters = self.processes.read(CALIBRATION_SLOT as usize);
            counters.and_then(|counters| counters.losses.get(loss as usize).copied()).unwrap_or(0)
        };
        Ok(Snapshot {
            taken_ns,
            processes: processes.collect(),
            missed_hits: engine.missed_hits(),
            processes_without_slot: unassigned(Loss::ProcessTableFull),
            events_dropped: unassigned(Loss::EventDropped),
        })
    }

    fn threads_by_process(&self) -> HashMap<u32, Vec<ThreadSnapshot>> {
        let mut by_process: HashMap<u32, Vec<ThreadSnapshot>> = HashMap::new();
        for slot in 0..self.used(Word::NextThread, self.threads.len()) {
            let Some(state) = self.thread(slot) else { continue };
            let Ok(tid) = u32::try_from(state.id & u64::from(u32::MAX)) else { continue };
            by_process.entry(state.process).or_default().push(ThreadSnapshot { tid, slot, state });
        }
        for threads in by_process.values_mut() {
            threads.sort_unstable_by_key(|thread| thread.tid);
        }
        by_process
    }

    fn ended_threads_by_process(&self, engine: &Engine) -> Result<HashMap<u32, Vec<EndedThread>>, AttachError> {
        const ENDED: usize = offset_of!(ProcessCounters, ended_threads) / size_of::<u64>();
        let mut by_process: HashMap<u32, Vec<EndedThread>> = HashMap::new();
        let has_ended = |slot| self.processes.word_of(slot, ENDED).is_some_and(|word| word.load(Ordering::Acquire) > 0);
        if (1..self.used(Word::NextProcess, self.processes.len())).any(has_ended) {
            for (key, thread) in engine.tables.entries(tables::ENDED_THREADS)? {
                by_process.entry(key.process).or_default().push(thread);
            }
        }
        Ok(by_process)
    }

    fn phases_by_process(&self) -> HashMap<u32, Vec<PhaseSnapshot>> {
        let mut by_process: HashMap<u32, Vec<PhaseSnapshot>> = HashMap::new();
        let first_row = u32::try_from(self.processes.len()).unwrap_or(u32::MAX);
        for number in 0..self.used(Word::NextPhase, self.phases.len()) {
            let (Some(phase), Ok(row)) = (self.phases.read(number), u32::try_from(number)) else { continue };
            // One that was taken twice at once was never opened.
            if phase.opened > 0 {
                let functions = self.stats.read_all(first_row.saturating_add(row));
                by_process.entry(phase.key.process).or_default().push(PhaseSnapshot { phase, functions });
            }
        }
        by_process
    }

    fn flows_by_process(&self) -> HashMap<u32, Vec<Flow>> {
        let mut by_process: HashMap<u32, Vec<Flow>> = HashMap::new();
        let used = 0..self.used(Word::NextFlow, self.flows.len());
        // One that was taken twice at once stays without calls.
        for mut flow in used.filter_map(|index| self.flows.read(index)).filter(|flow| flow.calls > 0) {
            if flow.key.communicator >= distinct_communicators(self.communicators.len()) {
                flow.key.communicator = SHARED;
            }
            by_process.entry(flow.key.process).or_default().push(flow);
        }
        by_process
    }

    fn communicators_by_process(&self) -> HashMap<u32, Vec<CommunicatorSnapshot>> {
        let mut by_process: HashMap<u32, Vec<CommunicatorSnapshot>> = HashMap::new();
        let distinct = distinct_communicators(self.communicators.len()) as usize;
        // The number 0 is nobody's.
        for index in 1..=self.used(Word::NextCommunicator, distinct - 1) {
            let (Some(facts), Ok(number)) = (self.communicators.read(index), u32::try_from(index)) else {
                continue;
            };
            let name = self.names.read(index).map_or_else(String::new, |name| CommunicatorSnapshot::name_of(&name));
            let snapshot = CommunicatorSnapshot { number, facts, name, ..CommunicatorSnapshot::default() };
            by_process.entry(facts.key.process).or_default().push(snapshot);
        }
        by_process
    }

    fn requests_by_process(&self, engine: &Engine) -> Result<HashMap<u32, Vec<PendingRequest>>, AttachError> {
        let mut by_process: HashMap<u32, Vec<PendingRequest>> = HashMap::new();
        if engine.tables.config().traffic == 0 {
            return Ok(by_process);
        }
        for (key, request) in engine.tables.entries(tables::REQUESTS)? {
            if request.state & state::ACTIVE != 0 {
                let peer = self.peer_of(&request);
                by_process.entry(key.process).or_default().push(PendingRequest { request, handle: key.handle, peer });
            }
        }
        Ok(by_process)
    }

    /// Whom an operation receives from, else whom it sends to.
    fn peer_of(&self, request: &Request) -> i32 {
        let flow = request.receiving_flow_plus_1().checked_sub(1).and_then(|index| self.flows.read(index as usize));
        flow.map_or(peer::UNKNOWN, |flow| flow.key.peer)
    }

    /// What programs know of how a process's library lays out its objects.
    pub fn layout(&self, process: u32) -> Layout {
        usize::try_from(process).ok().and_then(|slot| self.layouts.read(slot)).unwrap_or_default()
    }

    /// Tells the programs how a process's library lays out its objects. What they found out before is looked at again.
    pub fn set_layout(&self, process: u32, layout: &Layout) {
        let (Ok(slot), freed) = (usize::try_from(process), offset_of!(ProcessCounters, communicators_freed)) else {
            return;
        };
        self.layouts.write(slot, layout);
        if let Some(epoch) = self.processes.word_of(slot, freed / size_of::<u64>()) {
            epoch.fetch_add(1, Ordering::Release);
        }
    }

    /// Tells the programs where a process has language layers.
    pub fn set_layers(&self, process: u32, layers: &ProcessLayers) {
        if let Ok(slot) = usize::try_from(process) {
            self.layers.write(slot, layers);
        }
    }

    /// Local questions of a process that were counted before its layers were told, by where they were asked, and how many more there
    /// were.
    pub fn early_queries(&self, process: u32) -> (Vec<EarlyQuery>, u64) {
        const PLACES: usize = offset_of!(ProcessCounters, early_queries) / size_of::<u64>();
        const MORE: usize = offset_of!(ProcessCounters, more_early_queries) / size_of::<u64>();
        let word = |index: usize| {
            let word = usize::try_from(process).ok().and_then(|slot| self.processes.word_of(slot, index));
            word.map_or(0, |word| word.load(Ordering::Acquire))
        };
        let places = (PLACES..PLACES + EARLY_QUERIES).map(word).filter(|&word| word != 0);
        (places.map(EarlyQuery).collect(), word(MORE))
    }

    /// Has the calls of a process counted at their entry, without return probes.
    pub fn count_entries_only(&self, process: u32) {
        if let Ok(slot) = usize::try_from(process) {
            self.add_entries_only(slot, entries_only::ALL);
        }
    }

    /// The same of all processes, those included that are not known yet.
    pub fn count_entries_only_of_all(&self) {
        (1..self.processes.len()).for_each(|slot| self.add_entries_only(slot, entries_only::ALL));
    }

    fn add_entries_only(&self, slot: usize, bits: u64) {
        if let Some(word) = self.processes.word_of(slot, ProcessCounters::ENTRIES_ONLY) {
            word.fetch_or(bits, Ordering::Release);
        }
    }

    /// Has calls of a function counted at their entry from now on in all processes, or from entry to return again.
    pub fn reduce(&self, function: u32, is_reduced: bool) {
        let level = if is_reduced { level::ENTRIES } else { level::FULL };
        if let Some(word) = self.levels.word_of(function as usize, 0) {
            word.store(level, Ordering::Release);
        }
        if is_reduced {
            // Those included that are not known yet.
            (1..self.processes.len()).for_each(|slot| self.add_entries_only(slot, entries_only::REDUCED));
        }
    }

    /// Does not find out what calls move, until that is resumed.
    pub fn pause_traffic(&self) {
        self.set_no_traffic(true);
    }

    /// Finds out again what calls move. What was known of operations before must have been forgotten
    /// ([`forget_requests`](crate::forget_requests)).
    pub fn resume_traffic(&self) {
        self.set_no_traffic(false);
    }

    fn set_no_traffic(&self, is_paused: bool) {
        if let Some(word) = self.control.word_of(Word::NoTraffic as usize, 0) {
            word.store(is_paused.into(), Ordering::Release);
        }
    }

    /// How often the probes in each process have been hit by its calls so far.
    pub fn hits(&self) -> Vec<Hits> {
        let mut inner: HashMap<u32, u64> = HashMap::new();
        for state in self.thread_states() {
            let calls = inner.entry(state.process).or_default();
            *calls = calls.saturating_add(state.inner_calls);
        }
        let mut phases = self.phases_by_process();
        let slots = 1..self.used(Word::NextProcess, self.processes.len());
        let hits = |slot| {
            let process = u32::try_from(slot).ok()?;
            let counters = self.processes.read(slot)?;
            let calls = together(self.stats.read_all(process), &phases.remove(&process).unwrap_or_default());
            let inner = inner.remove(&process).unwrap_or_default();
            Some(Hits {
                process,
                calls: calls.into_iter().map(|(function, stats)| (function, stats.calls)).collect(),
                inner_calls: counters.inner_calls.saturating_add(inner),
            })
        };
        slots.filter_map(hits).collect()
    }

    /// How often each of these functions has been called so far, by process slot.
    pub fn calls_of(&self, functions: &[u32]) -> Vec<(u32, u32, u64)> {
        let mut phases = self.phases_by_process();
        let slots = 1..self.used(Word::NextProcess, self.processes.len());
        let mut calls = Vec::new();
        for process in slots.filter_map(|slot| u32::try_from(slot).ok()) {
            let phases = phases.remove(&process).unwrap_or_default();
            for &function in functions {
                let outside = self.stats.read(process, function).map_or(0, |stats| stats.calls);
                let inside = phases.iter().flat_map(|phase| &phase.functions);
                let inside = inside.filter(|(of, _)| *of == function).map(|(_, stats)| stats.calls);
                calls.push((process, function, inside.fold(outside, u64::saturating_add)));
            }
        }
        calls
    }

    /// The functions that some thread is in, as far as that was seen.
    pub fn open_functions(&self) -> BTreeSet<u32> {
        self.thread_states().filter_map(|state| state.open.function_plus_1.checked_sub(1)).collect()
    }

    /// The functions that the threads of a process are in, as far as that was seen.
    pub fn open_functions_of(&self, process: u32) -> impl Iterator<Item = u32> {
        let states = self.thread_states().filter(move |state| state.process == process);
        states.filter_map(|state| state.open_function())
    }

    /// Those of all living threads.
    fn thread_states(&self) -> impl Iterator<Item = ThreadState> {
        (0..self.used(Word::NextThread, self.threads.len())).filter_map(|slot| self.thread(slot))
    }

    /// Has calls written down from now on, or not any more.
    pub fn note_calls(&self, wanted: bool) {
        if let Some(word) = self.control.word_of(Word::Recent as usize, 0) {
            word.store(u64::from(wanted && self.recent.is_some()), Ordering::Release);
        }
    }

    /// How many calls of each process have been written down.
    pub fn numbered_calls(&self) -> Vec<(u32, u64)> {
        let slots = 1..self.used(Word::NextProcess, self.processes.len());
        let numbered =
            |slot| Some((u32::try_from(slot).ok()?, self.processes.read(slot).map(|process| process.recent_calls)?));
        slots.filter_map(numbered).collect()
    }

    /// The call of a process that has this number; `None` if it is being written, or overwritten by another one.
    pub fn recent_call(&self, process: u32, number: u64) -> Option<RecentCall> {
        const STATE: usize = offset_of!(RecentCall, state) / size_of::<u64>();
        let rings = self.recent.as_ref()?;
        let entry = (process as usize).checked_mul(RECENT_CALLS as usize)?.checked_add(entry_of(number) as usize)?;
        // The first word is copied first.
        let call = rings.read(entry)?;
        let is_whole = rings.word_of(entry, STATE)?.load(Ordering::Acquire) == call.state;
        (is_whole && call.number() == Some(number)).then_some(call)
    }

    /// When the first call of each thread was seen, ns, by process slot and thread: nothing if none was. Of threads that have ended
    /// too, as far as they are remembered; of several with the same id, the first.
    pub fn first_entries(&self, engine: &Engine) -> Result<HashMap<(u32, u32), u64>, AttachError> {
        // In this order, as in a snapshot: who ends meanwhile is in one of them, or in both.
        let living = self.threads_by_process();
        let ended = self.ended_threads_by_process(engine)?;
        let living = living.iter().flat_map(|(process, threads)| {
            threads.iter().map(move |thread| (*process, thread.tid, thread.state.first_entry_ns))
        });
        let ended = ended.iter().flat_map(|(process, threads)| {
            threads.iter().map(move |thread| (*process, thread.tid, thread.first_entry_ns))
        });
        let mut entries: HashMap<(u32, u32), u64> = HashMap::new();
        for (process, tid, entry_ns) in living.chain(ended).filter(|(_, _, entry_ns)| *entry_ns > 0) {
            let first_ns = entries.entry((process, tid)).or_insert(entry_ns);
            *first_ns = entry_ns.min(*first_ns);
        }
        Ok(entries)
    }

    /// Whether a thread is still in the call that it was in when its state was copied.
    pub fn is_still_open(&self, thread: &ThreadSnapshot) -> bool {
        let now = self.thread(thread.slot);
        now.is_some_and(|now| now.id == thread.state.id && now.open == thread.state.open)
    }

    /// The state of the thread in a slot; `None` if the slot is free.
    fn thread(&self, slot: usize) -> Option<ThreadState> {
        read_thread(&self.threads, slot)
    }

    /// How many of a table's entries have been handed out.
    fn used(&self, next: Word, length: usize) -> usize {
        let next = self.control.read(next as usize).unwrap_or(0);
        usize::try_from(next).unwrap_or(usize::MAX).min(length)
    }

    fn next_process(&self) -> Result<&std::sync::atomic::AtomicU64, AttachError> {
        self.control
            .word_of(Word::NextProcess as usize, 0)
            .ok_or(AttachError::Missing { what: "word of the table", name: "CONTROL" })
    }
}

/// Readable when there are notices.
impl AsFd for Observer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.events.as_fd()
    }
}

/// What was called in no phase, and in all of them.
fn together(outside: ByFunction, phases: &[PhaseSnapshot]) -> ByFunction {
    if phases.is_empty() {
        return outside;
    }
    let mut all: BTreeMap<u32, Arc<FunctionStats>> = outside.into_iter().collect();
    for (function, stats) in phases.iter().flat_map(|phase| &phase.functions) {
        match all.entry(*function) {
            Entry::Occupied(sum) => Arc::make_mut(sum.into_mut()).merge(stats),
            Entry::Vacant(none) => drop(none.insert(Arc::clone(stats))),
        }
    }
    all.into_iter().collect()
}

/// The state of the thread in a slot; `None` if the slot is free.
pub(super) fn read_thread(threads: &SharedArray<ThreadState>, slot: usize) -> Option<ThreadState> {
    const SEQUENCE: usize = offset_of!(ThreadState, sequence) / size_of::<u64>();
    let sequence = threads.word_of(slot, SEQUENCE)?;
    let mut state = threads.read(slot)?;
    for _ in 1..TORN_ATTEMPTS {
        if state.is_settled() && sequence.load(Ordering::Acquire) == state.sequence {
            break;
        }
        state = threads.read(slot)?;
    }
    // A torn copy is better than none: what may be wrong in it is the open call, for the blink of an eye.
    (state.id != 0).then_some(state)
}

/// How many communicators of a table are told apart.
pub(super) fn distinct_communicators(slots: usize) -> u32 {
    flow::distinct_communicators(u32::try_from(slots).unwrap_or(u32::MAX))
}

type InnerByProcess = HashMap<u32, Vec<((u16, u16), InnerStats)>>;

fn inner_by_process(engine: &Engine) -> Result<InnerByProcess, AttachError> {
    let mut by_process = InnerByProcess::new();
    if engine.tables.config().nested != 0 {
        for (key, stats) in engine.tables.entries(tables::INNER)? {
            by_process.entry(key.process).or_default().push(((key.outer, key.inner), stats));
        }
    }
    Ok(by_process)
}

fn tools_by_process(engine: &Engine) -> Result<HashMap<u32, ToolsSnapshot>, AttachError> {
    let mut by_process: HashMap<u32, ToolsSnapshot> = HashMap::new();
    if engine.has_tools() {
        for (key, stats) in engine.tables.entries(tables::TOOL_STATS)? {
            by_process.entry(key.process).or_default().calls.push((key, stats));
        }
        for (key, stats) in engine.tables.entries(tables::TOOL_CALLS)? {
            by_process.entry(key.process).or_default().own.push((key, stats));
        }
    }
    Ok(by_process)
}
