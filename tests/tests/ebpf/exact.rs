//! Every call of every rank is counted once: attached before `main`, or while the job stands at a gate in the middle.

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::truth::Snapshot;
use mpiprobe_tests::{Ended, Job, Language, Mpi, Profile, Profiler, Program, program};

use crate::check::{complete, expect_counts, functions};
use crate::{trial, trial_with};

/// A program and where it is observed.
#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    program: Program,
    /// Few, because waiting ranks of MPICH keep their cores busy.
    ranks: u32,
    arguments: &'static [&'static str],
    /// The gate in mid-run.
    middle: &'static str,
    /// Observed from the start, and from mid-run on.
    functions: [&'static str; 2],
}

const ALL_AND_DEFAULT: [&str; 2] = ["all", "default"];
const DEFAULT_AND_ALL: [&str; 2] = ["default", "all"];

const GROUPS: Case = Case {
    name: "c_groups",
    program: program::GROUPS,
    ranks: 4,
    arguments: &[],
    middle: "1",
    functions: ALL_AND_DEFAULT,
};
// Invariant OUTERMOST.
const NESTED_IO: Case = Case { name: "c_nested_io", program: program::NESTED_IO, ranks: 2, ..GROUPS };
const RING: Case = Case {
    name: "c_ring",
    program: program::RING,
    ranks: 2,
    arguments: &["20"],
    middle: "2",
    functions: DEFAULT_AND_ALL,
};

/// The Fortran layers of both MPIs ask MPI on their own account what handles stand for, and how large communicators are.
const F08_ALL: Case = Case {
    name: "use_mpi_f08_all_functions",
    program: program::SEMANTICS_F08,
    ranks: 4,
    arguments: &[],
    middle: "2",
    functions: ["all"; 2],
};

const CASES: [Case; 9] = [
    GROUPS,
    NESTED_IO,
    RING,
    Case { name: "use_mpi", program: program::RING_USE_MPI, middle: "1", ..RING },
    Case { name: "use_mpi_f08", program: program::RING_USE_MPI_F08, middle: "1", ..RING },
    F08_ALL,
    Case { name: "fortran_questions", program: program::QUESTIONS, ranks: 2, middle: "1", ..F08_ALL },
    Case { name: "cxx", program: program::RING_CXX, middle: "1", ..RING },
    Case { name: "mpi4py", program: program::RING_MPI4PY, middle: "1", ..RING },
];

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    let both = |case: Case| {
        // Invariant PAIR-BY-FRAME.
        let name = format!("{}_attached_before_main_and_attached_in_mid_run", case.name);
        trial_with(mpi, case.program.language, &name, move || count_twice(mpi, case))
    };
    let mut tests: Vec<Trial> = CASES.into_iter().map(both).collect();
    tests.push(trial(mpi, Language::C, "nested_calls_are_timed_apart", nested));
    tests
}

/// Two observers of one job, from its start and from a gate in its middle on: neither minds the other.
/// Invariant LAYERS-OWN-CALLS.
fn count_twice(mpi: Mpi, case: Case) -> Result<(), Failed> {
    let mut job = job(mpi, case, &["start", case.middle])?;
    let mut observers = Vec::new();
    for (gate, functions) in ["start", case.middle].into_iter().zip(case.functions) {
        job.wait_for_gate(gate)?;
        let before = job.snapshot()?;
        let target = ["--pid-of", job.called(), "--functions", functions];
        observers.push((Profiler::observe(target)?, functions, before));
        job.open_gate(gate)?;
    }
    job.wait()?.success()?;
    let truth = job.snapshot()?;
    for (profiler, functions, before) in observers {
        judge(functions, &profiler.wait()?, &truth, &before)?;
    }
    Ok(())
}

fn job(mpi: Mpi, case: Case, gates: &[&str]) -> Result<Job, Failed> {
    let job = Job::builder(mpi, case.program).ranks(case.ranks).args(case.arguments.iter().copied());
    Ok(job.gates(gates).truth(true).own_name().spawn()?)
}

/// Compares all counts of what was observed to the end, from a moment with these counts on.
fn judge(selection: &str, ended: &Ended, truth: &Snapshot, before: &Snapshot) -> Result<Profile, Failed> {
    let profile = complete(ended)?;
    assert_eq!(profile.end.as_deref(), Some("targets-ended"));
    assert!(profile.ranks.iter().all(|rank| rank.state == "ended" && rank.open_calls.is_empty()), "{profile:?}");
    expect_counts(&profile, truth, Some(before), &functions(selection)?)?;
    Ok(profile)
}

/// Collective MPI-IO calls MPI in MPICH's library: told apart by outer and inner function, and not taken for the program's.
fn nested(mpi: Mpi) -> Result<(), Failed> {
    let mut job = job(mpi, NESTED_IO, &["start"])?;
    job.wait_for_gate("start")?;
    let before = job.snapshot()?;
    let profiler = Profiler::observe(["--pid-of", job.called(), "--functions", "all", "--nested"])?;
    job.open_gate("start")?;
    job.wait()?.success()?;
    let profile = judge("all", &profiler.wait()?, &job.snapshot()?, &before)?;
    let inner = profile.inner_calls.as_deref().unwrap_or_default();
    let timed: u64 = inner.iter().map(|calls| calls.calls).sum();
    assert_eq!(timed, profile.ranks.iter().map(|row| row.inner_calls).sum::<u64>(), "{inner:?}");
    if mpi == Mpi::Mpich {
        assert!(inner.iter().any(|calls| calls.outer == "MPI_File_write_at_all"), "{inner:?}");
    }
    Ok(())
}
