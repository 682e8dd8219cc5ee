//! The same ring in every language: each call counts once, under its C name, through however many layers it goes.

use std::collections::BTreeMap;

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::{Job, Language, Mpi, Program, program};

use crate::trial;

const ITERATIONS: u64 = 20;

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    vec![
        trial(mpi, Language::C, "c_calls_are_counted_exactly", c),
        trial(mpi, Language::Fortran, "use_mpi_calls_are_counted_exactly", use_mpi),
        trial(mpi, Language::Fortran, "use_mpi_f08_calls_are_counted_exactly", use_mpi_f08),
        trial(mpi, Language::Cxx, "cxx_calls_are_counted_exactly", cxx),
        trial(mpi, Language::Python, "mpi4py_calls_are_counted_exactly", mpi4py),
    ]
}

/// What all rings call, by their sources.
fn ring() -> BTreeMap<&'static str, u64> {
    let per_iteration = ["Send", "Recv", "Isend", "Irecv", "Waitall", "Sendrecv", "Allreduce"];
    let once = ["Init", "Comm_rank", "Comm_size", "Bcast", "Finalize"];
    let mut counts = BTreeMap::from([("Barrier", ITERATIONS / 10)]);
    counts.extend(per_iteration.map(|name| (name, ITERATIONS)));
    counts.extend(once.map(|name| (name, 1)));
    counts
}

/// Runs the program; returns for each of the ranks what it completed.
fn run(mpi: Mpi, program: Program) -> Result<Vec<BTreeMap<String, u64>>, Failed> {
    let mut job = Job::builder(mpi, program).ranks(4).args([ITERATIONS.to_string()]).truth(true).spawn()?;
    let finished = job.wait()?.success()?;
    assert_eq!(finished.stdout, format!("{}: 4 ranks, 20 iterations, all messages correct\n", program.name));
    let snapshot = job.snapshot()?;
    assert_eq!(snapshot.ranks.keys().copied().collect::<Vec<_>>(), [0, 1, 2, 3]);
    let without_prefix = |(name, calls): (&str, u64)| (name.trim_start_matches("MPI_").to_owned(), calls);
    Ok(snapshot.ranks.values().map(|image| image.completed().into_iter().map(without_prefix).collect()).collect())
}

fn expect_exactly(mpi: Mpi, program: Program, more: &[(&'static str, u64)]) -> Result<(), Failed> {
    let mut expected = ring();
    expected.extend(more.iter().copied());
    let expected: BTreeMap<String, u64> = expected.into_iter().map(|(name, calls)| (name.to_owned(), calls)).collect();
    for (rank, counts) in run(mpi, program)?.into_iter().enumerate() {
        assert_eq!(counts, expected, "rank {rank}");
    }
    Ok(())
}

fn c(mpi: Mpi) -> Result<(), Failed> {
    expect_exactly(mpi, program::RING, &[])
}

fn use_mpi(mpi: Mpi) -> Result<(), Failed> {
    expect_exactly(mpi, program::RING_USE_MPI, &[("Comm_set_name", 1)])
}

fn use_mpi_f08(mpi: Mpi) -> Result<(), Failed> {
    expect_exactly(mpi, program::RING_USE_MPI_F08, &[("Comm_set_name", 1)])
}

fn cxx(mpi: Mpi) -> Result<(), Failed> {
    expect_exactly(mpi, program::RING_CXX, &[])
}

/// mpi4py adds calls of its own, and may call the functions with large counts: only communication is compared, under one name.
fn mpi4py(mpi: Mpi) -> Result<(), Failed> {
    let mut expected = ring();
    for own in ["Init", "Comm_rank", "Comm_size"] {
        expected.remove(own);
    }
    for (rank, counts) in run(mpi, program::RING_MPI4PY)?.into_iter().enumerate() {
        for (name, calls) in &expected {
            let of = |name: &str| counts.get(name).copied().unwrap_or(0);
            assert_eq!(of(name) + of(&format!("{name}_c")), *calls, "rank {rank}, {name} in {counts:?}");
        }
    }
    Ok(())
}
