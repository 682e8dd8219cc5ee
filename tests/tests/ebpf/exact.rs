//! Every call of every rank is counted once: attached before `main`, or while the job stands at a gate in the middle.

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::{Job, Mpi, Profiler, Program, program};

use crate::check::{complete, expect_counts, functions};
use crate::trial_with;

/// Name of the test, program, gate in mid-run, functions.
const CASES: [(&str, Program, &str, &str); 10] = [
    ("c_groups", program::GROUPS, "1", "default"),
    ("c_groups_all_functions", program::GROUPS, "1", "all"),
    ("c_ring", program::RING, "2", "default"),
    ("c_ring_all_functions", program::RING, "2", "all"),
    ("c_nested_io", program::NESTED_IO, "1", "default"),
    ("c_nested_io_all_functions", program::NESTED_IO, "1", "all"),
    ("use_mpi", program::RING_USE_MPI, "1", "default"),
    ("use_mpi_f08", program::RING_USE_MPI_F08, "1", "default"),
    ("cxx", program::RING_CXX, "1", "default"),
    ("mpi4py", program::RING_MPI4PY, "1", "default"),
];

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    let both = |(name, program, middle, selection): (&str, Program, &'static str, &'static str)| {
        let test = move |gate| move || count(mpi, program, gate, selection);
        [
            trial_with(mpi, program.language, &format!("{name}_attached_before_main"), test("start")),
            trial_with(mpi, program.language, &format!("{name}_attached_in_mid_run"), test(middle)),
        ]
    };
    CASES.into_iter().flat_map(both).collect()
}

fn count(mpi: Mpi, program: Program, gate: &'static str, selection: &str) -> Result<(), Failed> {
    let mut job = Job::builder(mpi, program).ranks(4).gates(&[gate]).truth(true).own_name().spawn()?;
    job.wait_for_gate(gate)?;
    let before = job.snapshot()?;
    let profiler = Profiler::observe(["--pid-of", job.called(), "--functions", selection])?;
    job.open_gate(gate)?;
    job.wait()?.success()?;
    let ended = profiler.wait()?;
    let profile = complete(&ended)?;
    assert_eq!(profile.end.as_deref(), Some("targets-ended"));
    assert!(profile.ranks.iter().all(|rank| rank.state == "ended" && rank.open_calls.is_empty()), "{profile:?}");
    expect_counts(&profile, &job.snapshot()?, Some(&before), &functions(selection)?)
}
