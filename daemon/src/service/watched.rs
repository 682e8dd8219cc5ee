//! Observations that clients have asked for: each on a thread of its own, and with tables of its own.

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
use mpiprobe_model::{Profile, analyse::ProfileOutput};
use mpiprobe_report::present::divert_thread;
use mpiprobe_view::Asked;
use serde_json::json;
use thiserror::Error;
use tokio::sync::mpsc::{self, error::TrySendError};

use super::{client::Client, configuration::Quota};
use crate::memory::give_back_memory;
use crate::session::{Audience, Options, Outcome, Served, observe_for};

/// Lines that wait for a client to take them. One who does not keep up misses moments, and no observation waits for it.
const WAITING: usize = 8;
/// For whoever does not take the last profile.
const PATIENCE: Duration = Duration::from_secs(10);

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

    /// Begins one, if the user may have one more.
    pub(super) fn begin(
        self: &Arc<Self>,
        client: &Client,
        options: Options,
        quota: Quota,
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
        let (watched, watching, caller) = (Arc::clone(self), Arc::clone(self), client.caller);
        let entry = Listed { watched: Arc::clone(self), number };
        let observing = move || {
            // Taken off the list at the end, whatever that is.
            let _entry = entry;
            let said = to.clone();
            let _diverted =
                divert_thread(Box::new(move |text| drop(said.try_send(Line::Said(line(&json!({ "said": text })))))));
            let failed = to.clone();
            let audience = Lines { to, skipped: 0, watched: watching, number, most: quota.tables };
            let served = Served { audience: Box::new(audience), asked: wishes };
            let observed = tokio::runtime::Builder::new_current_thread().enable_all().build().map(|runtime| {
                let observed = runtime.block_on(observe_for(&options, caller, served));
                runtime.shutdown_background();
                observed
            });
            let failure = |why: String| Line::Failed(line(&json!({ "failed": why })));
            let end = match observed {
                Ok(Ok(outcome)) => Line::Said(line(&json!({ "ended": outcome == Outcome::Complete }))),
                Ok(Err(error)) => failure(error.to_string()),
                Err(error) => failure(format!("the observation could not be begun: {error}")),
            };
            send_at_last(&failed, end);
            give_back_memory();
        };
        let thread = thread::Builder::new().name("observation".into()).spawn(observing);
        thread.map_err(Refused::Thread)?;
        Ok(Watching { number, lines, watched })
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
        let profile_line = Line::Said(line(&ProfileOutput::new(profile, profile)));
        if profile.end.is_some() {
            send_at_last(&self.to, profile_line);
        } else if let Err(TrySendError::Full(_)) = self.to.try_send(profile_line) {
            self.skipped += 1;
        }
    }
}

/// Waits until it is taken, but not for ever.
fn send_at_last(to: &mpsc::Sender<Line>, mut line: Line) {
    let until = Instant::now() + PATIENCE;
    loop {
        match to.try_send(line) {
            Err(TrySendError::Full(back)) if Instant::now() < until => line = back,
            _ => return,
        }
        thread::sleep(Duration::from_millis(20));
    }
}

pub(super) fn line(value: &impl serde::Serialize) -> Bytes {
    let mut text = serde_json::to_vec(value).unwrap_or_else(|error| {
        json!({ "failed": format!("the profile cannot be written as JSON: {error}") }).to_string().into_bytes()
    });
    text.push(b'\n');
    text.into()
}
