//! Processes that end, or become another program, in all the ways that there are: what was counted up to then is right.

use std::{collections::BTreeSet, fs, os::unix::process::ExitStatusExt as _, process::ExitStatus};

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::endings::{expect_execed, expect_quit, expect_survival};
use mpiprobe_tests::open_calls::{circle, expect_waiting_at_end, kill_in_circle};
use mpiprobe_tests::threads::expect_threads;
use mpiprobe_tests::{Job, Language, Mpi, Profile, Profiler, program};
use rustix::process::{Pid, Signal, kill_process};

use crate::check::{complete, expect_counts, expect_row, functions};
use crate::trial;

/// How often a launcher is asked what it makes of the end of its ranks.
const TRIES: usize = 8;

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    let c = |name: &str, test: fn(Mpi) -> Result<(), Failed>| trial(mpi, Language::C, name, move || test(mpi));
    vec![
        c("exit_without_finalize", without_finalize),
        c("abort", abort),
        c("segfault", segfault),
        c("exit_status_of_a_rank", fails),
        c("exit_status_by_exit_at_once", |mpi| quits(mpi, "quits")),
        c("exit_status_by_exit_at_once_inside_a_call", |mpi| quits(mpi, "quits-inside")),
        c("children_that_share_memory_end_alone", survives),
        c("exec_into_an_mpi_program", exec_before),
        c("exec_out_of_mpi", |mpi| exec_after(mpi, "exec-after", 1)),
        c("exec_by_another_thread", |mpi| exec_after(mpi, "exec-thread", 2)),
        c("exec_without_finalize", exec_early),
        c("a_forked_child_is_not_counted", |mpi| exact(mpi, "fork").map(drop)),
        c("longjmp_out_of_a_call", longjmp),
        c("calls_in_callbacks_are_inner_calls", callback),
        c("killed_rank", kill_rank),
        c("killed_launcher", kill_launcher),
        c("a_killed_job_says_what_it_waited_for", killed_in_circle),
        c("signals_reach_the_job", interrupt),
        c("the_exit_status_is_the_jobs", exit_status),
    ]
}

/// `exits MODE` to its end.
fn ended(mpi: Mpi, mode: &str, selection: &str) -> Result<Job, Failed> {
    ended_with_looks(mpi, mode, selection, &[]).map(|(job, _)| job)
}

/// The same, and what the tables say when all ranks are at these of its gates.
fn ended_with_looks(mpi: Mpi, mode: &str, selection: &str, looks: &[&str]) -> Result<(Job, Vec<Profile>), Failed> {
    let folder = tempfile::tempdir()?;
    let tables = folder.path().join("tables").to_str().ok_or("no text")?.to_owned();
    let gates = program::gates_of_exits(mode);
    let ranks = program::ranks_of_exits(mode);
    let job = Job::builder(mpi, program::EXITS).ranks(ranks).args([mode]).gates(gates).truth(true);
    let mut options = vec!["--functions", selection];
    if !looks.is_empty() {
        options.extend(["--output", &tables]);
    }
    let mut job = job.profiled(options)?.spawn()?;
    let mut profiles = Vec::new();
    for gate in gates {
        job.wait_for_gate(gate)?;
        // Otherwise a rank may have ended before anybody has looked, and it is not known with what.
        if ["segfault", "fails", "quits", "quits-inside"].contains(&mode) {
            job.wait_until_watched()?;
        }
        if looks.contains(gate) {
            profiles.push(Profiler::start(["report", &tables, "--json"])?.wait()?.profile()?);
        }
        job.open_gate(gate)?;
    }
    job.wait()?;
    Ok((job, profiles))
}

fn exact(mpi: Mpi, mode: &str) -> Result<Profile, Failed> {
    let job = ended(mpi, mode, "default")?;
    let profile = complete(&job)?;
    expect_counts(&profile, &job.snapshot()?, None, &functions("default")?)?;
    Ok(profile)
}

fn without_finalize(mpi: Mpi) -> Result<(), Failed> {
    let profile = exact(mpi, "no-finalize")?;
    // What the library does on its own when the process exits is none of the program's calls.
    assert!(profile.ranks.iter().all(|row| !row.completed().contains_key("MPI_Finalize")), "{profile:?}");
    Ok(())
}

fn abort(mpi: Mpi) -> Result<(), Failed> {
    let profile = exact(mpi, "abort")?;
    let dead = profile.rank(1).ok_or("no rank 1")?;
    // In MPICH 5 it returns, and the process is ended a little later.
    let has_returned = dead.completed().contains_key("MPI_Abort");
    let is_open = dead.open_calls.iter().any(|call| call.function == "MPI_Abort" && call.ended_inside);
    assert!(is_open != has_returned, "{dead:?}");
    Ok(())
}

fn segfault(mpi: Mpi) -> Result<(), Failed> {
    let profile = exact(mpi, "segfault")?;
    let dead = profile.rank(1).ok_or("no rank 1")?;
    assert_eq!((dead.completed().get("MPI_Allreduce"), dead.open_calls.len()), (Some(&10), 0));
    dead.expect_failure("signal", 11);
    Ok(())
}

fn fails(mpi: Mpi) -> Result<(), Failed> {
    let profile = exact(mpi, "fails")?;
    let failed = profile.rank(1).ok_or("no rank 1")?;
    assert_eq!(failed.completed().get("MPI_Finalize"), Some(&1), "{failed:?}");
    failed.expect_failure("exit_status", 3);
    Ok(())
}

/// Invariant OWN-END.
fn quits(mpi: Mpi, mode: &str) -> Result<(), Failed> {
    let job = ended(mpi, mode, "all")?;
    let profile = complete(&job)?;
    expect_counts(&profile, &job.snapshot()?, None, &functions("all")?)?;
    expect_quit(&profile, mode == "quits-inside")
}

/// What children write into memory that they share with the rank would be seen as long as it lives: later it says itself how it has ended.
fn survives(mpi: Mpi) -> Result<(), Failed> {
    let (job, looks) = ended_with_looks(mpi, "survives", "default", &["3"])?;
    let profile = complete(&job)?;
    expect_counts(&profile, &job.snapshot()?, None, &functions("default")?)?;
    expect_survival(looks.first().ok_or("no look")?, "running");
    expect_survival(&profile, "ended");
    Ok(())
}

fn exec_early(mpi: Mpi) -> Result<(), Failed> {
    let job = ended(mpi, "exec-early", "all")?;
    let profile = complete(&job)?;
    expect_execed(&profile, 1);
    expect_row(profile.rank(0).ok_or("no rank 0")?, job.snapshot()?.rank(0)?, None, &functions("all")?);
    Ok(())
}

/// The program that executes the other one calls nothing, so there is nothing to be told of it.
fn exec_before(mpi: Mpi) -> Result<(), Failed> {
    let job = ended(mpi, "exec-before", "default")?;
    let (profile, wanted, images) = (complete(&job)?, functions("default")?, job.images()?);
    for rank in 0..2 {
        let after = images.iter().rfind(|image| image.rank == Some(rank)).ok_or("no image")?;
        expect_row(profile.rank(rank).ok_or("not one row")?, after, None, &wanted);
    }
    Ok(())
}

/// The calls are those of the first image, whose time ends with it. The second calls nothing.
fn exec_after(mpi: Mpi, mode: &str, threads: u64) -> Result<(), Failed> {
    let (job, looks) = ended_with_looks(mpi, mode, "all", &["4"])?;
    let profile = complete(&job)?;
    assert_eq!(profile.ranks.len(), 2, "{profile:?}");
    expect_execed(&profile, 2);
    let while_the_second_runs = looks.first().ok_or("no look")?;
    expect_execed(while_the_second_runs, 2);
    let walls = |profile: &Profile| profile.ranks.iter().map(|row| (row.pid, row.wall_ns)).collect::<BTreeSet<_>>();
    assert_eq!(walls(while_the_second_runs), walls(&profile));
    let truth = job.snapshot()?;
    for row in &profile.ranks {
        let image = truth.rank(row.rank.ok_or("no rank")?)?;
        expect_row(row, image, None, &functions("all")?);
        expect_threads(row, image);
        assert_eq!(row.threads_in_mpi, threads, "{row:?}");
    }
    Ok(())
}

fn longjmp(mpi: Mpi) -> Result<(), Failed> {
    let job = ended(mpi, "longjmp", "all")?;
    let profile = job.profile()?;
    expect_counts(&profile, &job.snapshot()?, None, &functions("all")?)?;
    // Each of the ten sends on each of two ranks was left.
    assert_eq!(profile.lost().into_iter().collect::<Vec<_>>(), [("entries_without_return", 20)]);
    assert!(!profile.complete && profile.incomplete_because.concat().contains("left without a return"), "{profile:?}");
    Ok(())
}

fn callback(mpi: Mpi) -> Result<(), Failed> {
    let job = ended(mpi, "callback", "all")?;
    let profile = complete(&job)?;
    let truth = job.snapshot()?;
    expect_counts(&profile, &truth, None, &functions("all")?)?;
    for (rank, image) in truth.ranks {
        assert_eq!(image.calls("MPI_Comm_size").inner, 1, "rank {rank}");
        assert!(profile.rank(rank).is_some_and(|row| row.inner_calls >= 1), "{profile:?}");
    }
    Ok(())
}

/// A job that is deadlocked after 7 allreduces: rank 1 in MPI_Recv, rank 0 in MPI_Barrier.
fn deadlocked(mpi: Mpi) -> Result<Job, Failed> {
    let job = Job::builder(mpi, program::HANG).ranks(2).args(["7"]).truth(true);
    let mut job = job.profiled([] as [&str; 0])?.spawn()?;
    // While they live: later they cannot be found.
    job.ranks()?;
    job.wait_until_inside(1, "MPI_Recv")?;
    job.wait_until_inside(0, "MPI_Barrier")?;
    Ok(job)
}

fn expect_deadlock(job: &Job) -> Result<(), Failed> {
    let profile = complete(job)?;
    expect_counts(&profile, &job.snapshot()?, None, &functions("default")?)?;
    for (rank, function) in [(0, "MPI_Barrier"), (1, "MPI_Recv")] {
        let row = profile.rank(rank).ok_or("no such rank")?;
        assert_eq!(row.completed().get("MPI_Allreduce"), Some(&7), "rank {rank}");
        let [open] = row.open_calls.as_slice() else { return Err(format!("rank {rank}: {:?}", row.open_calls).into()) };
        assert_eq!(open.function, function);
        let listed = row.functions.iter().find(|listed| listed.name == function);
        assert_eq!(listed.map(|listed| (listed.calls, listed.open_calls)), Some((0, 1)), "rank {rank}");
    }
    Ok(())
}

fn kill_rank(mpi: Mpi) -> Result<(), Failed> {
    let mut job = deadlocked(mpi)?;
    job.kill_rank(1, Signal::KILL)?;
    assert!(!job.wait()?.status.success());
    expect_deadlock(&job)
}

/// The job's own launcher, which is a child of mpiprobe.
fn launcher(job: &Job) -> Result<Pid, Failed> {
    let mpiprobe = job.launcher_pid();
    let children = fs::read_to_string(format!("/proc/{mpiprobe}/task/{mpiprobe}/children"))?;
    let pid = children.split_whitespace().next().and_then(|pid| Pid::from_raw(pid.parse().ok()?));
    Ok(pid.ok_or("no launcher")?)
}

fn kill_launcher(mpi: Mpi) -> Result<(), Failed> {
    let mut job = deadlocked(mpi)?;
    kill_process(launcher(&job)?, Signal::KILL)?;
    // As a shell has it: 128 and the number of the signal.
    assert_eq!(job.wait()?.status.code(), Some(128 + 9));
    // Ranks that nobody ends any more stay in their calls.
    job.kill_ranks()?;
    expect_deadlock(&job)
}

/// Whoever ends mpiprobe means the job.
fn interrupt(mpi: Mpi) -> Result<(), Failed> {
    let mut job = deadlocked(mpi)?;
    job.signal_launcher(Signal::TERM)?;
    // Which status that ends with is the launcher's affair: MPICH's says 0 as often as 15.
    job.wait()?;
    assert!(job.living_ranks()?.is_empty(), "ranks outlive the signal");
    expect_deadlock(&job)
}

fn exit_status(mpi: Mpi) -> Result<(), Failed> {
    let run = |arguments: &[&str]| -> Result<_, Failed> {
        let job = Job::builder(mpi, program::EXITS)
            .ranks(1)
            .args(arguments.iter().copied())
            .profiled(["--functions", "all"])?;
        Ok(job.spawn()?.wait()?.status.code())
    };
    assert_eq!(run(&["finalize"])?, Some(0));
    let aborted = || Job::builder(mpi, program::EXITS).ranks(2).args(["abort"]);
    // Whatever launchers make of it. Intel's gives the rank's status, or is ended by SIGPIPE itself: both happen, with mpiprobe and without.
    let as_a_shell_says = |status: ExitStatus| status.code().or_else(|| Some(128 + status.signal()?));
    let (mut under, mut direct) = (BTreeSet::new(), BTreeSet::new());
    for _ in 0..TRIES {
        under.insert(as_a_shell_says(aborted().profiled([] as [&str; 0])?.spawn()?.wait()?.status));
        direct.insert(as_a_shell_says(aborted().spawn()?.wait()?.status));
        if !under.is_disjoint(&direct) {
            return Ok(());
        }
    }
    Err(format!("with mpiprobe {under:?}, without {direct:?}").into())
}

fn killed_in_circle(mpi: Mpi) -> Result<(), Failed> {
    let mut job = circle(mpi, false).profiled([] as [&str; 0])?.spawn()?;
    job.wait_for_gate("1")?;
    kill_in_circle(&mut job)?;
    expect_waiting_at_end(&job.profile()?, true)
}
