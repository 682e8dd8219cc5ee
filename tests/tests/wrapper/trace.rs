//! `run --trace`, event for event, against the truth library's log of the same job, whose profile has to be as exact as without.
//!
//! Invariant TRACE-IS-TRUTH.

use std::ffi::OsString;
use std::path::Path;

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::traced::{Order, has_call_that_its_process_ended_in, misses_calls_that_were_left, recorded};
use mpiprobe_tests::{Job, Language, Mpi, Program, program};
use mpiprobe_trace::store::TraceFiles;
use mpiprobe_trace::{Event, Span, Trace};

use crate::check::{complete, expect_counts, functions};
use crate::traffic::expect_agreement;
use crate::{is_debians, trial};

/// The wrapper counts the processor's ticks, and the truth library asks the kernel for the time.
const CLOCKS_DIFFER_NS: u64 = 100_000;

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    let case = |name: &str, program: Program, arguments: &'static [&'static str]| {
        trial(mpi, Language::C, &format!("trace_of_{name}"), move || agrees(mpi, program, arguments))
    };
    // Other libraries of the standard ABI end in some sections when the truth library asks about requests.
    let scopes: &[&str] =
        if matches!(mpi, Mpi::Mpich5Abi | Mpi::IntelAbi) { &["one-sided"] } else { &program::MEANING_OF_SCOPES };
    let mut tests = vec![
        case("messages", program::SEMANTICS, &program::MEANING_OF_MESSAGES),
        case("scopes", program::SEMANTICS, scopes),
        case("threads", program::SEMANTICS_THREADS, &["4", "50"]),
        trial(mpi, Language::C, "flight_of_a_job_that_fails", move || flight(mpi)),
        trial(mpi, Language::C, "trace_misses_calls_that_were_left", move || {
            misses_calls_that_were_left(mpi, "wrapper")
        }),
    ];
    // In MPICH 5, MPI_Abort returns.
    if is_debians(mpi) {
        tests.push(trial(mpi, Language::C, "trace_of_a_call_that_its_process_ended_in", move || {
            has_call_that_its_process_ended_in(mpi, "wrapper")
        }));
    }
    tests
}

/// The last calls are written down if a job fails, and only then.
///
/// Invariant FLIGHT-TAIL.
fn flight(mpi: Mpi) -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let options = |path: &Path| [OsString::from("--trace"), path.into(), "--flight".into(), "1h".into()];
    let well = directory.path().join("well.trace");
    let builder = Job::builder(mpi, program::EXITS).ranks(2).args(["finalize"]).truth(true);
    let mut job = builder.run_by("wrapper", options(&well))?.spawn()?;
    let ended = job.wait()?.success()?;
    complete(&job)?;
    assert!(
        ended.stderr.contains("of which none was written: nobody has asked, and nothing was seen to go wrong"),
        "{ended:?}"
    );
    assert!(!well.exists());

    let failed = directory.path().join("failed.trace");
    let builder = Job::builder(mpi, program::EXITS).ranks(2).args(["segfault"]).truth(true);
    let mut job = builder.run_by("wrapper", options(&failed))?.spawn()?;
    let ended = job.wait()?;
    assert!(!ended.status.success(), "{ended:?}");
    assert!(ended.stderr.contains("has ended without MPI_Finalize"), "{ended:?}");
    let trace = TraceFiles::open(&[&failed])?;
    assert!(trace.notes().is_empty(), "{:?}", trace.notes());
    for location in trace.definitions().location_ids() {
        let is_reduction =
            |event: &Event| matches!(event, Event::Call(call) if call.function().function().name == "MPI_Allreduce");
        let events = trace.events(location, Span::ALL).collect::<Result<Vec<_>, _>>()?;
        assert_eq!(events.iter().filter(|event| is_reduction(event)).count(), 10, "{events:?}");
    }
    assert_eq!(trace.definitions().locations.len(), 2);
    Ok(())
}

/// Every call is there, in order, with its arguments.
fn agrees(mpi: Mpi, program: Program, arguments: &[&str]) -> Result<(), Failed> {
    let (job, compared) = recorded(mpi, "wrapper", program, arguments, Order::TruthInside)?;
    // The wrapper's clock is another one.
    assert!(compared.clocks_differ_ns < CLOCKS_DIFFER_NS, "{compared:?}");
    expect_agreement(&job, arguments)?;
    expect_counts(&complete(&job)?, &job.snapshot()?, None, &functions("all")?)
}
