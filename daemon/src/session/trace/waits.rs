//! Wait states while a recording goes on: a thread of its own looks at what is recorded, so that rings are never full because of that.

use std::{
    io,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    thread::{Builder, JoinHandle},
    time::{Duration, Instant},
};

use mpiprobe_model::WaitStates;
use mpiprobe_observe::monotonic_ns;
use mpiprobe_replay::{Inside, Limits, Live};
use mpiprobe_report::present::say;
use mpiprobe_trace::{LocationId, store::Following};
use rustix::time::{ClockId, clock_gettime};

/// How often what is recorded is looked at.
pub(super) const INTERVAL: Duration = Duration::from_millis(150);
/// How often it is said what is known by now.
const SAYING: Duration = Duration::from_millis(200);
/// What of its time that may take, at most: one part of so many.
const SAYING_SHARE: u32 = 10;
/// Events that may be on their way: some 100 MB. Further ones are left out, and counted.
const MOST_EVENTS: u64 = 2 << 20;
/// What is kept of spans of activity, and of waits whose causes are looked for: less than for a file, for it is beside the job.
const LIMITS: Limits = Limits { spells: 1 << 21, waits: 1 << 18 };

enum Given {
    Chunk(Vec<u8>),
    /// Events of a location that there was no room for.
    Left(LocationId, u64),
    /// All is here that had begun by then, but for open calls.
    Complete {
        at_ns: u64,
        inside: Vec<Inside>,
    },
    Finish,
}

/// Where chunks go to be looked at.
#[derive(Clone, Debug)]
pub(super) struct Feed {
    to: Sender<Given>,
    /// Events that were given and have not been dealt with.
    under_way: Arc<AtomicU64>,
}

impl Feed {
    /// A chunk as it is written, which is never waited for.
    pub(super) fn give(&self, chunk: &[u8]) {
        let given = match Following::events_of(chunk) {
            Some((location, events)) => {
                if self.under_way.load(Ordering::Relaxed).saturating_add(events) > MOST_EVENTS {
                    Given::Left(location, events)
                } else {
                    self.under_way.fetch_add(events, Ordering::Relaxed);
                    Given::Chunk(chunk.to_vec())
                }
            }
            None => Given::Chunk(chunk.to_vec()),
        };
        self.tell(given);
    }

    /// See [`Given::Complete`].
    pub(super) fn complete(&self, at_ns: u64, inside: Vec<Inside>) {
        self.tell(Given::Complete { at_ns, inside });
    }

    fn tell(&self, given: Given) {
        // A thread that has failed has told why.
        let _ = self.to.send(given);
    }
}

/// What others may know of it while it goes on.
pub(in crate::session) type Latest = Arc<Mutex<Option<WaitStates>>>;

/// The thread.
pub(super) struct Waits {
    pub(super) feed: Feed,
    latest: Latest,
    thread: JoinHandle<WaitStates>,
}

impl Waits {
    pub(super) fn begin() -> io::Result<Self> {
        let ((to, from), under_way) = (channel(), Arc::<AtomicU64>::default());
        let latest = Latest::default();
        let looking = Looking {
            from,
            live: Live::new(LIMITS),
            under_way: Arc::clone(&under_way),
            latest: Arc::clone(&latest),
            taken: 0,
            dealt_with: 0,
            last_said: Instant::now(),
            saying: Duration::ZERO,
            is_told: false,
        };
        let thread = Builder::new().name("waits".into()).spawn(move || looking.run())?;
        Ok(Self { feed: Feed { to, under_way }, latest, thread })
    }

    pub(super) fn latest(&self) -> Latest {
        Arc::clone(&self.latest)
    }

    /// All was given: what has come of it. `None`: it has failed, which was told.
    pub(super) fn finish(self) -> Option<WaitStates> {
        self.feed.tell(Given::Finish);
        let states = self.thread.join().ok();
        self.latest.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&states);
        states
    }
}

struct Looking {
    from: Receiver<Given>,
    live: Live,
    under_way: Arc<AtomicU64>,
    latest: Latest,
    /// Events so far.
    taken: u64,
    dealt_with: u64,
    last_said: Instant,
    /// How long it took the last time.
    saying: Duration,
    is_told: bool,
}

impl Looking {
    fn run(mut self) -> WaitStates {
        while let Ok(given) = self.from.recv() {
            match given {
                Given::Chunk(chunk) => self.take(&chunk),
                Given::Left(location, events) => self.leave(location, events),
                Given::Complete { at_ns, inside } => {
                    self.live.advance(at_ns, &inside, monotonic_ns());
                    self.count();
                    if self.last_said.elapsed() >= SAYING.max(self.saying * SAYING_SHARE) {
                        self.say();
                    }
                }
                Given::Finish => break,
            }
        }
        let mut states = self.live.finish();
        states.own_cpu_ns = own_cpu_ns();
        states
    }

    fn take(&mut self, chunk: &[u8]) {
        let events = Following::events_of(chunk).map_or(0, |(_, events)| events);
        match self.live.take(chunk) {
            Ok(()) => self.taken += events,
            Err(error) => {
                tracing::warn!("wait states: {error}");
                self.under_way.fetch_sub(events, Ordering::Relaxed);
            }
        }
    }

    fn leave(&mut self, location: LocationId, events: u64) {
        self.live.lose(location, events);
        if !self.is_told {
            self.is_told = true;
            say("calls come more quickly than it can be found out who waits for whom: some are left out, and counted");
        }
    }

    /// Makes room for what comes.
    fn count(&mut self) {
        let dealt_with = self.taken.saturating_sub(self.live.waiting());
        self.under_way.fetch_sub(dealt_with.saturating_sub(self.dealt_with), Ordering::Relaxed);
        self.dealt_with = self.dealt_with.max(dealt_with);
    }

    fn say(&mut self) {
        let began = Instant::now();
        let states = WaitStates { own_cpu_ns: own_cpu_ns(), ..self.live.so_far() };
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = Some(states);
        (self.last_said, self.saying) = (Instant::now(), began.elapsed());
    }
}

/// Time of a processor that this thread has taken, ns.
pub(in crate::session) fn own_cpu_ns() -> Option<u64> {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let (seconds, ns) = (u64::try_from(time.tv_sec).ok()?, u64::try_from(time.tv_nsec).ok()?);
    Some(seconds.saturating_mul(1_000_000_000).saturating_add(ns))
}
