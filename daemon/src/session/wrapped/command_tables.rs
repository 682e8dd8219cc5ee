//! The tables of a command's processes as a source: all that come into one directory.

use std::time::Duration;

use mpiprobe_discover::ProcRoot;
use mpiprobe_model::{EndReason, Profile, analyse::Expected};
use mpiprobe_observe::monotonic_ns;
use tokio::time::sleep;

use super::{
    changes::{Changes, Event},
    images::{Images, Keeping},
    profile::{RunFacts, profile},
    traced::TracedImages,
    uncounted::Uncounted,
};
use crate::{
    preload::RunDirectory,
    session::{
        error::SessionError,
        sites::Sites,
        source::Source,
        trace::Tracing,
        watch::{COMMAND, EndWatch},
    },
};

/// How often new processes are looked for.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// The processes of a run.
#[derive(Debug)]
pub(in crate::session) struct CommandTables {
    directory: RunDirectory,
    images: Images,
    sites: Sites,
    changes: Changes,
    /// Of the command, ns.
    started_ns: u64,
    has_ended: bool,
    /// Why the directory could not be looked through the last time.
    unseen: Option<String>,
    traced: Option<TracedImages>,
    /// `None`: nobody can be looked at.
    uncounted: Option<Uncounted>,
}

/// How soon after another, if processes have MPI and are not known to count themselves.
const HURRIED_INTERVAL: Duration = Duration::from_millis(5);

impl CommandTables {
    /// Of the command that `ends` watches, begun at a moment (ns).
    pub(in crate::session) fn new(
        directory: RunDirectory,
        root: ProcRoot,
        ends: EndWatch,
        started_ns: u64,
        keeping: Keeping,
        tracing: Option<Tracing>,
        uncounted: Option<Uncounted>,
    ) -> Self {
        let mut images = Images::new(root);
        images.keep(keeping);
        let traced = tracing.map(|tracing| TracedImages::new(tracing, &mut images));
        Self {
            directory,
            images,
            sites: Sites::default(),
            changes: Changes::new(ends, LOOK_INTERVAL),
            started_ns,
            has_ended: false,
            unseen: None,
            traced,
            uncounted,
        }
    }

    /// Takes in what is new in the directory. Whatever hinders that now may not do so the next time, and the job goes on.
    fn take_new(&mut self) {
        // What is made from now on may be found or not.
        let now_ns = monotonic_ns();
        let taken = self.images.take_all(self.directory.path());
        self.unseen = taken.as_ref().err().map(ToString::to_string);
        for slot in taken.unwrap_or_default() {
            let Some(process) = self.images.process(slot) else { continue };
            self.sites.add(slot, process);
            self.changes.add(process, slot);
        }
        if let Some(traced) = &mut self.traced {
            traced.look(&mut self.images, &mut self.sites);
            traced.know_until(now_ns);
        }
    }

    /// All calls have been made: gives the recording back, with all that is known of it.
    pub(in crate::session) fn take_trace(&mut self) -> Option<Tracing> {
        let mut traced = self.traced.take()?;
        traced.look(&mut self.images, &mut self.sites);
        Some(traced.conclude(&self.images, &mut self.sites))
    }

    /// The command's processes have ended, or are not waited for any longer.
    pub(in crate::session) fn settle(&mut self) {
        self.images.note_silent_ends();
        // What had to wait until files of others were closed.
        self.take_new();
    }

    /// Whether processes were seen that did not count themselves.
    pub(in crate::session) fn has_uncounted(&self) -> bool {
        self.uncounted.as_ref().is_some_and(Uncounted::has_found)
    }

    /// Whether nobody has called MPI yet.
    pub(in crate::session) fn is_empty(&self) -> bool {
        self.images.is_empty()
    }
}

impl Source for CommandTables {
    type Event = Event;

    async fn event(&mut self) -> Result<Event, SessionError> {
        tokio::select! {
            event = self.changes.next() => event,
            () = sleep(HURRIED_INTERVAL), if self.uncounted.as_ref().is_some_and(Uncounted::is_hurried) => Ok(Event::Look),
        }
    }

    fn handle(&mut self, event: Event) -> Result<(), SessionError> {
        match event {
            Event::Ended(tokens) => {
                self.images.note_ends(&tokens);
                if let Some(traced) = &mut self.traced {
                    traced.note_ends(&self.images);
                }
                self.has_ended |= tokens.contains(&COMMAND);
            }
            Event::Look => self.look()?,
        }
        Ok(())
    }

    fn look(&mut self) -> Result<(), SessionError> {
        self.take_new();
        if let Some(uncounted) = &mut self.uncounted {
            uncounted.look();
        }
        Ok(())
    }

    fn profile(&mut self, end: Option<EndReason>) -> Result<Profile, SessionError> {
        let mut missing: Vec<String> = self.unseen.iter().cloned().collect();
        if end.is_some()
            && let Some(uncounted) = &mut self.uncounted
        {
            missing.extend(uncounted.missing(self.directory.called_past(), &self.images.pids()));
        }
        let (started_ns, is_last) = (Some(self.started_ns), end.is_some());
        let expected = if is_last { Expected::AllRanks } else { Expected::Some };
        let facts = RunFacts { started_ns, end, expected, names_sites: true, is_last, missing, ..RunFacts::default() };
        let mut profile = profile(&mut self.images, &mut self.sites, facts);
        profile.wait_states = self.traced.as_ref().and_then(TracedImages::wait_states);
        Ok(profile)
    }

    fn take_flush(&mut self) -> bool {
        self.images.take_flush()
    }

    fn was_anybody_there(&self) -> bool {
        !self.images.is_empty()
    }

    fn is_anybody_left(&mut self) -> bool {
        self.images.is_anybody_left()
    }

    fn is_rank_left(&self) -> bool {
        self.images.is_anybody_left()
    }

    fn has_command_ended(&self) -> bool {
        self.has_ended
    }

    /// Nothing was done to the targets; the directory goes if it is a temporary one.
    async fn end(self) {}
}
