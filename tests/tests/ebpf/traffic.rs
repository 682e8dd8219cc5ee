//! `--traffic`: who sent how much to whom, over which communicator, compared with what the truth library was told by MPI.

use std::collections::BTreeMap;

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
    for (rank, image) in &job.snapshot()?.ranks {
        let row = profile.rank(*rank).ok_or("no such rank")?;
        let told = told(image, before.get(rank));
        assert_eq!(seen(row), told, "rank {rank}");
        assert!(!told.is_empty(), "the section calls none of the functions compared");
    }
    Ok(())
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
            if !BLOCKING.contains(&key.function.as_str()) || key.started_by.is_some() {
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
        if !BLOCKING.contains(&flow.function.as_str()) {
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
