//! The thread that reads rings and writes the trace: whatever else mpiprobe does, rings must not be full.

use std::{
    collections::HashMap,
    io,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, RecvTimeoutError, Sender},
    },
    thread,
    time::{Duration, Instant},
};

use mpiprobe_common::trace::Unwritten;
use mpiprobe_discover::Failure;
use mpiprobe_model::{CallSite, Profile, WaitStates};
use mpiprobe_observe::{CallBefore, Drained, Referred, monotonic_ns};
use mpiprobe_replay::Inside;
use mpiprobe_report::present::say;
use mpiprobe_trace::{
    Event, LocationId, Process, SiteId,
    store::{Definition, FlightBuffer, TraceWriter, Window, WriteError},
};
use mpiprobe_tracer::{Done, NewSite, Output, Recorder, UnfinishedCall, clock_pair};

use super::{
    dumps::Asked,
    file::Chunks,
    flight::Flight,
    options::When,
    sources::LineSource,
    waits::{self, Waits},
};

/// How long rings are left alone: as long as they fill slowly, and when they fill quickly. In the former time none becomes full, however
/// suddenly calls begin to come: 2.5 million in a second, as many as a node makes, are up to 100,000 lines, and one of the wrapper's rings has
/// room for 131,072. A processor's ring has room for 32,768 at least, and calls with probes take ten times as long.
const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(1));
/// At the beginning.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
/// Hundredths of a ring between two looks that are quick, and that are slow.
const FULL: (u64, u64) = (10, 2);
/// What is left alone for as long as it takes to read that much could not be made up for.
const TOO_FULL: u64 = 15;
/// How often what has been recorded is written out, however little that is, and it is looked at what was lost.
const FLUSH_INTERVAL: Duration = Duration::from_secs(1);
/// How often writers are told that somebody reads.
const RENEW_INTERVAL: Duration = Duration::from_millis(500);

/// How long rings are left alone next, if the fullest one was so full, in hundredths.
fn next_pause(pause: Duration, full: u64) -> Duration {
    match full {
        TOO_FULL.. => Duration::ZERO,
        full if full >= FULL.0 => (pause / 2).max(PAUSES.1),
        full if full < FULL.1 => (pause * 2).clamp(PAUSES.1, PAUSES.0),
        _ => pause,
    }
}

/// That a process has ended.
#[derive(Clone, Debug)]
pub(in crate::session) struct End {
    pub at_ns: u64,
    /// It goes on as another program.
    pub has_execed: bool,
    /// With what it has ended, if that is known and no success.
    pub failure: Option<Failure>,
    /// Calls that its threads have ended inside, where its tables do not have them any more.
    pub cut_short: Vec<UnfinishedCall>,
}

/// What the thread is told.
pub(super) enum Message {
    /// Lines of a process come from now on; `None`: from a source that is known already.
    Add {
        slot: u32,
        process: Process,
        /// It has not called MPI before if its first call initialises it.
        may_begin: bool,
        referred: Box<dyn Referred + Send>,
        source: Option<Box<dyn LineSource>>,
        /// Calls that its threads were in when its observation began.
        earlier: Vec<CallBefore>,
    },
    /// More is known of such calls of a process.
    Earlier(u32, Vec<CallBefore>),
    /// Lines of several processes, which are told of one by one.
    Source(Box<dyn LineSource>),
    /// Lines of a process are not wanted.
    Refuse(u32),
    /// Everybody has been told of who had called MPI by then, ns.
    KnownUntil(u64),
    Ended(u32, End),
    /// A job has not ended as it should.
    Failed(String),
    /// What is kept in memory is to be written down.
    Dump(Asked),
    /// With whether that is all that will be known.
    Site(SiteId, CallSite, bool),
    /// It was looked up where the calls were made that were open when that was wanted.
    Located,
    /// Nothing more is to be written down; is answered when all has been read.
    Stop(Sender<()>),
    Finish,
}

/// What others may know of the recording while it goes on.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) new_sites: Vec<NewSite>,
    /// It is to be looked up where open calls were made, and [`Message::Located`] to be said then.
    pub(super) wants_located: bool,
}

/// What has come of it.
#[derive(Debug)]
pub(in crate::session) struct Finished {
    pub(in crate::session) events: u64,
    pub(in crate::session) kept: Kept,
    /// Calls that there was no room for.
    pub(in crate::session) unwritten: Unwritten,
    /// Why something could not be written, or read.
    pub(in crate::session) trouble: Option<String>,
    /// Who has waited for whom, if that was asked for.
    pub(in crate::session) waits: Option<WaitStates>,
}

impl Finished {
    /// Adds what the last profile has of it.
    pub(in crate::session) fn add_to(self, profile: &mut Profile) {
        profile.wait_states = self.waits.or_else(|| profile.wait_states.take());
        if let Some(trouble) = self.trouble {
            profile.incomplete_because.push(format!("the trace is not whole: {trouble}"));
            profile.complete = false;
        }
    }
}

/// Where events are.
#[derive(Clone, Copy, Debug)]
pub(in crate::session) enum Kept {
    File {
        bytes: u64,
    },
    Nothing,
    /// `dumps`: so many files have been written of the last of them; `None`: whoever keeps them elsewhere knows.
    Memory {
        dumps: Option<u32>,
    },
}

/// Where events go.
#[derive(Debug)]
pub(super) enum Store {
    File(TraceWriter<Chunks>),
    Memory(Box<FlightBuffer>),
}

impl Store {
    /// What is done from time to time: writes out all so far, or forgets what is too old.
    fn tend(&mut self) -> Result<(), WriteError> {
        match self {
            Self::File(writer) => writer.flush(),
            Self::Memory(buffer) => buffer.trim(),
        }
    }
}

impl Output for Store {
    fn define(&mut self, definition: Definition) {
        match self {
            Self::File(writer) => writer.define(definition),
            Self::Memory(buffer) => buffer.define(definition),
        }
    }

    fn push(&mut self, location: LocationId, event: &Event) -> Result<(), WriteError> {
        match self {
            Self::File(writer) => writer.push(location, event),
            Self::Memory(buffer) => buffer.push(location, event),
        }
    }

    fn dropped(&self, location: LocationId) -> u64 {
        match self {
            Self::File(writer) => writer.dropped(location),
            Self::Memory(_) => 0,
        }
    }
}

pub(super) struct Worker {
    recorder: Recorder<Store>,
    /// When what is in memory is written down.
    flight: Option<Flight>,
    flush_interval: Duration,
    sources: Vec<Box<dyn LineSource>>,
    from: Receiver<Message>,
    shared: Arc<Mutex<Shared>>,
    windows: Option<Windows>,
    is_on: bool,
    pause: Duration,
    last_flush: Instant,
    last_survey: Instant,
    last_renewal: Option<Instant>,
    missing_lines: u64,
    trouble: Option<String>,
    pressure: Pressure,
    live: Option<Live>,
    /// Call sites of which not all is known yet, if anybody may wait for that; and since when somebody does.
    unnamed: HashMap<SiteId, Instant>,
    naming: Option<Naming>,
}

/// Somebody waits until it is known where open calls were made.
struct Naming {
    since: Instant,
    are_located: bool,
    /// Their places have numbers.
    are_asked: bool,
}

/// Who looks at calls while they are recorded, and how far it can be known what has happened.
pub(super) struct Live {
    /// Who finds out who waits for whom.
    waits: Option<Waits>,
    /// For whoever looks at the calls themselves.
    window: Option<Arc<Window>>,
    /// When it was looked at who was in a call, in which pass, and who was.
    looked: Option<(u64, u64, Vec<Inside>)>,
    passes: u64,
    /// Whoever had called MPI by then has been told of, ns.
    known_until_ns: u64,
}

/// Whether calls are left out for want of room.
#[derive(Debug, Default)]
struct Pressure {
    /// How many have been, and when there were more of them last.
    unwritten: u64,
    grew: Option<Instant>,
    /// It has been said, and not yet that it is over.
    is_told: bool,
}

/// When recording is switched on and off.
struct Windows {
    length: Duration,
    every: Duration,
    /// `None`: nobody is there yet, and the first time has not begun.
    next: Option<Instant>,
}

impl Worker {
    pub(super) fn new(
        recorder: Recorder<Store>,
        from: Receiver<Message>,
        shared: Arc<Mutex<Shared>>,
        when: When,
        flight: Option<Flight>,
        live: Option<Live>,
    ) -> Self {
        let now = Instant::now();
        let windows = match when {
            When::Always | When::Flight(_) => None,
            When::Windows { length, every } => Some(Windows { length, every, next: None }),
        };
        Self {
            recorder,
            flush_interval: match (&flight, &live) {
                (Some(flight), _) => flight.trim_interval(),
                (None, Some(_)) => waits::INTERVAL,
                (None, None) => FLUSH_INTERVAL,
            },
            flight,
            sources: Vec::new(),
            from,
            shared,
            windows,
            is_on: true,
            pause: FIRST_PAUSE,
            last_flush: now,
            last_survey: now,
            last_renewal: None,
            missing_lines: 0,
            trouble: None,
            pressure: Pressure::default(),
            live,
            unnamed: HashMap::new(),
            naming: None,
        }
    }

    pub(super) fn run(mut self) -> Finished {
        self.recorder.note_clock(clock_pair());
        let mut last_look = Instant::now();
        loop {
            let next_look = last_look + self.pause;
            let turn = self.windows.as_ref().and_then(|windows| windows.next);
            let next_look = turn.map_or(next_look, |turn| turn.min(next_look));
            match self.from.recv_timeout(next_look.saturating_duration_since(Instant::now())) {
                Ok(Message::Finish) | Err(RecvTimeoutError::Disconnected) => break,
                Ok(message) => self.heed(message),
                Err(RecvTimeoutError::Timeout) => {}
            }
            // However often there are messages.
            if Instant::now() >= next_look {
                self.look();
                last_look = Instant::now();
            }
        }
        self.finish()
    }

    fn heed(&mut self, message: Message) {
        match message {
            Message::Add { slot, process, may_begin, referred, source, earlier } => {
                self.recorder.add(slot, process, (true, may_begin), referred, &earlier);
                if let Some(windows) = &mut self.windows {
                    windows.next.get_or_insert_with(|| Instant::now() + windows.length);
                }
                if let Some(live) = &mut self.live {
                    // It may have been in a call by then.
                    live.looked = None;
                }
                if let Some(source) = source {
                    self.take_source(source);
                }
            }
            Message::Earlier(slot, calls) => {
                self.recorder.note_earlier(slot, &calls);
                if let Some(live) = &mut self.live {
                    live.looked = None;
                }
            }
            Message::Source(source) => self.take_source(source),
            Message::Refuse(slot) => self.recorder.refuse(slot),
            Message::KnownUntil(ns) => {
                if let Some(live) = &mut self.live {
                    live.known_until_ns = live.known_until_ns.max(ns);
                }
            }
            Message::Ended(slot, end) => self.end(slot, &end),
            Message::Failed(why) => {
                if let Some(flight) = &mut self.flight {
                    flight.fail(None, monotonic_ns(), why);
                }
            }
            Message::Dump(asked) => {
                if let Some(flight) = &mut self.flight {
                    flight.ask(asked);
                }
            }
            Message::Site(id, site, is_final) => {
                self.recorder.define_site(id, site);
                if is_final {
                    self.unnamed.remove(&id);
                }
            }
            Message::Located => {
                if let Some(naming) = &mut self.naming {
                    naming.are_located = true;
                }
            }
            Message::Stop(answer) => {
                self.stop();
                // Nobody may wait for it any more.
                let _ = answer.send(());
            }
            Message::Finish => {}
        }
    }

    /// What comes from now on is of no recording.
    fn stop(&mut self) {
        self.windows = None;
        self.is_on = false;
        self.switch(false);
        self.drain_patiently();
        self.recorder.look_at_threads();
        // They may come from places that no other call has.
        self.recorder.open_calls(monotonic_ns());
        self.give_sites();
    }

    fn take_source(&mut self, mut source: Box<dyn LineSource>) {
        if let Err(error) = source.switch(self.is_on) {
            self.note(format!("calls of a process are not recorded: {error}"));
        }
        self.sources.push(source);
    }

    /// The process of a slot has ended: what it has written last is read now.
    fn end(&mut self, slot: u32, end: &End) {
        let place = self.sources.iter().position(|source| source.slot() == Some(slot));
        let mut ended_ns = None;
        if let Some(mut source) = place.map(|place| self.sources.swap_remove(place)) {
            self.drain(&mut source, true);
            ended_ns = source.ended_ns();
        } else {
            self.drain_patiently();
        }
        let process = self.recorder.process(slot).cloned();
        let is_in_mpi =
            self.recorder.end_process(slot, ended_ns.unwrap_or(end.at_ns), &end.cut_short) && !end.has_execed;
        if let (Some(flight), Some(process)) = (&mut self.flight, process) {
            flight.note_end(&process, end.at_ns, is_in_mpi, end.failure);
        }
        self.give_sites();
    }

    fn look(&mut self) {
        let began = Instant::now();
        if self.last_renewal.is_none_or(|last| last.elapsed() >= RENEW_INTERVAL) && self.is_on {
            self.switch(true);
        }
        let full = self.pass();
        if let Some(windows) = &mut self.windows
            && let Some(turn) = windows.next.filter(|turn| *turn <= Instant::now())
        {
            let (length, pause) = (windows.length, windows.every.saturating_sub(windows.length));
            windows.next = Some(turn + if self.is_on { pause } else { length });
            self.is_on = !self.is_on;
            self.turn();
        }
        self.pause = next_pause(self.pause, full);
        if self.last_flush.elapsed() >= self.flush_interval {
            if self.last_survey.elapsed() >= FLUSH_INTERVAL {
                self.recorder.look_at_threads();
                self.recorder.note_clock(clock_pair());
                self.tell_pressure();
                self.last_survey = began;
            } else if self.live.is_some() {
                // What was lost must be known with what has come after it.
                self.recorder.look_at_threads();
            }
            // What there was when something went wrong is kept until it is written down.
            if !self.flight.as_ref().is_some_and(Flight::has_failure) {
                let tended = self.recorder.output().tend();
                self.note_written(tended);
            }
            self.tell_how_far();
            self.last_flush = began;
        }
        self.look_after_flight();
        self.give_sites();
    }

    /// Tells whoever looks for waits, or at calls, until when all is known: by who was in a call when that was looked at the last time.
    /// What had returned by then was read since, what has come out of order was waited for, and there is nobody else.
    fn tell_how_far(&mut self) {
        let Some(live) = &mut self.live else { return };
        if self.recorder.holds_back() {
            // Who seemed to be in a call that had begun before has called since.
            live.looked = None;
        }
        let known = live.looked.take_if(|(at_ns, pass, _)| live.passes >= *pass + 2 && live.known_until_ns >= *at_ns);
        if let Some((at_ns, _, inside)) = known {
            if let Some(waits) = &live.waits {
                waits.feed.complete(at_ns, inside);
            }
            if let Some(window) = &live.window {
                // Which calls are open takes a look at all threads.
                let is_watched = window.is_watched();
                let open = if is_watched { self.recorder.open_calls(monotonic_ns()) } else { Vec::new() };
                window.note(at_ns, open);
            }
        }
        if live.looked.is_none() {
            let now_ns = monotonic_ns();
            let inside = self.recorder.inside();
            let inside = inside.map(|(process, since_ns, calls)| Inside { process, since_ns, calls });
            live.looked = Some((now_ns, live.passes, inside.collect()));
        }
    }

    /// Writes down what is in memory, if it is time.
    fn look_after_flight(&mut self) {
        let Self { recorder, flight: Some(flight), .. } = self else { return };
        if let Store::Memory(buffer) = recorder.output()
            && buffer.is_short()
        {
            flight.note_short();
        }
        if let Some(trouble) = flight.trouble() {
            self.note(trouble);
            return;
        }
        if flight.looks_quiet(recorder.calls()) {
            let (now_ns, patience) = (monotonic_ns(), flight.patience().unwrap_or_default());
            let long_ns = u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX);
            let open = recorder.open_calls(now_ns);
            let is_long = |event: &Event| event.time_ns() <= now_ns.saturating_sub(long_ns);
            flight.note_quiet(open.iter().filter(|(_, event)| is_long(event)).count());
        }
        if flight.is_due(false) && self.are_open_calls_named() {
            self.dump();
        }
    }

    /// Whether it is known by now where the calls were made that are open, or was waited for long enough: that is where a job hangs.
    fn are_open_calls_named(&mut self) -> bool {
        const PATIENCE: Duration = Duration::from_secs(2);
        let shared = &self.shared;
        let naming = self.naming.get_or_insert_with(|| {
            shared.lock().unwrap_or_else(PoisonError::into_inner).wants_located = true;
            Naming { since: Instant::now(), are_located: false, are_asked: false }
        });
        let is_too_long = naming.since.elapsed() >= PATIENCE;
        if naming.are_located && !naming.are_asked {
            naming.are_asked = true;
            // They may come from places that no other call has.
            self.recorder.open_calls(monotonic_ns());
            self.give_sites();
            return false;
        }
        // Of processes that have ended before, nobody will say it.
        self.unnamed.retain(|_, since| since.elapsed() < PATIENCE);
        let are_named = is_too_long || naming.are_asked && self.unnamed.is_empty();
        if are_named {
            self.naming = None;
        }
        are_named
    }

    /// All that has been called by now, and is not too old.
    fn dump(&mut self) {
        self.drain_patiently();
        // What comes out of order is waited for once more.
        for _ in 0..2 {
            self.pass();
        }
        self.recorder.look_at_threads();
        self.recorder.note_clock(clock_pair());
        let now_ns = monotonic_ns();
        let open = self.recorder.open_calls(now_ns);
        let dump = match self.recorder.output() {
            Store::Memory(buffer) => Some(buffer.dump(&open)),
            Store::File(writer) => {
                // Whoever keeps it elsewhere has all of it then.
                let flushed = writer.flush();
                self.note_written(flushed);
                if let Some(window) = self.live.as_ref().and_then(|live| live.window.as_ref()) {
                    window.note(now_ns, open);
                }
                None
            }
        };
        if let Some(flight) = &mut self.flight {
            flight.write(dump);
        }
    }

    /// A window begins, or ends.
    fn turn(&mut self) {
        self.switch(self.is_on);
        if self.is_on {
            self.recorder.resume(monotonic_ns());
        } else {
            // What was called before the switch was heeded.
            self.drain_patiently();
            self.pass();
            self.recorder.pause();
        }
    }

    fn switch(&mut self, is_on: bool) {
        self.last_renewal = Some(Instant::now());
        for source in &mut self.sources {
            // Where it is of no use, its process has ended, which is told later.
            let _ = source.switch(is_on);
        }
    }

    /// Looks at all rings once; gives how full the fullest one was, in hundredths.
    fn pass(&mut self) -> u64 {
        let began_ns = monotonic_ns();
        let drained = self.drain_all(false);
        // What is held up may be what others wait for.
        if !drained.is_held_up {
            self.recorder.end_pass(began_ns, false);
            if let Some(live) = &mut self.live {
                live.passes += 1;
            }
        }
        if let Some(error) = self.recorder.take_trouble() {
            self.note_written(Err(error));
        }
        drained.full
    }

    /// What was written up to now is read, however long lines take to be written that come before it.
    fn drain_patiently(&mut self) {
        while self.drain_all(false).is_held_up {
            thread::sleep(PAUSES.1);
        }
    }

    fn drain_all(&mut self, is_last: bool) -> Drained {
        let mut sources = std::mem::take(&mut self.sources);
        let mut all = Drained::default();
        for source in &mut sources {
            let drained = self.drain(source, is_last);
            all.full = all.full.max(drained.full);
            all.is_held_up |= drained.is_held_up;
        }
        self.sources = sources;
        all
    }

    fn drain(&mut self, source: &mut Box<dyn LineSource>, is_last: bool) -> Drained {
        let recorder = &mut self.recorder;
        let drained = source.drain(monotonic_ns(), is_last, &mut |slot, place, origin, words| {
            recorder.line(slot, place, origin, words);
        });
        match drained {
            Ok(drained) => {
                self.missing_lines = self.missing_lines.saturating_add(drained.missing);
                drained
            }
            Err(error) => {
                self.note(format!("calls of a process were not read: {error}"));
                Drained::default()
            }
        }
    }

    fn note_written(&mut self, written: Result<(), WriteError>) {
        if let Err(error) = written {
            self.note(error.to_string());
        }
    }

    fn note(&mut self, what: String) {
        if self.trouble.is_none() {
            say(format_args!("the trace is not whole: {what}"));
            self.trouble = Some(what);
        }
    }

    /// Says that calls are left out for want of room, and that they are not any more.
    fn tell_pressure(&mut self) {
        const QUIET: Duration = Duration::from_secs(5);
        let Unwritten { idle, lost, .. } = self.recorder.unwritten();
        let unwritten = idle.saturating_add(lost);
        let pressure = &mut self.pressure;
        if unwritten > pressure.unwritten {
            if !pressure.is_told {
                say(if lost > 0 {
                    "calls come more quickly than they can be recorded: some are lost, and the trace says how many"
                } else {
                    "calls come so quickly that those which only ask in vain (MPI_Test, MPI_Iprobe) are left out for now"
                });
            }
            *pressure = Pressure { unwritten, grew: Some(Instant::now()), is_told: true };
        } else if pressure.is_told && pressure.grew.is_some_and(|grew| grew.elapsed() > QUIET) {
            say("all calls are recorded again");
            pressure.is_told = false;
        }
    }

    fn give_sites(&mut self) {
        let new = self.recorder.take_new_sites();
        if !new.is_empty() {
            if self.flight.is_some() {
                self.unnamed.extend(new.iter().map(|site| (site.id, Instant::now())));
            }
            self.shared.lock().unwrap_or_else(PoisonError::into_inner).new_sites.extend(new);
        }
    }

    fn finish(mut self) -> Finished {
        self.recorder.look_at_threads();
        self.switch(false);
        let at_ns = monotonic_ns();
        // Who was about to write may do so still.
        self.drain_patiently();
        self.drain_all(true);
        self.recorder.end_pass(at_ns, false);
        self.recorder.note_clock(clock_pair());
        if self.missing_lines > 0 {
            tracing::info!("{} lines of rings were overwritten before they were read", self.missing_lines);
        }
        let Self { recorder, mut flight, trouble, live, .. } = self;
        let Done { output, events, unwritten, trouble: error } = recorder.finish(at_ns);
        let mut last = None;
        let (kept, buffer) = match output {
            Store::File(writer) => match writer.finish().map(Chunks::finish) {
                Ok(None) => (Kept::Nothing, None),
                Ok(Some(Ok(bytes))) => (Kept::File { bytes }, None),
                Ok(Some(Err(error))) => {
                    last = Some(error.to_string());
                    (Kept::File { bytes: 0 }, None)
                }
                Err(error) => {
                    last = Some(error.to_string());
                    (Kept::File { bytes: 0 }, None)
                }
            },
            Store::Memory(buffer) => (Kept::Nothing, Some(buffer)),
        };
        let window = live.as_ref().and_then(|live| live.window.as_ref());
        if let Some(window) = window {
            window.note(at_ns, Vec::new());
        }
        if let Some(flight) = &mut flight
            && flight.is_due(true)
        {
            flight.write(buffer.map(|mut buffer| buffer.dump(&[])));
        }
        let kept = flight.map_or(kept, |flight| Kept::Memory { dumps: flight.finish() });
        let trouble = trouble.or_else(|| error.map(|error| error.to_string()).or(last));
        let waits = live.and_then(|live| live.waits?.finish());
        Finished { events, kept, unwritten, trouble, waits }
    }
}

impl Live {
    pub(super) fn new(waits: Option<Waits>, window: Option<Arc<Window>>) -> Self {
        Self { waits, window, looked: None, passes: 0, known_until_ns: 0 }
    }
}

/// What a thread that could not be started, or that has panicked, would have said.
pub(super) fn failed(error: &io::Error) -> Finished {
    Finished {
        events: 0,
        kept: Kept::File { bytes: 0 },
        unwritten: Unwritten::NONE,
        trouble: Some(error.to_string()),
        waits: None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use mpiprobe_trace::Node;
    use mpiprobe_trace::store::FlightSpan;
    use mpiprobe_tracer::Selection;

    use super::*;
    use crate::session::trace::sources::Take;

    /// Tells whenever it is read.
    #[derive(Debug)]
    struct Told(Sender<()>);

    impl LineSource for Told {
        fn slot(&self) -> Option<u32> {
            None
        }

        fn drain(&mut self, _now_ns: u64, _is_last: bool, _take: &mut Take<'_>) -> io::Result<Drained> {
            // Nobody may want to know any more.
            let _ = self.0.send(());
            Ok(Drained::default())
        }

        fn switch(&mut self, _is_on: bool) -> io::Result<()> {
            Ok(())
        }

        fn ended_ns(&self) -> Option<u64> {
            None
        }
    }

    #[test]
    fn rings_that_fill_are_looked_at_the_sooner() {
        let after = |fulls: &[u64]| fulls.iter().fold(FIRST_PAUSE, |pause, &full| next_pause(pause, full));
        assert_eq!(after(&[0, 1, 0, 1, 0]), PAUSES.0);
        assert_eq!(after(&[5, 5]), FIRST_PAUSE);
        assert_eq!(after(&[10, 14, 10, 10]), PAUSES.1);
        assert_eq!(after(&[0, 0, 90]), Duration::ZERO);
        assert_eq!(after(&[90, 5]), Duration::ZERO, "until it is made up for");
        assert_eq!([after(&[90, 10]), after(&[90, 1]), after(&[90, 1, 1])], [PAUSES.1, PAUSES.1, 2 * PAUSES.1]);
    }

    #[test]
    fn messages_keep_nobody_from_reading() {
        let store = Store::Memory(Box::new(FlightBuffer::new(FlightSpan::Calls(10), 1 << 20)));
        let node = Node { host: String::new(), boot: String::new(), clock: Vec::new() };
        let recorder = Recorder::new(store, node, Selection::default(), 0);
        let ((to, from), (reads, read)) = (channel(), channel());
        let worker = Worker::new(recorder, from, Arc::default(), When::Always, None, None);
        let worker = thread::spawn(move || worker.run());
        to.send(Message::Source(Box::new(Told(reads)))).unwrap();
        // More often than rings are looked at.
        let mut looks = 0;
        for _ in 0..60_000 {
            to.send(Message::KnownUntil(1)).unwrap();
            looks += read.recv_timeout(PAUSES.1).into_iter().count();
            if looks == 20 {
                break;
            }
        }
        to.send(Message::Finish).unwrap();
        assert!(looks == 20 && worker.join().is_ok(), "{looks}");
    }
}
