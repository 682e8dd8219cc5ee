//! Why ranks do not go on: what was seen of their threads, put together as an observation that was there from the start would have it.

use std::{
    collections::{BTreeSet, HashMap},
    fmt::Write as _,
};

use mpiprobe_discover::{MpiProcess, has_data_on_its_way};
use mpiprobe_model::{
    CallArguments, EngineInfo, Found, OpenCallInfo, Profile, RankProfile, RankState, Standstill, ThreadLife,
    ThreadProfile,
    analyse::{
        self, Beginning, Identity, Observed, OtherEnd, Posted, SelfCost, Session, Wait, Waiting, Why, causes, found,
        operations, waiting,
    },
};
use mpiprobe_observe::{ProcessSnapshot, Snapshot};
use mpiprobe_report::present::{circle, knot, other_end, waited_requests, waits_for, what};
use mpiprobe_stacks::{Cause, CauseKind, Doing, Member, RankSet, Report, Seen, ThreadReport, Verdict, subject};

use super::library::Library;

/// What has not changed from the first look to the last counts as a call that has been open for as long as a message of 64 MB may take, ns:
/// nothing is on its way by TCP, and everything else takes no longer than the looks.
const OPEN_NS: u64 = 64_000_000_000;
/// Too short for a circle.
const JUST_BEGUN_NS: u64 = 500_000_000;
/// Ranks that are told of one by one.
const TOLD: usize = 8;
/// The same of threads of one rank.
const THREADS_TOLD: usize = 4;

/// Adds to `seen` what calls were given, and gives the job as an observation has it. `processes` are those of the job, each with its
/// library.
pub(super) fn understand(seen: &mut Seen, processes: &[&MpiProcess], libraries: &mut [Option<Library>]) -> Profile {
    let mut meanings: HashMap<(u32, u32), CallArguments> = HashMap::new();
    for thread in &mut seen.threads {
        let Doing::Mpi { call, .. } = &thread.doing else { continue };
        let place = processes.iter().position(|process| process.pid() == thread.pid);
        let library = place.and_then(|place| libraries.get_mut(place)).and_then(Option::as_mut);
        let Some(meaning) = library.and_then(|library| library.meaning(thread.tid, call)) else { continue };
        thread.called = Some(called(thread, &meaning));
        meanings.insert((thread.pid, thread.tid), meaning);
    }
    profile(seen, processes, libraries, &meanings)
}

/// Adds why nobody goes on, if that is so; `profile` is of the same job, each rank with its node as host.
pub(super) fn explain(report: &mut Report, profile: &Profile) {
    report.causes = why(report, profile).into_iter().map(|(cause, _)| cause).collect();
}

/// The same, in the form in which an observation has it.
pub(super) fn standstill(report: &Report, profile: &Profile) -> Vec<Standstill> {
    why(report, profile).into_iter().map(|(cause, what)| Standstill { what, text: cause.text }).collect()
}

/// Each reason in words, and as a finding.
fn why(report: &Report, profile: &Profile) -> Vec<(Cause, Found)> {
    if !matches!(report.verdict, Verdict::NobodyGoesOn | Verdict::SomeAreOutside) {
        return Vec::new();
    }
    let waiting = waiting(profile);
    let mut told = told(report, profile, &waiting);
    if report.verdict == Verdict::NobodyGoesOn && told.is_empty() && report.is_whole() {
        told.extend(all_are_there(profile, &waiting));
    }
    told
}

/// What is left where each rank of the job has come to the same collective call: it is not up to the program.
fn all_are_there(profile: &Profile, waiting: &Waiting) -> Option<(Cause, Found)> {
    let first = profile.ranks.first()?;
    let (size, function) = (first.size?, analyse::longest(first)?.function);
    let mut members = BTreeSet::new();
    for (place, rank) in profile.ranks.iter().enumerate() {
        let wait = wait_of(waiting, place)?;
        let is_there = wait.why == Why::Collective && wait.on.is_empty() && rank.size == Some(size);
        if !is_there || analyse::longest(rank)?.function != function {
            return None;
        }
        members.insert(Member::Rank(rank.rank?));
    }
    let (ranks, number) = (members.iter().copied().collect(), members.len());
    if number < 2 || u32::try_from(number) != Ok(size) {
        return None;
    }
    let text = format!(
        "All {size} ranks are in {function}, and none has returned: nobody is missing there. \
         Either it takes this long, or the MPI library, the network or the launcher does not go on"
    );
    let cause = Cause { kind: CauseKind::AllAreThere, ranks, others: RankSet::default(), text };
    Some((cause, Found::AllAreThere { ranks: number, function }))
}

/// "MPI_Recv from 0 tag 99 4 B"
fn called(thread: &ThreadReport, meaning: &CallArguments) -> String {
    let call = open_call(thread, Some(meaning.clone()), OPEN_NS);
    let text = call.as_ref().map(what).unwrap_or_default();
    text.strip_prefix("in ").unwrap_or(&text).to_owned()
}

/// `open_ns`: for how long it counts as open.
fn open_call(thread: &ThreadReport, arguments: Option<CallArguments>, open_ns: u64) -> Option<OpenCallInfo> {
    let Doing::Mpi { call, .. } = &thread.doing else { return None };
    Some(OpenCallInfo {
        function: call.function.function().name,
        tid: thread.tid,
        open_ns,
        call_site: None,
        site: call.site.as_ref().map(|site| site.text.clone()),
        arguments,
        ended_inside: false,
        began_before: true,
        polls: thread.polls,
        exchanges: thread.exchanges,
    })
}

/// The job as an observation has it.
fn profile(
    seen: &Seen,
    processes: &[&MpiProcess],
    libraries: &[Option<Library>],
    meanings: &HashMap<(u32, u32), CallArguments>,
) -> Profile {
    let observed: Vec<Observed> = (0..).zip(processes).map(|(slot, process)| observed(slot, process, seen)).collect();
    let tables = (0..).zip(libraries.iter()).map(|(slot, library)| {
        library.as_ref().map_or_else(|| ProcessSnapshot::empty(slot), |library| library.tables.clone())
    });
    let snapshot = Snapshot { processes: tables.collect(), ..Snapshot::default() };
    let mut profile = analyse::profile(&session(), &observed, &snapshot, &mut |_, _| None);
    for rank in &mut profile.ranks {
        rank.open_calls.clear();
        // What cannot be seen of it may be what the others miss.
        if seen.unseen.contains(rank.rank.map_or(Member::Pid(rank.pid), Member::Rank)) {
            rank.rank = None;
            continue;
        }
        let own = seen.threads.iter().filter(|thread| thread.pid == rank.pid);
        let (held, others): (Vec<&ThreadReport>, Vec<_>) = own
            .filter(|thread| matches!(thread.doing, Doing::Mpi { .. }))
            .partition(|thread| thread.gone_on == Some(false));
        let process = processes.iter().find(|process| process.pid() == rank.pid);
        // Where data is on its way nobody is held for ever: as if the call had just begun.
        let is_moving = process.is_some_and(|process| has_data_on_its_way(&process.process));
        let open_ns = if is_moving { JUST_BEGUN_NS } else { OPEN_NS };
        // Nobody saw them begin, either.
        rank.traffic.iter_mut().flat_map(|traffic| &mut traffic.pending).for_each(|row| row.age_ns = open_ns);
        let meaning = |thread: &ThreadReport| meanings.get(&(thread.pid, thread.tid)).cloned();
        rank.open_calls.extend(held.iter().filter_map(|thread| open_call(thread, meaning(thread), open_ns)));
        rank.asks = held.iter().filter(|thread| thread.polls).chain(&others).find_map(|thread| asks(thread));
        // Whoever is known to go on, or not known not to, may yet do what others wait for.
        let active = seen.active.iter().filter(|(pid, _)| *pid == rank.pid).map(|(_, tid)| *tid);
        rank.threads = others.iter().map(|thread| thread.tid).chain(active).map(living).collect();
    }
    profile
}

/// The question that a thread asks.
fn asks(thread: &ThreadReport) -> Option<&'static str> {
    let Doing::Mpi { call, .. } = &thread.doing else { return None };
    let function = call.function.function();
    function.polling.then_some(function.name)
}

fn living(tid: u32) -> ThreadProfile {
    ThreadProfile { tid, state: ThreadLife::Running, calls: 0, mpi_ns: 0, wall_ns: 0 }
}

fn observed(slot: u32, process: &MpiProcess, seen: &Seen) -> Observed {
    let own = || seen.threads.iter().filter(|thread| thread.pid == process.pid());
    let is_stopped = |thread: &ThreadReport| matches!(thread.doing, Doing::Stopped { .. } | Doing::Traced { .. });
    let has_ended = own().all(|thread| matches!(thread.doing, Doing::Ended));
    Observed {
        process: slot,
        identity: Identity {
            host: String::new(),
            pid: process.pid(),
            rank: process.rank.rank,
            size: process.rank.size,
            job: Some(process.job.to_string()),
            executable: String::new(),
        },
        state: if has_ended { RankState::Ended } else { RankState::Running },
        stopped: own().any(is_stopped),
        since_ns: 0,
        beginning: Beginning::MidRun,
        until_ns: has_ended.then_some(0),
        failure: None,
        ended_in: Vec::new(),
        self_cost: SelfCost::default(),
    }
}

fn session() -> Session {
    Session {
        host: String::new(),
        began: String::new(),
        began_ns: 0,
        end: None,
        engine: EngineInfo {
            engine: "stacks",
            attached_by: String::new(),
            launched: false,
            attach_ns: 0,
            libraries: Vec::new(),
            tools: Vec::new(),
        },
        per_call_ns: 0.0,
        inside_ns: None,
        nested: false,
        traffic: true,
        communicators: Vec::new(),
        expected: analyse::Expected::Some,
        incomplete_because: Vec::new(),
    }
}

/// What follows from who waits for whom, in words.
fn told(report: &Report, profile: &Profile, waiting: &Waiting) -> Vec<(Cause, Found)> {
    let member = |rank: &usize| {
        let rank = profile.ranks.get(*rank)?;
        Some(rank.rank.map_or(Member::Pid(rank.pid), Member::Rank))
    };
    let members = |ranks: &[usize]| -> Vec<Member> { ranks.iter().filter_map(member).collect() };
    let set = |ranks: &[usize]| -> RankSet { ranks.iter().filter_map(member).collect() };
    let deadlock = |kind: CauseKind, head: String, ranks: &[usize], others: &[usize]| {
        let mut text = head;
        let waits = ranks.iter().filter_map(|rank| wait_of(waiting, *rank));
        for wait in waits.take(TOLD) {
            let _ = write!(text, "\n  {}", told_of(report, profile, wait));
        }
        if ranks.len() > TOLD {
            let _ = write!(text, "\n  and {} more", ranks.len() - TOLD);
        }
        if !others.is_empty() {
            let verb = if others.len() == 1 { "waits" } else { "wait" };
            let them = if ranks.len() == 1 { "it" } else { "them" };
            let _ = write!(text, "\n  {} {verb} for {them}", subject(&set(others)));
        }
        Cause { kind, ranks: members(ranks), others: set(others), text }
    };
    let words = |cause: analyse::Cause| match cause {
        analyse::Cause::Circle { ranks, others } => {
            deadlock(CauseKind::Circle, format!("Deadlock: {}", circle(profile, &ranks)), &ranks, &others)
        }
        analyse::Cause::Knot { ranks, others } => {
            deadlock(CauseKind::Knot, format!("Deadlock among {}", knot(profile, &ranks)), &ranks, &others)
        }
        analyse::Cause::Roots { ranks } => {
            let text = different_roots(profile, &ranks, &set);
            Cause { kind: CauseKind::DifferentRoots, ranks: members(&ranks), others: RankSet::default(), text }
        }
        analyse::Cause::WaitedFor { rank, others } => {
            let verb = if others.len() == 1 { "waits" } else { "wait" };
            let (waiting_ranks, ranks) = (set(&others), members(&[rank]));
            let mut text = format!(
                "{} {verb} for {}{}, which {}",
                subject(&waiting_ranks),
                subject(&set(&[rank])).to_lowercase(),
                profile.ranks.get(rank).map(node).unwrap_or_default(),
                does(report, profile, rank)
            );
            let direct = others.iter().filter_map(|other| wait_of(waiting, *other));
            for wait in direct.filter(|wait| wait.on.contains(&rank)).take(TOLD) {
                if near_miss(profile, wait).is_some() {
                    let _ = write!(text, "\n  {}", told_of(report, profile, wait));
                }
            }
            Cause { kind: CauseKind::WaitedFor, ranks, others: waiting_ranks, text }
        }
    };
    let told = |cause: analyse::Cause| {
        let found = found(profile, waiting, &cause);
        (words(cause), found)
    };
    causes(profile, waiting).into_iter().map(told).collect()
}

fn wait_of(waiting: &Waiting, rank: usize) -> Option<&Wait> {
    waiting.waits.iter().find(|wait| wait.rank == rank)
}

/// "Rank 1 in MPI_Recv from 0 tag 99 at hang.c:17 in main waits for 0"
fn told_of(report: &Report, profile: &Profile, wait: &Wait) -> String {
    let Some(rank) = profile.ranks.get(wait.rank) else { return String::new() };
    let name = rank.rank.map_or_else(|| format!("Process {}", rank.pid), |rank| format!("Rank {rank}"));
    let thread = threads_of(report, rank).find(|thread| thread.tid == wait.tid);
    let requests = waited_requests(profile, wait).map(|requests| format!(" ({requests})")).unwrap_or_default();
    let called = thread.and_then(|thread| thread.called.as_ref()).map(|called| format!("{called}{requests}"));
    let does = thread.map(|thread| thread.words(called.as_deref())).unwrap_or_default();
    let miss = near_miss(profile, wait).map(|miss| format!(" ({miss})")).unwrap_or_default();
    format!("{name}{} {does} waits for {}{miss}", node(rank), waits_for(profile, wait))
}

/// " (n2)" where nodes have names.
fn node(rank: &RankProfile) -> String {
    if rank.host.is_empty() { String::new() } else { format!(" ({})", rank.host) }
}

fn threads_of<'a>(report: &'a Report, rank: &'a RankProfile) -> impl Iterator<Item = &'a ThreadReport> {
    let is_its =
        |thread: &&ThreadReport| thread.pid == rank.pid && thread.node.as_deref().unwrap_or_default() == rank.host;
    report.threads.iter().filter(is_its)
}

/// What differs between what a rank waits for and what is there.
fn near_miss(profile: &Profile, wait: &Wait) -> Option<String> {
    let differs = |end: OtherEnd| matches!(end, OtherEnd::OtherTag(_) | OtherEnd::OtherCommunicator(_));
    let operations = operations(profile);
    let rank = profile.ranks.get(wait.rank)?;
    let is_its = |posted: Posted| match posted {
        Posted::Call(place) => rank.open_calls.get(place).is_some_and(|call| call.tid == wait.tid),
        Posted::Request(place) => {
            let pending = rank.traffic.iter().find_map(|traffic| traffic.pending.get(place));
            pending.is_some_and(|row| row.awaited_by == Some(wait.tid))
        }
    };
    let of_call = |operation: &&analyse::Operation| {
        operation.rank == wait.rank && is_its(operation.posted) && differs(operation.other_end)
    };
    operations.iter().find(of_call).map(|operation| other_end(profile, operation))
}

/// What the rank does that others wait for.
fn does(report: &Report, profile: &Profile, rank: usize) -> String {
    let threads: Vec<&ThreadReport> =
        profile.ranks.get(rank).into_iter().flat_map(|rank| threads_of(report, rank)).collect();
    match threads.as_slice() {
        [] => "has ended".to_owned(),
        [thread] if matches!(thread.doing, Doing::Ended) => "has ended".to_owned(),
        [thread] => format!("is {}", thread.words(thread.called.as_deref())),
        several => {
            let does = |thread: &&ThreadReport| format!("is {}", thread.words(thread.called.as_deref()));
            let mut each: Vec<String> = several.iter().take(THREADS_TOLD).map(does).collect();
            if several.len() > THREADS_TOLD {
                each.push(format!("has {} more threads", several.len() - THREADS_TOLD));
            }
            each.join(", and ")
        }
    }
}

fn different_roots(profile: &Profile, ranks: &[usize], set: &dyn Fn(&[usize]) -> RankSet) -> String {
    let mut roots: Vec<(u32, Vec<usize>)> = Vec::new();
    let mut function = "a collective call";
    for rank in ranks {
        let call = profile.ranks.get(*rank).and_then(analyse::longest);
        let root = call.and_then(|call| call.arguments.as_ref()?.root?.rank);
        let (Some(call), Some(root)) = (call, root) else { continue };
        function = call.function;
        match roots.iter_mut().find(|(known, _)| *known == root) {
            Some((_, ranks)) => ranks.push(*rank),
            None => roots.push((root, vec![*rank])),
        }
    }
    let named: Vec<String> = roots.iter().take(TOLD).map(|(root, ranks)| mean(&set(ranks), *root)).collect();
    format!("{} are in {function} with different roots: {}", subject(&set(ranks)), named.join(", "))
}

fn mean(ranks: &RankSet, root: u32) -> String {
    let verb = if ranks.len() == 1 { "means" } else { "mean" };
    format!("{} {verb} {root}", subject(ranks))
}
