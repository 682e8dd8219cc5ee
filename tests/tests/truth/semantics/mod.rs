//! What calls mean: the truth library's account of a section of the program `semantics` against what its source says, worked out by
//! hand.

mod blocking;
mod endings;
mod groups;
mod languages;
mod requests;

use std::collections::BTreeMap;

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::truth::{Amounts, Image, Peer, Received, Snapshot, Traffic};
use mpiprobe_tests::{Job, Language, Mpi, Program, program};

use crate::trial;

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    vec![
        trial(mpi, Language::C, "bytes_and_peers_of_messages", blocking::messages),
        trial(mpi, Language::C, "bytes_of_collectives", blocking::collectives),
        trial(mpi, Language::C, "bytes_of_requests_when_they_are_complete", requests::requests),
        trial(mpi, Language::C, "bytes_of_derived_datatypes", requests::datatypes),
        trial(mpi, Language::C, "bytes_beyond_32_bits", requests::large),
        trial(mpi, Language::C, "bytes_of_one_sided_accesses", requests::one_sided),
        trial(mpi, Language::C, "bytes_of_files", requests::input_output),
        trial(mpi, Language::C, "peers_in_all_communicators", groups::communicators),
        trial(mpi, Language::C, "bytes_between_two_groups", groups::two_groups),
        trial(mpi, Language::C, "bytes_of_neighbourhoods", groups::neighbourhoods),
        trial(mpi, Language::C, "bytes_of_nonblocking_collectives", groups::nonblocking_collectives),
        trial(mpi, Language::Fortran, "semantics_of_calls_through_use_mpi_f08", languages::use_mpi_f08),
        trial(mpi, Language::Cxx, "semantics_of_calls_through_cxx", languages::cxx),
        trial(mpi, Language::Python, "semantics_of_calls_through_mpi4py", languages::mpi4py),
        trial(mpi, Language::C, "semantics_of_calls_of_many_threads", languages::threads),
        trial(mpi, Language::C, "semantics_of_calls_in_a_session", languages::session),
        trial(mpi, Language::C, "telling_what_calls_mean_loses_no_call", endings::own_counts),
        trial(mpi, Language::C, "semantics_survives_abort_and_fork", endings::abort_and_fork),
        trial(mpi, Language::C, "semantics_survives_longjmp", endings::longjmp),
        trial(mpi, Language::Cxx, "semantics_survives_exceptions", endings::exceptions),
        trial(mpi, Language::C, "semantics_of_thousands_of_threads", endings::short_lived_threads),
        trial(mpi, Language::C, "ignored_statuses_may_be_left_alone", blocking::ignored_statuses),
        trial(mpi, Language::C, "asking_changes_no_count", asking),
        trial(mpi, Language::C, "all_sections_at_once", everything),
    ]
}

/// The sections do not disturb each other: functions that only one of them calls have the same amounts.
fn everything(mpi: Mpi) -> Result<(), Failed> {
    let (all, alone) = (run(mpi, program::SEMANTICS, &[])?, section(mpi, "one-sided")?);
    for (rank, image) in all.ranks {
        let expected = alone.rank(rank)?.traffic.functions();
        let told = image.traffic.functions();
        for function in ["MPI_Put", "MPI_Get", "MPI_Accumulate", "MPI_Fetch_and_op", "MPI_Rget_accumulate"] {
            assert_eq!(told.get(function), expected.get(function), "rank {rank}, {function}");
        }
        assert_eq!(image.traffic.entries.values().map(|amounts| amounts.open).sum::<u64>(), 0, "rank {rank}");
    }
    Ok(())
}

/// Runs one section to its end.
fn section(mpi: Mpi, section: &str) -> Result<Snapshot, Failed> {
    run(mpi, program::SEMANTICS, &[section])
}

fn run(mpi: Mpi, program: Program, arguments: &[&str]) -> Result<Snapshot, Failed> {
    let mut job = Job::builder(mpi, program).args(arguments.iter().copied()).semantics().spawn()?;
    job.wait()?.success()?;
    let snapshot = job.snapshot()?;
    assert_eq!(snapshot.ranks.len(), 4);
    for (rank, image) in &snapshot.ranks {
        assert_eq!(image.traffic.untold, 0, "rank {rank}");
        expect_all_calls(*rank, image);
    }
    Ok(snapshot)
}

/// A function that has any traffic has at least one entry for each call (persistent ones: for each request made).
fn expect_all_calls(rank: u32, image: &Image) {
    let made = image.traffic.by(|key| (key.function.clone(), key.started_by.is_some()));
    for ((function, started), amounts) in made {
        let completed = image.calls(&function).completed;
        assert!(started || amounts.calls >= completed, "rank {rank}, {function}: {amounts:?}, {completed} calls");
    }
}

/// Amounts of one function by peer; of all communicators together.
fn by_peer(traffic: &Traffic, function: &str) -> BTreeMap<Peer, Amounts> {
    let mut amounts = traffic.by(|key| (key.function == function).then_some(key.peer));
    amounts.remove(&None);
    amounts.into_iter().filter_map(|(peer, amounts)| Some((peer?, amounts))).collect()
}

fn sent(calls: u64, bytes: u64) -> Amounts {
    Amounts { calls, sends: calls, sent: bytes, ..Amounts::default() }
}

/// Calls that neither send nor receive.
fn calls(calls: u64) -> Amounts {
    Amounts { calls, ..Amounts::default() }
}

fn received(messages: u64, bytes: u64, capacity: u64) -> Received {
    Received { messages, bytes, capacity }
}

fn asking(mpi: Mpi) -> Result<(), Failed> {
    let told = section(mpi, "collectives")?;
    let mut job = Job::builder(mpi, program::SEMANTICS).args(["collectives"]).truth(true).spawn()?;
    job.wait()?.success()?;
    for (rank, image) in job.snapshot()?.ranks {
        let other = told.rank(rank)?;
        assert_eq!(image.completed(), other.completed(), "rank {rank}");
        assert!(image.traffic.entries.is_empty() && image.functions.values().all(|calls| calls.asked == 0));
        assert!(other.calls("MPI_Type_size_x").asked > 0 && other.calls("MPI_Type_size_x").entered == 0);
    }
    Ok(())
}
