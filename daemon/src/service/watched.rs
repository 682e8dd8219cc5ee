//! Observations that clients have asked for, and looks at stacks that others take part in: each on a thread of its own, and with tables of
//! its own.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use hyper::body::Bytes;
use mpiprobe_discover::Caller;
use mpiprobe_model::{Profile, analyse::ProfileOutput};
use mpiprobe_report::present::divert_thread;
use mpiprobe_view::Asked;
use serde_json::json;
use thiserror::Error;
use tokio::{
    runtime::Runtime,
    sync::{
        OwnedSemaphorePermit, Semaphore,
        mpsc::{self, error::TrySendError},
    },
    time::timeout,
};

use super::{client::Client, configuration::Quota};
use crate::chunks::{self, line_of};
use crate::hang;
use crate::memory::give_back_memory;
use crate::session::{Audience, Options, Outcome, Served, Viewer, observe_for};
use crate::viewed;

/// Lines that wait for a client to take them. One who does not keep up misses moments, and no observation waits for it.
const WAITING: usize = 8;
/// For whoever does not take the last profile.
const PATIENCE: Duration = Duration::from_secs(10);
/// For messages.
const IN_PASSING: Duration = Duration::from_millis(200);

/// For others to have looked on their nodes: longer than a front end waits for them.
const OTHERS_PATIENCE: Duration = Duration::from_secs(90);

/// Why an observation is not made.
#[derive(Debug, Error)]
pub(super) enum Refused {
    #[error(
        "you have {0} observations already, which is as many as one user may have; end one, or ask the administrator for more (quota)"
    )]
    Observations(u32),
    #[error(
        "its tables take {wanted} MiB, and with those of your other observations that is more than the {most} MiB that one user may have; \
         ask for less (--max-processes, --max-threads, --max-stats), or the administrator for more (quota)"
    )]
    Tables { wanted: u64, most: u64 },
    #[error("it cannot be begun: {0}")]
    Thread(std::io::Error),
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Watched {
    next: AtomicU64,
    all: Mutex<HashMap<u64, Entry>>,
}

#[derive(Debug)]
struct Entry {
    user: u32,
    bytes: u64,
    asked: mpsc::UnboundedSender<Asked>,
}

/// What a client is given of an observation: JSON, and a line end.
#[derive(Debug)]
pub(super) enum Line {
    /// Before it is known whether it comes to anything, and afterwards.
    Said(Bytes),
    Begun(Bytes),
    /// There is, or will be, nothing more.
    Failed(Bytes),
}

impl Line {
    pub(super) fn into_bytes(self) -> Bytes {
        match self {
            Self::Said(line) | Self::Begun(line) | Self::Failed(line) => line,
        }
    }
}

/// An observation, ended when it is dropped.
#[derive(Debug)]
pub(super) struct Watching {
    pub(super) number: u64,
    pub(super) lines: mpsc::Receiver<Line>,
    watched: Arc<Watched>,
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.watched.ask(None, self.number, Asked::End);
    }
}

impl Watched {
    fn all(&self) -> MutexGuard<'_, HashMap<u64, Entry>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many there are of a user, and bytes of their tables.
    pub(super) fn usage(&self, user: u32) -> (u32, u64) {
        let all = self.all();
        let own = all.values().filter(|entry| entry.user == user);
        own.fold((0, 0), |(number, bytes), entry| (number + 1, bytes + entry.bytes))
    }

    /// How many there are of all users, and bytes of their tables.
    pub(super) fn usage_of_all(&self) -> (u64, u64) {
        let all = self.all();
        (all.len() as u64, all.values().map(|entry| entry.bytes).sum())
    }

    /// Begins one, if the user may have one more. `gives_trace`: the client has the trace that is recorded, too.
    pub(super) fn observe(
        self: &Arc<Self>,
        client: &Client,
        options: Options,
        gives_trace: bool,
        quota: Quota,
    ) -> Result<Watching, Refused> {
        self.begin(client, quota, move |one| one.observe(options, gives_trace, quota.tables))
    }

    /// Begins a look at stacks, which counts as one as long as others look. `turn`: it may look now.
    pub(super) fn look(
        self: &Arc<Self>,
        client: &Client,
        asked: hang::Asked,
        quota: Quota,
        turn: OwnedSemaphorePermit,
    ) -> Result<Watching, Refused> {
        self.begin(client, quota, move |one| one.look(&asked, turn))
    }

    /// Has it done by `work`, which gives the last line, on a thread of its own.
    fn begin(
        self: &Arc<Self>,
        client: &Client,
        quota: Quota,
        work: impl FnOnce(One) -> Line + Send + 'static,
    ) -> Result<Watching, Refused> {
        let user = client.caller.user;
        let (number, (asked, wishes), (to, lines)) =
            (self.next.fetch_add(1, Ordering::Relaxed), mpsc::unbounded_channel(), mpsc::channel(WAITING));
        // Those that are sure to come are counted before others are let in.
        let mut all = self.all();
        let own = || all.values().filter(|entry| entry.user == user);
        if own().count() >= quota.observations as usize {
            return Err(Refused::Observations(quota.observations));
        }
        all.insert(number, Entry { user, bytes: 0, asked });
        drop(all);
        let listed = Listed { watched: Arc::clone(self), number };
        let one = One { caller: client.caller, to, wishes, watched: Arc::clone(self), number };
        let working = move || {
            // Taken off the list at the end, whatever that is.
            let _listed = listed;
            let (said, ended) = (one.to.clone(), one.to.clone());
            let _diverted = divert_thread(Arc::new(move |text| {
                send_within(&said, Line::Said(line(&json!({ "said": text }))), IN_PASSING);
            }));
            send_at_last(&ended, work(one));
            give_back_memory();
        };
        let thread = thread::Builder::new().name("observation".into()).spawn(working);
        thread.map_err(Refused::Thread)?;
        Ok(Watching { number, lines, watched: Arc::clone(self) })
    }

    /// Takes room for the tables of an observation, if its user may have so much more; bytes.
    fn take_room(&self, number: u64, bytes: u64, most: u64) -> Result<(), Refused> {
        let mut all = self.all();
        let Some(user) = all.get(&number).map(|entry| entry.user) else { return Ok(()) };
        let taken: u64 = all.values().filter(|entry| entry.user == user).map(|entry| entry.bytes).sum();
        if taken.saturating_add(bytes) > most {
            return Err(Refused::Tables { wanted: bytes.div_ceil(1 << 20), most: most >> 20 });
        }
        if let Some(entry) = all.get_mut(&number) {
            entry.bytes = bytes;
        }
        Ok(())
    }

    /// Passes on what a client asks of an observation of its user's; `None`: the service itself asks. Whether there is one.
    pub(super) fn ask(&self, client: Option<&Client>, number: u64, asked: Asked) -> bool {
        let all = self.all();
        let may = |entry: &&Entry| client.is_none_or(|client| client.sees_all() || client.caller.user == entry.user);
        all.get(&number).filter(may).is_some_and(|entry| entry.asked.send(asked).is_ok())
    }
}

/// One that is on the list.
struct Listed {
    watched: Arc<Watched>,
    number: u64,
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.watched.all().remove(&self.number);
    }
}

/// What an observation has.
struct One {
    caller: Caller,
    to: mpsc::Sender<Line>,
    wishes: mpsc::UnboundedReceiver<Asked>,
    watched: Arc<Watched>,
    number: u64,
}

impl One {
    /// `most`: bytes of tables that its user may have.
    fn observe(self, mut options: Options, gives_trace: bool, most: u64) -> Line {
        let Self { caller, to, wishes, watched, number } = self;
        if gives_trace {
            let to = to.clone();
            options = options
                .giving_trace(move |chunk| send_at_last(&to, Line::Said(line_of(chunks::Bytes::Trace, chunk).into())));
        }
        let audience = Lines { to, skipped: 0, watched, number, most };
        let served = Served { audience: Box::new(audience), asked: wishes };
        let observed = tokio::runtime::Builder::new_current_thread().enable_all().build().map(|runtime| {
            let observed = runtime.block_on(observe_for(&options, caller, served));
            runtime.shutdown_background();
            observed
        });
        match observed {
            Ok(Ok(outcome)) => ended(outcome == Outcome::Complete),
            Ok(Err(error)) => failed(&error.to_string(), error.is_absence()),
            Err(error) => failed(&format!("the observation could not be begun: {error}"), false),
        }
    }

    fn look(self, asked: &hang::Asked, turn: OwnedSemaphorePermit) -> Line {
        let Self { caller, to, wishes, .. } = self;
        let runtime = match tokio::runtime::Builder::new_current_thread().enable_time().build() {
            Ok(runtime) => runtime,
            Err(error) => return failed(&format!("the look could not be begun: {error}"), false),
        };
        let mut others =
            Elsewhere { to: to.clone(), wishes, turns: Arc::clone(turn.semaphore()), turn: Some(turn), runtime };
        match hang::find_for(asked, caller, &mut others) {
            Ok(found) => {
                send_at_last(&to, Line::Said(line(&hang::FoundHere { found: &found })));
                ended(true)
            }
            Err(error) => failed(&error.to_string(), error.is_absence()),
        }
    }
}

fn ended(is_complete: bool) -> Line {
    Line::Said(line(&json!({ "ended": is_complete })))
}

fn failed(why: &str, is_absent: bool) -> Line {
    Line::Failed(line(&json!({ "failed": why, "absent": is_absent })))
}

/// Those who look on other nodes, of whom the client knows.
struct Elsewhere {
    to: mpsc::Sender<Line>,
    wishes: mpsc::UnboundedReceiver<Asked>,
    turns: Arc<Semaphore>,
    /// `None`: it is the others' turn.
    turn: Option<OwnedSemaphorePermit>,
    runtime: Runtime,
}

impl hang::Others for Elsewhere {
    fn begun(&mut self) {
        let _ = self.to.try_send(Line::Begun(line(&json!({ "begun": true }))));
    }

    fn wait(&mut self) {
        // Who waits for other nodes keeps nobody here from looking.
        self.turn = None;
        self.turn = self.runtime.block_on(async {
            // The only wish is that it ends. Who has none for so long has no use for it either.
            let _ = timeout(OTHERS_PATIENCE, self.wishes.recv()).await;
            Arc::clone(&self.turns).acquire_owned().await.ok()
        });
    }
}

/// The client that an observation is made for.
struct Lines {
    to: mpsc::Sender<Line>,
    /// Moments that it has not taken.
    skipped: u64,
    watched: Arc<Watched>,
    number: u64,
    /// Bytes of tables that its user may have.
    most: u64,
}

impl Audience for Lines {
    fn permit(&mut self, bytes: u64) -> Result<(), String> {
        self.watched.take_room(self.number, bytes, self.most).map_err(|refused| refused.to_string())
    }

    fn begun(&mut self) {
        let _ = self.to.try_send(Line::Begun(line(&json!({ "begun": true }))));
    }

    fn look(&mut self, profile: &Arc<Profile>) {
        if let Some(recent) = viewed::recent_calls(profile) {
            let _ = self.to.try_send(Line::Said(recent.into()));
        }
        let profile_line = Line::Said(line(&ProfileOutput::new(profile, profile)));
        if profile.end.is_some() {
            send_at_last(&self.to, profile_line);
        } else if let Err(TrySendError::Full(_)) = self.to.try_send(profile_line) {
            self.skipped += 1;
        }
    }

    fn viewer(&self) -> Option<Viewer> {
        let to = self.to.clone();
        Some(Arc::new(move |shown| {
            let (line, is_missed) = viewed::told(shown);
            send_within(&to, Line::Said(line.into()), if is_missed { PATIENCE } else { IN_PASSING })
        }))
    }
}

/// Waits until it is taken, but not for ever: whether it is.
fn send_at_last(to: &mpsc::Sender<Line>, line: Line) -> bool {
    send_within(to, line, PATIENCE)
}

fn send_within(to: &mpsc::Sender<Line>, mut line: Line, patience: Duration) -> bool {
    let until = Instant::now() + patience;
    loop {
        match to.try_send(line) {
            Err(TrySendError::Full(back)) if Instant::now() < until => line = back,
            sent => return sent.is_ok(),
        }
        thread::sleep(Duration::from_millis(5));
    }
}

pub(super) fn line(value: &impl serde::Serialize) -> Bytes {
    viewed::line(value).into()
}
