//! What every rank does, by several looks a moment apart: the answer to "why does it not go on?", as far as stacks tell it.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use mpiprobe_model::CallSite;
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    arguments::KnownBy,
    copy::{Certainty, State, Way},
    look::Look,
    ranks::{Member, RankSet},
    thread_stack::{MpiCall, SystemCallSeen, ThreadStack, site},
    tree::Tree,
    unwind::End,
    within::WaitsWithin,
};

/// How the whole looks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Some ranks have gone on in the program while they were looked at: nothing hangs.
    GoesOn,
    /// All ranks are in MPI, or have ended, or are stopped, and none has gone on.
    NobodyGoesOn,
    /// Some ranks have not gone on; others are in the program's own code, and what comes of that is not known.
    SomeAreOutside,
    /// There was one look only, or not enough could be seen.
    NotKnown,
}

/// Several looks, in short.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Report {
    pub verdict: Verdict,
    /// How often it was looked, and over how long.
    pub looks: usize,
    pub over_ms: u64,
    /// Whether threads were stopped for it.
    pub stopped: bool,
    /// Why ranks do not go on, as far as that is certain; empty until somebody has put threads and their calls together.
    pub causes: Vec<Cause>,
    pub threads: Vec<ThreadReport>,
    /// Threads that were left out, by process: there are more than the limits permit.
    pub left_out: Vec<(Member, usize)>,
    /// Threads that could not be looked at, and why.
    pub refused: Vec<(Member, u32, String)>,
    /// Whose threads may be in MPI calls that were not seen: stacks that could not be followed to their end.
    #[serde(skip)]
    pub unseen: RankSet,
    /// Threads (process, thread) outside of MPI that may yet do something: they are in the program, and nothing keeps them that their
    /// own process would have to do.
    #[serde(skip)]
    pub active: Vec<(u32, u32)>,
    pub tree: Tree,
}

/// Something that keeps ranks from going on.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Cause {
    pub kind: CauseKind,
    /// Of a circle in its order.
    pub ranks: Vec<Member>,
    /// Those that wait for them.
    pub others: RankSet,
    /// The same in words, over several lines.
    pub text: String,
}

/// What kind of thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CauseKind {
    /// Each of the ranks waits for the next one, the last for the first.
    Circle,
    /// They are in one collective call and mean different roots.
    DifferentRoots,
    /// Others wait for this one, and it is not known to wait for anybody in MPI.
    WaitedFor,
}

/// What one thread does; of each rank those that are in MPI, and the first one.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ThreadReport {
    pub member: Member,
    pub pid: u32,
    pub tid: u32,
    #[serde(flatten)]
    pub doing: Doing,
    /// Its MPI call with what it was given, in short: `MPI_Recv from 0 tag 99`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub called: Option<String>,
    /// Whether the program has gone on between the first look and the last, in this thread; `None` if that is not known.
    pub gone_on: Option<bool>,
    /// Part of a core that it has used meanwhile, in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_percent: Option<u32>,
    /// What the thread does that it waits for, in words.
    #[serde(skip)]
    pub other: Option<String>,
    /// Whether its rank has several threads here.
    #[serde(skip)]
    pub is_one_of_several: bool,
    pub way: Way,
    pub certainty: Certainty,
}

/// What a thread does.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "doing")]
pub enum Doing {
    Mpi {
        #[serde(flatten)]
        call: MpiCall,
        /// What the call was given, each with how it is known.
        arguments: Vec<Argument>,
    },
    /// In a system call that the program has made.
    SystemCall {
        #[serde(flatten)]
        call: SystemCallSeen,
        /// Whether signals do not end the wait.
        uninterruptible: bool,
        /// Of other threads of its process, what it waits for.
        #[serde(skip_serializing_if = "Option::is_none")]
        waits_within: Option<WaitsWithin>,
        #[serde(serialize_with = "site")]
        place: Option<Arc<CallSite>>,
    },
    /// It runs, or could.
    Computes {
        #[serde(serialize_with = "site")]
        place: Option<Arc<CallSite>>,
    },
    /// By a signal such as SIGSTOP; the call that it was in, if any.
    Stopped {
        call: Option<MpiCall>,
    },
    /// By a debugger.
    Traced {
        call: Option<MpiCall>,
    },
    Ended,
    /// It waits in the kernel, nobody knows for what.
    Waits {
        #[serde(serialize_with = "site")]
        place: Option<Arc<CallSite>>,
    },
}

/// One argument of a call that began before anybody looked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Argument {
    pub name: String,
    /// As people write it; `None` where it is not known.
    pub value: Option<String>,
    pub known_by: KnownBy,
}

impl Report {
    /// From looks in their order in time.
    pub fn of(looks: &[Look], stopped: bool, all_threads: bool, depth: Option<usize>) -> Self {
        let Some(last) = looks.last() else { return Self::default() };
        let history = History::of(looks);
        let mut threads = Vec::new();
        let mut tree = Tree::default();
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
            let several = told.len() > 1;
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
                let other = other.map(|other| history.report(other, false).words(None));
                threads.push(ThreadReport { other, ..history.report(thread, several) });
            }
            for (place, thread) in of_process.iter().enumerate() {
                if (all_threads || told.iter().any(|(told, _)| *told == place)) && !thread.frames.is_empty() {
                    tree.add(thread.member, thread.frames.iter().cloned(), depth);
                }
            }
        }
        unseen.extend(last.left_out.iter().map(|(member, _)| *member));
        unseen.extend(last.refused.iter().map(|(member, ..)| *member));
        threads.extend(last.ended.iter().map(|member| ThreadReport::ended(*member)));
        tree.sort();
        Self {
            verdict: verdict(&threads, looks.len()),
            looks: looks.len(),
            over_ms: history.over_ns / 1_000_000,
            stopped,
            causes: Vec::new(),
            threads,
            left_out: last.left_out.clone(),
            refused: last.refused.clone(),
            unseen,
            active,
            tree,
        }
    }

    /// The answer in words, and then the tree.
    pub fn text(&self) -> String {
        let mut lines: Vec<String> = self.causes.iter().map(|cause| cause.text.clone()).collect();
        lines.push(self.summary());
        let mut groups: Vec<(Vec<&ThreadReport>, RankSet)> = Vec::new();
        let mut place: HashMap<String, usize> = HashMap::new();
        for thread in &self.threads {
            let found = *place.entry(thread.words(None)).or_insert_with(|| {
                groups.push((Vec::new(), RankSet::default()));
                groups.len() - 1
            });
            if let Some((threads, ranks)) = groups.get_mut(found) {
                threads.push(thread);
                ranks.insert(thread.member);
            }
        }
        for (threads, ranks) in &groups {
            let Some((first, rest)) = threads.split_first() else { continue };
            // What differs from rank to rank is not said here.
            let called = first.called.as_deref().filter(|_| rest.iter().all(|thread| thread.called == first.called));
            lines.push(format!("  {} {}", subject(ranks), first.words(called)));
        }
        for (member, left) in &self.left_out {
            lines.push(format!(
                "  of {}, {left} threads were not looked at: there are too many",
                subject(&[*member].into_iter().collect())
            ));
        }
        let mut reasons: BTreeMap<&str, RankSet> = BTreeMap::new();
        for (member, _, reason) in &self.refused {
            reasons.entry(reason).or_default().insert(*member);
        }
        for (reason, ranks) in reasons {
            lines.push(format!("  {}: threads could not be looked at: {reason}", subject(&ranks)));
        }
        if self.stopped {
            lines.push("  each thread was stopped for a moment: timed waits may have been interrupted".to_owned());
        }
        lines.push(String::new());
        lines.push(self.tree.text());
        lines.join("\n")
    }

    fn summary(&self) -> String {
        let seconds = || format!("{:.1} s", std::time::Duration::from_millis(self.over_ms).as_secs_f64());
        match self.verdict {
            Verdict::GoesOn => {
                let gone = self.threads.iter().filter(|thread| thread.gone_on == Some(true));
                let ranks: RankSet = gone.map(|thread| thread.member).collect();
                let verb = if ranks.len() == 1 { "has" } else { "have" };
                format!("Nothing hangs: {} {verb} gone on within {}", subject(&ranks).to_lowercase(), seconds())
            }
            Verdict::NobodyGoesOn => format!("No rank has gone on for {} at least:", seconds()),
            Verdict::SomeAreOutside => {
                let held = self.threads.iter().filter(|thread| matches!(thread.doing, Doing::Mpi { .. }));
                let ranks: RankSet = held.map(|thread| thread.member).collect();
                if ranks.is_empty() {
                    return "No rank is in MPI:".to_owned();
                }
                let verb = if ranks.len() == 1 { "waits" } else { "wait" };
                format!("{} {verb} in MPI for {} at least; others are not in MPI:", subject(&ranks), seconds())
            }
            Verdict::NotKnown => "Whether anything hangs is not known:".to_owned(),
        }
    }
}

impl Default for Report {
    fn default() -> Self {
        Self {
            verdict: Verdict::NotKnown,
            looks: 0,
            over_ms: 0,
            stopped: false,
            causes: Vec::new(),
            threads: Vec::new(),
            left_out: Vec::new(),
            refused: Vec::new(),
            unseen: RankSet::default(),
            active: Vec::new(),
            tree: Tree::default(),
        }
    }
}

/// "Rank 3", "Ranks 0-2,7".
pub fn subject(ranks: &RankSet) -> String {
    let first = ranks.iter().next();
    match (ranks.len(), first) {
        (1, Some(Member::Pid(pid))) => format!("Process {pid}"),
        (1, _) => format!("Rank {ranks}"),
        (_, Some(Member::Pid(_))) => format!("Processes {}", ranks.to_string().replace("pid ", "")),
        _ => format!("Ranks {ranks}"),
    }
}

/// Whether somebody has gone on, and who has not.
fn verdict(threads: &[ThreadReport], looks: usize) -> Verdict {
    let in_mpi: HashSet<u32> =
        threads.iter().filter(|thread| matches!(thread.doing, Doing::Mpi { .. })).map(|thread| thread.pid).collect();
    let is_outside = |thread: &ThreadReport| match &thread.doing {
        // Its process is in MPI by another thread.
        Doing::SystemCall { waits_within: Some(_), .. } => !in_mpi.contains(&thread.pid),
        doing => matches!(doing, Doing::Computes { .. } | Doing::SystemCall { .. } | Doing::Waits { .. }),
    };
    if looks < 2 || threads.is_empty() {
        Verdict::NotKnown
    } else if threads.iter().any(|thread| thread.gone_on == Some(true) && !is_outside(thread)) {
        Verdict::GoesOn
    } else if threads.iter().any(is_outside) {
        Verdict::SomeAreOutside
    } else if threads.iter().all(|thread| thread.gone_on == Some(false)) {
        Verdict::NobodyGoesOn
    } else {
        Verdict::NotKnown
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

    fn report(&self, thread: &ThreadStack, is_one_of_several: bool) -> ThreadReport {
        let seen = self.by_thread.get(&(thread.pid, thread.tid)).map(Vec::as_slice).unwrap_or_default();
        ThreadReport {
            member: thread.member,
            pid: thread.pid,
            tid: thread.tid,
            doing: Doing::of(thread),
            called: None,
            gone_on: gone_on(seen, self.looks),
            cpu_percent: seen.first().and_then(|first| cpu_percent(first, thread)),
            other: None,
            is_one_of_several,
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

fn cpu_percent(first: &ThreadStack, last: &ThreadStack) -> Option<u32> {
    let (over, run) = (last.at_ns.checked_sub(first.at_ns)?, last.progress.run_ns.checked_sub(first.progress.run_ns)?);
    // The kernel counts by ticks of some milliseconds.
    if over < 50_000_000 {
        return None;
    }
    u32::try_from((run.saturating_mul(100) + over / 2) / over).ok().map(|percent| percent.min(100))
}

impl Doing {
    fn of(thread: &ThreadStack) -> Self {
        let place = thread.place.clone();
        match (thread.state, &thread.call) {
            (State::Zombie, _) => Self::Ended,
            (State::Stopped, call) => Self::Stopped { call: call.clone() },
            (State::Traced, call) => Self::Traced { call: call.clone() },
            (_, Some(call)) => Self::Mpi { call: call.clone(), arguments: Argument::all(call) },
            (State::Running, None) => Self::Computes { place },
            (state, None) => match thread.system_call.clone() {
                Some(call) => Self::SystemCall {
                    call,
                    uninterruptible: state == State::Uninterruptible,
                    waits_within: thread.waits_within,
                    place,
                },
                None => Self::Waits { place },
            },
        }
    }
}

impl Argument {
    /// Of a call, as numbers: whole ones of integers, others as addresses are written.
    fn all(call: &MpiCall) -> Vec<Self> {
        let arguments = call.function.function().arguments.iter().enumerate();
        let one = |(place, argument): (usize, &mpiprobe_functions::Argument)| {
            let word = call.words.get(place).copied().flatten();
            let value = word.and_then(|word| word.text(argument));
            let known_by = word.filter(|_| value.is_some()).map_or(KnownBy::NotKnown, |word| word.known_by);
            Self { name: argument.name.to_owned(), value, known_by }
        };
        arguments.map(one).collect()
    }
}

impl ThreadReport {
    fn ended(member: Member) -> Self {
        Self {
            member,
            pid: 0,
            tid: 0,
            doing: Doing::Ended,
            called: None,
            gone_on: Some(false),
            cpu_percent: None,
            other: None,
            is_one_of_several: false,
            way: Way::Copied,
            certainty: Certainty::Exact,
        }
    }

    /// "for a lock that its thread 4711 has, which is in MPI_Recv"
    fn within(&self, within: WaitsWithin) -> String {
        let other = self.other.as_deref().map(|does| format!(", which is {does}")).unwrap_or_default();
        match within {
            WaitsWithin::Lock { thread } => format!("for a lock that its thread {thread} has{other}"),
            WaitsWithin::End { thread } => format!("for the end of its thread {thread}{other}"),
            WaitsWithin::Threads => "for other threads of its process".to_owned(),
        }
    }

    /// What it does, behind its name; `called`: its call, if that is to be told with what it was given.
    pub fn words(&self, called: Option<&str>) -> String {
        let mut words = match &self.doing {
            Doing::Mpi { call, .. } => format!("in {}", call_words(call, called)),
            Doing::SystemCall { waits_within: Some(within), place, .. } => {
                format!("not in MPI: waits {}{}", self.within(*within), at(place.as_ref()))
            }
            Doing::SystemCall { call, uninterruptible, place, .. } => {
                let name = call.name.map_or_else(|| format!("system call {}", call.number), str::to_owned);
                let descriptor = call.descriptor.map(|descriptor| format!(", fd {descriptor}")).unwrap_or_default();
                let file = call.file.as_ref().map(|file| format!(", {file}")).unwrap_or_default();
                let how = if *uninterruptible { ", cannot be interrupted" } else { "" };
                format!("not in MPI: {name}{descriptor}{file}{how}{}", at(place.as_ref()))
            }
            Doing::Computes { place } => {
                let share = self.cpu_percent.map(|percent| format!(", {percent} % of a core")).unwrap_or_default();
                format!("not in MPI: computes{share}{}", at(place.as_ref()))
            }
            Doing::Stopped { call } => format!("stopped by a signal{}", inside(call.as_ref())),
            Doing::Traced { call } => format!("stopped by a debugger{}", inside(call.as_ref())),
            Doing::Ended => "ended".to_owned(),
            Doing::Waits { place } => format!("not in MPI: waits{}", at(place.as_ref())),
        };
        if self.is_one_of_several {
            words = format!("(thread {}) {words}", self.tid);
        }
        if self.certainty == Certainty::Doubtful {
            words.push_str(" (it ran while it was looked at: not certain)");
        }
        words
    }
}

fn call_words(call: &MpiCall, called: Option<&str>) -> String {
    let name = called.unwrap_or(call.function.function().name);
    match &call.site {
        Some(site) => format!("{name} at {}", site.text),
        None => format!("{name}, called from a place that is not known"),
    }
}

fn inside(call: Option<&MpiCall>) -> String {
    call.map(|call| format!(", in {}", call_words(call, None))).unwrap_or_default()
}

fn at(place: Option<&Arc<CallSite>>) -> String {
    place.map(|place| format!(", at {}", place.text)).unwrap_or_default()
}
