//! The course of events, recorded beside an observation.

mod file;
mod options;
mod sources;
mod worker;

use std::{
    fmt, fs, io,
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Sender, channel},
    },
    thread::{Builder, JoinHandle},
};

use mpiprobe_discover::files::create_new;
use mpiprobe_model::{CallSite, analyse::Identity};
use mpiprobe_observe::{Referred, monotonic_ns};
use mpiprobe_report::present::say;
use mpiprobe_trace::{Node, NodeId, Process, store::TraceWriter};
use mpiprobe_tracer::{NewSite, Recorder};
pub use options::{Ranks, TraceOptions, When};
pub(in crate::session) use sources::{FileSource, KernelLines, LineSource};
use thiserror::Error;
pub(in crate::session) use worker::Finished;
use worker::{Message, Shared, Worker, failed};

use super::host;

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

/// A recording that goes on.
pub(in crate::session) struct Tracing {
    path: PathBuf,
    ranks: Option<Ranks>,
    to: Sender<Message>,
    shared: Arc<Mutex<Shared>>,
    thread: JoinHandle<Finished>,
    /// Call sites that were given, as they were said last.
    sites: Vec<Site>,
}

impl fmt::Debug for Tracing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tracing").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Tracing {
    /// Makes the file and begins, before there is anything to be recorded.
    pub(in crate::session) fn begin(options: &TraceOptions) -> Result<Self, TraceError> {
        let file = create_new(&options.path, options.mode).map_err(|source| match source.kind() {
            io::ErrorKind::AlreadyExists => TraceError::Exists(options.path.clone()),
            _ => TraceError::Write { path: options.path.clone(), source },
        })?;
        let writer = TraceWriter::new(file::ChunkFile::new(file))
            .map_err(|error| TraceError::Write { path: options.path.clone(), source: io::Error::other(error) })?;
        let recorder = Recorder::new(writer, node(), options.selection.clone(), monotonic_ns());
        let ((to, from), shared) = (channel(), Arc::<Mutex<Shared>>::default());
        let worker = Worker::new(recorder, from, Arc::clone(&shared), options.when);
        let thread = Builder::new().name("trace".into()).spawn(move || worker.run()).map_err(TraceError::Thread)?;
        Ok(Self { path: options.path.clone(), ranks: options.ranks.clone(), to, shared, thread, sites: Vec::new() })
    }

    /// Whether calls of a rank are to be recorded.
    pub(in crate::session) fn wants(&self, rank: Option<u32>) -> bool {
        self.ranks.as_ref().is_none_or(|ranks| rank.is_some_and(|rank| ranks.contains(rank)))
    }

    /// A process whose lines come from now on: from a source of its own, or one that is known. `is_whole`: its threads' calls are recorded from
    /// the first one on that was counted.
    pub(in crate::session) fn add(
        &self,
        slot: u32,
        process: Process,
        is_whole: bool,
        referred: Box<dyn Referred + Send>,
        source: Option<Box<dyn LineSource>>,
    ) {
        self.tell(Message::Add { slot, process, is_whole, referred, source });
    }

    /// Lines of several processes come from there from now on.
    pub(in crate::session) fn read(&self, source: Box<dyn LineSource>) {
        self.tell(Message::Source(source));
    }

    /// Lines of a process are not wanted.
    pub(in crate::session) fn refuse(&self, slot: u32) {
        self.tell(Message::Refuse(slot));
    }

    /// A process has ended.
    pub(in crate::session) fn end_process(&self, slot: u32, at_ns: u64) {
        self.tell(Message::Ended(slot, at_ns));
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
            if site.said.as_ref() != Some(&found) {
                let _ = self.to.send(Message::Site(site.place.id, found.clone()));
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
            None => String::new(),
        };
        let each = finished.bytes as f64 / finished.events.max(1) as f64;
        say(format_args!(
            "{}: {} events, {} bytes ({each:.1} each){what}",
            self.path.display(),
            finished.events,
            finished.bytes
        ));
        finished
    }
}

/// This machine.
fn node() -> Node {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    Node { host: host::name(), boot: boot.trim().to_owned(), clock: Vec::new() }
}
