//! `--traffic`: who sent how much to whom, over which communicator, compared with what the truth library was told by MPI.

use std::collections::{BTreeMap, BTreeSet};

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::truth::{Image, Peer};
use mpiprobe_tests::{Job, Mpi, Profiler, Program, Rank, program};

use crate::check::complete;
use crate::trial_with;

/// Functions whose amounts are known when they return.
const BLOCKING: [&str; 26] = [
    "MPI_Allgather",
    "MPI_Allgatherv",
    "MPI_Allreduce",
    "MPI_Alltoall",
    "MPI_Alltoallv",
    "MPI_Barrier",
    "MPI_Bcast",
    "MPI_Bsend",
    "MPI_Exscan",
    "MPI_Gather",
    "MPI_Gatherv",
    "MPI_Ibsend",
    "MPI_Irsend",
    "MPI_Isend",
    "MPI_Issend",
    "MPI_Recv",
    "MPI_Reduce",
    "MPI_Reduce_scatter",
    "MPI_Reduce_scatter_block",
    "MPI_Rsend",
    "MPI_Scan",
    "MPI_Scatter",
    "MPI_Scatterv",
    "MPI_Send",
    "MPI_Sendrecv",
    "MPI_Ssend",
];

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
    for (rank, image) in &job.snapshot()?.ranks {
        let row = profile.rank(*rank).ok_or("no such rank")?;
        let told = told(image, before.get(rank));
        expect_same(*rank, &seen(row), &told);
        assert!(!told.is_empty(), "the section calls none of the functions compared");
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

/// Large-count functions go with the ordinary ones.
fn is_compared(function: &str) -> bool {
    BLOCKING.contains(&function.trim_end_matches("_c"))
}

/// Function, size of the communicator, and who was at the other end.
type Key = (String, usize, String);

/// Calls, bytes sent and received, calls of which they are unknown.
type Sums = BTreeMap<Key, [u64; 4]>;

fn add(sums: &mut Sums, key: Key, amounts: [u64; 4]) {
    for (sum, amount) in sums.entry(key).or_default().iter_mut().zip(amounts) {
        *sum = sum.wrapping_add(amount);
    }
}

fn told(image: &Image, before: Option<&Image>) -> Sums {
    let mut sums = Sums::new();
    for (image, sign) in [(Some(image), 1u64), (before, u64::MAX)] {
        for (key, amounts) in image.iter().flat_map(|image| &image.traffic.entries) {
            if !is_compared(&key.function) || key.started_by.is_some() {
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
            add(&mut sums, (key.function.clone(), size, peer), amounts);
        }
    }
    sums.retain(|_, amounts| *amounts != [0; 4]);
    sums
}

fn seen(row: &Rank) -> Sums {
    let mut sums = Sums::new();
    for flow in row.traffic.iter().flat_map(|traffic| &traffic.flows) {
        if !is_compared(&flow.function) {
            continue;
        }
        let communicators = row.traffic.iter().flat_map(|traffic| &traffic.communicators);
        let communicator = communicators.clone().find(|known| Some(known.number) == flow.communicator);
        let size = communicator.and_then(|known| known.size).map_or(0, |size| size as usize);
        let peer = flow.peer.map_or_else(|| flow.partner.clone(), |rank| rank.to_string());
        let amounts = [flow.calls, flow.sent_bytes, flow.received_bytes, flow.calls_of_unknown_bytes];
        add(&mut sums, (flow.function.clone(), size, peer), amounts);
    }
    sums
}
