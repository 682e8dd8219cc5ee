//! Jobs that are at a standstill: while no rank of one returns from MPI, or enters it, the stacks of all its threads may tell why where calls do
//! not. They are looked at by a thread of their own, which stops nobody, less and less often.

use std::{
    collections::BTreeMap,
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, TryRecvError, channel},
    },
    thread,
    time::{Duration, Instant},
};

use mpiprobe_discover::{Caller, ProcessError};
use mpiprobe_functions::polls;
use mpiprobe_model::{Found, Profile, RankProfile, RankState, SaturatingSum as _, analyse::is_deadlocked};

use super::host;
use crate::{hang, memory::give_back_memory};

/// How long nobody may go on until the first look.
const PATIENCE: Duration = Duration::from_secs(3);
/// From one look to the next: at first, and at most.
const PAUSES: (Duration, Duration) = (Duration::from_secs(5), Duration::from_mins(1));
/// How often ranks are looked over for that where nobody wants to know more of them meanwhile.
const UNSEEN: Duration = Duration::from_secs(5);
/// Looks at ranks of which it is known why they never go on, for their places: one may find a thread where these are not certain.
const LAST_LOOKS: u32 = 3;

/// Of all observations of this program one looks at a time: a look at many threads takes some memory.
static IS_LOOKING: AtomicBool = AtomicBool::new(false);

/// All jobs of an observation.
#[derive(Debug)]
pub(super) struct Standstills {
    /// Who may see what, if not who has started this program.
    caller: Option<Caller>,
    jobs: BTreeMap<Option<String>, Job>,
    /// The one look that goes on.
    looking: Option<Looking>,
    /// Nobody can be looked at without being stopped.
    is_refused: bool,
    /// When ranks were looked over.
    last: Option<Instant>,
}

#[derive(Debug)]
struct Job {
    ranks: Vec<Reached>,
    /// Of each rank.
    asked: Vec<Asked>,
    since: Instant,
    next: Instant,
    pause: Duration,
    told: hang::Told,
    /// They were looked at so often since it is known why they never go on.
    last_looks: u32,
}

/// How far a rank has come. Questions that a rank asks MPI again and again get it nowhere.
#[derive(Debug, PartialEq, Eq)]
struct Reached {
    pid: u32,
    /// Calls that have returned, those that were made while counting was off included.
    returned: u64,
    inside: Vec<(u32, &'static str)>,
    is_running: bool,
}

/// Questions, by function, that a rank had asked when it was last seen to go on.
type Asked = Vec<(&'static str, u64)>;

#[derive(Debug)]
struct Looking {
    job: Option<String>,
    /// That of the job when the look began: if it is another now, somebody has gone on meanwhile.
    since: Instant,
    answer: Receiver<Result<hang::Told, hang::HangError>>,
}

impl Standstills {
    pub(super) fn new(caller: Option<Caller>) -> Self {
        Self { caller, jobs: BTreeMap::new(), looking: None, is_refused: false, last: None }
    }

    /// Whether ranks are to be looked over although nobody else wants to know anything of them.
    pub(super) fn are_due(&self) -> bool {
        !self.is_refused && self.last.is_none_or(|last| last.elapsed() >= UNSEEN)
    }

    /// Notes how far ranks have come, has those looked at that do not go on, and adds why, as far as it is known.
    pub(super) fn watch(&mut self, profile: &mut Profile) {
        let now = Instant::now();
        self.last = Some(now);
        self.note(profile, now);
        self.take_answer(now);
        for hang::Told { causes, in_python } in self.jobs.values().map(|job| &job.told) {
            profile.standstill.extend_from_slice(causes);
            for call in in_python {
                set_place(profile, call);
            }
        }
        if self.looking.is_none() && !self.is_refused {
            self.begin_look(profile, now);
        }
    }

    fn note(&mut self, profile: &mut Profile, now: Instant) {
        let here = host::name();
        let mut jobs: BTreeMap<Option<String>, Vec<&mut RankProfile>> = BTreeMap::new();
        for rank in profile.ranks.iter_mut().filter(|rank| rank.host == here) {
            jobs.entry(rank.job.clone()).or_default().push(rank);
        }
        self.jobs.retain(|job, _| jobs.contains_key(job));
        for (name, rows) in jobs {
            let asked: Vec<Asked> = rows.iter().map(|rank| asked(rank)).collect();
            let ranks: Vec<Reached> = rows.iter().zip(&asked).map(|(rank, asked)| Reached::of(rank, asked)).collect();
            let job = match self.jobs.remove(&name) {
                Some(known) if known.ranks == ranks => known,
                // What has kept them from going on until they were ended is what is wanted to be known.
                Some(mut known) if ranks.iter().all(|rank| !rank.is_running) && is_same_place(&known.ranks, &ranks) => {
                    known.told.causes.retain(|cause| cause.what.is_final());
                    Job { ranks, ..known }
                }
                _ => Job::new(ranks, asked.clone(), now),
            };
            for ((rank, before), now) in rows.into_iter().zip(&job.asked).zip(&asked) {
                rank.asks = most_asked(before, now);
            }
            self.jobs.insert(name, job);
        }
    }

    fn take_answer(&mut self, now: Instant) {
        let Some(looking) = &self.looking else { return };
        let answer = match looking.answer.try_recv() {
            Ok(answer) => answer,
            Err(TryRecvError::Empty) => return,
            // It has panicked, which was told.
            Err(TryRecvError::Disconnected) => {
                self.is_refused = true;
                return;
            }
        };
        let job = self.jobs.get_mut(&looking.job).filter(|job| job.since == looking.since);
        match (answer, job) {
            (Ok(told), Some(job)) => job.take(told, now),
            // Somebody has gone on meanwhile.
            (Ok(_), None) => {}
            (Err(error), _) => {
                tracing::debug!("why nobody goes on cannot be found out by stacks: {error}");
                self.is_refused = matches!(error, hang::HangError::Capture(_));
            }
        }
        self.looking = None;
    }

    fn begin_look(&mut self, profile: &Profile, now: Instant) {
        let is_due = |job: &Job| now.duration_since(job.since) >= PATIENCE && now >= job.next && job.is_in_mpi(profile);
        let Some((name, job)) = self.jobs.iter_mut().find(|(_, job)| is_due(job)) else { return };
        if job.last_looks >= LAST_LOOKS || IS_LOOKING.swap(true, Ordering::Relaxed) {
            return;
        }
        let begun = Begun;
        job.put_off(now);
        job.last_looks += u32::from(is_deadlocked(profile));
        let pids: Vec<u32> = job.ranks.iter().filter(|rank| rank.is_running).map(|rank| rank.pid).collect();
        let (to, answer) = channel();
        let caller = self.caller;
        let look = move || {
            let _ends = begun;
            let caller = caller.map_or_else(Caller::current, Ok::<_, ProcessError>);
            let answer = caller.map_err(Into::into).and_then(|caller| hang::standstill(pids, caller));
            give_back_memory();
            // Nobody may want to know any more.
            let _ = to.send(answer);
        };
        match thread::Builder::new().name("standstill".into()).spawn(look) {
            Ok(_) => self.looking = Some(Looking { job: name.clone(), since: job.since, answer }),
            Err(error) => tracing::debug!("there can be no thread to look at stacks: {error}"),
        }
    }
}

/// A look, until it is over.
struct Begun;

impl Drop for Begun {
    fn drop(&mut self) {
        IS_LOOKING.store(false, Ordering::Relaxed);
    }
}

impl Job {
    fn new(ranks: Vec<Reached>, asked: Vec<Asked>, now: Instant) -> Self {
        Self { ranks, asked, since: now, next: now, pause: PAUSES.0, told: hang::Told::default(), last_looks: 0 }
    }

    /// Where all compute, nobody waits.
    fn is_in_mpi(&self, profile: &Profile) -> bool {
        let of_job = |rank: &&RankProfile| self.ranks.iter().any(|own| own.is_running && own.pid == rank.pid);
        profile.ranks.iter().filter(of_job).any(|rank| !rank.open_calls.is_empty() || rank.asks.is_some())
    }

    fn put_off(&mut self, now: Instant) {
        self.next = now + self.pause;
        self.pause = PAUSES.1.min(self.pause * 2);
    }

    fn take(&mut self, mut told: hang::Told, now: Instant) {
        let still = u64::try_from(now.duration_since(self.since).as_nanos()).unwrap_or(u64::MAX);
        for one in &mut told.causes {
            if let Found::WaitedFor { for_ns, .. } = &mut one.what {
                *for_ns = still;
            }
        }
        self.told = told;
    }
}

impl Reached {
    fn of(rank: &RankProfile, asked: &Asked) -> Self {
        let questions = asked.iter().map(|(_, calls)| *calls).saturating_sum();
        let inside = rank.open_calls.iter().filter(|call| !polls(call.function));
        Self {
            pid: rank.pid,
            returned: rank.calls.saturating_sub(questions).saturating_add(rank.calls_while_off),
            inside: inside.map(|call| (call.tid, call.function)).collect(),
            is_running: rank.state == RankState::Running,
        }
    }
}

/// Instead of the place in the extension that has called MPI for it.
fn set_place(profile: &mut Profile, of: &hang::CallInPython) {
    let ranks = profile.ranks.iter_mut().filter(|rank| rank.pid == of.pid && rank.host == host::name());
    let calls = ranks.flat_map(|rank| &mut rank.open_calls);
    for call in calls.filter(|call| call.tid == of.tid && call.function == of.function) {
        call.site = Some(of.site.clone());
    }
}

fn asked(rank: &RankProfile) -> Asked {
    rank.functions.iter().filter(|row| polls(row.name)).map(|row| (row.name, row.calls)).collect()
}

/// The function that was called most since then; `None`: none was.
fn most_asked(before: &Asked, now: &Asked) -> Option<&'static str> {
    let known = |name: &str| before.iter().find(|(known, _)| *known == name).map_or(0, |(_, calls)| *calls);
    let new = now.iter().map(|(name, calls)| (calls.saturating_sub(known(name)), *name));
    new.max().filter(|(calls, _)| *calls > 0).map(|(_, name)| name)
}

fn is_same_place(known: &[Reached], now: &[Reached]) -> bool {
    let place = |rank: &Reached| (rank.pid, rank.returned);
    known.iter().map(place).eq(now.iter().map(place))
}

#[cfg(test)]
mod tests {
    use mpiprobe_model::{Doing, Standstill, sample};

    use super::*;

    /// Of a job with a rank in a call and one that has asked so often.
    fn profile(questions: u64) -> Profile {
        let mut ranks = sample::ranks(2);
        for rank in &mut ranks {
            rank.host = host::name();
        }
        ranks[0].open_calls.push(sample::receive(1, 1));
        ranks[1].functions = vec![sample::function("MPI_Test", questions, 1).all].into();
        ranks[1].calls += questions;
        sample::profile(ranks)
    }

    fn watched(standstills: &mut Standstills, mut profile: Profile) -> Profile {
        // Nobody is to be looked at.
        standstills.is_refused = true;
        standstills.watch(&mut profile);
        profile
    }

    fn tell(standstills: &mut Standstills) {
        let waited_for = Found::WaitedFor { rank: Some(1), ranks: 1, for_ns: 1, does: Doing::Computes };
        let deadlock = Found::Deadlock { circles: vec![vec![Some(0), Some(1)]], knots: Vec::new() };
        let causes = [waited_for, deadlock].map(|what| Standstill { what, text: String::new() });
        let told = hang::Told { causes: causes.into(), in_python: Vec::new() };
        for job in standstills.jobs.values_mut() {
            job.take(hang::Told { causes: told.causes.clone(), in_python: Vec::new() }, Instant::now());
        }
    }

    #[test]
    fn questions_are_nothing_that_a_rank_has_done() {
        let mut standstills = Standstills::new(None);
        assert_eq!(watched(&mut standstills, profile(5)).ranks[1].asks, None);
        tell(&mut standstills);
        let later = watched(&mut standstills, profile(9));
        assert_eq!((later.ranks[0].asks, later.ranks[1].asks), (None, Some("MPI_Test")));
        assert_eq!(later.standstill.len(), 2);
        let mut gone_on = profile(9);
        gone_on.ranks[0].calls += 1;
        let gone_on = watched(&mut standstills, gone_on);
        assert_eq!((gone_on.standstill.len(), gone_on.ranks[1].asks), (0, None));
    }

    #[test]
    fn what_kept_ranks_until_they_were_ended_is_told_if_it_was_for_ever() {
        let mut standstills = Standstills::new(None);
        watched(&mut standstills, profile(5));
        tell(&mut standstills);
        let mut ended = profile(5);
        ended.ranks[0].state = RankState::Ended;
        let half = watched(&mut standstills, ended.clone());
        assert_eq!(half.standstill.len(), 0, "the other one may go on for that");
        tell(&mut standstills);
        ended.ranks[1].state = RankState::Ended;
        let all = watched(&mut standstills, ended);
        assert_eq!(all.standstill.len(), 1);
        assert!(all.standstill[0].what.is_final());
    }

    #[test]
    fn where_all_compute_nobody_is_looked_at() {
        let mut standstills = Standstills::new(None);
        let first = watched(&mut standstills, profile(5));
        let job = |standstills: &Standstills| standstills.jobs.values().next().unwrap().is_in_mpi(&first);
        assert!(job(&standstills));
        let mut computing = profile(5);
        computing.ranks[0].open_calls.clear();
        let computing = watched(&mut standstills, computing);
        assert!(!standstills.jobs.values().next().unwrap().is_in_mpi(&computing));
    }
}
