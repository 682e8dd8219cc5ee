//! A trace that is made elsewhere, as it comes from there.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    time::Duration,
};

use mpiprobe_report::present::say;
use mpiprobe_trace::store::{Replica, Window};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until},
};

use super::{
    TraceError,
    dumps::{Asked, Dumps, refuse},
    file::Sink,
    flight::say_short,
    listen_to_requests,
    options::{FlightOptions, TraceOptions, TraceTo, When},
    said_of,
};

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
    is_short_told: bool,
    dumps: Dumps,
    requests: mpsc::UnboundedReceiver<Asked>,
    /// Those who wait for all to have come that had been called when they asked, and until when the first of them does.
    waiting: Vec<Asked>,
    deadline: Option<Instant>,
    /// Those for whom all has come: it is written once the file before is whole, which nothing here waits for.
    due: Vec<Asked>,
}

/// For all that has been called to come from whoever records it.
const PATIENCE: Duration = Duration::from_secs(30);

/// What has become of those who want it to be written down.
#[derive(Debug)]
pub(in crate::session) enum Request {
    New(Asked),
    /// What somebody waits for has not come.
    Late,
}

impl IncomingTrace {
    /// `None`: nobody wants it.
    pub(in crate::session) fn begin(options: &TraceOptions) -> Result<Option<Self>, TraceError> {
        match (options.when, &options.to) {
            (When::Flight(options), TraceTo::File { path, mode }) => {
                let (take, requests) = mpsc::unbounded_channel();
                let dumps = Dumps::new(path, *mode)?;
                // Whoever has asked is told if nothing is kept any more.
                listen_to_requests(&options, move |asked| drop(take.send(asked)))?;
                let kept = Replica::new(Window::of_span(options.span, options.memory));
                let memory = Memory {
                    options,
                    kept,
                    is_short_told: false,
                    dumps,
                    requests,
                    waiting: Vec::new(),
                    deadline: None,
                    due: Vec::new(),
                };
                let to = To::Memory(Box::new(memory));
                Ok(Some(Self { path: None, to, trouble: None }))
            }
            (_, to) => Self::written(to),
        }
    }

    /// One that is written, or passed on.
    pub(in crate::session) fn written(to: &TraceTo) -> Result<Option<Self>, TraceError> {
        let path = to.path().map(Path::to_owned);
        Ok(Sink::of(to)?.map(|sink| Self { path, to: To::Sink(sink), trouble: None }))
    }

    pub(in crate::session) fn take(&mut self, chunk: &[u8]) {
        if self.trouble.is_some() {
            return;
        }
        let taken = match &mut self.to {
            To::Sink(sink) => sink.write_all(chunk).map_err(|error| format!("the trace ends early: {error}")),
            To::Memory(memory) => memory.take(chunk),
        };
        if let Err(error) = taken {
            let trouble = format!("{}{error}", self.name());
            say(&trouble);
            self.fail_requests(&trouble);
            self.trouble = Some(trouble);
        }
    }

    /// The next time that somebody wants it to be written down, or has waited for too long. The wait may be given up.
    pub(in crate::session) async fn request(&mut self) -> Request {
        let To::Memory(memory) = &mut self.to else { return std::future::pending().await };
        let deadline = memory.deadline;
        let late = async {
            match deadline {
                Some(deadline) => sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            Some(asked) = memory.requests.recv() => Request::New(asked),
            () = late => Request::Late,
        }
    }

    /// Heeds a request; whether all that has been called is to come for it.
    pub(in crate::session) fn heed(&mut self, request: Request) -> bool {
        match (request, &mut self.to, &self.trouble) {
            (Request::New(asked), To::Memory(memory), None) => {
                memory.waiting.push(asked);
                memory.deadline.get_or_insert_with(|| Instant::now() + PATIENCE);
                return true;
            }
            (Request::New(asked), _, trouble) => {
                refuse(vec![asked], trouble.clone().unwrap_or_else(|| "nothing is kept in memory".into()));
            }
            (Request::Late, ..) => self.fail_requests("the calls up to now have not come from the service in time"),
        }
        false
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

    /// Nothing more comes.
    pub(in crate::session) fn finish(mut self) {
        self.fail_requests("the recording has ended");
        let name = self.name();
        match self.to {
            // Whoever it is passed on to knows if that has failed, or is not there.
            To::Sink(sink) => {
                if let (Ok(bytes), true) = (sink.finish(), !name.is_empty()) {
                    say(format_args!("{name}{bytes} bytes"));
                }
            }
            To::Memory(mut memory) => {
                memory.write();
                say(format_args!("calls were kept in memory, {}", said_of(memory.dumps.finish())));
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

    fn take(&mut self, message: &[u8]) -> Result<(), String> {
        let wanted = self.kept.take(message).map_err(|error| format!("no more calls are kept: {error}"))?;
        if !self.is_short_told && self.kept.window().is_short() {
            self.is_short_told = true;
            say_short(&self.options);
        }
        if let Some(why) = wanted {
            let waiting = self.take_waiting();
            self.due.extend(waiting);
            if !why.is_empty() {
                self.due.push(Asked { why, reply: None });
            }
        }
        if !self.dumps.is_writing() {
            self.write();
        }
        Ok(())
    }

    /// Writes what is there now for those for whom that is due.
    fn write(&mut self) {
        if !self.due.is_empty() {
            let asked = std::mem::take(&mut self.due);
            self.dumps.write(self.kept.window().moment().map(|moment| moment.dump), asked);
        }
    }
}
