//! What was moved, from whom to whom, compared with what the truth library was told by MPI.
//!
//! The truth library, which comes after the wrapper, never lets MPI ignore a status; nor does the wrapper where one is ignored, but where
//! an array of them is. Then an upper bound is known only, and perhaps not from whom: sums over partners are compared.
//!
//! Invariants HANDLES-RELEASED, SAME-IS-SAME.

use std::collections::BTreeSet;
use std::time::Duration;

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::check::expect_all_completed;
use mpiprobe_tests::traffic::{
    bounded, differences, expect_within_bounds, graph_out_of_a_grid, hide, messages_over_freed_communicators,
    requests_of_chosen_functions, seen, started_by_another_launcher, told,
};
use mpiprobe_tests::{Job, Language, Mpi, Program, Requirement, program, requirement};

use crate::check::complete;
use crate::{is_debians, trial};

/// An application asks MPI what some ten thousand calls mean, on a machine that may be busy.
const DEADLINE: Duration = Duration::from_mins(5);

/// A program, and what it is started with.
#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    program: Program,
    arguments: &'static [&'static str],
}

const C: Case = Case { name: "c", program: program::SEMANTICS, arguments: &program::MEANING_OF_MESSAGES };
/// What is made by calls that have to be seen.
const SCOPES: Case = Case { name: "scopes", arguments: &program::MEANING_OF_SCOPES, ..C };
/// Libraries of the standard ABI end in some combinations of these when they are asked about requests, which the truth library does.
const STANDARD_ABI: [Case; 2] = [
    Case { name: "neighbourhoods", arguments: &["nonblocking-collectives", "neighbourhoods"], ..C },
    Case { name: "one_sided", arguments: &["one-sided"], ..C },
];
const THREADS: Case = Case { name: "threads", program: program::SEMANTICS_THREADS, arguments: &["4", "50"] };
const SESSION: Case = Case { name: "a_session", program: program::SEMANTICS_SESSION, arguments: &[] };
const F08: Case = Case { name: "use_mpi_f08", program: program::SEMANTICS_F08, arguments: &[] };
const CXX: Case = Case { name: "cxx", program: program::SEMANTICS_CXX, arguments: &[] };
const MPI4PY: Case = Case { name: "mpi4py", program: program::SEMANTICS_MPI4PY, arguments: &[] };
const HPCC: Case = Case { name: "hpcc", program: program::HPCC, arguments: &[] };

/// Of every MPI, in the languages that it has.
pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    let is_standard_abi = matches!(mpi, Mpi::Mpich5Abi | Mpi::IntelAbi);
    let mut cases = vec![C, THREADS, SESSION];
    cases.extend_from_slice(if is_standard_abi { &STANDARD_ABI } else { &[SCOPES] });
    if is_debians(mpi) {
        cases.extend([F08, CXX]);
    }
    // mpi4py's wheels are not made for it.
    if !is_standard_abi {
        cases.push(MPI4PY);
    }
    if mpi == Mpi::OpenMpi {
        cases.push(HPCC);
    }
    let mut tests: Vec<Trial> = cases.into_iter().map(|case| case_trial(mpi, case)).collect();
    tests.push(trial(mpi, Language::C, "requests_of_chosen_functions", move || {
        requests_of_chosen_functions(mpi, "wrapper")
    }));
    tests.push(trial(mpi, Language::C, "a_graph_out_of_a_grid", move || graph_out_of_a_grid(mpi, "wrapper")));
    if is_debians(mpi) {
        tests.push(trial(mpi, Language::C, "started_by_another_launcher", move || {
            started_by_another_launcher(mpi, "wrapper")
        }));
    }
    tests.push(trial(mpi, Language::C, "messages_over_freed_communicators", move || {
        messages_over_freed_communicators(mpi, "wrapper")
    }));
    tests.push(trial(mpi, Language::C, "completions_of_requests_that_are_complete_at_once", move || {
        let job = Job::builder(mpi, program::AT_ONCE).ranks(2).args(["10", "100"]);
        let mut job = job.profiled([] as [&str; 0])?.spawn()?;
        job.wait()?.success()?;
        expect_all_completed(&complete(&job)?, 10, 100)
    }));
    tests
}

fn case_trial(mpi: Mpi, case: Case) -> Trial {
    let name = format!("traffic_of_{}", case.name);
    let test = move || agrees(mpi, case);
    match case.program.language {
        Language::Installed => {
            let needs = [Requirement::Mpi(mpi), Requirement::Command(case.program.name)];
            requirement::trial(format!("{}::{name}", mpi.id()), &needs, test)
        }
        language => trial(mpi, language, &name, test),
    }
}

fn agrees(mpi: Mpi, case: Case) -> Result<(), Failed> {
    let job = Job::builder(mpi, case.program).args(case.arguments.iter().copied()).semantics().deadline(DEADLINE);
    let mut job = job.profiled([] as [&str; 0])?.spawn()?;
    job.wait()?.success()?;
    expect_agreement(&job, case.arguments)
}

/// Whatever the job's profile says was moved is what the truth library was told.
pub(crate) fn expect_agreement(job: &Job, arguments: &[&str]) -> Result<(), Failed> {
    let profile = complete(job)?;
    let ranks = job.snapshot()?.ranks;
    let functions: BTreeSet<String> =
        ranks.values().flat_map(|image| image.traffic.functions().into_keys().map(str::to_owned)).collect();
    let size = u32::try_from(ranks.len())?;
    for (rank, image) in &ranks {
        let row = profile.rank(*rank).ok_or("no such rank")?;
        let mut told = told(image, None);
        assert!(!told.is_empty(), "the section calls none of the functions compared");
        if arguments.contains(&"requests") {
            hide(&mut told, (rank + size - 1) % size)?;
        }
        // All that it posts is complete, though by calls that return errors.
        if arguments.contains(&"errors") {
            let pending: Vec<_> = row.traffic.iter().flat_map(|traffic| &traffic.pending).collect();
            assert!(pending.is_empty(), "rank {rank}: {pending:?}");
        }
        let mut seen = seen(row, &functions);
        let bounded = bounded(row);
        // Whoever wants no status is given one by the wrapper, but for arrays of them: only what several requests share is bounded.
        let is_posted = |function: &str| function.starts_with("MPI_I") || function.contains("_init");
        let unknown: Vec<_> = bounded.iter().filter(|(function, most)| **most > 0 && !is_posted(function)).collect();
        assert!(unknown.is_empty(), "rank {rank}: {unknown:?}");
        expect_within_bounds(&mut told, &mut seen, &bounded);
        assert_eq!(differences(&told, &seen), Vec::<String>::new(), "rank {rank}");
    }
    Ok(())
}
