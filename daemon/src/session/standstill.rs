//! Jobs that are at a standstill: while no rank of one returns from MPI, or enters it, the stacks of all its threads may tell why where calls do
//! not. They are looked at by a thread of their own, which stops nobody, less and less often.

use std::{
    collections::BTreeMap,
    sync::mpsc::{Receiver, TryRecvError, channel},
    thread,
    time::{Duration, Instant},
};

use mpiprobe_discover::{Caller, ProcessError};
use mpiprobe_functions::by_name;
use mpiprobe_model::{Found, Profile, RankProfile, RankState, SaturatingSum as _, analyse::is_deadlocked};

use super::host;
use crate::{hang, memory::give_back_memory};

/// How long nobody may go on until the first look.
const PATIENCE: Duration = Duration::from_secs(3);
/// From one look to the next: at first, and at most.
const PAUSES: (Duration, Duration) = (Duration::from_secs(5), Duration::from_mins(1));

/// All jobs of an observation.
#[derive(Debug)]
pub(super) struct Standstills {
    /// Who may see what, if not who has started this program.
    caller: Option<Caller>,
    jobs: BTreeMap<Option<String>, Job>,
    /// The one look that goes on.
    looking: Option<Looking>,
    /// Why nobody can be looked at without being stopped.
    is_refused: bool,
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
    /// They were looked at after it was known why they never go on.
    is_final: bool,
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
        Self { caller, jobs: BTreeMap::new(), looking: None, is_refused: false }
    }

    /// Whether anybody can be looked at.
    pub(super) fn are_possible(&self) -> bool {
        !self.is_refused
    }

    /// Notes how far ranks have come, has those looked at that do not go on, and adds why, as far as it is known.
    pub(super) fn watch(&mut self, profile: &mut Profile) {
        let now = Instant::now();
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
            let ranks: Vec<Reached> = rows.iter().map(|rank| Reached::of(rank)).collect();
            let job = match self.jobs.remove(&name) {
                Some(known) if known.ranks == ranks => known,
                // What has kept them from going on until they were ended is what is wanted to be known.
                Some(known) if ranks.iter().all(|rank| !rank.is_running) && is_same_place(&known.ranks, &ranks) => {
                    Job { ranks, ..known }
                }
                _ => Job::new(ranks, rows.iter().map(|rank| asked(rank)).collect(), now),
            };
            for (rank, before) in rows.into_iter().zip(&job.asked) {
                rank.asks = most_asked(before, &asked(rank));
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
        job.put_off(now);
        if job.is_final {
            return;
        }
        job.is_final = is_deadlocked(profile);
        let pids: Vec<u32> = job.ranks.iter().filter(|rank| rank.is_running).map(|rank| rank.pid).collect();
        let (to, answer) = channel();
        let caller = self.caller;
        let look = move || {
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

impl Job {
    fn new(ranks: Vec<Reached>, asked: Vec<Asked>, now: Instant) -> Self {
        Self { ranks, asked, since: now, next: now, pause: PAUSES.0, told: hang::Told::default(), is_final: false }
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
    fn of(rank: &RankProfile) -> Self {
        let questions = asked(rank).into_iter().map(|(_, calls)| calls).saturating_sum();
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

fn polls(function: &str) -> bool {
    by_name(function).is_some_and(|id| id.function().polling)
}
