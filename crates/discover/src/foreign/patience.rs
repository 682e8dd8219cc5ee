//! How long files of other users are waited for.

use std::collections::{HashMap, HashSet};
use std::io;
use std::time::{Duration, Instant};

/// For one answer. A file server under load needs a second at times.
pub(super) const ONE_ANSWER: Duration = Duration::from_secs(2);
/// With less than this left, nothing is asked for: an answer takes a part of it if nothing hinders it.
const LEAST: Duration = Duration::from_millis(5);
/// Waiting for all files of one user. All of it counts: many answers that come late by little take as long as few that never come.
const ALL_WAITING: Duration = Duration::from_secs(10);
/// Work on one file that costs the user nothing: to see that it is still the same takes less.
const FREE_WORK: Duration = Duration::from_millis(5);
/// Work on all files of one user: of a usual one it takes a millisecond, of the largest ones a tenth of a second.
const ALL_WORK: Duration = Duration::from_secs(20);
/// What is left of these grows again: a user has this part of the time at most.
const SHARE: f64 = 0.05;
/// A file system that has not answered is asked again after this time.
const SILENCE: Duration = Duration::from_mins(1);

/// Who is to blame if a file does not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Whose {
    /// The process's user.
    pub user: u32,
    /// Major and minor number of the device that the file is on, where it is known that no other is asked.
    pub device: Option<(u32, u32)>,
}

/// What files of each user have cost up to now.
#[derive(Debug, Default)]
pub(super) struct Patience {
    waited: Costs,
    worked: Costs,
    /// Devices that have not answered, and when.
    silent: HashMap<(u32, u32), Instant>,
    /// Disks of this machine, which need no patience.
    answering: HashSet<(u32, u32)>,
}

/// By user: how much it was, and when that was so.
#[derive(Debug, Default)]
struct Costs(HashMap<u32, (Duration, Instant)>);

impl Costs {
    fn of(&self, user: u32, now: Instant) -> Duration {
        let Some(&(cost, then)) = self.0.get(&user) else { return Duration::ZERO };
        cost.saturating_sub(now.saturating_duration_since(then).mul_f64(SHARE))
    }

    fn add(&mut self, user: u32, cost: Duration, now: Instant) {
        let cost = self.of(user, now).saturating_add(cost);
        self.0.insert(user, (cost, now));
    }
}

impl Patience {
    /// How long an answer may take; an error if no more is asked for.
    pub(super) fn left(&mut self, whose: Whose, now: Instant) -> io::Result<Duration> {
        self.silent.retain(|_, since| now.saturating_duration_since(*since) < SILENCE);
        if whose.device.is_some_and(|device| self.silent.contains_key(&device)) {
            return Err(no_answer("its file system has not answered before"));
        }
        if self.worked.of(whose.user, now) > ALL_WORK {
            return Err(no_answer("too much work has gone into files of its user"));
        }
        if whose.device.is_some_and(|device| self.answering.contains(&device)) {
            return Ok(ONE_ANSWER);
        }
        let left = ALL_WAITING.saturating_sub(self.waited.of(whose.user, now));
        if left < LEAST {
            return Err(no_answer("too much time has gone into files of its user that answer late or never"));
        }
        Ok(left.min(ONE_ANSWER))
    }

    /// An answer took this long.
    pub(super) fn note(&mut self, whose: Whose, took: Duration, now: Instant) {
        self.waited.add(whose.user, took, now);
    }

    /// Work on one file took this long.
    pub(super) fn note_work(&mut self, user: u32, took: Duration, now: Instant) {
        let cost = took.saturating_sub(FREE_WORK);
        if cost > Duration::ZERO {
            self.worked.add(user, cost, now);
        }
    }

    /// Whether what is on a device answers.
    pub(super) fn is_answering(&self, device: (u32, u32)) -> bool {
        self.answering.contains(&device)
    }

    /// There was no answer.
    pub(super) fn note_silence(&mut self, whose: Whose, now: Instant) {
        let Some(device) = whose.device else { return };
        self.silent.insert(device, now);
        self.answering.remove(&device);
    }

    /// The file that was asked for is on a file system of the kernel's own.
    pub(super) fn note_answering(&mut self, whose: Whose) {
        // Numbers that belong to no disk are given to other file systems later.
        self.answering.extend(whose.device.filter(|(major, _)| *major != 0));
    }
}

pub(super) fn no_answer(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, why)
}

/// Whether an error says that a file was not waited for, or not any longer.
pub fn has_no_answer(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::TimedOut
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn of(user: u32, minor: u32) -> Whose {
        Whose { user, device: Some((0, minor)) }
    }

    #[test]
    fn a_device_that_is_silent_is_not_asked_again_at_once() {
        let (mut patience, now) = (Patience::default(), Instant::now());
        assert_eq!(patience.left(of(1, 50), now).unwrap(), ONE_ANSWER);
        patience.note_silence(of(1, 50), now);
        assert!(has_no_answer(&patience.left(of(1, 50), now).unwrap_err()));
        // Another user's file there would not answer either; other devices would.
        assert!(patience.left(of(2, 50), now).is_err());
        assert!(patience.left(of(2, 51), now).is_ok());
        assert!(patience.left(of(1, 50), now + SILENCE).is_ok());
    }

    /// Invariant NOBODY-WAITS.
    #[test]
    fn whoever_answers_late_again_and_again_costs_others_nothing() {
        let (mut patience, now) = (Patience::default(), Instant::now());
        let mut total = Duration::ZERO;
        for (device, late) in (0..1000).zip([1980, 90, 7].map(Duration::from_millis).into_iter().cycle()) {
            if let Ok(left) = patience.left(of(1, device), now) {
                let took = late.min(left);
                patience.note(of(1, device), took, now);
                total += took;
            }
        }
        assert!(total < ALL_WAITING + ONE_ANSWER, "{total:?}");
        assert!(patience.left(of(2, 0), now).is_ok());
        // What is on a disk is looked at all the same, and the others after some time.
        let disk = Whose { user: 1, device: Some((8, 1)) };
        assert!(patience.left(disk, now).is_err());
        patience.note_answering(disk);
        assert!(patience.left(disk, now).is_ok());
        assert!(patience.left(of(1, 0), now + Duration::from_secs(10)).is_ok());
    }

    #[test]
    fn work_on_files_of_one_user_ends() {
        let (mut patience, now) = (Patience::default(), Instant::now());
        let disk = Whose { user: 1, device: Some((8, 1)) };
        patience.note_answering(disk);
        patience.note_work(1, ALL_WORK + ONE_ANSWER, now);
        assert!(has_no_answer(&patience.left(disk, now).unwrap_err()));
        assert!(patience.left(Whose { user: 2, ..disk }, now).is_ok());
    }

    #[test]
    fn usual_answers_cost_little() {
        let (mut patience, now) = (Patience::default(), Instant::now());
        for _ in 0..10_000 {
            patience.note(of(1, 1), Duration::from_micros(100), now);
        }
        assert_eq!(patience.left(of(1, 1), now).unwrap(), ONE_ANSWER);
    }
}
