//! Tables in the kernel as a source: when to look at what, while probes are attached.

use std::{
    os::fd::{AsFd as _, OwnedFd},
    time::Duration,
};

use mpiprobe_model::{EndReason, Profile};
use mpiprobe_observe::monotonic_ns;
use mpiprobe_report::present::say_in_passing;
use mpiprobe_view::Calls;
use tokio::{
    io::unix::AsyncFd,
    time::{Instant, sleep_until},
};

use super::{
    error::SessionError,
    event_loop::until,
    loaded::Loaded,
    observation::Observation,
    readable::readable,
    source::{NEED_WAITS, Source, kept},
    watch::COMMAND,
};

/// How often a process that may yet load MPI is looked at: first, and when it takes longer.
const CANDIDATE_INTERVAL: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(100));
/// When it takes longer.
const CANDIDATE_PATIENCE: Duration = Duration::from_secs(2);
/// How often the node is looked over for targets that do not tell of themselves by exec: as long as there are none, and for some
/// time after the first, since the ranks of a job start together.
const SEARCH_INTERVAL: Duration = Duration::from_millis(100);
/// That time.
const SEARCH_PATIENCE: Duration = Duration::from_secs(2);
/// How often recent calls are taken out of their rings.
const GATHER_INTERVAL: Duration = Duration::from_millis(100);
/// How often it is looked whether calls have returned that had begun before, where calls are recorded: those that come after them wait.
const RETURN_INTERVAL: Duration = Duration::from_millis(20);
/// How often all processes are made known, and call sites named, where it is found out who waits for whom.
const NAME_INTERVAL: Duration = Duration::from_millis(200);
/// Detaching that takes longer than this is reported as it goes on.
const SILENT_DETACH: Duration = Duration::from_millis(500);

/// An observation by probes, and when its next looks are due.
#[derive(Debug)]
pub(super) struct KernelSource {
    observation: Box<Observation>,
    /// A descriptor of its own for the ring buffer, so that it can be waited for while the observation is used.
    notices: AsyncFd<OwnedFd>,
    origin: Origin,
    /// When the kernel, or a search, last told of somebody.
    last_news: Instant,
    // Moments, not pauses: whatever else happens meanwhile does not put them off.
    last_look: Instant,
    last_search: Instant,
    last_gathered: Instant,
    last_named: Instant,
    last_returned: Instant,
}

/// Where targets come from.
#[derive(Debug)]
enum Origin {
    /// They run already; `wait`: or are going to.
    Found { wait: bool },
    /// They are what a command of mpiprobe's starts.
    Started { loaded: Loaded, has_ended: bool },
}

/// What there is to do.
#[derive(Debug)]
pub(super) enum Event {
    /// Processes have ended, given by the tokens of their watches.
    Ended(Vec<u64>),
    Notices,
    /// Processes may have loaded MPI meanwhile.
    Candidates,
    /// Processes may have initialised MPI meanwhile.
    Layouts,
    /// Targets may have come that the kernel does not tell of.
    Search,
    RecentCalls,
    /// It can be found out who has waited for whom until now, and call sites may be known meanwhile.
    LatestCalls,
    /// Calls that had begun before may have returned.
    EarlierCalls,
    /// The same, as far as that is seen without a look at them.
    EarlierReturns,
    /// What observing costs is to be looked at.
    Limit,
}

impl KernelSource {
    /// Of targets that mpiprobe has found, or waits for.
    pub(super) fn of_found(observation: Box<Observation>, wait: bool) -> Result<Self, SessionError> {
        Self::new(observation, Origin::Found { wait })
    }

    /// Of what the command starts that `loaded` follows and `observation` watches.
    pub(super) fn of_command(observation: Box<Observation>, loaded: Loaded) -> Result<Self, SessionError> {
        Self::new(observation, Origin::Started { loaded, has_ended: false })
    }

    fn new(observation: Box<Observation>, origin: Origin) -> Result<Self, SessionError> {
        let notices = observation.observer().as_fd().try_clone_to_owned().and_then(readable);
        let now = Instant::now();
        Ok(Self {
            observation,
            notices: notices.map_err(SessionError::Watch)?,
            origin,
            last_news: now,
            last_look: now,
            last_search: now,
            last_gathered: now,
            last_named: now,
            last_returned: now,
        })
    }

    /// The job has not ended as it should.
    pub(super) fn fail(&self, why: String) {
        self.observation.fail_trace(why);
    }

    fn is_searching(&self) -> bool {
        let is_early = !self.observation.was_anybody_there() || self.last_news.elapsed() < SEARCH_PATIENCE;
        matches!(self.origin, Origin::Found { wait: true }) && is_early
    }

    /// Whether there are processes that may yet load MPI. Of a command's there may be at any time.
    fn has_candidates(&self) -> bool {
        matches!(self.origin, Origin::Started { .. }) || self.observation.has_candidates()
    }
}

impl Source for KernelSource {
    type Event = Event;

    async fn event(&mut self) -> Result<Event, SessionError> {
        let is_new = self.last_news.elapsed() < CANDIDATE_PATIENCE;
        let pace = if is_new { CANDIDATE_INTERVAL.0 } else { CANDIDATE_INTERVAL.1 };
        tokio::select! {
            ended = self.observation.ends().ended() => Ok(Event::Ended(ended.map_err(SessionError::Watch)?)),
            ready = self.notices.readable() => {
                ready.map_err(SessionError::Watch)?.clear_ready();
                Ok(Event::Notices)
            }
            () = sleep_until(self.last_look + pace), if self.has_candidates() => Ok(Event::Candidates),
            () = until(self.observation.next_look_at_layouts().map(Instant::from_std)) => Ok(Event::Layouts),
            () = sleep_until(self.last_search + SEARCH_INTERVAL), if self.is_searching() => Ok(Event::Search),
            () = sleep_until(self.last_gathered + GATHER_INTERVAL), if self.observation.has_recent_calls() => {
                Ok(Event::RecentCalls)
            }
            () = sleep_until(self.last_named + NAME_INTERVAL), if self.observation.is_looked_at() => Ok(Event::LatestCalls),
            () = until(self.observation.next_look_at_earlier_calls().map(Instant::from_std)) => Ok(Event::EarlierCalls),
            () = sleep_until(self.last_returned + RETURN_INTERVAL), if self.observation.are_earlier_calls_traced() => {
                Ok(Event::EarlierReturns)
            }
            () = sleep_until(self.observation.next_turn_of_limiter().into()) => Ok(Event::Limit),
        }
    }

    fn handle(&mut self, event: Event) -> Result<(), SessionError> {
        let mut known_until_ns = None;
        match event {
            Event::Ended(tokens) => {
                // What they did last is told before their end.
                self.observation.handle_notices();
                self.observation.handle_ends(&tokens);
                if let Origin::Started { has_ended, .. } = &mut self.origin {
                    *has_ended |= tokens.contains(&COMMAND);
                }
            }
            Event::Notices => {
                self.observation.handle_notices();
                self.last_news = Instant::now();
            }
            Event::Candidates => {
                self.look()?;
                self.last_look = Instant::now();
            }
            Event::Layouts => self.observation.retry_layouts(),
            Event::Search => {
                if self.observation.search()? {
                    self.last_news = Instant::now();
                }
                self.last_search = Instant::now();
            }
            Event::Limit => self.observation.keep_limit(),
            Event::EarlierCalls => self.observation.look_at_earlier_calls(),
            Event::EarlierReturns => self.last_returned = Instant::now(),
            Event::LatestCalls => {
                known_until_ns = Some(monotonic_ns());
                // Of whom the kernel has told, and who has loaded MPI since.
                self.observation.handle_notices();
                self.look()?;
            }
            Event::RecentCalls => {
                self.observation.gather_recent_calls();
                self.last_gathered = Instant::now();
            }
        }
        self.observation.look_at_traced();
        if let Some(ns) = known_until_ns {
            self.observation.know_traced_until(ns);
            self.observation.name_traced_sites();
            self.last_named = Instant::now();
        }
        Ok(())
    }

    fn look(&mut self) -> Result<(), SessionError> {
        if let Origin::Started { loaded, .. } = &mut self.origin {
            // Who has just come is looked at as long as he is there.
            self.observation.handle_notices();
            loaded.look(&mut self.observation);
        }
        self.observation.look_at_candidates()
    }

    fn end_interval(&mut self) {
        self.observation.name_traced_sites();
        self.observation.flush_log();
    }

    fn profile(&mut self, end: Option<EndReason>) -> Result<Profile, SessionError> {
        if end.is_some() {
            self.observation.flush_log();
            self.observation.handle_notices();
            if let Origin::Started { loaded, .. } = &mut self.origin {
                loaded.look(&mut self.observation);
                loaded.conclude(&mut self.observation);
                self.observation.find_code_of_ended(&|pid| loaded.list(pid));
            }
            self.observation.stop_trace();
        }
        let mut profile = self.observation.profile(end)?;
        if end.is_some()
            && let Some(recorded) = self.observation.finish_trace()
        {
            recorded.add_to(&mut profile);
        }
        Ok(profile)
    }

    fn take_flush(&mut self) -> bool {
        self.observation.take_flush()
    }

    fn show_recent_calls(&mut self, wanted: bool) {
        self.observation.show_recent_calls(wanted);
    }

    fn calls(&mut self) -> Calls {
        match self.observation.window() {
            Some(window) => kept(window),
            None => Calls::Refused(NEED_WAITS.into()),
        }
    }

    fn dump(&mut self) {
        self.observation.dump();
    }

    fn was_anybody_there(&self) -> bool {
        self.observation.was_anybody_there()
    }

    fn is_anybody_left(&mut self) -> bool {
        self.observation.is_anybody_left()
    }

    fn is_rank_left(&self) -> bool {
        self.observation.is_rank_left()
    }

    fn has_command_ended(&self) -> bool {
        matches!(self.origin, Origin::Started { has_ended: true, .. })
    }

    /// Detaches, and tells of it if it takes long.
    async fn end(self) {
        let Self { mut observation, .. } = self;
        // If there was no last profile.
        observation.finish_trace();
        let (links, start) = (observation.links(), Instant::now());
        let detached = tokio::task::spawn_blocking(move || {
            observation.let_go(|left| {
                if start.elapsed() > SILENT_DETACH {
                    say_in_passing(format_args!("detaching, {left} of {links} probes left "));
                }
            });
            if start.elapsed() > SILENT_DETACH {
                let seconds = start.elapsed().as_secs_f64();
                say_in_passing(format_args!("detached {links} probes in {seconds:.1} s        \n"));
            }
        });
        // A panic has been told already; nothing else hinders it.
        let _ = detached.await;
    }
}
