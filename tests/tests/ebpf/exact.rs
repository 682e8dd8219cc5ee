//! Every call of every rank is counted once: attached before `main`, or while the job stands at a gate in the middle.

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::{Job, Language, Mpi, Profile, Profiler, Program, program};

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
    functions: &'static str,
}

const GROUPS: Case =
    Case { name: "c_groups", program: program::GROUPS, ranks: 4, arguments: &[], middle: "1", functions: "default" };
const NESTED_IO: Case = Case { name: "c_nested_io", program: program::NESTED_IO, ranks: 2, ..GROUPS };
const RING: Case =
    Case { name: "c_ring", program: program::RING, ranks: 3, arguments: &["20"], middle: "2", functions: "default" };

const CASES: [Case; 10] = [
    GROUPS,
    Case { name: "c_groups_all_functions", functions: "all", ..GROUPS },
    NESTED_IO,
    Case { name: "c_nested_io_all_functions", functions: "all", ..NESTED_IO },
    RING,
    Case { name: "c_ring_all_functions", functions: "all", ..RING },
    Case { name: "use_mpi", program: program::RING_USE_MPI, middle: "1", ..RING },
    Case { name: "use_mpi_f08", program: program::RING_USE_MPI_F08, middle: "1", ..RING },
    Case { name: "cxx", program: program::RING_CXX, middle: "1", ..RING },
    Case { name: "mpi4py", program: program::RING_MPI4PY, middle: "1", ..RING },
];

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    let both = |case: Case| {
        let name = case.name;
        let test = move |gate: &'static str| move || count(mpi, case, gate, &[]).map(drop);
        [
            trial_with(mpi, case.program.language, &format!("{name}_attached_before_main"), test("start")),
            trial_with(mpi, case.program.language, &format!("{name}_attached_in_mid_run"), test(case.middle)),
        ]
    };
    let mut tests: Vec<Trial> = CASES.into_iter().flat_map(both).collect();
    tests.push(trial(mpi, Language::C, "nested_calls_are_timed_apart", nested));
    tests
}

/// Observes from the gate to the end and compares all counts.
fn count(mpi: Mpi, case: Case, gate: &'static str, options: &[&str]) -> Result<Profile, Failed> {
    let mut job = Job::builder(mpi, case.program)
        .ranks(case.ranks)
        .args(case.arguments.iter().copied())
        .gates(&[gate])
        .truth(true)
        .own_name()
        .spawn()?;
    job.wait_for_gate(gate)?;
    let before = job.snapshot()?;
    let target = ["--pid-of", job.called(), "--functions", case.functions];
    let profiler = Profiler::observe(target.iter().chain(options))?;
    job.open_gate(gate)?;
    job.wait()?.success()?;
    let ended = profiler.wait()?;
    let profile = complete(&ended)?;
    assert_eq!(profile.end.as_deref(), Some("targets-ended"));
    assert!(profile.ranks.iter().all(|rank| rank.state == "ended" && rank.open_calls.is_empty()), "{profile:?}");
    expect_counts(&profile, &job.snapshot()?, Some(&before), &functions(case.functions)?)?;
    Ok(profile)
}

/// Collective MPI-IO calls MPI in MPICH's library: told apart by outer and inner function, and not taken for the program's.
fn nested(mpi: Mpi) -> Result<(), Failed> {
    let profile = count(mpi, Case { functions: "all", ..NESTED_IO }, "start", &["--nested"])?;
    let inner = profile.inner_calls.as_deref().unwrap_or_default();
    let timed: u64 = inner.iter().map(|calls| calls.calls).sum();
    assert_eq!(timed, profile.ranks.iter().map(|row| row.inner_calls).sum::<u64>(), "{inner:?}");
    if mpi == Mpi::Mpich {
        assert!(inner.iter().any(|calls| calls.outer == "MPI_File_write_at_all"), "{inner:?}");
    }
    Ok(())
}
