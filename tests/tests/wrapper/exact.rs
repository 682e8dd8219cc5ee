//! Every call of every rank is counted once.

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::truth::Image;
use mpiprobe_tests::{Job, JobBuilder, Language, Mpi, Program, program};

use crate::check::{complete, expect_counts, expect_row, functions};
use crate::{is_debians, trial};

/// A program, and which functions are counted.
#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    program: Program,
    /// Few, because waiting ranks of MPICH keep their cores busy.
    ranks: u32,
    arguments: &'static [&'static str],
    functions: &'static str,
}

const GROUPS: Case =
    Case { name: "c_groups", program: program::GROUPS, ranks: 4, arguments: &[], functions: "default" };
const NESTED_IO: Case = Case { name: "c_nested_io", program: program::NESTED_IO, ranks: 2, ..GROUPS };
const RING: Case = Case { name: "c_ring", program: program::RING, ranks: 3, arguments: &["20"], functions: "default" };

const CASES: [Case; 8] = [
    GROUPS,
    Case { name: "c_groups_all_functions", functions: "all", ..GROUPS },
    NESTED_IO,
    Case { name: "c_nested_io_all_functions", functions: "all", ..NESTED_IO },
    RING,
    Case { name: "c_ring_some_functions", functions: "p2p,-Isend,Comm_rank", ..RING },
    Case { name: "c_large_counts", program: program::SEMANTICS, arguments: &["large"], ..GROUPS },
    Case { name: "c_sessions", program: program::SEMANTICS_SESSION, ..GROUPS },
];

/// Only Debian's MPIs have other languages.
const LANGUAGES: [Case; 3] = [
    Case { name: "use_mpi", program: program::RING_USE_MPI, ..RING },
    Case { name: "use_mpi_f08", program: program::RING_USE_MPI_F08, ..RING },
    Case { name: "cxx", program: program::RING_CXX, ..RING },
];

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    let test = |case: Case| trial(mpi, case.program.language, case.name, move || count(mpi, case));
    let languages = LANGUAGES.into_iter().filter(|_| is_debians(mpi));
    let mut trials: Vec<Trial> = CASES.into_iter().filter(|case| runs(mpi, *case)).chain(languages).map(test).collect();
    if is_debians(mpi) {
        trials.push(trial(mpi, Language::Fortran, "fortran_questions", move || questions(mpi)));
    }
    if mpi == Mpi::OpenMpi {
        trials.push(trial(mpi, Language::Cxx, "calls_before_main", move || before_main(mpi)));
    }
    trials
}

/// Intel's library of the standard ABI does not know the standard's `MPI_ERRORS_RETURN`, wrapped or not.
fn runs(mpi: Mpi, case: Case) -> bool {
    mpi != Mpi::IntelAbi || case.program != program::GROUPS
}

/// Invariant ONLY-CHOSEN.
fn count(mpi: Mpi, case: Case) -> Result<(), Failed> {
    let mut job = Job::builder(mpi, case.program)
        .ranks(case.ranks)
        .args(case.arguments.iter().copied())
        .truth(true)
        .profiled(["--functions", case.functions])?
        .spawn()?;
    job.wait()?.success()?;
    let profile = complete(&job)?;
    assert_eq!(profile.end.as_deref(), Some("targets-ended"));
    assert!(profile.ranks.iter().all(|rank| rank.state == "ended" && rank.open_calls.is_empty()), "{profile:?}");
    expect_counts(&profile, &job.snapshot()?, None, &functions(case.functions)?)
}

/// What a Fortran library asks to answer a question is not the program's. With the truth library in the same run, that would be who asks.
/// Invariant LAYERS-OWN-CALLS.
fn questions(mpi: Mpi) -> Result<(), Failed> {
    count_apart(|| Job::builder(mpi, program::QUESTIONS).ranks(2))
}

/// The same job twice: with the truth library, and with the wrapper.
pub(crate) fn count_apart(job: impl Fn() -> JobBuilder) -> Result<(), Failed> {
    let mut told = job().truth(true).spawn()?;
    told.wait()?.success()?;
    let mut counted = job().profiled(["--functions", "all"])?.spawn()?;
    counted.wait()?.success()?;
    let (profile, truth) = (complete(&counted)?, told.snapshot()?);
    assert_eq!(profile.ranks.len(), truth.ranks.len());
    for (rank, image) in truth.ranks {
        let row = profile.rank(rank).ok_or("no such rank")?;
        expect_row(row, &Image { pid: row.pid, ..image }, None, &functions("all")?);
    }
    Ok(())
}

/// Two static objects of the C++ bindings ask whether MPI is initialised: before the wrapper, which is loaded later, is told to start.
fn before_main(mpi: Mpi) -> Result<(), Failed> {
    let mut job = Job::builder(mpi, program::RING_CXX).ranks(2).profiled(["--functions", "all"])?.spawn()?;
    job.wait()?.success()?;
    for row in &complete(&job)?.ranks {
        assert_eq!(row.completed().get("MPI_Initialized"), Some(&2), "rank {:?}", row.rank);
    }
    Ok(())
}
