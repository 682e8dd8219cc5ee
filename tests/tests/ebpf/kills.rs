//! Whoever is killed: what was counted up to then is right, the others go on, and no probe is left.

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::{Ended, Job, KernelObjects, Language, Mpi, Profiler, changed_bytes, program, wait_until_changed};
use rustix::process::Signal;

use crate::check::{complete, expect_counts, functions};
use crate::{trial, trial_with};

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    let mut tests = vec![
        trial(mpi, Language::C, "killed_rank", kill_rank),
        trial(mpi, Language::C, "killed_launcher", kill_launcher),
        trial(mpi, Language::C, "second_interrupt_ends_at_once", interrupt_twice),
        trial(mpi, Language::C, "second_interrupt_leaves_no_breakpoint", interrupt_twice_in_the_middle),
    ];
    for way in ["session", "multi", "perf-event"] {
        // Invariant ALL-OR-NOTHING.
        let name = format!("killed_mpiprobe_attached_by_{}_harms_nobody", way.replace('-', "_"));
        tests.push(trial_with(mpi, Language::C, &name, move || kill_mpiprobe(mpi, way)));
    }
    tests
}

/// A job under observation that is deadlocked after 7 allreduces: rank 1 in MPI_Recv, rank 0 in MPI_Barrier.
fn deadlocked(mpi: Mpi) -> Result<(Job, Profiler), Failed> {
    let mut job =
        Job::builder(mpi, program::HANG).ranks(2).args(["7"]).gates(&["start"]).truth(true).own_name().spawn()?;
    job.wait_for_gate("start")?;
    // While they live: later they cannot be found.
    job.ranks()?;
    let profiler = Profiler::observe(["--pid-of", job.called()])?;
    job.open_gate("start")?;
    job.wait_until_inside(1, "MPI_Recv")?;
    job.wait_until_inside(0, "MPI_Barrier")?;
    Ok((job, profiler))
}

fn expect_deadlock(job: &Job, ended: &Ended) -> Result<(), Failed> {
    let profile = complete(ended)?;
    expect_counts(&profile, &job.snapshot()?, None, &functions("default")?)?;
    for (rank, function) in [(0, "MPI_Barrier"), (1, "MPI_Recv")] {
        let row = profile.rank(rank).ok_or("no such rank")?;
        assert_eq!(row.completed().get("MPI_Allreduce"), Some(&7), "rank {rank}");
        let [open] = row.open_calls.as_slice() else { return Err(format!("rank {rank}: {:?}", row.open_calls).into()) };
        assert_eq!((open.function.as_str(), open.ended_inside, row.state.as_str()), (function, true, "ended"));
        let listed = row.functions.iter().find(|listed| listed.name == function);
        assert_eq!(listed.map(|listed| (listed.calls, listed.open_calls)), Some((0, 1)), "rank {rank}");
    }
    Ok(())
}

fn kill_rank(mpi: Mpi) -> Result<(), Failed> {
    let (mut job, profiler) = deadlocked(mpi)?;
    job.kill_rank(1, Signal::KILL)?;
    assert!(!job.wait()?.status.success());
    expect_deadlock(&job, &profiler.wait()?)
}

fn kill_launcher(mpi: Mpi) -> Result<(), Failed> {
    let (mut job, profiler) = deadlocked(mpi)?;
    job.kill_launcher()?;
    assert!(!job.wait()?.status.success());
    // Ranks that nobody ends any more stay in their calls.
    job.kill_ranks()?;
    expect_deadlock(&job, &profiler.wait()?)
}

fn kill_mpiprobe(mpi: Mpi, way: &str) -> Result<(), Failed> {
    let mut job = Job::builder(mpi, program::VERIFY).ranks(2).truth(true).own_name().own_library().spawn()?;
    job.wait_for_calls("MPI_Allreduce", 10)?;
    let library = job.library().ok_or("no library of its own")?.to_owned();
    let functions = if way == "perf-event" { "MPI_Sendrecv,MPI_Bcast" } else { "default" };
    let profiler = Profiler::observe(["--pid-of", job.called(), "--attach", way, "--functions", functions])?;
    let objects = KernelObjects::of(profiler.pid())?;
    let pids: Vec<u32> = job.ranks()?.into_values().collect();
    for &pid in &pids {
        assert_ne!(changed_bytes(pid, &library)?, 0);
    }
    let calls = job.snapshot()?.rank(0)?.calls("MPI_Allreduce").completed;
    job.wait_for_calls("MPI_Allreduce", calls + 100)?;

    profiler.signal(Signal::KILL)?;
    profiler.wait()?;
    objects.wait_until_gone()?;
    for &pid in &pids {
        assert_eq!(changed_bytes(pid, &library)?, 0, "a probe was left in process {pid}");
    }
    let calls = job.snapshot()?.rank(0)?.calls("MPI_Allreduce").completed;
    job.wait_for_calls("MPI_Allreduce", calls + 100)?;
    job.stop()?;
    let finished = job.wait()?.success()?;
    assert!(finished.stdout.contains("all correct"), "{}", finished.stdout);
    Ok(())
}

/// The profile comes at the first Ctrl-C; detaching, which takes long with perf events, is cut short by the second.
fn interrupt_twice(mpi: Mpi) -> Result<(), Failed> {
    let mut job = Job::builder(mpi, program::VERIFY).ranks(2).truth(true).own_name().own_library().spawn()?;
    job.wait_for_calls("MPI_Allreduce", 10)?;
    let library = job.library().ok_or("no library of its own")?.to_owned();
    // Of each, and of the truth library's, detaching takes the kernel a tenth of a second: long enough for the second Ctrl-C, and
    // short enough for a test, whose kernel closes what is left when mpiprobe ends.
    let functions =
        "MPI_Allreduce,MPI_Sendrecv,MPI_Bcast,MPI_Send,MPI_Recv,MPI_Isend,MPI_Irecv,MPI_Waitall,MPI_Barrier";
    let mut profiler =
        Profiler::observe(["--pid-of", job.called(), "--attach", "perf-event", "--functions", functions])?;
    let objects = KernelObjects::of(profiler.pid())?;
    profiler.signal(Signal::INT)?;
    profiler.wait_for_output(0)?;
    let ended = profiler.interrupt()?;
    assert_eq!(ended.status.code(), Some(130), "{}", ended.printed());
    assert_eq!(ended.profile()?.end.as_deref(), Some("interrupted"));
    objects.wait_until_gone()?;
    for pid in job.ranks()?.into_values() {
        assert_eq!(changed_bytes(pid, &library)?, 0, "a probe was left in process {pid}");
    }
    job.stop()?;
    job.wait()?.success()?;
    Ok(())
}

/// Invariant DETACHED-AT-EXIT.
/// A thread of a process that ends would give up what it does to breakpoints.
fn interrupt_twice_in_the_middle(mpi: Mpi) -> Result<(), Failed> {
    const TIMES: usize = 3;
    let mut job = Job::builder(mpi, program::VERIFY).ranks(2).truth(true).own_name().own_library().spawn()?;
    job.wait_for_calls("MPI_Allreduce", 10)?;
    let library = job.library().ok_or("no library of its own")?.to_owned();
    let pids: Vec<u32> = job.ranks()?.into_values().collect();
    let first = *pids.first().ok_or("no ranks")?;
    for _ in 0..TIMES {
        let profiler = Profiler::observe(["--pid-of", job.called(), "--functions", "all"])?;
        let all = changed_bytes(first, &library)?;
        profiler.signal(Signal::INT)?;
        wait_until_changed(first, &library, "fewer", |bytes| bytes < all)?;
        let status = profiler.interrupt()?.status.code();
        // It may have been too late.
        assert!(matches!(status, Some(0 | 130)), "{status:?}");
        for &pid in &pids {
            assert_eq!(changed_bytes(pid, &library)?, 0, "a probe was left in process {pid}");
        }
    }
    job.stop()?;
    job.wait()?.success()?;
    Ok(())
}
