//! Together with another tool on MPI's profiling interface, on either side: both count what they stand before.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::tool::{OUTPUT_VARIABLE, counted, tool};
use mpiprobe_tests::{Job, JobBuilder, Language, Mpi, Profile, Profiler, Requirement, program, requirement};

use crate::check::complete;
use crate::trial;

const RANKS: u32 = 2;

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    let c = |name: &str, test: fn(Mpi) -> Result<(), Failed>| trial(mpi, Language::C, name, move || test(mpi));
    vec![
        c("stacked_before_another_tool", before),
        c("stacked_after_another_tool", after),
        c("stacked_twice_is_loaded_once", twice),
        requirement::trial(
            format!("{}::stacked_with_probes_of_the_kernel", mpi.id()),
            &[Requirement::Mpi(mpi), Requirement::Bpf],
            move || probed(mpi),
        ),
    ]
}

/// Calls of a rank, by function.
type Calls = BTreeMap<String, u64>;

fn ring(mpi: Mpi) -> JobBuilder {
    Job::builder(mpi, program::RING).ranks(RANKS).args(["20"])
}

fn calls(profile: &Profile) -> Result<Vec<Calls>, Failed> {
    let of_rank = |rank| {
        let row = profile.rank(rank).ok_or("no such rank")?;
        Ok(row.completed().into_iter().map(|(name, calls)| (name.to_owned(), calls)).collect())
    };
    (0..RANKS).map(of_rank).collect()
}

/// What the program calls, as the wrapper counts it when it is alone.
fn alone(mpi: Mpi) -> Result<Vec<Calls>, Failed> {
    let mut job = ring(mpi).profiled([] as [&str; 0])?.spawn()?;
    job.wait()?.success()?;
    calls(&complete(&job)?)
}

fn expect_tool(directory: &Path, program: &[Calls]) {
    for (rank, calls) in (0..).zip(program) {
        let of = |name: &str| calls.get(name).copied().unwrap_or(0);
        assert!(of("MPI_Allreduce") > 0 && of("MPI_Recv") > 0, "{calls:?}");
        assert_eq!(counted(directory, rank), Some((of("MPI_Allreduce"), of("MPI_Recv"))), "rank {rank}");
    }
}

/// The program's calls come here first: what the tool calls is inside them.
fn before(mpi: Mpi) -> Result<(), Failed> {
    let output = tempfile::tempdir()?;
    let job = ring(mpi).preload(tool(mpi)?).env(OUTPUT_VARIABLE, output.path());
    let mut job = job.profiled([] as [&str; 0])?.spawn()?;
    job.wait()?.success()?;
    let program = alone(mpi)?;
    assert_eq!(calls(&complete(&job)?)?, program);
    expect_tool(output.path(), &program);
    Ok(())
}

/// By hand, with the tables of a directory.
fn by_hand(mpi: Mpi, libraries: &[PathBuf], output: &Path) -> Result<Profile, Failed> {
    let libraries: Vec<String> = libraries.iter().map(|library| library.display().to_string()).collect();
    let tables = output.join("tables");
    let job = ring(mpi).preload(libraries.join(":")).env(OUTPUT_VARIABLE, output).env("MPIPROBE_OUTPUT", &tables);
    let mut job = job.spawn()?;
    job.wait()?.success()?;
    let report = ["report".as_ref(), tables.as_os_str(), "--json".as_ref()];
    Ok(Profiler::start(report)?.wait()?.profile()?)
}

/// Of the program's calls those come here that the tool makes of them.
fn after(mpi: Mpi) -> Result<(), Failed> {
    let output = tempfile::tempdir()?;
    let profile = by_hand(mpi, &[tool(mpi)?, crate::wrapper()?], output.path())?;
    let program = alone(mpi)?;
    expect_tool(output.path(), &program);
    let with_barriers = |calls: &Calls| {
        let mut calls = calls.clone();
        let allreduces = calls.get("MPI_Allreduce").copied().unwrap_or(0);
        *calls.entry("MPI_Barrier".to_owned()).or_default() += allreduces;
        calls
    };
    assert_eq!(calls(&profile)?, program.iter().map(with_barriers).collect::<Vec<_>>());
    assert!(profile.complete, "{:?}", profile.incomplete_because);
    Ok(())
}

fn twice(mpi: Mpi) -> Result<(), Failed> {
    let output = tempfile::tempdir()?;
    let profile = by_hand(mpi, &[crate::wrapper()?, crate::wrapper()?], output.path())?;
    assert_eq!(calls(&profile)?, alone(mpi)?);
    assert_eq!(profile.ranks.len(), RANKS as usize);
    Ok(())
}

/// Return probes put an address of the kernel's into the wrapper's frames; calls in callbacks are inside their calls all the same, on the
/// first thread's stack and on others.
/// Invariant LEFT-CALLS.
fn probed(mpi: Mpi) -> Result<(), Failed> {
    for (program, mode) in
        [(program::EXITS, "callback"), (program::STAYS, "lower-stack"), (program::STAYS, "higher-stack")]
    {
        let job = Job::builder(mpi, program).ranks(RANKS).args([mode]).gates(&["1"]).own_name();
        // On the stacks of this one, return probes that others arm for everybody would be the end of it.
        let mut job = job.own_library_if_possible().profiled(["--functions", "all"])?.spawn()?;
        job.wait_for_gate("1")?;
        let name = job.called().to_owned();
        let profiler =
            Profiler::observe(["--engine", "ebpf", "--returns", "on", "--functions", "all", "--pid-of", &name])?;
        job.open_gate("1")?;
        job.wait()?.success()?;
        let by_the_kernel = profiler.wait()?.profile()?;
        let by_itself = complete(&job)?;
        for rank in 0..RANKS {
            let [itself, kernel] = [&by_itself, &by_the_kernel].map(|profile| profile.rank(rank));
            let (itself, kernel) = (itself.ok_or("no such rank")?, kernel.ok_or("no such rank")?);
            // From the gate on, behind which nothing of this is called.
            for function in ["MPI_Comm_delete_attr", "MPI_Allreduce", "MPI_Reduce", "MPI_Barrier", "MPI_Finalize"] {
                let of = |calls: &BTreeMap<&str, u64>| calls.get(function).copied();
                assert_eq!(of(&itself.completed()), of(&kernel.completed()), "{mode}, rank {rank}: {function}");
            }
            assert!(itself.inner_calls > 0, "{mode}: {itself:?}");
        }
    }
    Ok(())
}
