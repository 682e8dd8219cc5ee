//! The course of events as the kernel writes it down, event for event, against the truth library's log of the same job, whose profile has to be
//! as exact as without.
//!
//! Invariant TRACE-IS-TRUTH.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::Duration;

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::check::complete;
use mpiprobe_tests::traced::{Comparison, Order, agreement, recorded};
use mpiprobe_tests::{Job, Language, Mpi, Profile, Profiler, Program, program};

use crate::trial_with;

/// An application asks MPI what some ten thousand calls mean, on a machine that may be busy.
const DEADLINE: Duration = Duration::from_mins(5);

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    let case = |name: &str, arguments: &'static [&'static str]| {
        trial_with(mpi, Language::C, &format!("trace_of_{name}"), move || agrees(mpi, program::SEMANTICS, arguments))
    };
    vec![
        case("messages", &program::MEANING_OF_MESSAGES),
        case("scopes", &program::MEANING_OF_SCOPES),
        trial_with(mpi, Language::C, "trace_of_threads_of_a_job_that_runs", move || of_threads(mpi)),
    ]
}

/// Every call is there, in order, with its arguments, in a job that is recorded by `run`.
fn agrees(mpi: Mpi, program: Program, arguments: &[&str]) -> Result<(), Failed> {
    let (job, compared) = recorded(mpi, "ebpf", program, arguments, Order::TruthOutside)?;
    let profile = job.profile()?;
    assert!(profile.complete && profile.lost().is_empty(), "{:?}", profile.incomplete_because);
    expect_sums(&compared, &profile);
    Ok(())
}

/// The same of `mpiprobe trace`, which comes before MPI is initialised.
fn of_threads(mpi: Mpi) -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("job.trace");
    let builder = Job::builder(mpi, program::SEMANTICS_THREADS).args(["4", "50"]).gates(&["start"]).log();
    let mut job = builder.own_name().deadline(DEADLINE).spawn()?;
    job.wait_for_gate("start")?;
    let options = ["trace", "--functions", "all", "--json", "--pid-of", job.called(), "-o"].map(OsString::from);
    let mut profiler = Profiler::start(options.into_iter().chain([path.clone().into()]))?;
    profiler.wait_for("mpiprobe: observing ")?;
    job.open_gate("start")?;
    job.wait()?.success()?;
    let profile = complete(&profiler.wait()?)?;
    expect_sums(&agreement(mpi, &path, &job, Order::TruthOutside)?, &profile);
    Ok(())
}

/// What the truth library has called itself was counted and recorded too: so there are as many calls of each function as the profile says. Both
/// read the same clock.
fn expect_sums(compared: &Comparison, profile: &Profile) {
    assert_eq!(compared.clocks_differ_ns, 0, "{compared:?}");
    for row in &profile.ranks {
        let of_rank = compared.by_function.iter().filter(|((rank, _), _)| Some(*rank) == row.rank);
        let recorded: BTreeMap<&str, u64> = of_rank.map(|((_, name), calls)| (*name, *calls)).collect();
        assert_eq!(recorded, row.completed(), "rank {:?}", row.rank);
    }
}
