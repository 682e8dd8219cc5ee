//! Profiles that another process of mpiprobe's makes as a source: the node service, for who may not observe by themselves.

use mpiprobe_model::{EndReason, Profile, RecentCalls};
use mpiprobe_report::present::{recording::profile_of_json, say};
use mpiprobe_trace::store::{Replica, Window};
use mpiprobe_view::{Asked, Calls, Stacks};
use tokio::sync::mpsc;

use super::{
    error::SessionError,
    event_loop::until,
    source::{NEED_WAITS, Source, StacksBy, kept},
    trace::{DumpRequests, IncomingTrace, LatestCalls, ToDump, TraceOptions, WINDOW},
};
use crate::{
    asking::{AskError, Head, Lines, Service},
    chunks::chunk_of,
    viewed::{self, LastCalls},
};

/// An observation that the service makes.
#[derive(Debug)]
pub(super) struct StreamSource {
    service: Service,
    lines: Lines,
    number: u64,
    /// What is recorded besides.
    trace: Option<IncomingTrace>,
    requests: Option<DumpRequests>,
    calls: SingleCalls,
    /// The last calls of each process, as long as somebody looks at them.
    recent: Option<LastCalls>,
    /// Those that were looked at last, and have not been shown yet.
    stacks: Option<Stacks>,
    /// Wishes that the service does not do, and why.
    undone: (mpsc::UnboundedSender<Undone>, mpsc::UnboundedReceiver<Undone>),
    latest: Option<Profile>,
    /// It has not been shown yet.
    is_new: bool,
    /// Somebody was found.
    was_anybody_there: bool,
    has_ended: bool,
}

/// What there is of single calls.
#[derive(Debug)]
enum SingleCalls {
    /// The service does not keep them.
    None,
    /// Nobody has asked for them yet, or they could not be understood.
    Elsewhere,
    Kept(Replica),
}

/// What has come of a wish.
#[derive(Debug)]
pub(super) struct Undone {
    wish: &'static str,
    why: String,
}

/// What the service says.
#[derive(Debug)]
pub(super) enum Event {
    Said(String),
    Profile(Box<Profile>),
    Chunk(Vec<u8>),
    Stacks(Stacks),
    Recent(Vec<(u32, RecentCalls)>),
    /// The next message of those that single calls are kept by.
    Calls(Vec<u8>),
    Undone(Undone),
    /// Somebody here wants what is kept in memory to be written down.
    AskedToDump(ToDump),
    /// What somebody waits for has not come.
    Late,
    Begun,
    Ended,
}

impl StreamSource {
    /// Asks for an observation; `query` is what is asked for, in the words of the command line.
    pub(super) async fn begin(
        service: Service,
        query: &str,
        trace: Option<&TraceOptions>,
    ) -> Result<Self, SessionError> {
        let has_calls = trace.is_some_and(|trace| trace.latest != LatestCalls::None);
        let asked = trace;
        let trace = asked.map(IncomingTrace::begin).transpose()?.flatten();
        let requests = asked.map(DumpRequests::listen).transpose()?.flatten();
        let calls = if has_calls { SingleCalls::Elsewhere } else { SingleCalls::None };
        let what = if trace.is_some() { "trace" } else { "observe" };
        let mut lines = service.lines(&format!("/v1/{what}?{query}")).await?;
        let first = lines.next().await?.ok_or(AskError::Ended)?;
        let head = Head::of(&first)?;
        let number = head.observation.ok_or_else(|| AskError::Answer { reason: "no observation".into() })?;
        if head.version.as_deref() != Some(env!("CARGO_PKG_VERSION")) {
            let version = head.version.unwrap_or_default();
            say(format_args!("the service is of version {version:?}, and this is {}", env!("CARGO_PKG_VERSION")));
        }
        let (latest, is_new, was_anybody_there, has_ended) = (None, false, false, false);
        let (stacks, recent, undone) = (None, None, mpsc::unbounded_channel());
        let mut source = Self {
            service,
            lines,
            number,
            trace,
            requests,
            calls,
            recent,
            stacks,
            undone,
            latest,
            is_new,
            was_anybody_there,
            has_ended,
        };
        // What takes its time before is no part of it.
        loop {
            match next(&mut source.lines).await? {
                Event::Begun => return Ok(source),
                event => source.take(event),
            }
        }
    }

    fn take(&mut self, event: Event) {
        match event {
            // It is about somebody's process, whoever says it.
            Event::Said(text) => {
                self.was_anybody_there |= text.starts_with("observing ") || text.starts_with("joined: ");
                say(mpiprobe_discover::printable(text.as_bytes()).replace("\\n", "\n"));
            }
            Event::Profile(mut profile) => {
                if let Some(recent) = &self.recent {
                    recent.add_to(&mut profile);
                }
                self.was_anybody_there |= !profile.ranks.is_empty();
                self.latest = Some(*profile);
                self.is_new = true;
            }
            Event::Chunk(chunk) => {
                if let Some(trace) = &mut self.trace {
                    // All that is recorded is here.
                    let _ = trace.take(&chunk);
                }
            }
            Event::Recent(calls) => {
                if let Some(recent) = &mut self.recent {
                    *recent = LastCalls::of(calls);
                }
            }
            Event::Stacks(stacks) => self.stacks = Some(stacks),
            Event::Calls(message) => {
                if let SingleCalls::Kept(calls) = &mut self.calls
                    && let Err(error) = calls.take(&message)
                {
                    say(format_args!("no more calls are shown: {error}"));
                    self.calls = SingleCalls::Elsewhere;
                }
            }
            Event::Undone(Undone { wish: "stacks", why }) => self.stacks = Some(Stacks::Refused(why)),
            Event::Undone(Undone { wish, why }) => {
                say(format_args!("{wish}: {why}"));
                if let Some(trace) = self.trace.as_mut().filter(|_| wish == viewed::word(Asked::Dump)) {
                    trace.fail_requests(&why);
                }
            }
            Event::AskedToDump(asked) => {
                // What has been called by now is here before the answer.
                if self.trace.as_mut().is_some_and(|trace| trace.ask(asked)) {
                    self.wish(Asked::Dump);
                }
            }
            Event::Late => self.trace.iter_mut().for_each(IncomingTrace::look_after_late),
            Event::Begun => {}
            Event::Ended => self.has_ended = true,
        }
    }

    /// Has the service do something besides; the answer is not waited for.
    fn wish(&self, asked: Asked) {
        let wish = viewed::word(asked);
        let (service, number, undone) = (self.service.clone(), self.number, self.undone.0.clone());
        tokio::spawn(async move {
            if let Err(error) = service.wish(number, wish).await {
                // Nobody may be there any more.
                let _ = undone.send(Undone { wish, why: error.to_string() });
            }
        });
    }
}

/// Waits for what the service says next. The wait may be given up.
async fn next(lines: &mut Lines) -> Result<Event, SessionError> {
    let Some(line) = lines.next().await? else { return Err(AskError::Ended.into()) };
    let head = Head::of(&line)?;
    if head.schema.is_some() {
        let profile =
            profile_of_json(line.as_slice()).map_err(|error| AskError::Answer { reason: error.to_string() })?;
        return Ok(Event::Profile(Box::new(profile)));
    }
    let bytes = |text: &str| chunk_of(text).map_err(|error| AskError::Answer { reason: error.to_string() });
    match head {
        Head { trace: Some(chunk), .. } => Ok(Event::Chunk(bytes(&chunk)?)),
        Head { calls: Some(message), .. } => Ok(Event::Calls(bytes(&message)?)),
        Head { no_calls: Some(why), .. } => Ok(Event::Undone(Undone { wish: "calls", why })),
        Head { recent: Some(recent), .. } => Ok(Event::Recent(recent)),
        Head { stacks: Some(stacks), .. } => Ok(Event::Stacks(stacks)),
        Head { failed: Some(why), absent, .. } => Err(AskError::failed(why, absent).into()),
        Head { ended: Some(_), .. } => Ok(Event::Ended),
        Head { begun: Some(_), .. } => Ok(Event::Begun),
        head => Ok(Event::Said(head.said.unwrap_or_default())),
    }
}

impl Source for StreamSource {
    type Event = Event;

    async fn event(&mut self) -> Result<Event, SessionError> {
        if self.has_ended {
            return std::future::pending().await;
        }
        let late = until(self.trace.as_ref().and_then(IncomingTrace::deadline));
        tokio::select! {
            Some(undone) = self.undone.1.recv() => Ok(Event::Undone(undone)),
            asked = DumpRequests::next(&mut self.requests) => Ok(Event::AskedToDump(asked)),
            () = late => Ok(Event::Late),
            event = next(&mut self.lines) => event,
        }
    }

    fn handle(&mut self, event: Event) -> Result<(), SessionError> {
        self.take(event);
        Ok(())
    }

    fn look(&mut self) -> Result<(), SessionError> {
        Ok(())
    }

    fn is_here(&self) -> bool {
        false
    }

    async fn conclude(&mut self) -> Result<(), SessionError> {
        if !self.has_ended {
            self.service.end(self.number).await?;
        }
        while !self.has_ended {
            let event = next(&mut self.lines).await?;
            self.take(event);
        }
        Ok(())
    }

    fn profile(&mut self, end: Option<EndReason>) -> Result<Profile, SessionError> {
        let mut profile = self.latest.clone().ok_or(AskError::Ended)?;
        profile.end = end;
        if let Some(trouble) = self.trace.as_ref().and_then(IncomingTrace::trouble) {
            profile.incomplete_because.push(trouble.to_owned());
            profile.complete = false;
        }
        Ok(profile)
    }

    fn dump(&mut self) {
        self.wish(Asked::Dump);
    }

    fn take_flush(&mut self) -> bool {
        std::mem::take(&mut self.is_new)
    }

    fn show_recent_calls(&mut self, wanted: bool) {
        self.recent = wanted.then(LastCalls::default);
        self.wish(Asked::RecentCalls(wanted));
    }

    fn show_stacks(&mut self, wanted: bool) -> StacksBy {
        self.wish(Asked::Stacks(wanted));
        StacksBy::Source
    }

    fn take_stacks(&mut self) -> Option<Stacks> {
        self.stacks.take()
    }

    fn calls(&mut self) -> Calls {
        match &self.calls {
            SingleCalls::None => Calls::Refused(NEED_WAITS.into()),
            SingleCalls::Kept(calls) => kept(calls.window()),
            SingleCalls::Elsewhere => {
                let calls = Replica::new(Window::new(WINDOW));
                let window = calls.window();
                self.calls = SingleCalls::Kept(calls);
                self.wish(Asked::Calls);
                kept(window)
            }
        }
    }

    fn paces_itself(&self) -> bool {
        true
    }

    fn was_anybody_there(&self) -> bool {
        self.was_anybody_there
    }

    fn is_anybody_left(&mut self) -> bool {
        !self.has_ended
    }

    async fn end(self) {
        if let Some(what) = self.trace.and_then(IncomingTrace::finish) {
            say(what);
        }
    }
}
