//! Who sent how much to whom, as a profiler says it, against what the truth library was told by MPI.

use std::collections::{BTreeMap, BTreeSet};

use libtest_mimic::Failed;
use mpiprobe_functions::Group;

use crate::profiler::Flow;
use crate::truth::{Image, Peer};
use crate::{Job, JobBuilder, Mpi, Profile, Rank, program};

/// Function with the one that started it, size of the communicator, and who was at the other end.
pub type Key = (String, usize, String);

/// Calls, bytes sent and received, calls of which they are unknown.
pub type Sums = BTreeMap<Key, [u64; 4]>;

fn add(sums: &mut Sums, key: Key, amounts: [u64; 4]) {
    for (sum, amount) in sums.entry(key).or_default().iter_mut().zip(amounts) {
        *sum = sum.wrapping_add(amount);
    }
}

/// What moves data, or belongs to it.
pub fn is_compared(function: &str) -> bool {
    let moves = |group| {
        matches!(group, Group::PointToPoint | Group::Collective | Group::Synchronisation | Group::OneSided | Group::Io)
    };
    mpiprobe_functions::by_name(function).is_some_and(|id| moves(id.function().group))
}

fn operation(function: &str, started_by: Option<&str>) -> String {
    started_by.map_or(function.to_owned(), |by| format!("{function} by {by}"))
}

pub fn told(image: &Image, before: Option<&Image>) -> Sums {
    let mut sums = Sums::new();
    for (image, sign) in [(Some(image), 1u64), (before, u64::MAX)] {
        let entries = image.iter().flat_map(|image| &image.traffic.entries);
        for (key, amounts) in entries.filter(|(key, _)| is_compared(&key.function)) {
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
pub fn seen(row: &Rank, functions: &BTreeSet<String>) -> Sums {
    let mut sums = Sums::new();
    let flows = row.traffic.iter().flat_map(|traffic| &traffic.flows);
    for flow in flows.filter(|flow| functions.contains(&flow.function) && is_compared(&flow.function)) {
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
pub fn differences(told: &Sums, seen: &Sums) -> Vec<String> {
    let keys: BTreeSet<&Key> = told.keys().chain(seen.keys()).collect();
    let differ = keys.into_iter().filter(|key| told.get(*key) != seen.get(*key));
    differ.map(|key| format!("{key:?}: told {:?}, seen {:?}", told.get(key), seen.get(key))).collect()
}

/// What nobody outside can know. The program gives up the request of one receive from its left neighbour; and of one receive of two
/// integers from anybody, it frees the communicator before it is complete, so that whose rank the status tells is gone.
pub fn hide(told: &mut Sums, left: u32) -> Result<(), &'static str> {
    const BYTES: u64 = 8;
    let key = |partner: &str| ("MPI_Irecv".to_owned(), 4, partner.to_owned());
    let [calls, _, received, unknown] = told.get_mut(&key(&left.to_string())).ok_or("no receives")?;
    *unknown += 1;
    *calls -= 1;
    *received -= BYTES;
    add(told, key("unknown"), [1, 0, BYTES, 0]);
    Ok(())
}

/// Functions by which a status was ignored, with the bytes of which an upper bound is known only.
pub fn bounded(row: &Rank) -> BTreeMap<String, u64> {
    let mut bounded = BTreeMap::new();
    for flow in row.traffic.iter().flat_map(|traffic| &traffic.flows) {
        if flow.received_at_most_bytes > 0 || flow.partner == "any-source" {
            *bounded.entry(flow.function.clone()).or_default() += flow.received_at_most_bytes;
        }
    }
    bounded
}

/// Takes out what is of these functions, summed up over partners and communicators.
pub fn take_sums(traffic: &mut Sums, functions: &BTreeMap<String, u64>) -> BTreeMap<String, [u64; 4]> {
    let mut sums: BTreeMap<String, [u64; 4]> = BTreeMap::new();
    traffic.retain(|(operation, ..), amounts| {
        let function = operation.split(' ').next().unwrap_or_default();
        if !functions.contains_key(function) {
            return true;
        }
        for (sum, amount) in sums.entry(function.to_owned()).or_default().iter_mut().zip(amounts) {
            *sum += *amount;
        }
        false
    });
    sums
}

/// Takes out what is of functions that are [bounded], and compares their sums: those that are `known` are within the bounds of those `seen`.
///
/// # Panics
/// If they are not, or if something else than what has arrived differs.
pub fn expect_within_bounds(known: &mut Sums, seen: &mut Sums, bounded: &BTreeMap<String, u64>) {
    let (sums, bounds) = (take_sums(known, bounded), take_sums(seen, bounded));
    assert!(sums.keys().eq(bounds.keys()), "{sums:?}, {bounds:?}");
    for ((function, known_sums), seen_sums) in sums.iter().zip(bounds.values()) {
        let ([calls, sent, received, unknown], [.., most, _]) = (known_sums, seen_sums);
        assert_eq!(*seen_sums, [*calls, *sent, *most, *unknown], "{function}");
        let at_most = bounded.get(function).copied().unwrap_or(0);
        assert!((most - at_most..=*most).contains(received), "{function}: {received} of {most}");
    }
}

/// Of a job that an engine observes from its start, and that is successful.
fn profile_of(job: JobBuilder, engine: &str, options: &[&str]) -> Result<Profile, Failed> {
    let mut job = job.run_by(engine, options)?.spawn()?;
    job.wait()?.success()?;
    Ok(job.profile()?)
}

/// `programs/freed_message.c` gets its messages by an engine as it does without, and so many bytes are received over communicators that are known;
/// from whom cannot be found out any more.
pub fn messages_over_freed_communicators(mpi: Mpi, engine: &str) -> Result<(), Failed> {
    let profile = profile_of(Job::builder(mpi, program::FREED_MESSAGE).ranks(3), engine, &[])?;
    for rank in 0..3 {
        let row = profile.rank(rank).ok_or("a rank is missing")?;
        for (function, bytes) in [("MPI_Mrecv", 40), ("MPI_Imrecv", 20)] {
            let flows = row.traffic.iter().flat_map(|traffic| &traffic.flows).filter(|flow| flow.function == function);
            let flows: Vec<_> = flows.collect();
            let received: u64 = flows.iter().map(|flow| flow.received_bytes).sum();
            let is_told = |flow: &&Flow| {
                let is_whole = flow.received_at_most_bytes == 0 && flow.calls_of_unknown_bytes == 0;
                is_whole && flow.communicator.is_some() && flow.partner == "unknown"
            };
            if received != bytes || !flows.iter().all(is_told) {
                return Err(format!("{function} of rank {rank}: {flows:?}").into());
            }
        }
    }
    Ok(())
}

/// Of messages whose requests are completed by functions that were not chosen, it is known what has come; and those functions are not counted.
///
/// Invariant ONLY-CHOSEN.
pub fn requests_of_chosen_functions(mpi: Mpi, engine: &str) -> Result<(), Failed> {
    const ITERATIONS: u64 = 40;
    let job = Job::builder(mpi, program::RING).ranks(2).args([ITERATIONS.to_string()]);
    let profile = profile_of(job, engine, &["--functions", "Isend,Irecv"])?;
    for rank in 0..2 {
        let row = profile.rank(rank).ok_or("a rank is missing")?;
        let calls: Vec<(&str, u64)> = row.completed().into_iter().collect();
        let flows = row.traffic.iter().flat_map(|traffic| &traffic.flows).filter(|flow| flow.function == "MPI_Irecv");
        let received: u64 = flows.map(|flow| flow.received_bytes).sum();
        let pending = row.traffic.iter().map(|traffic| traffic.pending.len()).sum::<usize>();
        if calls != [("MPI_Irecv", ITERATIONS), ("MPI_Isend", ITERATIONS)]
            || (received, pending) != (ITERATIONS * 64 * 1024, 0)
            || !profile.complete
        {
            let why = &profile.incomplete_because;
            return Err(format!("rank {rank}: {calls:?}, {received} bytes, {pending} pending, {why:?}").into());
        }
    }
    Ok(())
}

/// A program with a communicator whose library does not know what it is runs on, and its calls over it are counted.
pub fn graph_out_of_a_grid(mpi: Mpi, engine: &str) -> Result<(), Failed> {
    let profile = profile_of(Job::builder(mpi, program::GRAPH_OF_GRID).ranks(3), engine, &[])?;
    for rank in 0..3 {
        let row = profile.rank(rank).ok_or("a rank is missing")?;
        if row.completed().get("MPI_Barrier") != Some(&5) {
            return Err(format!("rank {rank}: {:?}", row.completed()).into());
        }
    }
    Ok(())
}

/// Processes that another MPI's launcher has started are alone in their worlds, whatever it has told them, and that is said.
pub fn started_by_another_launcher(mpi: Mpi, engine: &str) -> Result<(), Failed> {
    let other = if mpi == Mpi::OpenMpi { Mpi::Mpich } else { Mpi::OpenMpi };
    let job = Job::builder(mpi, program::GRAPH_OF_GRID).ranks(3).launched_by(other);
    let profile = profile_of(job, engine, &[])?;
    let why = &profile.incomplete_because;
    if !why.iter().any(|reason| reason.starts_with("3 of 3 ranks are alone in MPI_COMM_WORLD")) {
        return Err(format!("it is not said: {why:?}").into());
    }
    for row in &profile.ranks {
        let communicators = row.traffic.iter().flat_map(|traffic| &traffic.communicators);
        let sizes: Vec<Option<u32>> = communicators.map(|communicator| communicator.size).collect();
        if sizes.is_empty()
            || sizes.iter().any(|&size| size != Some(1))
            || row.completed().get("MPI_Barrier") != Some(&5)
        {
            return Err(format!("{:?}: sizes {sizes:?}, {:?}", row.rank, row.completed()).into());
        }
    }
    if profile.ranks.len() == 3 { Ok(()) } else { Err(format!("{} rows", profile.ranks.len()).into()) }
}
