//! `run --trace`, event for event, against the truth library's log of the same job, whose profile has to be as exact as without.
//!
//! Invariant TRACE-IS-TRUTH.

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::traced::{Order, recorded};
use mpiprobe_tests::{Language, Mpi, Program, program};

use crate::check::{complete, expect_counts, functions};
use crate::traffic::expect_agreement;
use crate::trial;

/// The wrapper counts the processor's ticks, and the truth library asks the kernel for the time.
const CLOCKS_DIFFER_NS: u64 = 100_000;

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
    let (job, compared) = recorded(mpi, "wrapper", program, arguments, Order::TruthInside)?;
    // The wrapper's clock is another one.
    assert!(compared.clocks_differ_ns < CLOCKS_DIFFER_NS, "{compared:?}");
    expect_agreement(&job, arguments)?;
    expect_counts(&complete(&job)?, &job.snapshot()?, None, &functions("all")?)
}
