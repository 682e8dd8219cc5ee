//! `run --trace`, event for event, against the truth library's log of the same job, whose profile has to be as exact as without.
//!
//! Invariant TRACE-IS-TRUTH.

use std::ffi::OsString;
use std::time::Duration;

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::traced::{Order, compare};
use mpiprobe_tests::{Job, Language, Mpi, Program, program};
use mpiprobe_trace::store::TraceFiles;

use crate::check::{complete, expect_counts, functions};
use crate::traffic::expect_agreement;
use crate::trial;

/// The wrapper counts the processor's ticks, and the truth library asks the kernel for the time.
const CLOCKS_DIFFER_NS: u64 = 100_000;
/// An application asks MPI what some ten thousand calls mean, on a machine that may be busy.
const DEADLINE: Duration = Duration::from_mins(5);

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    let case = |name: &str, program: Program, arguments: &'static [&'static str]| {
        trial(mpi, Language::C, &format!("trace_of_{name}"), move || agrees(mpi, program, arguments))
    };
    // Other libraries of the standard ABI end in some sections when the truth library asks about requests.
    let scopes: &[&str] =
        if matches!(mpi, Mpi::Mpich5Abi | Mpi::IntelAbi) { &["one-sided"] } else { &program::MEANING_OF_SCOPES };
    vec![
        case("messages", program::SEMANTICS, &program::MEANING_OF_MESSAGES),
        case("scopes", program::SEMANTICS, scopes),
        case("threads", program::SEMANTICS_THREADS, &["4", "50"]),
    ]
}

/// Every call is there, in order, with its arguments.
fn agrees(mpi: Mpi, program: Program, arguments: &[&str]) -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("job.trace");
    let options: [OsString; 4] = ["--functions".into(), "all".into(), "--trace".into(), path.clone().into()];
    let job = Job::builder(mpi, program).args(arguments.iter().copied()).log().deadline(DEADLINE);
    let mut job = job.profiled(options)?.spawn()?;
    job.wait()?.success()?;
    let truth = job.snapshot()?;
    let trace = TraceFiles::open(&[&path])?;
    assert!(trace.notes().is_empty(), "{:?}", trace.notes());
    let compared = compare(&trace, &truth, &|_| true, Order::TruthInside);
    assert!(compared.differences.is_empty(), "{:#?}", compared.differences.iter().take(20).collect::<Vec<_>>());
    assert!(compared.calls > 500, "{compared:?}");
    // The wrapper's clock is another one.
    assert!(compared.clocks_differ_ns < CLOCKS_DIFFER_NS, "{compared:?}");
    expect_agreement(&job, arguments)?;
    expect_counts(&complete(&job)?, &truth, None, &functions("all")?)
}
