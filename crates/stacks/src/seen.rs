//! What was seen of a job on one node, by several looks a moment apart.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use serde::{Deserialize, Serialize};

use crate::{
    copy::{Certainty, State},
    look::Look,
    ranks::{Member, RankSet},
    thread_report::{Doing, ThreadReport},
    thread_stack::ThreadStack,
    tree::Label,
    unwind::End,
    within::WaitsWithin,
};

/// Several looks at the processes of one job on one node, in short.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Seen {
    /// The node, if several are looked at.
    pub node: Option<String>,
    /// Of the whole job, on all nodes; `None` if that is not known.
    pub size: Option<u32>,
    /// How often it was looked, and over how long.
    pub looks: usize,
    pub over_ms: u64,
    /// Whether threads were stopped for it.
    pub stopped: bool,
    /// Those that were looked at.
    pub members: RankSet,
    /// Of each rank those that are in MPI, and the first one.
    pub threads: Vec<ThreadReport>,
    /// What the tree is made of.
    pub stacks: Vec<Stacked>,
    /// Threads that were left out, by process: there are more than the limits permit.
    pub left_out: Vec<(Member, usize)>,
    /// Threads that could not be looked at, and why.
    pub refused: Vec<(Member, u32, String)>,
    /// Whose threads may be in MPI calls that were not seen: stacks that could not be followed to their end.
    pub unseen: RankSet,
    /// Threads (process, thread) outside of MPI that may yet do something: they are in the program, and nothing keeps them that their
    /// own process would have to do.
    pub active: Vec<(u32, u32)>,
}

/// Threads with the same functions on their stacks.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Stacked {
    /// From the outside in.
    pub frames: Vec<Label>,
    /// One for each thread.
    pub members: Vec<Member>,
}

impl Seen {
    /// From looks in their order in time.
    pub fn of(looks: &[Look], stopped: bool, all_threads: bool) -> Self {
        let Some(last) = looks.last() else { return Self::default() };
        let history = History::of(looks);
        let mut threads = Vec::new();
        let mut stacks: BTreeMap<Vec<Label>, Vec<Member>> = BTreeMap::new();
        let mut unseen = RankSet::default();
        let mut active = Vec::new();
        for of_process in last.threads.chunk_by(|one, other| one.member == other.member && one.pid == other.pid) {
            let matters = |(place, thread): &(usize, &ThreadStack)| {
                let has_lock = matches!(thread.waits_within, Some(WaitsWithin::Lock { .. }));
                *place == 0 || thread.call.is_some() || has_lock
            };
            let matter: Vec<_> = of_process.iter().enumerate().filter(matters).collect();
            // The first thread says nothing where others are in MPI and it only waits for them.
            let others_call = matter.iter().any(|(place, thread)| *place > 0 && thread.call.is_some());
            let is_told = |thread: &ThreadStack| matches!(thread.waits_within, Some(WaitsWithin::Lock { .. }));
            let waits =
                |thread: &ThreadStack| thread.call.is_none() && thread.state == State::Sleeping && !is_told(thread);
            let told: Vec<_> =
                matter.into_iter().filter(|(place, it)| !(*place == 0 && others_call && waits(it))).collect();
            let is_seen = |thread: &ThreadStack| {
                thread.state == State::Zombie
                    || thread.certainty == Certainty::Exact && (thread.call.is_some() || thread.end == End::Beginning)
            };
            let may_act = |thread: &&ThreadStack| {
                thread.call.is_none()
                    && thread.place.is_some()
                    && thread.waits_within.is_none()
                    && !matches!(thread.state, State::Zombie | State::Stopped | State::Traced)
            };
            active.extend(of_process.iter().filter(may_act).map(|thread| (thread.pid, thread.tid)));
            unseen.extend(of_process.iter().filter(|thread| !is_seen(thread)).map(|thread| thread.member));
            for (_, thread) in &told {
                let other = thread.waits_within.and_then(WaitsWithin::thread);
                let other = of_process.iter().find(|one| Some(one.tid) == other);
                let other = other.map(|other| history.report(other).words(None));
                threads.push(ThreadReport { other, ..history.report(thread) });
            }
            for (place, thread) in of_process.iter().enumerate() {
                if (all_threads || told.iter().any(|(told, _)| *told == place)) && !thread.frames.is_empty() {
                    stacks.entry(thread.frames.clone()).or_default().push(thread.member);
                }
            }
        }
        unseen.extend(last.left_out.iter().map(|(member, _)| *member));
        unseen.extend(last.refused.iter().map(|(member, ..)| *member));
        threads.extend(last.ended.iter().map(|member| ThreadReport::ended(*member)));
        let of_threads = last.threads.iter().map(|thread| thread.member);
        let others = last.left_out.iter().map(|(member, _)| *member).chain(last.ended.iter().copied());
        let others = others.chain(last.refused.iter().map(|(member, ..)| *member));
        Self {
            node: None,
            size: None,
            looks: looks.len(),
            over_ms: history.over_ns / 1_000_000,
            stopped,
            members: of_threads.chain(others).collect(),
            threads,
            stacks: stacks.into_iter().map(|(frames, members)| Stacked { frames, members }).collect(),
            left_out: last.left_out.clone(),
            refused: last.refused.clone(),
            unseen,
            active,
        }
    }

    /// The same with the name of the node.
    #[must_use]
    pub fn on(mut self, node: &str) -> Self {
        let name: Arc<str> = node.into();
        for thread in &mut self.threads {
            thread.node = Some(Arc::clone(&name));
        }
        self.node = Some(node.to_owned());
        self
    }
}

/// What all looks say of each thread.
struct History<'a> {
    by_thread: HashMap<(u32, u32), Vec<&'a ThreadStack>>,
    over_ns: u64,
    looks: usize,
}

impl<'a> History<'a> {
    fn of(looks: &'a [Look]) -> Self {
        let mut by_thread: HashMap<_, Vec<_>> = HashMap::new();
        for thread in looks.iter().flat_map(|look| &look.threads) {
            by_thread.entry((thread.pid, thread.tid)).or_default().push(thread);
        }
        let times = |look: &'a Look| look.threads.iter().map(|thread| thread.at_ns);
        let first = looks.first().and_then(|look| times(look).max()).unwrap_or(0);
        let last = looks.last().and_then(|look| times(look).min()).unwrap_or(0);
        Self { by_thread, over_ns: last.saturating_sub(first), looks: looks.len() }
    }

    fn report(&self, thread: &ThreadStack) -> ThreadReport {
        let seen = self.by_thread.get(&(thread.pid, thread.tid)).map(Vec::as_slice).unwrap_or_default();
        ThreadReport {
            member: thread.member,
            node: None,
            pid: thread.pid,
            tid: thread.tid,
            doing: Doing::of(thread),
            called: None,
            gone_on: gone_on(seen, self.looks),
            polls: polls(seen) == Some(true),
            exchanges: exchanges(seen),
            left_mpi: thread.call.is_none() && seen.iter().any(|thread| thread.call.is_some()),
            cpu_percent: seen.first().and_then(|first| cpu_percent(first, thread)),
            other: None,
            is_one_of_several: false,
            way: thread.way,
            certainty: thread.certainty,
        }
    }
}

/// Whether a thread has gone on in the program: its call has returned, it was in different ones, or what the program has on its stack
/// has changed.
fn gone_on(seen: &[&ThreadStack], looks: usize) -> Option<bool> {
    let [first, rest @ ..] = seen else { return None };
    if rest.is_empty() {
        return None;
    }
    let call = |thread: &ThreadStack| thread.call.as_ref().map(|call| call.function);
    // What was copied while it ran may be wrong.
    let certain = |thread: &&&ThreadStack| thread.certainty == Certainty::Exact;
    let both = |thread: &ThreadStack| Some((first.fingerprint.clone()?, thread.fingerprint.clone()?));
    let differs = |thread: &&ThreadStack| {
        call(thread) != call(first) || both(thread).is_some_and(|(before, now)| now.differs(&before))
    };
    let is_comparable =
        |thread: &ThreadStack| both(thread).is_some_and(|(before, now)| before.is_whole() && now.is_whole());
    if seen.iter().any(|thread| thread.has_returned == Some(true)) {
        return Some(true);
    }
    if let Some(polls) = polls(seen) {
        let has_run = rest.last().is_some_and(|last| last.progress.has_run_since(&first.progress));
        return (polls && has_run && seen.len() == looks).then_some(false);
    }
    if !certain(&first) {
        return None;
    }
    if rest.iter().filter(certain).any(differs) {
        return Some(true);
    }
    let last = rest.last()?;
    let comparable =
        last.has_returned == Some(false) || rest.iter().filter(certain).any(|thread| is_comparable(thread));
    // One that polls, and was hardly given a CPU meanwhile, could not have gone on.
    if last.state == State::Running && !last.progress.has_run_since(&first.progress) {
        return None;
    }
    (seen.len() == looks && comparable).then_some(false)
}

/// Whether a call on a file waited for messages of others whenever it was certain what it did.
fn exchanges(seen: &[&ThreadStack]) -> bool {
    let is_certain = |thread: &&&ThreadStack| thread.certainty == Certainty::Exact;
    seen.iter().filter(is_certain).all(|thread| thread.exchanges) && seen.last().is_some_and(|last| last.exchanges)
}

/// Whether a thread asks MPI again and again in a loop that ends by MPI's answer only, and has been there at all looks; `None`: it
/// was never seen in such a loop.
fn polls(seen: &[&ThreadStack]) -> Option<bool> {
    /// Between two calls it may be where nobody takes it for a loop, at first.
    const LATEST: usize = 2;
    let first = seen.iter().position(|thread| thread.polls == Some(true))?;
    // Where it is not known it may be there: what would have led it away is watched.
    let all = seen.get(first..).is_some_and(|rest| rest.len() > 1 && rest.iter().all(|it| it.polls != Some(false)));
    let is_asking = seen.last().is_some_and(|last| {
        last.polls == Some(true) && last.call.as_ref().is_some_and(|call| call.function.function().polling)
    });
    Some(first <= LATEST && all && is_asking)
}

fn cpu_percent(first: &ThreadStack, last: &ThreadStack) -> Option<u32> {
    let (over, run) = (last.at_ns.checked_sub(first.at_ns)?, last.progress.run_ns.checked_sub(first.progress.run_ns)?);
    // The kernel counts by ticks of some milliseconds.
    if over < 50_000_000 {
        return None;
    }
    u32::try_from((run.saturating_mul(100) + over / 2) / over).ok().map(|percent| percent.min(100))
}
