//! `--traffic`: who sent how much to whom, over which communicator, compared with what the truth library was told by MPI.

use std::collections::{BTreeMap, BTreeSet};

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::truth::{Image, Peer};
use mpiprobe_tests::{Job, Language, Mpi, Profiler, Rank, program};

use crate::check::complete;
use crate::trial_with;

/// Functions whose amounts are known when they return.
pub(crate) const BLOCKING: [&str; 26] = [
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

/// Whether the profiler comes before MPI_Init, or when all types and communicators are there.
#[derive(Clone, Copy)]
enum Attached {
    AtStart,
    Late,
}

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    let sections = ["point-to-point", "collectives", "communicators", "datatypes", "requests"];
    let of_section = |section: &'static str| {
        [(Attached::AtStart, "at_start"), (Attached::Late, "late")].map(|(when, suffix)| {
            let name = format!("traffic_of_{}_attached_{suffix}", section.replace('-', "_"));
            trial_with(mpi, Language::C, &name, move || agrees(mpi, section, when))
        })
    };
    sections.into_iter().flat_map(of_section).collect()
}

fn agrees(mpi: Mpi, section: &str, when: Attached) -> Result<(), Failed> {
    let gates: &[&str] = match when {
        // Not before MPI has been initialised, so that nothing is called whose meaning cannot be known yet.
        Attached::AtStart => &["start", "1"],
        Attached::Late => &["2"],
    };
    let mut job = Job::builder(mpi, program::MEANING).args([section]).gates(gates).meaning().own_name().spawn()?;
    let first = gates.first().copied().unwrap_or("start");
    job.wait_for_gate(first)?;
    let before = match when {
        Attached::AtStart => BTreeMap::new(),
        Attached::Late => job.snapshot()?.ranks,
    };
    let profiler = Profiler::observe(["--traffic", "--pid-of", job.called()])?;
    job.open_gate(first)?;
    if matches!(when, Attached::AtStart) {
        job.wait_for_gate("1")?;
        job.open_gate("1")?;
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
        let told = told(image, before.get(rank));
        assert!(!told.is_empty(), "the section calls none of the functions compared");
        let mut seen = seen(row, &functions);
        let mut told = told;
        if section == "requests" {
            hide(&mut told, (rank + size - 1) % size)?;
        }
        if matches!(when, Attached::Late) {
            forgive_unknown_requests(row, &mut told, &mut seen)?;
        }
        assert_eq!(differences(&told, &seen), Vec::<String>::new(), "rank {rank}");
    }
    Ok(())
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
    for flow in row.traffic.iter().flat_map(|traffic| &traffic.flows).filter(|flow| functions.contains(&flow.function))
    {
        let communicators = row.traffic.iter().flat_map(|traffic| &traffic.communicators);
        let communicator = communicators.clone().find(|known| Some(known.number) == flow.communicator);
        let size = communicator.and_then(|known| known.size).map_or(0, |size| size as usize);
        let peer = flow.peer.map_or_else(|| flow.partner.clone(), |rank| rank.to_string());
        let amounts = [flow.calls, flow.sent_bytes, flow.received_bytes, flow.calls_of_unknown_bytes];
        add(&mut sums, (operation(&flow.function, flow.started_by.as_deref()), size, peer), amounts);
    }
    sums
}

/// What one has and the other not.
fn differences(told: &Sums, seen: &Sums) -> Vec<String> {
    let keys: BTreeSet<&Key> = told.keys().chain(seen.keys()).collect();
    let differ = keys.into_iter().filter(|key| told.get(*key) != seen.get(*key));
    differ.map(|key| format!("{key:?}: told {:?}, seen {:?}", told.get(key), seen.get(key))).collect()
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
