//! The course of events, recorded beside an observation.

mod dumps;
mod elsewhere;
mod file;
mod flight;
mod incoming;
mod options;
mod requests;
mod sources;
mod stream;
mod waits;
mod worker;

use std::{
    fmt, io,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Sender, channel},
    },
    thread::{Builder, JoinHandle},
};

pub(in crate::session) use dumps::Asked as ToDump;
pub use dumps::Dumped;
use dumps::{Asked, Dumps};
use elsewhere::Elsewhere;
pub(in crate::session) use elsewhere::HandedOn;
use flight::{Flight, Keeper};
pub(in crate::session) use incoming::{DumpRequests, IncomingTrace};
use mpiprobe_functions::by_name;
use mpiprobe_model::{CallSite, WaitStates, analyse::Identity};
use mpiprobe_observe::{CallBefore, Referred, monotonic_ns};
use mpiprobe_report::present::{divert_thread, say, thread_listener};
use mpiprobe_trace::{
    Node, NodeId, Process,
    store::{FlightBuffer, TraceWriter, Window, WriteError},
};
use mpiprobe_tracer::{NewSite, Recorder};
pub(in crate::session) use options::WINDOW;
pub use options::{FlightOptions, LatestCalls, Ranks, TraceOptions, TraceTo, When, flight_span, typed_flight_span};
pub use requests::{DumpError, ask};
pub(in crate::session) use sources::{FileSource, KernelLines, LineSource};
pub use stream::Listener;
use thiserror::Error;
pub(in crate::session) use waits::own_cpu_ns;
use waits::{Feed, Latest, Waits};
pub(in crate::session) use worker::{End, Finished, Kept};
use worker::{Live, Message, Shared, Store, Worker, failed};

use super::host;

/// Gives somebody elsewhere, who keeps the same, all that is in a window and what comes, as far as it is taken in time.
pub(in crate::session) fn hand_on(window: &Window, to: Listener) -> Result<HandedOn, TraceError> {
    HandedOn::begin(window, to, |error| {
        // Else nobody is there any more.
        if error.kind() != io::ErrorKind::BrokenPipe {
            say(format_args!("no more calls are shown: {error}"));
        }
    })
}

/// Why nothing is recorded.
#[derive(Debug, Error)]
pub enum TraceError {
    #[error("{} exists already, and no trace overwrites a file: choose another name, or remove it", .0.display())]
    Exists(PathBuf),
    #[error("cannot write a trace to {}: {source}", .path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("cannot record a trace: {0}")]
    Thread(#[source] io::Error),
}

#[derive(Debug)]
struct Site {
    place: NewSite,
    said: Option<CallSite>,
    /// No more will be known of it.
    is_final: bool,
}

/// A process as a trace describes it that is recorded from a moment on, ns. `began_before`: it had called MPI by then.
pub(in crate::session) fn traced_process(
    identity: &Identity,
    library: String,
    recorded_from_ns: u64,
    began_before: bool,
) -> Process {
    let Identity { pid, rank, size, job, executable, .. } = identity.clone();
    Process {
        node: NodeId(0),
        pid,
        job,
        rank,
        world_size: size,
        executable,
        library,
        recorded_from_ns,
        began_before,
        ended_ns: None,
    }
}

/// Where the lines of a process come from.
pub(in crate::session) enum Lines {
    /// From a source of its own, which has had them since it began.
    Own(Box<dyn LineSource>),
    /// From one that is known. `earlier`: calls that its threads were in when its observation began.
    Known { earlier: Vec<CallBefore> },
}

/// A recording that goes on.
pub(in crate::session) struct Tracing {
    path: Option<PathBuf>,
    ranks: Option<Ranks>,
    /// Only calls over some communicators are wanted, by their names.
    is_by_name: bool,
    to: Sender<Message>,
    shared: Arc<Mutex<Shared>>,
    thread: JoinHandle<Finished>,
    /// Call sites that were given, as they were said last.
    sites: Vec<Site>,
    /// Who waits for whom, as far as it is known by now.
    waits: Option<Latest>,
    /// The latest calls, where waits are looked for.
    window: Option<Arc<Window>>,
    /// They are in memory only, until somebody wants them.
    is_flight: bool,
}

impl fmt::Debug for Tracing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tracing").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Tracing {
    /// Makes the file, if it is written as things happen, and begins, before there is anything to be recorded.
    pub(in crate::session) fn begin(options: &TraceOptions) -> Result<Self, TraceError> {
        let waits = options.waits.then(Waits::begin).transpose().map_err(TraceError::Thread)?;
        let latest = waits.as_ref().map(Waits::latest);
        let feed = waits.as_ref().map(|waits| waits.feed.clone());
        let (store, window, keeper) = match (options.when, &options.to) {
            (When::Flight(kept), TraceTo::File { path, mode }) => {
                let keeper = Keeper::Here(Dumps::new(path, *mode)?);
                (Store::Memory(Box::new(FlightBuffer::new(kept.span, kept.memory))), None, Some((kept, keeper)))
            }
            (When::Flight(kept), TraceTo::Listener(to)) => {
                let elsewhere = Elsewhere::begin(to.clone())?;
                let window = Some(elsewhere.window());
                let writer = written(None, feed, window.as_ref()).map_err(in_memory)?.for_span(kept.span);
                (Store::File(writer), window, Some((kept, Keeper::Elsewhere(elsewhere))))
            }
            (_, to) => {
                let window = options.latest.window();
                let writer = written(file::Sink::of(to)?, feed, window.as_ref());
                // Only a file can fail.
                let path = to.path().unwrap_or(Path::new(""));
                (Store::File(writer.map_err(|error| TraceError::file(path, io::Error::other(error)))?), window, None)
            }
        };
        let recorder = Recorder::new(store, node(), options.selection.clone(), monotonic_ns());
        let ((to, from), shared) = (channel(), Arc::<Mutex<Shared>>::default());
        if let Some((kept, Keeper::Here(_))) = &keeper {
            let to = to.clone();
            // A thread that has ended keeps nothing any more.
            listen_to_requests(kept, move |asked| drop(to.send(Message::Dump(asked))))?;
        }
        let finalize = by_name("MPI_Finalize");
        let judges_ends = finalize.is_some_and(|function| options.selection.functions.contains(function));
        let flight = keeper.map(|(kept, keeper)| Flight::new(kept, keeper, judges_ends));
        let live = (waits.is_some() || window.is_some()).then(|| Live::new(waits, window.clone()));
        let worker = Worker::new(recorder, from, Arc::clone(&shared), options.when, flight, live);
        // What is to be said of it is for whom it is recorded.
        let listener = thread_listener();
        let recording = move || {
            let _diverted = listener.map(divert_thread);
            worker.run()
        };
        let thread = Builder::new().name("trace".into()).spawn(recording).map_err(TraceError::Thread)?;
        let (path, ranks) = (options.to.path().map(Path::to_owned), options.ranks.clone());
        let is_by_name = !options.selection.communicators.is_empty();
        let is_flight = matches!(options.when, When::Flight(_));
        Ok(Self { path, ranks, is_by_name, to, shared, thread, sites: Vec::new(), waits: latest, window, is_flight })
    }

    /// What is kept in memory is to be written down by whoever keeps it elsewhere.
    pub(in crate::session) fn dump(&self) {
        self.tell(Message::Dump(Asked::because(String::new())));
    }

    /// Who waits for whom, as far as it is known by now, if that was asked for.
    pub(in crate::session) fn wait_states(&self) -> Option<WaitStates> {
        self.waits.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The latest calls, if they are kept.
    pub(in crate::session) fn window(&self) -> Option<Arc<Window>> {
        self.window.clone()
    }

    /// If somebody wants to know where open calls were made, has it looked up.
    pub(in crate::session) fn locate_open_calls(&self, look_up: impl FnOnce()) {
        let is_wanted = std::mem::take(&mut self.shared.lock().unwrap_or_else(PoisonError::into_inner).wants_located);
        if is_wanted {
            look_up();
            self.tell(Message::Located);
        }
    }

    /// Whether somebody waits for call sites to be named, or may at any time.
    pub(in crate::session) fn is_looked_at(&self) -> bool {
        self.waits.is_some() || self.window.is_some() || self.is_flight
    }

    /// Whether calls of a rank are to be recorded.
    pub(in crate::session) fn wants(&self, rank: Option<u32>) -> bool {
        self.ranks.as_ref().is_none_or(|ranks| rank.is_some_and(|rank| ranks.contains(rank)))
    }

    /// A process whose lines come from now on: from a source of its own, or one that is known. Its threads' calls are recorded from the first one
    /// on that was counted. `may_begin`: it has not called MPI before if its first call initialises it, whatever `process` says.
    pub(in crate::session) fn add(
        &self,
        slot: u32,
        process: Process,
        may_begin: bool,
        referred: Box<dyn Referred + Send>,
        from: Lines,
    ) {
        let (source, earlier) = match from {
            Lines::Own(source) => (Some(source), Vec::new()),
            Lines::Known { earlier } => (None, earlier),
        };
        self.tell(Message::Add { slot, process, may_begin, referred, source, earlier });
    }

    /// More is known of calls that threads of a process were in when its observation began.
    pub(in crate::session) fn note_earlier(&self, slot: u32, calls: Vec<CallBefore>) {
        self.tell(Message::Earlier(slot, calls));
    }

    /// Lines of several processes come from there from now on.
    pub(in crate::session) fn read(&self, source: Box<dyn LineSource>) {
        self.tell(Message::Source(source));
    }

    /// Lines of a process are not wanted.
    pub(in crate::session) fn refuse(&self, slot: u32) {
        self.tell(Message::Refuse(slot));
    }

    /// Everybody has been told of, by `add` or by `refuse`, who had called MPI by then: until then it can be known who has waited for whom.
    pub(in crate::session) fn know_until(&self, ns: u64) {
        self.tell(Message::KnownUntil(ns));
    }

    /// A process has ended, or has become another program.
    pub(in crate::session) fn end_process(&self, slot: u32, end: End) {
        self.tell(Message::Ended(slot, end));
    }

    /// What is recorded has ended as it should not.
    pub(in crate::session) fn fail(&self, why: String) {
        self.tell(Message::Failed(why));
    }

    fn tell(&self, message: Message) {
        // A thread that has ended has told why.
        let _ = self.to.send(message);
    }

    /// Says of call sites where they are, as far as `find` knows by now; with whether that is all that will be known.
    pub(in crate::session) fn name_sites(&mut self, mut find: impl FnMut(u32, u64) -> Option<(CallSite, bool)>) {
        let new = std::mem::take(&mut self.shared.lock().unwrap_or_else(PoisonError::into_inner).new_sites);
        self.sites.extend(new.into_iter().map(|place| Site { place, said: None, is_final: false }));
        for site in self.sites.iter_mut().filter(|site| !site.is_final) {
            let Some((found, is_final)) = find(site.place.process, site.place.address) else { continue };
            site.is_final = is_final;
            if is_final || site.said.as_ref() != Some(&found) {
                let _ = self.to.send(Message::Site(site.place.id, found.clone(), is_final));
                site.said = Some(found);
            }
        }
    }

    /// Nothing more is written down. When this returns, all call sites are known that there are.
    pub(in crate::session) fn stop(&self) {
        let (answer, answered) = channel();
        self.tell(Message::Stop(answer));
        // A thread that has ended has told why.
        let _ = answered.recv();
    }

    /// Ends the recording: gives what has come of it once all is written, and says so.
    pub(in crate::session) fn finish(self) -> Finished {
        self.tell(Message::Finish);
        let finished = self.thread.join().unwrap_or_else(|_| failed(&io::Error::other("the recording has failed")));
        let what = match &finished.trouble {
            Some(trouble) => format!("; it is not whole: {trouble}"),
            None if finished.unwritten.lost > 0 => {
                format!("; {} calls were lost, because they came too quickly", finished.unwritten.lost)
            }
            None if finished.events == 0 && self.path.is_some() => nothing_recorded(self.is_by_name),
            None => String::new(),
        };
        let (path, events) =
            (self.path.map_or_else(String::new, |path| format!("{}: ", path.display())), finished.events);
        match finished.kept {
            Kept::Nothing if what.is_empty() => {}
            Kept::Nothing => say(format_args!("{events} events were looked at{what}")),
            Kept::File { .. } if finished.trouble.is_some() => {
                say(format_args!("{path}{events} events, not all of which are in the file{what}"));
            }
            Kept::File { bytes } => {
                let each = bytes as f64 / events.max(1) as f64;
                say(format_args!("{path}{events} events, {bytes} bytes ({each:.1} each){what}"));
            }
            Kept::Memory { dumps } => {
                let written = dumps.map_or_else(String::new, |dumps| format!(", {}", said_of(dumps)));
                say(format_args!("{events} events{written}{what}"));
            }
        }
        finished
    }
}

impl TraceError {
    fn file(path: &Path, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::AlreadyExists => Self::Exists(path.into()),
            _ => Self::Write { path: path.into(), source },
        }
    }
}

/// Nothing is written, and yet it has failed.
fn in_memory(error: WriteError) -> TraceError {
    TraceError::Thread(io::Error::other(error))
}

/// What is written as things happen, chunk by chunk, to whoever is to have it.
fn written(
    kept: Option<file::Sink>,
    feed: Option<Feed>,
    window: Option<&Arc<Window>>,
) -> Result<TraceWriter<file::Chunks>, WriteError> {
    let chunks = file::Chunks { kept, feed };
    match window {
        Some(window) => TraceWriter::with_window(chunks, Arc::clone(window)),
        None => TraceWriter::new(chunks),
    }
}

/// Has what is kept in memory written down whenever somebody asks for it, and says how to.
fn listen_to_requests(kept: &FlightOptions, take: impl Fn(Asked) + Clone + Send + 'static) -> Result<(), TraceError> {
    requests::listen(kept.by_signal, take).map_err(TraceError::Thread)?;
    let (span, pid) = (flight::shown(kept.span), std::process::id());
    let signal = if kept.by_signal { format!(", or SIGUSR1 to {pid},") } else { String::new() };
    say(format_args!("keeping the calls of {span} in memory: `mpiprobe dump --pid {pid}`{signal} writes them down"));
    Ok(())
}

/// Why there may be nothing in a file. `is_by_name`: calls over some communicators were wanted.
fn nothing_recorded(is_by_name: bool) -> String {
    let names = if is_by_name {
        ", over a communicator of such a name (those that programs have given before are not known: `mpiprobe --traffic` lists what is)"
    } else {
        ""
    };
    format!("; no call that was asked for was seen to return{names}; calls without return probes are in no trace")
}

/// How often the last calls have been written.
fn said_of(dumps: u32) -> String {
    match dumps {
        0 => "of which none was written: nobody has asked, and nothing was seen to go wrong".into(),
        1 => "the last of which were written once".into(),
        times => format!("the last of which were written {times} times"),
    }
}

/// This machine.
fn node() -> Node {
    Node { host: host::name(), boot: host::boot().to_owned(), clock: Vec::new() }
}
