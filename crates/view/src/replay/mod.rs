//! The view of a run that was kept: moments are shown as the user asks for them, or one after the other at the pace they were recorded.

mod kept;

use std::{ops::Range, sync::Arc};

use mpiprobe_report::Moments;
use tokio::time::{Duration, Instant, sleep_until};

use self::kept::Kept;
use super::{
    ViewError, ViewOptions, ViewStart, app,
    source::{Moment, Position, Running, Source, Update, Wish},
    state::{HISTORY, MOST_LOOKS, RECENT_NS},
    terminal::Stop,
};

/// As much is read for the history before a moment, bytes of JSON; the recent past is read however large it is.
const HISTORY_BYTES: u64 = 8 << 20;

/// Shows a run that was kept, from a moment on, until the user has seen enough.
pub async fn replay(run: Moments, from: usize, options: ViewOptions, start: ViewStart) -> Result<(), ViewError> {
    let stop = Stop::new().map_err(ViewError::Start)?;
    app::run(Replay::new(run, from, Some(stop)), options, start).await
}

/// Where in a recording one is.
#[derive(Debug)]
pub struct Replay {
    run: Moments,
    kept: Kept,
    /// The moment that is shown, or was to be shown and cannot be.
    at: usize,
    /// The last one that was told.
    told: Option<usize>,
    /// What is to be told next.
    pending: Pending,
    /// When the next moment is due, if the recording is played.
    due: Option<Instant>,
    stop: Option<Stop>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Pending {
    moment: bool,
    position: bool,
    notes: bool,
}

impl Replay {
    /// From a moment on; without `stop`, nobody is listened to but the user.
    fn new(run: Moments, from: usize, stop: Option<Stop>) -> Self {
        let at = from.min(run.count().saturating_sub(1));
        let pending = Pending { moment: true, position: false, notes: !run.notes().is_empty() };
        Self { run, kept: Kept::default(), at, told: None, pending, due: None, stop }
    }

    /// The same without signals, for tests of what is shown.
    pub fn silent(run: Moments, from: usize) -> Self {
        Self::new(run, from, None)
    }

    fn last(&self) -> usize {
        self.run.count().saturating_sub(1)
    }

    fn position(&self) -> Position {
        let index = self.told.unwrap_or(self.at);
        Position { index, count: self.run.count(), when: self.run.describe(index), is_playing: self.due.is_some() }
    }

    /// What can be told without waiting.
    fn at_once(&mut self) -> Option<Update> {
        if std::mem::take(&mut self.pending.moment) {
            self.pending.position = false;
            return Some(self.tell());
        }
        if std::mem::take(&mut self.pending.position) {
            return Some(Update::Position(self.position()));
        }
        let notes = std::mem::take(&mut self.pending.notes);
        notes.then(|| Update::Message(self.run.notes().join("; ")))
    }

    fn tell(&mut self) -> Update {
        let profile = match self.kept.read(&self.run, self.at) {
            Ok(profile) => profile,
            Err(error) => {
                self.pending.position = true;
                return Update::Message(error.to_string());
            }
        };
        let follows = self.told.is_some_and(|told| told + 1 == self.at);
        let past = if follows { self.at..self.at } else { self.past() };
        // What cannot be read is missing in the history, as it would be if it had not been recorded.
        let before: Vec<Arc<_>> = past.clone().filter_map(|index| self.kept.read(&self.run, index).ok()).collect();
        self.told = Some(self.at);
        Update::Moment(Box::new(Moment {
            profile,
            before,
            follows,
            from_start: past.start == 0,
            position: self.position(),
        }))
    }

    /// Moments before this one that its figures are made of, and as many more of its history as are cheap.
    fn past(&self) -> Range<usize> {
        let at_ns = self.run.at_ns(self.at);
        let (mut first, mut bytes) = (self.at, 0_u64);
        while first > 0 && self.at - first < HISTORY {
            bytes = bytes.saturating_add(self.run.bytes(first - 1));
            let is_recent = at_ns.saturating_sub(self.run.at_ns(first)) < RECENT_NS && self.at - first < MOST_LOOKS;
            if !is_recent && bytes > HISTORY_BYTES {
                break;
            }
            first -= 1;
        }
        first..self.at
    }

    /// Goes to a moment, as far as there are so many.
    fn step(&mut self, moments: isize) {
        let wanted = self.at.saturating_add_signed(moments).min(self.last());
        if wanted != self.at {
            self.at = wanted;
            self.pending.moment = true;
        }
    }

    /// The next moment is due as much later as it was recorded later.
    fn play_on(&mut self, from: Instant) {
        let pause = self.run.at_ns(self.at + 1).saturating_sub(self.run.at_ns(self.at));
        self.due = (self.at < self.last()).then(|| from + Duration::from_nanos(pause));
    }
}

impl Source for Replay {
    fn running(&self) -> Running {
        Running::Replay
    }

    async fn next(&mut self) -> Update {
        loop {
            if let Some(update) = self.at_once() {
                return update;
            }
            let due = self.due;
            tokio::select! {
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                    self.step(1);
                    self.play_on(Instant::now());
                    self.pending.position = true;
                }
                () = Stop::next(&mut self.stop) => return Update::Close,
            }
        }
    }

    fn wish(&mut self, wish: Wish) {
        match wish {
            Wish::Step(moments) => {
                self.step(moments);
                if self.due.is_some() {
                    self.play_on(Instant::now());
                }
            }
            // There are none in recordings.
            Wish::RecentCalls(_) | Wish::Stacks(_) | Wish::Calls => {}
            Wish::Play if self.due.is_some() => self.due = None,
            Wish::Play => {
                if self.at == self.last() {
                    self.step(isize::MIN);
                }
                self.play_on(Instant::now());
            }
        }
        self.pending.position = true;
    }
}
