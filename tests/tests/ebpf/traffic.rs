//! `--traffic`: who sent how much to whom, over which communicator, compared with what the truth library was told by MPI.

use std::collections::{BTreeMap, BTreeSet};

use libtest_mimic::{Failed, Trial};
use mpiprobe_functions::Group;
use mpiprobe_tests::truth::{Image, Peer};
use mpiprobe_tests::{Job, Mpi, Profiler, Program, Rank, program};

use crate::check::complete;
use crate::trial_with;

/// A program, and what it is started with.
#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    program: Program,
    arguments: &'static [&'static str],
    /// The gate behind the first calls that tell something of objects.
    known: &'static str,
}

const C: Case = Case {
    name: "c",
    program: program::MEANING,
    arguments: &["point-to-point", "requests", "datatypes", "collectives", "communicators", "large"],
    known: "1",
};
const THREADS: Case = Case { name: "threads", program: program::MEANING_THREADS, arguments: &["4", "50"], ..C };
const SESSION: Case = Case { name: "a_session", program: program::MEANING_SESSION, arguments: &[], known: "2" };
const F08: Case = Case { name: "use_mpi_f08", program: program::MEANING_F08, arguments: &[], ..C };
const CXX: Case = Case { name: "cxx", program: program::MEANING_CXX, arguments: &[], ..C };
const MPI4PY: Case = Case { name: "mpi4py", program: program::MEANING_MPI4PY, arguments: &[], ..C };

/// Whether the profiler comes before MPI_Init, or when all types and communicators are there.
#[derive(Clone, Copy)]
enum Attached {
    AtStart,
    Late,
}

/// Of every MPI, in the languages that it has.
pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    use Attached::{AtStart, Late};
    let mut cases = vec![(C, AtStart), (C, Late), (THREADS, AtStart), (SESSION, AtStart)];
    if Mpi::ALL.contains(&mpi) {
        cases.extend([F08, CXX, MPI4PY].into_iter().flat_map(|case| [(case, AtStart), (case, Late)]));
    } else if !matches!(mpi, Mpi::Mpich5Abi | Mpi::IntelAbi) {
        // mpi4py's wheels are not made for the standard ABI.
        cases.push((MPI4PY, Late));
    }
    let trial = |(case, when): (Case, Attached)| {
        let suffix = if matches!(when, AtStart) { "at_start" } else { "late" };
        let name = format!("traffic_of_{}_attached_{suffix}", case.name);
        trial_with(mpi, case.program.language, &name, move || agrees(mpi, case, when))
    };
    cases.into_iter().map(trial).collect()
}

fn agrees(mpi: Mpi, case: Case, when: Attached) -> Result<(), Failed> {
    let gates: &[&str] = match when {
        // Held once more, until it is known that MPI has been initialised: nothing is called whose meaning cannot be known yet.
        Attached::AtStart => &["start", case.known],
        Attached::Late => &["2"],
    };
    let arguments = case.arguments.iter().copied();
    let mut job = Job::builder(mpi, case.program).args(arguments).gates(gates).meaning().own_name().spawn()?;
    let first = gates.first().copied().unwrap_or("start");
    job.wait_for_gate(first)?;
    let before = match when {
        Attached::AtStart => BTreeMap::new(),
        Attached::Late => job.snapshot()?.ranks,
    };
    let mut profiler = Profiler::observe(["-v", "--traffic", "--pid-of", job.called()])?;
    job.open_gate(first)?;
    if matches!(when, Attached::AtStart) {
        job.wait_for_gate(case.known)?;
        for _ in job.ranks()? {
            profiler.wait_for("has initialised MPI")?;
        }
        job.open_gate(case.known)?;
    }
    job.wait()?.success()?;
    let ended = profiler.wait()?;
    let profile = complete(&ended)?;
    let ranks = job.snapshot()?.ranks;
    let functions: BTreeSet<String> =
        ranks.values().flat_map(|image| image.traffic.functions().into_keys().map(str::to_owned)).collect();
    let size = u32::try_from(ranks.len())?;
    for (rank, image) in &ranks {
        let row = profile.rank(*rank).ok_or("no such rank")?;
        let (mut seen, mut told) = (seen(row, &functions), told(image, before.get(rank)));
        assert!(!told.is_empty(), "the section calls none of the functions compared");
        if case.arguments.contains(&"requests") {
            hide(&mut told, (rank + size - 1) % size)?;
        }
        if matches!(when, Attached::Late) {
            forgive_unknown_requests(row, &mut told, &mut seen)?;
        }
        expect_same(*rank, &seen, &told);
    }
    Ok(())
}

/// Says what differs, not all that there is.
fn expect_same(rank: u32, seen: &Sums, told: &Sums) {
    let keys: BTreeSet<&Key> = seen.keys().chain(told.keys()).collect();
    let differ = keys.into_iter().filter(|key| seen.get(key) != told.get(key));
    let differ: Vec<_> = differ.map(|key| (key, seen.get(key), told.get(key))).collect();
    assert!(differ.is_empty(), "rank {rank}: flow, seen, told: {differ:#?}");
}

/// Windows, files and topologies are not compared yet.
pub(crate) fn is_compared(function: &str) -> bool {
    let is_local = |group| !matches!(group, Group::OneSided | Group::Io);
    mpiprobe_functions::by_name(function).is_some_and(|id| is_local(id.function().group))
        && !function.to_ascii_lowercase().contains("neighbor")
}

/// Function with the one that started it, size of the communicator, and who was at the other end.
type Key = (String, usize, String);

/// Calls, bytes sent and received, calls of which they are unknown.
type Sums = BTreeMap<Key, [u64; 4]>;

fn add(sums: &mut Sums, key: Key, amounts: [u64; 4]) {
    for (sum, amount) in sums.entry(key).or_default().iter_mut().zip(amounts) {
        *sum = sum.wrapping_add(amount);
    }
}

fn operation(function: &str, started_by: Option<&str>) -> String {
    started_by.map_or(function.to_owned(), |by| format!("{function} by {by}"))
}

fn told(image: &Image, before: Option<&Image>) -> Sums {
    let mut sums = Sums::new();
    for (image, sign) in [(Some(image), 1u64), (before, u64::MAX)] {
        for (key, amounts) in image.iter().flat_map(|image| &image.traffic.entries) {
            if !is_compared(&key.function) {
                continue;
            }
            let size = key.scope.as_ref().map_or(0, |scope| scope.communicator().size());
            let peer = match key.peer {
                Peer::None => "nobody".to_owned(),
                Peer::Null => "proc-null".to_owned(),
                Peer::Any => "any-source".to_owned(),
                Peer::Foreign => "unknown".to_owned(),
                Peer::Rank(rank) => rank.to_string(),
            };
            let amounts =
                [amounts.calls, amounts.sent, amounts.received.bytes, 0].map(|amount| amount.wrapping_mul(sign));
            add(&mut sums, (operation(&key.function, key.started_by.as_deref()), size, peer), amounts);
        }
    }
    sums.retain(|_, amounts| *amounts != [0; 4]);
    sums
}

/// Of the functions that the truth library follows.
fn seen(row: &Rank, functions: &BTreeSet<String>) -> Sums {
    let mut sums = Sums::new();
    for flow in row.traffic.iter().flat_map(|traffic| &traffic.flows) {
        if !functions.contains(&flow.function) || !is_compared(&flow.function) {
            continue;
        }
        let communicators = row.traffic.iter().flat_map(|traffic| &traffic.communicators);
        let communicator = communicators.clone().find(|known| Some(known.number) == flow.communicator);
        let size = communicator.and_then(|known| known.size).map_or(0, |size| size as usize);
        let peer = flow.peer.map_or_else(|| flow.partner.clone(), |rank| rank.to_string());
        let amounts = [flow.calls, flow.sent_bytes, flow.received_bytes, flow.calls_of_unknown_bytes];
        add(&mut sums, (operation(&flow.function, flow.started_by.as_deref()), size, peer), amounts);
    }
    sums
}

/// What nobody outside can know. The program gives up the request of one receive from its left neighbour; and of one receive of two
/// integers from anybody, it frees the communicator before it is complete, so that whose rank the status tells is gone.
fn hide(told: &mut Sums, left: u32) -> Result<(), Failed> {
    const BYTES: u64 = 8;
    let key = |partner: &str| ("MPI_Irecv".to_owned(), 4, partner.to_owned());
    let [calls, _, received, unknown] = told.get_mut(&key(&left.to_string())).ok_or("no receives")?;
    *unknown += 1;
    *calls -= 1;
    *received -= BYTES;
    add(told, key("unknown"), [1, 0, BYTES, 0]);
    Ok(())
}

/// Of persistent requests that were made before the profiler came, it is unknown what they move: so many starts must be
/// said to be of unknown bytes, and no more may be missing.
fn forgive_unknown_requests(row: &Rank, told: &mut Sums, seen: &mut Sums) -> Result<(), Failed> {
    let started = |sums: &Sums| -> u64 {
        sums.iter().filter(|((operation, ..), _)| operation.contains(" by ")).map(|(_, [calls, ..])| calls).sum()
    };
    let flows = row.traffic.iter().flat_map(|traffic| &traffic.flows);
    let unknown: u64 =
        flows.filter(|flow| flow.function.starts_with("MPI_Start")).map(|flow| flow.calls_of_unknown_bytes).sum();
    assert_eq!(started(told), started(seen) + unknown, "starts");
    for (key, amounts) in seen.iter().filter(|((operation, ..), _)| operation.contains(" by ")) {
        let most = told.get(key).ok_or_else(|| format!("nobody told of {key:?}"))?;
        assert!(amounts.iter().zip(most).all(|(seen, told)| seen <= told), "{key:?}: {amounts:?} of {most:?}");
    }
    for sums in [told, seen] {
        sums.retain(|(operation, ..), _| !operation.contains(" by "));
    }
    Ok(())
}
