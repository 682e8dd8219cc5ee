//! All processes of one node while they are recorded.

use std::collections::BTreeMap;

use mpiprobe_common::trace::{CallRecord, ChangeRecord, Origin, PhaseRecord, Unwritten, Words, kind};
use mpiprobe_model::CallSite;
use mpiprobe_observe::{CallBefore, Referred};
use mpiprobe_trace::{
    ClockPair, Event, LeftOut, LocationId, Node, NodeId, Process, ProcessId, SiteId,
    store::{Definition, WriteError},
};

use crate::{
    open_calls::UnfinishedCall,
    output::Output,
    process::{Names, NewSite, Recorded},
    selection::Selection,
};

/// Lines of processes that nobody has told of yet that are kept, all processes together: what many write in a second.
const MOST_EARLY_LINES: usize = 1 << 20;

/// A line of a process that nobody has told of yet: ring and number, what it is, and what is in it.
type EarlyLine = ((u32, u64), Origin, Words);

/// Makes events of lines, as they come, and gives them to an output.
#[derive(Debug)]
pub struct Recorder<O> {
    sink: Sink<O>,
    /// By slot.
    processes: BTreeMap<u32, Recorded>,
    /// Those that have ended.
    ended: Vec<Recorded>,
    /// Lines of processes that nobody has told of yet, by slot; `None`: they are not wanted.
    early: BTreeMap<u32, Option<Vec<EarlyLine>>>,
    early_lines: usize,
    names: Names,
    next_process: u32,
    pass: u64,
    /// When the pass before began, ns: calls that had returned by then have been seen.
    last_pass_ns: u64,
    /// From when on calls are recorded now, ns.
    since_ns: u64,
    /// For some time nothing was recorded, and is not now.
    has_paused: bool,
    is_paused: bool,
    calls: u64,
}

/// Where events go, and what has become of them.
#[derive(Debug)]
struct Sink<O> {
    output: O,
    selection: Selection,
    /// By location.
    left_out: Vec<LeftOut>,
    events: u64,
    /// Why something could not be written.
    trouble: Option<WriteError>,
}

/// A recording that has ended.
#[derive(Debug)]
pub struct Done<O> {
    /// What has all events.
    pub output: O,
    pub events: u64,
    /// Calls that the writers had no room for.
    pub unwritten: Unwritten,
    /// Why something could not be written.
    pub trouble: Option<WriteError>,
}

impl<O: Output> Sink<O> {
    fn write(&mut self, process: &mut Recorded, names: &mut Names, location: LocationId, event: &Event) {
        if !self.is_chosen(process, location, event) {
            return;
        }
        self.define(names);
        self.events += 1;
        let written = self.output.push(location, event);
        self.note(written);
    }

    /// Whether somebody has asked for it; else it is counted.
    fn is_chosen(&mut self, process: &mut Recorded, location: LocationId, event: &Event) -> bool {
        let Event::Call(call) = event else { return true };
        if self.left_out.len() <= location.index() {
            self.left_out.resize_with(location.index() + 1, LeftOut::default);
        }
        let Some(left_out) = self.left_out.get_mut(location.index()) else { return true };
        let mut chosen = std::mem::take(&mut process.chosen);
        let is_taken = self.selection.takes(call, &mut chosen, |number| process.communicator_name(number), left_out);
        process.chosen = chosen;
        is_taken
    }

    fn define(&mut self, names: &mut Names) {
        for definition in names.definitions.drain(..) {
            self.output.define(definition);
        }
    }

    fn note(&mut self, written: Result<(), WriteError>) {
        if let Err(error) = written {
            self.trouble.get_or_insert(error);
        }
    }
}

impl<O: Output> Recorder<O> {
    pub fn new(output: O, node: Node, selection: Selection, since_ns: u64) -> Self {
        let mut recorder = Self {
            sink: Sink { output, selection, left_out: Vec::new(), events: 0, trouble: None },
            processes: BTreeMap::new(),
            ended: Vec::new(),
            early: BTreeMap::new(),
            early_lines: 0,
            names: Names::default(),
            next_process: 0,
            pass: 0,
            last_pass_ns: since_ns,
            since_ns,
            has_paused: false,
            is_paused: false,
            calls: 0,
        };
        recorder.sink.output.define(Definition::Node(NodeId(0), node));
        recorder
    }

    /// A process whose lines come from now on, or have come already, under this slot. `referred`: what its lines refer to.
    /// `is_whole`: its threads were recorded from the first of their calls on that was counted. `may_begin`: it has not called MPI before if its first
    /// call initialises it, whatever `process` says. `earlier`: calls that its threads were in when its observation began.
    pub fn add(
        &mut self,
        slot: u32,
        process: Process,
        (is_whole, may_begin): (bool, bool),
        referred: Box<dyn Referred + Send>,
        earlier: &[CallBefore],
    ) {
        let id = ProcessId(self.next_process);
        self.next_process += 1;
        self.sink.output.define(Definition::Process(id, process.clone()));
        let mut recorded = Recorded::new(id, slot, process, is_whole, referred);
        recorded.may_begin = may_begin;
        if self.has_paused {
            // It may have called MPI before it was told of.
            recorded.pause();
        }
        if let Some(before) = self.processes.insert(slot, recorded) {
            self.ended.push(before);
        }
        self.note_earlier(slot, earlier);
        let early = self.early.remove(&slot).flatten().unwrap_or_default();
        self.early_lines -= early.len();
        for (place, origin, words) in early {
            self.line(slot, place, origin, &words);
        }
    }

    /// What is known now of calls that threads of a process were in when its observation began.
    pub fn note_earlier(&mut self, slot: u32, calls: &[CallBefore]) {
        let Some(process) = self.processes.get_mut(&slot) else { return };
        for call in calls {
            if self.is_paused {
                process.leave_earlier_out(call);
            } else if let Some((location, event)) = process.earlier(call, &mut self.names) {
                self.sink.write(process, &mut self.names, location, &event);
            }
        }
    }

    /// Whether calls wait for the end of one that had begun before.
    pub fn holds_back(&self) -> bool {
        self.processes.values().any(Recorded::holds_back)
    }

    /// Lines of a process are not wanted.
    pub fn refuse(&mut self, slot: u32) {
        let early = self.early.insert(slot, None).flatten().unwrap_or_default();
        self.early_lines -= early.len();
    }

    /// A line of a process that is told of later, perhaps.
    fn keep(&mut self, slot: u32, line: EarlyLine) {
        if let Some(lines) = self.early.entry(slot).or_insert_with(|| Some(Vec::new()))
            && self.early_lines < MOST_EARLY_LINES
        {
            lines.push(line);
            self.early_lines += 1;
        }
    }

    pub fn has(&self, slot: u32) -> bool {
        self.processes.contains_key(&slot)
    }

    /// A line of a process, in the order of its ring.
    pub fn line(&mut self, slot: u32, (ring, number): (u32, u64), origin: Origin, words: &Words) {
        let Some(process) = self.processes.get_mut(&slot) else {
            return self.keep(slot, ((ring, number), origin, *words));
        };
        if !process.has_room_for(words) {
            return;
        }
        let (names, pass) = (&mut self.names, self.pass);
        match origin.kind {
            kind::MORE => {
                process.halves.insert(ring, (number, *words));
            }
            kind::CHANGE => process.change(ChangeRecord::read(words), names),
            kind::CALL => {
                self.calls += 1;
                let mut before = None;
                if CallRecord::has_more(words) {
                    let half = process.halves.remove(&ring).filter(|(at, _)| at.wrapping_add(1) == number);
                    // Half a call says too little; it is missing by its number.
                    let Some((_, words)) = half else { return };
                    before = Some(words);
                }
                let record = CallRecord::read(words, before.as_ref());
                let sink = &mut self.sink;
                process.call(&record, (pass, self.since_ns), names, |process, names, location, event| {
                    sink.write(process, names, location, event);
                });
            }
            kind::PHASE => {
                if let Some((location, event)) = process.phase(&PhaseRecord::read(words), pass, names) {
                    self.sink.write(process, names, location, &event);
                }
            }
            _ => {}
        }
    }

    /// All rings have been looked at once more, from `began_ns` on. `is_last`: no further lines come.
    pub fn end_pass(&mut self, began_ns: u64, is_last: bool) {
        let Self { sink, processes, names, pass, .. } = self;
        for process in processes.values_mut() {
            process.released(*pass, is_last, names, |process, names, location, event| {
                sink.write(process, names, location, event);
            });
        }
        self.pass += 1;
        self.define_names();
        let complete = self.sink.output.complete_until(if is_last { began_ns } else { self.last_pass_ns });
        self.sink.note(complete);
        self.last_pass_ns = began_ns;
    }

    fn define_names(&mut self) {
        self.sink.define(&mut self.names);
    }

    /// Why something could not be written, if anything has not been since the last time.
    pub fn take_trouble(&mut self) -> Option<WriteError> {
        self.sink.trouble.take()
    }

    /// Places that calls were made from and that have not been given yet.
    pub fn take_new_sites(&mut self) -> Vec<NewSite> {
        std::mem::take(&mut self.names.new_sites)
    }

    /// What was found out about a call site.
    pub fn define_site(&mut self, id: SiteId, site: CallSite) {
        self.sink.output.define(Definition::CallSite(id, site));
    }

    /// How the clocks stand now.
    pub fn note_clock(&mut self, pair: ClockPair) {
        self.sink.output.define(Definition::Clock(NodeId(0), pair));
    }

    /// More is known of a process.
    pub fn describe(&mut self, slot: u32, change: impl FnOnce(&mut Process)) {
        if let Some(process) = self.processes.get_mut(&slot) {
            change(&mut process.definition);
            self.sink.output.define(Definition::Process(process.id, process.definition.clone()));
        }
    }

    /// Nothing is recorded from now on until [`Self::resume`].
    pub fn pause(&mut self) {
        (self.has_paused, self.is_paused) = (true, true);
        self.processes.values_mut().for_each(Recorded::pause);
    }

    /// Calls are recorded again.
    pub fn resume(&mut self, since_ns: u64) {
        self.is_paused = false;
        self.since_ns = since_ns;
    }

    /// What is known of threads now: what they have lost, and whether they have ended; and which communicators there are. To be called from
    /// time to time.
    pub fn look_at_threads(&mut self) {
        for process in self.processes.values_mut() {
            process.note_threads(None, Some(self.pass));
            process.define_made(&mut self.names);
        }
        self.define_names();
        self.define_news();
    }

    fn define_news(&mut self) {
        let Self { processes, ended, sink: Sink { output, left_out, .. }, .. } = self;
        for process in processes.values_mut().chain(ended) {
            let news = process.news(|location| {
                let left_out = left_out.get(location.index()).copied().unwrap_or_default();
                (output.dropped(location), left_out)
            });
            for definition in news {
                output.define(definition);
            }
        }
    }

    /// Calls that are open now, as far as they are asked for, and what is known by now of all that events refer to. None of that ends anything.
    pub fn open_calls(&mut self, at_ns: u64) -> Vec<(LocationId, Event)> {
        let Self { processes, names, sink: Sink { selection, output, .. }, .. } = self;
        let mut open = Vec::new();
        for process in processes.values_mut() {
            let calls = process.open_calls(at_ns, self.since_ns, &[], names);
            let mut chosen = std::mem::take(&mut process.chosen);
            // Whoever is asked for them another time has not left out another one.
            let left_out = &mut LeftOut::default();
            open.extend(calls.into_iter().filter(|(_, event)| match event {
                Event::Call(call) => {
                    selection.takes(call, &mut chosen, |number| process.communicator_name(number), left_out)
                }
                Event::Phase(_) => true,
            }));
            process.chosen = chosen;
            process.renewed_communicators().into_iter().for_each(|definition| output.define(definition));
        }
        self.define_names();
        open
    }

    /// Processes that are in calls now, since when the first of these is open, and how many are.
    pub fn inside(&mut self) -> impl Iterator<Item = (ProcessId, u64, u32)> + '_ {
        self.processes.values_mut().filter_map(|process| {
            let (since_ns, calls) = process.inside()?;
            Some((process.id, since_ns, calls))
        })
    }

    /// Who is known by a slot.
    pub fn process(&self, slot: u32) -> Option<&Process> {
        self.processes.get(&slot).map(|process| &process.definition)
    }

    /// How many lines about calls have come.
    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// A process has ended, and all its lines have been given. Calls that were open then are in the trace, up to that time; `cut_short`: those
    /// that its tables do not have any more.
    /// Gives whether it had called MPI and had not finalised it, as far as that can be known: counting had not been switched off.
    pub fn end_process(&mut self, slot: u32, ended_ns: u64, cut_short: &[UnfinishedCall]) -> bool {
        self.close(slot, ended_ns, Some(cut_short));
        let ended = self.processes.remove(&slot);
        let was_in_mpi = ended.as_ref().is_some_and(Recorded::is_in_mpi);
        self.ended.extend(ended);
        // What comes late is of nobody.
        self.refuse(slot);
        was_in_mpi
    }

    /// `cut_short`: the process has ended; see there.
    fn close(&mut self, slot: u32, at_ns: u64, cut_short: Option<&[UnfinishedCall]>) {
        let has_ended = cut_short.is_some();
        let (pass, since_ns) = (self.pass, self.since_ns);
        let Self { sink, processes, names, .. } = self;
        let Some(process) = processes.get_mut(&slot) else { return };
        process.released(pass, true, names, |process, names, location, event| {
            sink.write(process, names, location, event);
        });
        let open = process.open_calls(at_ns, since_ns, cut_short.unwrap_or_default(), names);
        process.note_threads(has_ended.then_some(at_ns), None);
        if !has_ended {
            process.conclude_pauses(names);
        }
        for (location, event) in open {
            sink.write(process, names, location, &event);
        }
        for definition in process.renewed_communicators() {
            sink.output.define(definition);
        }
        if has_ended {
            self.describe(slot, |process| process.ended_ns = Some(at_ns));
        }
    }

    /// The recording ends at that time.
    pub fn finish(mut self, at_ns: u64) -> Done<O> {
        let slots: Vec<u32> = self.processes.keys().copied().collect();
        for slot in slots {
            self.close(slot, at_ns, None);
        }
        self.end_pass(at_ns, true);
        self.define_news();
        let unwritten = self.unwritten();
        let Sink { output, events, trouble, .. } = self.sink;
        Done { output, events, unwritten, trouble }
    }

    /// Where events go.
    pub fn output(&mut self) -> &mut O {
        &mut self.sink.output
    }

    /// Calls that the writers had no room for.
    pub fn unwritten(&self) -> Unwritten {
        let all = self.processes.values().chain(&self.ended).map(Recorded::unwritten);
        all.fold(Unwritten::NONE, |sum, one| Unwritten {
            lost: sum.lost.saturating_add(one.lost),
            idle: sum.idle.saturating_add(one.idle),
            changes: sum.changes.saturating_add(one.changes),
        })
    }
}

#[cfg(test)]
#[path = "recorder_tests.rs"]
mod tests;
