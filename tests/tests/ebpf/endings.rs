//! Processes that end, or become another program, in all the ways that there are.

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::endings::{expect_execed, expect_quit, expect_survival};
use mpiprobe_tests::{Ended, Job, Language, Mpi, Profile, Profiler, program, threads::expect_threads};

use crate::check::{complete, expect_counts, expect_row, functions};
use crate::trial;

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    vec![
        trial(mpi, Language::C, "exit_without_finalize", without_finalize),
        trial(mpi, Language::C, "abort", abort),
        trial(mpi, Language::C, "segfault", segfault),
        trial(mpi, Language::C, "exit_status_of_a_rank", fails),
        trial(mpi, Language::C, "exit_status_by_exit_at_once", |mpi| quits(mpi, "quits")),
        trial(mpi, Language::C, "exit_status_by_exit_at_once_inside_a_call", |mpi| quits(mpi, "quits-inside")),
        trial(mpi, Language::C, "children_that_share_memory_end_alone", survives),
        trial(mpi, Language::C, "exec_without_finalize", exec_early),
        trial(mpi, Language::C, "exec_into_an_mpi_program", exec_before),
        trial(mpi, Language::C, "exec_of_a_process_named_by_its_pid", exec_of_pid),
        trial(mpi, Language::C, "exec_out_of_mpi", |mpi| exec_after(mpi, "exec-after", 1)),
        trial(mpi, Language::C, "exec_by_another_thread", |mpi| exec_after(mpi, "exec-thread", 2)),
        trial(mpi, Language::C, "a_forked_child_is_not_counted", fork),
        // Invariant PAIR-BY-FRAME.
        trial(mpi, Language::C, "longjmp_out_of_a_call", |mpi| longjmp(mpi, "all")),
        trial(mpi, Language::C, "exec_of_a_process_probed_alone", exec_beside_others),
        trial(mpi, Language::C, "longjmp_seen_late", |mpi| longjmp(mpi, "default")),
        // Invariant OUTERMOST.
        trial(mpi, Language::C, "calls_in_callbacks_are_inner_calls", callback),
    ]
}

/// `exits MODE` under observation from before main to its end.
fn observed(mpi: Mpi, mode: &str, selection: &str) -> Result<(Job, Ended), Failed> {
    let gates = program::gates_of_exits(mode);
    let builder = Job::builder(mpi, program::EXITS).ranks(program::ranks_of_exits(mode)).args([mode]);
    let builder = builder.gates(&[&["start"], gates].concat()).truth(true);
    let mut job = builder.own_name().spawn()?;
    job.wait_for_gate("start")?;
    let profiler = Profiler::observe(["--pid-of", job.called(), "--functions", selection])?;
    job.open_gate("start")?;
    for gate in gates {
        job.wait_for_gate(gate)?;
        job.open_gate(gate)?;
    }
    job.wait()?;
    Ok((job, profiler.wait()?))
}

fn exact(mpi: Mpi, mode: &str) -> Result<Profile, Failed> {
    let (job, ended) = observed(mpi, mode, "default")?;
    let profile = complete(&ended)?;
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
    let open = &profile.rank(1).ok_or("no rank 1")?.open_calls;
    assert!(open.iter().any(|call| call.function == "MPI_Abort" && call.ended_inside), "{open:?}");
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

fn quits(mpi: Mpi, mode: &str) -> Result<(), Failed> {
    let (job, ended) = observed(mpi, mode, "all")?;
    let profile = complete(&ended)?;
    expect_counts(&profile, &job.snapshot()?, None, &functions("all")?)?;
    expect_quit(&profile, mode == "quits-inside")
}

fn survives(mpi: Mpi) -> Result<(), Failed> {
    expect_survival(&exact(mpi, "survives")?, "ended");
    Ok(())
}

/// The second image calls nothing, and may end before anybody has looked whether it uses MPI.
fn exec_early(mpi: Mpi) -> Result<(), Failed> {
    let (job, ended) = observed(mpi, "exec-early", "all")?;
    let profile = complete(&ended)?;
    expect_execed(&profile, 1);
    let row = profile.ranks.iter().find(|row| row.state == "execed").ok_or("no rank 0")?;
    expect_row(row, job.snapshot()?.rank(0)?, None, &functions("all")?);
    Ok(())
}

/// Two images of each process, in the order of their beginning.
fn expect_images(job: &Job, profile: &Profile) -> Result<(), Failed> {
    let (wanted, images) = (functions("default")?, job.images()?);
    for rank in 0..2 {
        let images: Vec<_> = images.iter().filter(|image| image.rank == Some(rank)).collect();
        let rows: Vec<_> = profile.ranks.iter().filter(|row| row.rank == Some(rank)).collect();
        let ([first, second], [before, after]) = (images.as_slice(), rows.as_slice()) else {
            return Err(format!("rank {rank}: not two of {rows:?}").into());
        };
        assert_eq!((before.state.as_str(), after.state.as_str()), ("execed", "ended"), "rank {rank}");
        expect_row(before, first, None, &wanted);
        expect_row(after, second, None, &wanted);
    }
    Ok(())
}

/// The calls are those of the second image, which waits at the gate before its main, too.
fn exec_before(mpi: Mpi) -> Result<(), Failed> {
    let (job, ended) = observed(mpi, "exec-before", "default")?;
    expect_images(&job, &complete(&ended)?)
}

/// A process that was named by its pid stays a target whatever it executes.
fn exec_of_pid(mpi: Mpi) -> Result<(), Failed> {
    let builder = Job::builder(mpi, program::EXITS).ranks(2).args(["exec-before"]).truth(true).own_name();
    let mut job = builder.gates(&["start"]).spawn()?;
    job.wait_for_gate("start")?;
    let pids = job.ranks()?.into_values().flat_map(|pid| ["--pid".to_owned(), pid.to_string()]);
    let profiler = Profiler::observe(pids)?;
    job.open_gate("start")?;
    job.wait()?.success()?;
    expect_images(&job, &complete(&profiler.wait()?)?)
}

/// The same where others use the library, so that each process named has probes of its own.
fn exec_beside_others(mpi: Mpi) -> Result<(), Failed> {
    let mut bystander = Job::builder(mpi, program::EXITS).ranks(1).gates(&["1"]).spawn()?;
    bystander.wait_for_gate("1")?;
    exec_of_pid(mpi)?;
    bystander.open_gate("1")?;
    bystander.wait()?.success()?;
    Ok(())
}

/// The calls are those of the first image. The second calls nothing, and may end before anybody has looked whether it uses MPI.
fn exec_after(mpi: Mpi, mode: &str, threads: u64) -> Result<(), Failed> {
    let (job, ended) = observed(mpi, mode, "all")?;
    let profile = complete(&ended)?;
    expect_execed(&profile, 2);
    let (execed, later): (Vec<_>, Vec<_>) = profile.ranks.iter().partition(|row| row.state == "execed");
    assert_eq!(execed.len(), 2, "{profile:?}");
    for row in execed {
        let truth = job.snapshot()?;
        let image = truth.rank(row.rank.ok_or("no rank")?)?;
        expect_row(row, image, None, &functions("all")?);
        expect_threads(row, image);
        assert_eq!(row.threads_in_mpi, threads, "{row:?}");
    }
    assert!(later.iter().all(|row| row.calls == 0 && row.state == "ended"), "{later:?}");
    Ok(())
}

fn fork(mpi: Mpi) -> Result<(), Failed> {
    exact(mpi, "fork").map(drop)
}

/// That a call was left shows at the next probed call from the same or an outer frame. With all functions that is the one after
/// the last send; without, it is in a frame of another function, below the one that was left.
fn longjmp(mpi: Mpi, selection: &str) -> Result<(), Failed> {
    let (job, ended) = observed(mpi, "longjmp", selection)?;
    let profile = ended.profile()?;
    expect_counts(&profile, &job.snapshot()?, None, &functions(selection)?)?;
    // Each of the ten sends on each of two ranks was left.
    assert_eq!(profile.lost().into_iter().collect::<Vec<_>>(), [("entries_without_return", 20)]);
    assert!(profile.incomplete_because.concat().contains("left without a return"), "{}", ended.printed());
    assert_eq!(ended.status.code(), Some(3), "{}", ended.printed());
    Ok(())
}

fn callback(mpi: Mpi) -> Result<(), Failed> {
    let (job, ended) = observed(mpi, "callback", "all")?;
    let profile = complete(&ended)?;
    let truth = job.snapshot()?;
    expect_counts(&profile, &truth, None, &functions("all")?)?;
    for (rank, image) in truth.ranks {
        assert_eq!(image.calls("MPI_Comm_size").inner, 1, "rank {rank}");
        assert!(profile.rank(rank).is_some_and(|row| row.inner_calls >= 1), "{profile:?}");
    }
    Ok(())
}
