//! Jobs that do not end as they should: what was counted up to then is there, and nothing else is left.

use std::time::Duration;

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::truth::Snapshot;
use mpiprobe_tests::{Job, Language, Mpi, program};
use rustix::process::Signal;

use crate::trial;

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    vec![
        trial(mpi, Language::C, "counts_of_a_killed_rank_survive", kill_rank),
        trial(mpi, Language::C, "counts_survive_the_death_of_the_launcher", kill_launcher),
        trial(mpi, Language::C, "a_dropped_job_leaves_nothing_behind", drop_job),
        trial(mpi, Language::C, "a_wait_that_takes_too_long_shows_the_output", deadline),
        trial(mpi, Language::C, "ends_without_finalize", without_finalize),
        trial(mpi, Language::C, "abort_and_segfault_end_an_open_call", abort_and_segfault),
        trial(mpi, Language::C, "exec_starts_an_image_of_its_own", exec),
        trial(mpi, Language::C, "a_forked_child_is_not_counted", fork),
        trial(mpi, Language::C, "longjmp_out_of_a_call_leaves_it_open", longjmp),
        trial(mpi, Language::C, "callbacks_on_other_stacks_are_inner_calls", other_stacks),
        trial(mpi, Language::C, "longjmp_far_up_the_stack_leaves_the_call", far_jump),
        trial(mpi, Language::Cxx, "an_exception_out_of_a_call_leaves_it_open", exception),
    ]
}

/// A deadlocked job: rank 1 in MPI_Recv, rank 0 in MPI_Barrier, after 7 allreduces.
fn deadlocked(mpi: Mpi) -> Result<Job, Failed> {
    let mut job = Job::builder(mpi, program::HANG).ranks(2).args(["7"]).truth(true).spawn()?;
    job.wait_until_inside(1, "MPI_Recv")?;
    job.wait_until_inside(0, "MPI_Barrier")?;
    Ok(job)
}

fn expect_deadlock_counts(job: &Job) -> Result<(), Failed> {
    let snapshot = job.snapshot()?;
    for (rank, function) in [(0, "MPI_Barrier"), (1, "MPI_Recv")] {
        let image = snapshot.rank(rank)?;
        assert_eq!(image.calls("MPI_Allreduce").completed, 7, "rank {rank}");
        assert_eq!((image.calls(function).entered, image.calls(function).completed), (1, 0), "rank {rank}");
    }
    Ok(())
}

fn kill_rank(mpi: Mpi) -> Result<(), Failed> {
    let mut job = deadlocked(mpi)?;
    job.kill_rank(1, Signal::KILL)?;
    let finished = job.wait()?;
    assert!(!finished.status.success(), "{finished:?}");
    assert!(!job.living_ranks()?.contains(&1));
    expect_deadlock_counts(&job)
}

fn kill_launcher(mpi: Mpi) -> Result<(), Failed> {
    let mut job = deadlocked(mpi)?;
    job.kill_launcher()?;
    assert!(!job.wait()?.status.success());
    expect_deadlock_counts(&job)
}

fn drop_job(mpi: Mpi) -> Result<(), Failed> {
    let mut job = deadlocked(mpi)?;
    let mut pids: Vec<u32> = job.ranks()?.into_values().collect();
    pids.push(job.launcher_pid());
    let directory = job.directory().to_owned();
    drop(job);
    for pid in pids {
        let process = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // A rank whose launcher is gone may wait for init to take its exit status.
        assert!(process.is_empty() || process.contains(") Z "), "{process}");
    }
    assert!(!directory.exists());
    Ok(())
}

fn deadline(mpi: Mpi) -> Result<(), Failed> {
    let mut job = Job::builder(mpi, program::RING)
        .ranks(2)
        .args(["5"])
        .gates(&["3"])
        .deadline(Duration::from_millis(1))
        .spawn()?;
    let error = job.wait().err().map(|error| error.to_string()).unwrap_or_default();
    assert!(error.starts_with(&format!("ring on 2 ranks of {mpi}: waited 1ms for its end")), "{error}");
    assert!(error.contains("--- standard error"), "{error}");
    Ok(())
}

/// Runs `exits` in this mode to the launcher's end, which need not be a success.
fn exits(mpi: Mpi, mode: &str) -> Result<Job, Failed> {
    let mut job = Job::builder(mpi, program::EXITS).ranks(2).args([mode]).truth(true).spawn()?;
    job.wait()?;
    Ok(job)
}

fn without_finalize(mpi: Mpi) -> Result<(), Failed> {
    let snapshot = exits(mpi, "no-finalize")?.snapshot()?;
    let (first, _) = (snapshot.rank(0)?, snapshot.rank(1)?);
    assert_eq!((first.calls("MPI_Allreduce").completed, first.calls("MPI_Finalize").entered), (10, 0));
    Ok(())
}

fn abort_and_segfault(mpi: Mpi) -> Result<(), Failed> {
    let aborted = exits(mpi, "abort")?.snapshot()?;
    let abort = aborted.rank(1)?.calls("MPI_Abort");
    assert_eq!((abort.entered, abort.completed), (1, 0));
    for snapshot in [aborted, exits(mpi, "segfault")?.snapshot()?] {
        assert_eq!(snapshot.rank(1)?.calls("MPI_Allreduce").completed, 10);
    }
    Ok(())
}

fn exec(mpi: Mpi) -> Result<(), Failed> {
    // Which of a process's two images makes the calls.
    for (mode, first_calls) in [("exec-before", false), ("exec-after", true)] {
        let images = exits(mpi, mode)?.images()?;
        for rank in 0..2 {
            let images: Vec<_> = images.iter().filter(|image| image.rank == Some(rank)).collect();
            let [first, second] = images.as_slice() else {
                return Err(format!("{mode}, rank {rank}: {} images", images.len()).into());
            };
            assert_eq!(first.pid, second.pid, "{mode}, rank {rank}");
            let (calling, silent) = if first_calls { (first, second) } else { (second, first) };
            assert_eq!(calling.calls("MPI_Allreduce").completed, 10, "{mode}, rank {rank}");
            assert!(silent.functions.is_empty(), "{mode}, rank {rank}");
        }
    }
    Ok(())
}

fn fork(mpi: Mpi) -> Result<(), Failed> {
    let job = exits(mpi, "fork")?;
    assert_eq!(job.images()?.len(), 2);
    assert_eq!(job.snapshot()?.rank(0)?.completed().values().sum::<u64>(), 13);
    Ok(())
}

fn longjmp(mpi: Mpi) -> Result<(), Failed> {
    let snapshot = exits(mpi, "longjmp")?.snapshot()?;
    for image in snapshot.ranks.values() {
        let send = image.calls("MPI_Send");
        assert_eq!((send.entered, send.completed, send.inner), (10, 0, 0));
        let after = ["MPI_Errhandler_free", "MPI_Allreduce", "MPI_Finalize"].map(|name| image.calls(name).completed);
        assert_eq!(after, [1, 11, 1]);
    }
    Ok(())
}

/// `stacks` in this mode: what its source says of calls in callbacks.
fn stacks(mpi: Mpi, mode: &str, completed: &[(&str, u64)]) -> Result<Snapshot, Failed> {
    let mut job = Job::builder(mpi, program::STACKS).ranks(2).args([mode]).truth(true).spawn()?;
    job.wait()?.success()?;
    let snapshot = job.snapshot()?;
    for image in snapshot.ranks.values() {
        for (name, calls) in completed {
            assert_eq!((image.calls(name).completed, image.calls(name).inner), (*calls, 0), "{mode}: {name}");
        }
        for name in ["MPI_Comm_size", "MPI_Allreduce"] {
            assert_eq!((image.calls(name).entered, image.calls(name).inner), (0, 10), "{mode}: {name}");
        }
    }
    Ok(snapshot)
}

fn other_stacks(mpi: Mpi) -> Result<(), Failed> {
    let calls = [("MPI_Comm_set_attr", 10), ("MPI_Comm_delete_attr", 10), ("MPI_Barrier", 1), ("MPI_Finalize", 1)];
    ["up", "down", "signal"].into_iter().try_for_each(|mode| stacks(mpi, mode, &calls).map(drop))
}

/// The return address of the call that was left stays on the stack.
fn far_jump(mpi: Mpi) -> Result<(), Failed> {
    let calls = [("MPI_Comm_get_parent", 10), ("MPI_Errhandler_free", 1), ("MPI_Barrier", 1), ("MPI_Finalize", 1)];
    for image in stacks(mpi, "jump", &calls)?.ranks.values() {
        let send = image.calls("MPI_Send");
        assert_eq!((send.entered, send.completed, send.inner), (10, 0, 0));
    }
    Ok(())
}

fn exception(mpi: Mpi) -> Result<(), Failed> {
    let mut job = Job::builder(mpi, program::THROWS).ranks(2).args(["10"]).truth(true).spawn()?;
    assert_eq!(job.wait()?.success()?.stdout, "throws: 10 exceptions caught\n");
    for image in job.snapshot()?.ranks.values() {
        let send = image.calls("MPI_Send");
        assert_eq!((send.entered, send.completed, send.inner), (10, 0, 0));
        let after = ["MPI_Errhandler_free", "MPI_Barrier", "MPI_Finalize"].map(|name| image.calls(name).completed);
        assert_eq!(after, [1, 1, 1]);
    }
    Ok(())
}
