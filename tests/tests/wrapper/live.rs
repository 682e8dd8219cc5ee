//! Jobs that count themselves, looked at while they run: without privilege, in all places where tables can be.

use std::fs;

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::open_calls::{circle, expect_circle, expect_names, named_datatype};
use mpiprobe_tests::phases::{barriers, expect_phases};
use mpiprobe_tests::profiler::Copy;
use mpiprobe_tests::{Ended, Job, Language, Mpi, Profile, Profiler, Requirement, program, requirement};
use rustix::process::Signal;

use crate::check::{expect_counts, functions};
use crate::{is_debians, trial};

/// Whoever owns nothing (`nobody`).
const USER: u32 = 65534;

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    if !is_debians(mpi) {
        return Vec::new();
    }
    let c = |name: &str, test: fn(Mpi) -> Result<(), Failed>| trial(mpi, Language::C, name, move || test(mpi));
    let needs = [Requirement::Root, Requirement::Mpi(mpi)];
    let unprivileged = requirement::trial(format!("{}::live_without_rights", mpi.id()), &needs, move || user(mpi));
    vec![
        c("live_counts_are_those_since_the_start", counts),
        c("live_tables_show_what_ranks_wait_in", tables),
        c("live_ranks_are_killed", kill),
        c("live_by_hand_in_the_users_own_place", by_hand),
        c("live_waits_for_a_job", wait),
        c("live_tables_when_the_program_asks", asked_for),
        c("live_says_who_runs_without_the_wrapper", mixed),
        c("live_shows_the_circle_of_a_deadlock", |mpi| look(mpi, false)),
        c("live_shows_a_circle_of_exchanges", |mpi| look(mpi, true)),
        c("live_datatypes_of_open_calls_have_their_names", |mpi| {
            expect_names(named_datatype(mpi).profiled([] as [&str; 0])?.spawn()?)
        }),
        unprivileged,
    ]
}

/// A job that is deadlocked after 7 allreduces: rank 1 in MPI_Recv, rank 0 in MPI_Barrier.
fn deadlocked(mut job: Job) -> Result<Job, Failed> {
    job.ranks()?;
    job.wait_until_inside(1, "MPI_Recv")?;
    job.wait_until_inside(0, "MPI_Barrier")?;
    Ok(job)
}

fn hang(mpi: Mpi) -> Result<Job, Failed> {
    let job = Job::builder(mpi, program::HANG).ranks(2).args(["7"]).truth(true).own_name();
    deadlocked(job.profiled([] as [&str; 0])?.spawn()?)
}

fn expect_deadlock(profile: &Profile, job: &Job) -> Result<(), Failed> {
    assert_eq!(profile.engine.attached_by, "LD_PRELOAD");
    assert!(profile.complete, "{:?}", profile.incomplete_because);
    expect_counts(profile, &job.snapshot()?, None, &functions("default")?)?;
    for (rank, function) in [(0, "MPI_Barrier"), (1, "MPI_Recv")] {
        let row = profile.rank(rank).ok_or("no such rank")?;
        assert_eq!(row.completed().get("MPI_Allreduce"), Some(&7), "rank {rank}");
        let [open] = row.open_calls.as_slice() else { return Err(format!("rank {rank}: {:?}", row.open_calls).into()) };
        assert_eq!(open.function, function);
        assert!(open.site.as_deref().is_some_and(|site| site.starts_with("hang.c:")), "{open:?}");
    }
    Ok(())
}

fn look(mpi: Mpi, exchanges: bool) -> Result<(), Failed> {
    expect_circle(circle(mpi, exchanges).profiled([] as [&str; 0])?.spawn()?, exchanges)
}

fn counts(mpi: Mpi) -> Result<(), Failed> {
    let job = hang(mpi)?;
    let ended = Profiler::observe(["--pid-of", job.called()])?.interrupt()?;
    let profile = ended.profile()?;
    assert_eq!((ended.status.code(), profile.end.as_deref()), (Some(0), Some("interrupted")), "{}", ended.printed());
    assert!(profile.ranks.iter().all(|rank| rank.state == "running"), "{profile:?}");
    expect_deadlock(&profile, &job)
}

fn tables(mpi: Mpi) -> Result<(), Failed> {
    let job = hang(mpi)?;
    let arguments = ["--plain", "--once", "--interval", "100ms", "--filter", "rank = 1", "--pid-of", job.called()];
    let ended = Profiler::start(arguments)?.wait()?;
    let text = ended.stdout.join("\n");
    assert_eq!(ended.status.code(), Some(0), "{}", ended.printed());
    assert!(text.contains("engine wrapper") && text.contains("in MPI_Recv from 0 tag 99 "), "{text}");
    assert!(!text.contains("in MPI_Barrier "), "{text}");
    Ok(())
}

/// The observation ends with its job, whose directory is gone by then.
fn kill(mpi: Mpi) -> Result<(), Failed> {
    let mut job = hang(mpi)?;
    let profiler = Profiler::observe(["--pid-of", job.called()])?;
    job.kill_rank(1, Signal::KILL)?;
    job.wait()?;
    let ended = profiler.wait()?;
    let profile = ended.profile()?;
    assert_eq!(profile.end.as_deref(), Some("targets-ended"), "{}", ended.printed());
    assert!(profile.ranks.iter().all(|rank| rank.state == "ended"), "{profile:?}");
    expect_deadlock(&profile, &job)
}

fn by_hand(mpi: Mpi) -> Result<(), Failed> {
    // What the user sets himself for MPICH goes to ranks as it is; Open MPI's launcher has to be told.
    let place = tempfile::tempdir()?;
    let job = Job::builder(mpi, program::HANG).ranks(2).args(["7"]).truth(true).own_name();
    let job = job.env("XDG_RUNTIME_DIR", place.path()).preload(crate::wrapper()?);
    let job = deadlocked(job.spawn()?)?;
    assert_eq!(fs::read_dir(place.path().join("mpiprobe"))?.count(), 2);
    let ended = Profiler::observe(["--engine", "wrapper", "--pid-of", job.called()])?.interrupt()?;
    expect_deadlock(&ended.profile()?, &job)
}

fn wait(mpi: Mpi) -> Result<(), Failed> {
    let job = Job::builder(mpi, program::RING).ranks(2).args(["20"]).truth(true).own_name();
    let name = job.name().to_owned();
    let arguments = ["--json", "--interval", "1h", "--engine", "wrapper", "--pid-of", name.as_str()];
    let mut profiler = Profiler::waiting(arguments)?;
    // Held until it is seen: what is over within a tenth of a second can be missed.
    let mut job = job.gates(&["1"]).profiled([] as [&str; 0])?.spawn()?;
    job.wait_for_gate("1")?;
    profiler.wait_for_processes(2)?;
    job.open_gate("1")?;
    job.wait()?.success()?;
    let profile = profiler.wait()?.profile()?;
    assert!(profile.complete, "{:?}", profile.incomplete_because);
    expect_counts(&profile, &job.snapshot()?, None, &functions("default")?)
}

/// An interval ends when rank 0 asks for results: nobody else does in an hour.
fn asked_for(mpi: Mpi) -> Result<(), Failed> {
    let job = Job::builder(mpi, program::PHASES).ranks(2).gates(&["1", "2"]).own_name();
    let mut job = job.profiled([] as [&str; 0])?.spawn()?;
    job.wait_for_gate("1")?;
    let mut profiler = Profiler::observe(["--pid-of", job.called()])?;
    job.open_gate("1")?;
    let asked: Profile = serde_json::from_str(&profiler.wait_for_output(0)?)?;
    assert_eq!((asked.end.as_deref(), barriers(&asked, 0)?), (None, 10 + 20 + 2 + 3 + 4 + 1 + 1));
    job.wait_for_gate("2")?;
    job.open_gate("2")?;
    job.wait()?.success()?;
    expect_phases(&profiler.wait()?.profile()?)?;
    Ok(())
}

fn mixed(mpi: Mpi) -> Result<(), Failed> {
    let mut wrapped = hang(mpi)?;
    let bare = Job::builder(mpi, program::HANG).ranks(2).args(["7"]).truth(true).own_name();
    let mut bare = deadlocked(bare.spawn()?)?;
    let pid = |job: &mut Job| -> Result<String, Failed> { Ok(job.ranks()?.get(&0).ok_or("no rank 0")?.to_string()) };
    let pids = ["--pid".to_owned(), pid(&mut wrapped)?, "--pid".to_owned(), pid(&mut bare)?];
    let ended = Profiler::observe(pids)?.interrupt()?;
    let profile = ended.profile()?;
    assert_eq!((ended.status.code(), profile.ranks.len()), (Some(3), 1), "{}", ended.printed());
    assert!(profile.incomplete_because.iter().any(|what| what.contains("without the wrapper")), "{profile:?}");

    let refused = Profiler::start(["--engine", "wrapper", "--pid-of", bare.called()])?.wait()?;
    assert_eq!(refused.status.code(), Some(1), "{}", refused.printed());
    assert!(refused.stderr.join("\n").contains("mpiprobe run"), "{}", refused.printed());
    Ok(())
}

/// As a user who may do nothing else; and root sees that user's job as well.
fn user(mpi: Mpi) -> Result<(), Failed> {
    let copy = Copy::new()?;
    let job = Job::builder(mpi, program::HANG).ranks(2).args(["7"]).truth(true).own_name();
    let job = job.user(USER).under([copy.path().as_os_str(), "run".as_ref(), "--".as_ref()]);
    let job = deadlocked(job.spawn()?)?;
    let observe = |command| -> Result<Ended, Failed> {
        let mut profiler = Profiler::spawn(command)?;
        profiler.wait_for("mpiprobe: observing ")?;
        Ok(profiler.interrupt()?)
    };
    for user in [USER, 0] {
        let ended = observe(copy.command(user, ["--json", "--interval", "1h", "--pid-of", job.called()]))?;
        expect_deadlock(&ended.profile()?, &job)?;
    }
    Ok(())
}
