//! Profiles that another process of mpiprobe's makes as a source: the node service, for who may not observe by themselves.

use mpiprobe_model::{EndReason, Profile};
use mpiprobe_report::present::{recording::profile_of_json, say};
use mpiprobe_view::Calls;

use super::{
    error::SessionError,
    source::Source,
    trace::{IncomingTrace, TraceOptions},
};
use crate::{
    asking::{AskError, Head, Lines, Service},
    chunks::chunk_of,
};

/// An observation that the service makes.
#[derive(Debug)]
pub(super) struct StreamSource {
    service: Service,
    lines: Lines,
    number: u64,
    /// What is recorded besides.
    trace: Option<IncomingTrace>,
    latest: Option<Profile>,
    /// It has not been shown yet.
    is_new: bool,
    /// Somebody was found.
    was_anybody_there: bool,
    has_ended: bool,
}

/// What the service says.
#[derive(Debug)]
pub(super) enum Event {
    Said(String),
    Profile(Box<Profile>),
    Chunk(Vec<u8>),
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
        let trace = trace.map(|trace| IncomingTrace::begin(&trace.to)).transpose()?.flatten();
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
        let mut source = Self { service, lines, number, trace, latest, is_new, was_anybody_there, has_ended };
        // What takes its time before is no part of it.
        loop {
            match source.next().await? {
                Event::Begun => return Ok(source),
                event => source.take(event),
            }
        }
    }

    async fn next(&mut self) -> Result<Event, SessionError> {
        let Some(line) = self.lines.next().await? else { return Err(AskError::Ended.into()) };
        let head = Head::of(&line)?;
        if head.schema.is_some() {
            let profile =
                profile_of_json(line.as_slice()).map_err(|error| AskError::Answer { reason: error.to_string() })?;
            return Ok(Event::Profile(Box::new(profile)));
        }
        if let Some(chunk) = head.trace {
            let chunk = chunk_of(&chunk).map_err(|error| AskError::Answer { reason: error.to_string() })?;
            return Ok(Event::Chunk(chunk));
        }
        match head {
            Head { failed: Some(why), absent, .. } => Err(AskError::failed(why, absent).into()),
            Head { ended: Some(_), .. } => Ok(Event::Ended),
            Head { begun: Some(_), .. } => Ok(Event::Begun),
            head => Ok(Event::Said(head.said.unwrap_or_default())),
        }
    }

    fn take(&mut self, event: Event) {
        match event {
            // It is about somebody's process, whoever says it.
            Event::Said(text) => {
                self.was_anybody_there |= text.starts_with("observing ") || text.starts_with("joined: ");
                say(mpiprobe_discover::printable(text.as_bytes()).replace("\\n", "\n"));
            }
            Event::Profile(profile) => {
                self.was_anybody_there |= !profile.ranks.is_empty();
                self.latest = Some(*profile);
                self.is_new = true;
            }
            Event::Chunk(chunk) => {
                if let Some(trace) = &mut self.trace {
                    trace.take(&chunk);
                }
            }
            Event::Begun => {}
            Event::Ended => self.has_ended = true,
        }
    }
}

impl Source for StreamSource {
    type Event = Event;

    async fn event(&mut self) -> Result<Event, SessionError> {
        if self.has_ended { std::future::pending().await } else { self.next().await }
    }

    fn handle(&mut self, event: Event) -> Result<(), SessionError> {
        self.take(event);
        Ok(())
    }

    fn look(&mut self) -> Result<(), SessionError> {
        Ok(())
    }

    async fn conclude(&mut self) -> Result<(), SessionError> {
        if !self.has_ended {
            self.service.end(self.number).await?;
        }
        while !self.has_ended {
            let event = self.next().await?;
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

    fn take_flush(&mut self) -> bool {
        std::mem::take(&mut self.is_new)
    }

    fn no_stacks(&self) -> Option<&'static str> {
        Some("the node service observes, which has none for the view: mpiprobe hang looks once, by the service")
    }

    fn calls(&self) -> Calls {
        Calls::Refused(
            "The node service observes, which keeps no single calls and hands out none: who may attach probes sees them with --waits.".into(),
        )
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
        if let Some(trace) = self.trace {
            trace.finish();
        }
    }
}
