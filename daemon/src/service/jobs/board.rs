//! All jobs of the node that are observed unasked, and which of them have series of their own.
//!
//! A job that comes when there is no room for its series is counted under [`OTHER`] from its beginning to after its end, so that no sum
//! of one name ever falls.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use mpiprobe_discover::{Job, users::User};
use mpiprobe_model::Profile;
use mpiprobe_view::Asked;
use tokio::sync::mpsc::UnboundedSender;

use super::figures::{Figures, Observed};

/// The name of all jobs that have no series of their own.
pub(super) const OTHER: &str = "other";
/// When a job is tried again that could not be observed: after so long at first, then after twice as long each time, up to so long.
const AGAIN: (Duration, Duration) = (Duration::from_secs(5), Duration::from_mins(5));
/// What has ended is told for so long: whoever asks every minute has then seen its last figures.
const KEPT: Duration = Duration::from_mins(5);

#[derive(Debug, Default)]
pub(in crate::service) struct Board(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    next: u64,
    jobs: BTreeMap<u64, Entry>,
    /// Those without series of their own that are not in `jobs` any more.
    others: Option<Figures>,
    totals: Totals,
    /// How many have series of their own at once.
    most_own: usize,
}

/// Since the service has begun.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals {
    /// Jobs on the node at the last look.
    pub(super) there: u64,
    /// Jobs that were seen.
    pub(super) seen: u64,
    /// Of these, those that could not be observed.
    pub(super) failed: u64,
}

#[derive(Debug)]
struct Entry {
    /// What tells it from all others: its user, and its name without what tells it from another user's of that name.
    key: (u32, String),
    /// What it is called, as `ps` has it; no other entry has this name.
    name: String,
    user: User,
    has_own_series: bool,
    /// Its processes at the last look at the node.
    ranks: u64,
    /// Looks at the node, one after the other, that have not found it.
    missed: u32,
    observed: Observed,
    /// How often it could not be observed.
    failures: u32,
    phase: Phase,
}

#[derive(Debug)]
enum Phase {
    /// It is going to be observed, or is. Tables, bytes.
    Running {
        asked: UnboundedSender<Asked>,
        bytes: u64,
    },
    /// Why it is not observed, and since when that is known.
    Failed(String, Instant),
    Ended(Instant),
}

/// A job, or [`OTHER`], as it is told.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) job: String,
    /// `None`: of several.
    pub(super) user: Option<String>,
    pub(super) figures: Figures,
    /// Ranks that are there and not observed; `None`: it is not there any more.
    pub(super) not_observed: Option<u64>,
}

/// What there is to be told.
#[derive(Debug)]
pub(super) struct View {
    pub(super) jobs: Vec<Told>,
    pub(super) totals: Totals,
    /// Jobs that are observed, tables of these in bytes, and how many of them are [`OTHER`].
    pub(super) observed: u64,
    pub(super) bytes: u64,
    pub(super) in_other: u64,
}

impl Board {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes note of how many jobs are there and of those that are to be observed, and gives those that are new.
    pub(super) fn look<'a>(&self, there: usize, jobs: &'a [Job], most_own: usize) -> Vec<&'a Job> {
        self.look_at(Instant::now(), there, jobs, most_own)
    }

    fn look_at<'a>(&self, now: Instant, there: usize, jobs: &'a [Job], most_own: usize) -> Vec<&'a Job> {
        let mut state = self.state();
        state.most_own = most_own;
        state.totals.there = there as u64;
        state.forget_ended(now);
        for entry in state.jobs.values_mut() {
            entry.missed = entry.missed.saturating_add(1);
        }
        let mut new = Vec::new();
        for job in jobs {
            let key = key_of(job);
            let known = state.jobs.values_mut().find(|entry| entry.key == key && !entry.has_ended());
            match known {
                Some(entry) => {
                    (entry.missed, entry.ranks) = (0, job.ranks.len() as u64);
                    if entry.is_due_again(now) {
                        new.push(job);
                    }
                }
                None => new.push(job),
            }
        }
        new
    }

    /// Takes in a job that is going to be observed, also one that could not be before. Gives its number.
    pub(super) fn admit(&self, job: &Job, asked: UnboundedSender<Asked>) -> u64 {
        let mut state = self.state();
        let key = key_of(job);
        let failed = state.jobs.iter_mut().find(|(_, entry)| entry.key == key && entry.has_failed());
        if let Some((&number, entry)) = failed {
            entry.phase = Phase::Running { asked, bytes: 0 };
            return number;
        }
        state.totals.seen += 1;
        // A name that is used again is the new job's.
        let ended: Vec<u64> =
            state.jobs.iter().filter(|(_, entry)| entry.key == key).map(|(&number, _)| number).collect();
        for number in ended {
            state.forget(number);
        }
        let is_taken = |name: &str| name == OTHER || state.jobs.values().any(|entry| entry.name == name);
        let name = if is_taken(&key.1) { format!("{}@{}", key.1, key.0) } else { key.1.clone() };
        let own = state.jobs.values().filter(|entry| entry.has_own_series).count();
        let (number, has_own_series) = (state.next, own < state.most_own);
        state.next += 1;
        let entry = Entry {
            key,
            name,
            user: job.user.clone(),
            has_own_series,
            ranks: job.ranks.len() as u64,
            missed: 0,
            observed: Observed::default(),
            failures: 0,
            phase: Phase::Running { asked, bytes: 0 },
        };
        state.jobs.insert(number, entry);
        number
    }

    /// Takes room for tables of a job, if all together may have so much; bytes.
    pub(super) fn take_room(&self, number: u64, wanted: u64, most: u64) -> Result<(), String> {
        let mut state = self.state();
        let taken = state.bytes();
        if taken.saturating_add(wanted) > most {
            let (wanted, taken, most) = (wanted.div_ceil(1 << 20), taken >> 20, most >> 20);
            return Err(format!(
                "its tables take {wanted} MiB, and those of all jobs may take {most} MiB, of which {taken} are taken (`tables` in [jobs])"
            ));
        }
        if let Some(Entry { phase: Phase::Running { bytes, .. }, .. }) = state.jobs.get_mut(&number) {
            *bytes = wanted;
        }
        Ok(())
    }

    /// How many are observed.
    pub(in crate::service) fn running(&self) -> usize {
        self.state().jobs.values().filter(|entry| entry.is_running()).count()
    }

    /// A look at a job that is observed. `name`: as it was called when that began.
    pub(super) fn update(&self, number: u64, name: &str, profile: &Arc<Profile>) {
        if let Some(entry) = self.state().jobs.get_mut(&number) {
            entry.observed.update(name, profile);
        }
    }

    /// A job is not observed any more; an error says why it could not be.
    pub(super) fn end(&self, number: u64, ended: Result<(), String>) {
        let mut state = self.state();
        let State { jobs, totals, .. } = &mut *state;
        let Some(entry) = jobs.get_mut(&number) else { return };
        entry.observed.end();
        entry.phase = match ended {
            // It was gone before anything could be seen of it, which is nobody's fault.
            Err(_) if entry.missed > 0 => Phase::Ended(Instant::now()),
            Err(why) => {
                totals.failed += u64::from(entry.failures == 0);
                entry.failures = entry.failures.saturating_add(1);
                Phase::Failed(why, Instant::now())
            }
            Ok(()) => Phase::Ended(Instant::now()),
        };
    }

    /// Ends the observation of those that several looks have not found: they wait for somebody who does not come. `all`: of everybody.
    pub(super) fn end_missing(&self, all: bool) {
        for entry in self.state().jobs.values() {
            if let Phase::Running { asked, .. } = &entry.phase
                && (all || entry.missed > 2)
            {
                let _ = asked.send(Asked::End);
            }
        }
    }

    /// Jobs that are there and not observed, and why.
    pub(in crate::service) fn failures(&self) -> Vec<(String, String)> {
        let state = self.state();
        let failed = state.jobs.values().filter_map(|entry| match &entry.phase {
            Phase::Failed(why, _) => Some((entry.name.clone(), why.clone())),
            _ => None,
        });
        failed.collect()
    }

    pub(super) fn view(&self) -> View {
        let mut state = self.state();
        state.forget_ended(Instant::now());
        let mut jobs = Vec::new();
        let mut others = state.others.clone();
        let mut others_not_observed = None;
        for entry in state.jobs.values() {
            let is_there = entry.is_running() || entry.has_failed();
            let seen = entry.observed.figures.now.map_or(0, |now| now.ranks);
            let not_observed = is_there.then(|| entry.ranks.saturating_sub(seen));
            if entry.has_own_series {
                let figures = entry.observed.figures.clone();
                jobs.push(Told { job: entry.name.clone(), user: Some(entry.user.name.clone()), figures, not_observed });
            } else {
                together(&mut others, &entry.observed.figures);
                if let Some(number) = not_observed {
                    *others_not_observed.get_or_insert(0) += number;
                }
            }
        }
        if let Some(figures) = others {
            jobs.push(Told { job: OTHER.into(), user: None, figures, not_observed: others_not_observed });
        }
        let running = || state.jobs.values().filter(|entry| entry.is_running());
        View {
            jobs,
            totals: state.totals,
            observed: running().count() as u64,
            bytes: state.bytes(),
            in_other: running().filter(|entry| !entry.has_own_series).count() as u64,
        }
    }
}

fn together(sum: &mut Option<Figures>, figures: &Figures) {
    sum.get_or_insert_with(|| Figures { is_complete: true, ..Figures::default() }).add(figures);
}

/// Its name may be told from another user's of the same name as soon as that is there.
fn key_of(job: &Job) -> (u32, String) {
    let (user, name) = (job.user.id, job.id.as_str());
    (user, name.strip_suffix(&format!("@{user}")).unwrap_or(name).to_owned())
}

impl State {
    fn bytes(&self) -> u64 {
        let bytes = |entry: &Entry| if let Phase::Running { bytes, .. } = entry.phase { bytes } else { 0 };
        self.jobs.values().map(bytes).sum()
    }

    fn forget_ended(&mut self, now: Instant) {
        let is_over = |entry: &Entry| match entry.phase {
            Phase::Running { .. } => false,
            Phase::Failed(..) => entry.missed > 2,
            Phase::Ended(at) => now.duration_since(at) > KEPT,
        };
        let over: Vec<u64> = self.jobs.iter().filter(|(_, entry)| is_over(entry)).map(|(&number, _)| number).collect();
        for number in over {
            self.forget(number);
        }
    }

    fn forget(&mut self, number: u64) {
        if let Some(entry) = self.jobs.remove(&number)
            && !entry.has_own_series
        {
            together(&mut self.others, &entry.observed.figures);
        }
    }
}

impl Entry {
    fn is_running(&self) -> bool {
        matches!(self.phase, Phase::Running { .. })
    }

    fn has_ended(&self) -> bool {
        matches!(self.phase, Phase::Ended(_))
    }

    fn has_failed(&self) -> bool {
        matches!(self.phase, Phase::Failed(..))
    }

    /// Whether it could not be observed, and is tried again now: there may be room by now, or what was in the way may be gone. What has
    /// been counted of it before would not go on from there.
    fn is_due_again(&self, now: Instant) -> bool {
        let Phase::Failed(_, at) = &self.phase else { return false };
        let (first, longest) = AGAIN;
        let doubled = 1_u32.checked_shl(self.failures.saturating_sub(1)).unwrap_or(u32::MAX);
        !self.observed.figures.is_seen
            && now.saturating_duration_since(*at) >= first.saturating_mul(doubled).min(longest)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::sync::mpsc::unbounded_channel;

    use super::*;

    fn job(id: &str, user: u32) -> Job {
        let rank = json!({
            "rank": 0, "pid": 7, "namespace_pid": null, "executable": "/a", "executable_deleted": false
        });
        let job = json!({
            "id": id, "kind": "none", "launcher": null, "slurm_job": null, "allocations": [], "user": { "id": user, "name": "somebody" },
            "size": 1, "ranks": [rank], "libraries": [],
        });
        serde_json::from_value(job).unwrap()
    }

    fn admit(board: &Board, job: &Job) -> u64 {
        board.admit(job, unbounded_channel().0)
    }

    fn names(board: &Board) -> Vec<String> {
        board.view().jobs.into_iter().map(|told| told.job).collect()
    }

    fn count(board: &Board, number: u64, wall_ns: u64) {
        let mut state = board.state();
        state.jobs.get_mut(&number).unwrap().observed.figures =
            Figures { is_seen: true, wall_ns, ..Figures::default() };
    }

    fn walls(board: &Board) -> Vec<(String, u64)> {
        board.view().jobs.into_iter().map(|told| (told.job, told.figures.wall_ns)).collect()
    }

    /// Invariant FEW-SERIES.
    #[test]
    fn what_there_is_no_room_for_is_summed_up_and_never_falls() {
        let board = Board::default();
        let jobs = [job("ompi:1", 1), job("ompi:2", 1), job("ompi:3", 1)];
        assert_eq!(board.look(3, &jobs, 1).len(), 3);
        let numbers = jobs.each_ref().map(|job| admit(&board, job));
        for (number, wall_ns) in numbers.into_iter().zip([1, 20, 300]) {
            count(&board, number, wall_ns);
        }
        let told = [("ompi:1".to_owned(), 1), (OTHER.to_owned(), 320)];
        assert_eq!(walls(&board), told);
        assert_eq!((board.view().in_other, board.view().observed), (2, 3));
        // One of them has ended and is forgotten: what it has done stays.
        board.end(numbers[1], Ok(()));
        board.state().forget(numbers[1]);
        assert_eq!(walls(&board), told);
        // Room that has become free is for jobs that come.
        board.state().forget(numbers[0]);
        assert_eq!(walls(&board), [(OTHER.to_owned(), 320)]);
        admit(&board, &job("ompi:4", 1));
        assert_eq!(names(&board), ["ompi:4", OTHER]);
    }

    #[test]
    fn no_two_jobs_have_one_name() {
        let board = Board::default();
        board.look(0, &[], 10);
        let first = admit(&board, &job("slurm:1.0", 1));
        // From now on both are told apart in the list.
        let listed = [job("slurm:1.0@1", 1), job("slurm:1.0@2", 2)];
        let new = board.look(2, &listed, 10);
        assert_eq!(new.iter().map(|job| job.user.id).collect::<Vec<_>>(), [2]);
        admit(&board, &listed[1]);
        assert_eq!(names(&board), ["slurm:1.0", "slurm:1.0@2"]);
        admit(&board, &job(OTHER, 1));
        assert_eq!(names(&board).last().unwrap(), "other@1");
        // A number that is used again.
        board.end(first, Ok(()));
        assert_eq!(board.look(1, &[job("slurm:1.0", 1)], 10).len(), 1);
        admit(&board, &job("slurm:1.0", 1));
        assert_eq!(names(&board), ["slurm:1.0@2", "other@1", "slurm:1.0"]);
    }

    #[test]
    fn tables_of_all_jobs_have_a_limit() {
        let board = Board::default();
        let number = admit(&board, &job("ompi:1", 1));
        board.take_room(number, 6 << 20, 10 << 20).unwrap();
        let refused = board.take_room(number, 5 << 20, 10 << 20).unwrap_err();
        assert!(refused.contains("take 5 MiB") && refused.contains("10 MiB, of which 6 are taken"), "{refused}");
    }

    #[test]
    fn who_does_not_come_is_not_waited_for() {
        let board = Board::default();
        let (asked, mut wishes) = unbounded_channel();
        let job = job("ompi:1", 1);
        let number = board.admit(&job, asked);
        for _ in 0..3 {
            board.end_missing(false);
            assert!(wishes.try_recv().is_err());
            board.look(0, &[], 10);
        }
        board.end_missing(false);
        assert!(wishes.try_recv().is_ok());
        board.end(number, Err("gone".into()));
        assert_eq!((board.view().totals.failed, board.failures()), (0, Vec::new()));
        // One that is there and cannot be observed is told.
        let number = admit(&board, &self::job("ompi:2", 1));
        board.end(number, Err("no room".into()));
        assert_eq!((board.view().totals.failed, board.failures().len()), (1, 1));
        assert_eq!(board.look(1, &[self::job("ompi:2", 1)], 10).len(), 0, "it is not tried again at once");
    }

    #[test]
    fn who_could_not_be_observed_is_tried_again_more_and_more_seldom() {
        let board = Board::default();
        let job = [job("ompi:1", 1)];
        let number = admit(&board, &job[0]);
        let mut now = Instant::now();
        for (failures, seconds) in [(1, 5), (2, 10), (3, 20)] {
            board.end(number, Err("no room".into()));
            assert_eq!((board.view().totals.failed, board.failures().len()), (1, 1), "it is one job");
            now = now.max(Instant::now());
            let at = |seconds: u64| now + Duration::from_secs(seconds);
            assert_eq!(board.look_at(now, 1, &job, 10).len(), 0, "{failures}");
            assert_eq!(board.look_at(at(seconds + 1), 1, &job, 10).len(), 1, "{failures}");
            assert_eq!(admit(&board, &job[0]), number);
            assert_eq!((board.view().totals.seen, board.failures()), (1, Vec::new()));
        }
        // Of whom something has been seen, the sums would not go on.
        board.state().jobs.get_mut(&number).unwrap().observed.figures.is_seen = true;
        board.end(number, Err("gone wrong".into()));
        assert_eq!(board.look_at(now + Duration::from_hours(1), 1, &job, 10).len(), 0);
    }
}
