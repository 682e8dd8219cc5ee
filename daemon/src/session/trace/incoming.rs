//! A trace that is made elsewhere, as it comes from there.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    time::Duration,
};

use mpiprobe_discover::printable;
use mpiprobe_report::present::say;
use mpiprobe_trace::store::{Dump, Replica, Window};
use tokio::{sync::mpsc, time::Instant};

use super::{
    TraceError,
    dumps::{Asked, Dumps, refuse},
    file::Sink,
    flight::say_short,
    listen_to_requests,
    options::{FlightOptions, TraceOptions, TraceTo, When},
    said_of,
};

/// Those here who want what is kept in memory to be written down.
#[derive(Debug)]
pub(in crate::session) struct DumpRequests(mpsc::UnboundedReceiver<Asked>);

impl DumpRequests {
    /// From now on; `None`: nothing is kept in memory here.
    pub(in crate::session) fn listen(options: &TraceOptions) -> Result<Option<Self>, TraceError> {
        let (When::Flight(options), TraceTo::File { .. }) = (options.when, &options.to) else { return Ok(None) };
        let (take, requests) = mpsc::unbounded_channel();
        // Whoever has asked is told if nothing is kept any more.
        listen_to_requests(&options, move |asked| drop(take.send(asked)))?;
        Ok(Some(Self(requests)))
    }

    /// The next one, if there can be any. The wait may be given up.
    pub(in crate::session) async fn next(requests: &mut Option<Self>) -> Asked {
        if let Some(Self(requests)) = requests
            && let Some(asked) = requests.recv().await
        {
            return asked;
        }
        std::future::pending().await
    }
}

/// One that is written, passed on, or kept in memory.
#[derive(Debug)]
pub(in crate::session) struct IncomingTrace {
    path: Option<PathBuf>,
    to: To,
    /// Why nothing more is kept: what comes afterwards may need what is missing.
    trouble: Option<String>,
}

#[derive(Debug)]
enum To {
    Sink(Sink),
    Memory(Box<Memory>),
}

/// The last part of it, until somebody wants it.
#[derive(Debug)]
struct Memory {
    options: FlightOptions,
    kept: Replica,
    /// Until when it was written down last, ns.
    written_until_ns: Option<u64>,
    is_short_told: bool,
    dumps: Dumps,
    /// Those who wait for all to have come that had been called when they asked, and until when the first of them does.
    waiting: Vec<Asked>,
    deadline: Option<Instant>,
    /// Those for whom all has come: it is written once the file before is whole, which nothing here waits for.
    due: Vec<Asked>,
}

/// For all that has been called to come from whoever records it.
const PATIENCE: Duration = Duration::from_secs(30);

impl IncomingTrace {
    /// `None`: nobody wants it.
    pub(in crate::session) fn begin(options: &TraceOptions) -> Result<Option<Self>, TraceError> {
        let path = options.to.path().map(Path::to_owned);
        let to = match (options.when, &options.to) {
            (When::Flight(options), TraceTo::File { path, mode }) => {
                let dumps = Dumps::new(path, *mode)?;
                let kept = Replica::new(Window::of_span(options.span, options.memory));
                let (waiting, deadline, due) = (Vec::new(), None, Vec::new());
                To::Memory(Box::new(Memory {
                    options,
                    kept,
                    written_until_ns: None,
                    is_short_told: false,
                    dumps,
                    waiting,
                    deadline,
                    due,
                }))
            }
            (_, to) => match Sink::of(to)? {
                Some(sink) => To::Sink(sink),
                None => return Ok(None),
            },
        };
        Ok(Some(Self { path, to, trouble: None }))
    }

    /// The next part. Gives why what is kept is written down now, if that is not because somebody here has asked for it.
    pub(in crate::session) fn take(&mut self, chunk: &[u8]) -> Option<String> {
        if self.trouble.is_some() {
            return None;
        }
        let taken = match &mut self.to {
            To::Sink(sink) => {
                sink.write_all(chunk).map(|()| None).map_err(|error| format!("the trace ends early: {error}"))
            }
            To::Memory(memory) => memory.take(chunk),
        };
        taken.unwrap_or_else(|error| {
            let trouble = format!("{}{error}", self.name());
            say(&trouble);
            self.fail_requests(&trouble);
            self.trouble = Some(trouble);
            None
        })
    }

    /// Somebody wants what is kept to be written down; whether all that has been called is to come first.
    pub(in crate::session) fn ask(&mut self, asked: Asked) -> bool {
        match (&mut self.to, &self.trouble) {
            (To::Memory(memory), None) => {
                memory.waiting.push(asked);
                memory.deadline.get_or_insert_with(|| Instant::now() + PATIENCE);
                true
            }
            (_, trouble) => {
                asked.refuse(trouble.as_deref().unwrap_or("nothing is kept in memory"));
                false
            }
        }
    }

    /// The same where no more will come.
    pub(in crate::session) fn write_for(&mut self, asked: Asked) {
        if let To::Memory(memory) = &mut self.to {
            memory.due.push(asked);
            memory.write_when_free();
        }
    }

    /// Nothing more will come for those who wait for it: what is there is all.
    pub(in crate::session) fn write_for_waiting(&mut self) {
        if let To::Memory(memory) = &mut self.to {
            let waiting = memory.take_waiting();
            memory.due.extend(waiting);
            memory.write_when_free();
        }
    }

    /// Whether something is kept in memory that is later than what was written down last.
    pub(in crate::session) fn is_new(&self) -> bool {
        let To::Memory(memory) = &self.to else { return false };
        let kept = memory.kept.window().moment();
        kept.is_ok_and(|kept| kept.dump.until_ns() > memory.written_until_ns)
    }

    /// Until when somebody waits for all to have come.
    pub(in crate::session) fn deadline(&self) -> Option<Instant> {
        match &self.to {
            To::Memory(memory) => memory.deadline,
            To::Sink(_) => None,
        }
    }

    /// Whoever has waited for too long does not wait any more.
    pub(in crate::session) fn look_after_late(&mut self) {
        if self.deadline().is_some_and(|deadline| deadline <= Instant::now()) {
            self.fail_requests("the calls up to now have not come in time from where they are recorded");
        }
    }

    /// What has been asked for will not come.
    pub(in crate::session) fn fail_requests(&mut self, why: &str) {
        if let To::Memory(memory) = &mut self.to
            && !memory.waiting.is_empty()
        {
            refuse(memory.take_waiting(), why.into());
        }
    }

    /// Why it is not whole.
    pub(in crate::session) fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// Nothing more comes. Gives what has become of it, to be said.
    pub(in crate::session) fn finish(mut self) -> Option<String> {
        self.fail_requests("the recording has ended");
        let name = self.name();
        match self.to {
            // Whoever it is passed on to knows if that has failed, or is not there.
            To::Sink(sink) => match sink.finish() {
                Ok(bytes) if !name.is_empty() => Some(format!("{name}{bytes} bytes")),
                _ => None,
            },
            To::Memory(mut memory) => {
                memory.write();
                Some(format!("calls were kept in memory, {}", said_of(memory.dumps.finish())))
            }
        }
    }

    fn name(&self) -> String {
        self.path.as_ref().map_or_else(String::new, |path| format!("{}: ", path.display()))
    }
}

impl Memory {
    fn take_waiting(&mut self) -> Vec<Asked> {
        self.deadline = None;
        std::mem::take(&mut self.waiting)
    }

    fn take(&mut self, message: &[u8]) -> Result<Option<String>, String> {
        let wanted = self.kept.take(message).map_err(|error| format!("no more calls are kept: {error}"))?;
        if !self.is_short_told && self.kept.window().is_short() {
            self.is_short_told = true;
            say_short(&self.options);
        }
        let mut unasked = None;
        if let Some(why) = wanted {
            let waiting = self.take_waiting();
            self.due.extend(waiting);
            if !why.is_empty() {
                let why = printable(why.as_bytes());
                self.due.push(Asked::because(why.clone()));
                unasked = Some(why);
            }
        }
        self.write_when_free();
        Ok(unasked)
    }

    /// Unless the file before is not whole yet: then it is written after that, of what is there then.
    fn write_when_free(&mut self) {
        if !self.dumps.is_writing() {
            self.write();
        }
    }

    /// Writes what is there now for those for whom that is due.
    fn write(&mut self) {
        if !self.due.is_empty() {
            let asked = std::mem::take(&mut self.due);
            let dump = self.kept.window().moment().map(|moment| moment.dump);
            self.written_until_ns = dump.as_ref().ok().and_then(Dump::until_ns);
            self.dumps.write(dump, asked);
        }
    }
}
