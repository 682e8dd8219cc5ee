//! Programs that do legal things that few do, in the short form of `cargo xtask soak odd`: nobody is harmed, and what is not known is
//! said.
//!
//! Those that leave calls otherwise than by a return have copies of the library: other trials' return probes, on the file that all share,
//! would be armed wherever one of these trials has a probe.
//!
//! Invariant OPEN-CALL-RETURNS.

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::campaign::odd::{self, Verdict, Way};
use mpiprobe_tests::check::{expect_counts, functions};
use mpiprobe_tests::{
    Ended, Job, JobBuilder, Language, Mpi, Profile, Profiler, Program, program, tool::tool_of_beginnings,
};

use crate::check::complete;
use crate::{trial, trial_with};

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    let mut tests = vec![
        trial(mpi, Language::C, "callbacks_on_other_stacks_are_inner_calls", other_stacks),
        trial(mpi, Language::C, "observers_of_one_job_do_not_end_it", several_observers),
        trial(mpi, Language::C, "probes_for_everybody_spare_bystanders", bystanders),
        trial(mpi, Language::C, "probes_for_everybody_spare_newcomers", newcomers),
        trial(mpi, Language::C, "probes_for_everybody_who_has_a_tool_spare_others", with_a_tool),
        trial(mpi, Language::C, "return_probes_of_others_are_not_armed_by_ours_multi", |mpi| {
            armed_by_others(mpi, "multi")
        }),
        trial(mpi, Language::C, "return_probes_of_others_are_not_armed_by_ours_perf", |mpi| {
            armed_by_others(mpi, "perf-event")
        }),
        trial(mpi, Language::C, "return_probes_of_ours_are_not_armed_in_others", arming_for_others),
        trial(mpi, Language::C, "longjmp_far_up_the_stack_loses_no_call", longjmp),
        trial(mpi, Language::Cxx, "exceptions_through_calls_are_not_the_end", exceptions),
        trial(mpi, Language::Cxx, "threads_that_end_within_calls_are_cleaned_up", threads_that_end),
        trial(mpi, Language::Cxx, "exceptions_beside_several_observers_are_not_the_end", exceptions_of_strangers),
        trial(mpi, Language::Cxx, "run_chooses_the_wrapper_for_exceptions_through_calls", exceptions_run),
        // Invariant NO-TIME-NO-ZERO.
        trial(mpi, Language::C, "without_return_probes_calls_are_counted", without_returns),
    ];
    for name in ["stack-up", "migration"] {
        for way in [Way::Attached("session"), Way::Attached("multi"), Way::Attached("perf-event")] {
            let shown = format!("{name}_{way:?}_harms_nobody");
            tests.push(trial_with(mpi, Language::C, &shown, move || harmless(mpi, name, way)));
        }
    }
    tests
}

fn harmless(mpi: Mpi, name: &str, way: Way) -> Result<(), Failed> {
    let odd = odd::all().into_iter().find(|odd| odd.name == name).ok_or("no such program")?;
    let verdict = odd.check(mpi, way, &odd.bare(mpi)?)?;
    let has_times = name == "stack-up" && way == Way::Attached("session");
    match verdict {
        Verdict::Right if has_times => Ok(()),
        Verdict::Incomplete(why) if !has_times && why.concat().contains("counted at their entry only") => Ok(()),
        other => Err(format!("{other:?}").into()),
    }
}

/// A job from before main to its end.
fn observed(builder: JobBuilder, arguments: &[&str]) -> Result<(Job, Ended), Failed> {
    observed_with(builder, arguments, || Ok(()))
}

/// The same, and something is done before it goes on.
fn observed_with(
    builder: JobBuilder,
    arguments: &[&str],
    meanwhile: impl FnOnce() -> Result<(), Failed>,
) -> Result<(Job, Ended), Failed> {
    let mut job = builder.ranks(2).gates(&["start"]).truth(true).own_name().spawn()?;
    job.wait_for_gate("start")?;
    let called = job.called().to_owned();
    let profiler =
        Profiler::observe(["--pid-of", &called, "--functions", "all"].into_iter().chain(arguments.iter().copied()))?;
    meanwhile()?;
    job.open_gate("start")?;
    job.wait()?.success()?;
    Ok((job, profiler.wait()?))
}

/// As the program's source says, and the truth library.
fn other_stacks(mpi: Mpi) -> Result<(), Failed> {
    for mode in ["up", "down", "signal"] {
        let (job, ended) = observed(Job::builder(mpi, program::STACKS).own_library().args([mode]), &[])?;
        let profile = complete(&ended)?;
        expect_counts(&profile, &job.snapshot()?, None, &functions("all")?)?;
        for rank in 0..2 {
            let row = profile.rank(rank).ok_or("no such rank")?;
            let counted = row.completed();
            for (name, calls) in
                [("MPI_Comm_set_attr", 10), ("MPI_Comm_delete_attr", 10), ("MPI_Barrier", 1), ("MPI_Finalize", 1)]
            {
                assert_eq!(counted.get(name), Some(&calls), "{mode}: {counted:?}");
            }
            // Only in callbacks.
            assert_eq!((counted.get("MPI_Comm_size"), counted.get("MPI_Allreduce")), (None, None), "{mode}");
            assert!(row.inner_calls >= 20, "{mode}: {profile:?}");
        }
    }
    Ok(())
}

/// Each alone is harmless. Together, the return probe that one arms in a callback could drop that of the other around it, or that of
/// any tool, as which the attach method serves here that does not ask.
fn several_observers(mpi: Mpi) -> Result<(), Failed> {
    const OUTER: &str = "MPI_Comm_delete_attr";
    const INNER: &str = "MPI_Comm_size,MPI_Allreduce";
    const TOOL: [&str; 4] = ["--attach", "multi", "--returns", "on"];
    let none = &[] as &[&str];
    // Where it is seen that there are others, nothing is armed, unless that is asked for.
    let all_the_same = &["--returns", "on"] as &[&str];
    let cases = [("all", none, INNER, all_the_same), (OUTER, &TOOL, INNER, all_the_same), (INNER, &TOOL, "all", none)];
    for (functions, options, others, more) in cases {
        let job = Job::builder(mpi, program::STACKS).own_library().args(["up"]);
        let mut job = job.ranks(2).gates(&["1"]).own_name().spawn()?;
        job.wait_for_gate("1")?;
        let called = job.called().to_owned();
        let observe = |functions: &str, options: &[&str]| {
            let arguments = ["--pid-of", &called, "--functions", functions];
            Profiler::observe(arguments.into_iter().chain(options.iter().copied()))
        };
        let (first, second) = (observe(functions, options)?, observe(others, more)?);
        job.open_gate("1")?;
        let finished = job.wait()?.success()?;
        assert!(finished.stdout.contains("10 of 10 right"), "{functions} and {others}: {finished:?}");
        drop(first.wait()?);
        let ended = second.wait()?;
        let profile = ended.profile()?;
        // Its calls are counted all the same, at their entry.
        counted_by_entry(&profile);
        let name = if others == INNER { "MPI_Allreduce" } else { OUTER };
        let calls: Vec<_> = profile.ranks.iter().map(|row| row.completed().get(name).copied()).collect();
        assert_eq!(calls, [Some(10); 2], "{name}: {}", ended.printed());
        let is_told = ended.stderr.iter().any(|line| line.contains("others have probes in its MPI library"));
        assert!(is_told, "{}", ended.printed());
    }
    Ok(())
}

/// The job that is not observed has the same probes.
fn bystanders(mpi: Mpi) -> Result<(), Failed> {
    let (mut bystander, ring) = of_one_library(mpi)?;
    let (_, ended) = observed_with(ring, &["--attach", "multi"], || {
        bystander.open_gate("1")?;
        let finished = bystander.wait()?.success()?;
        assert!(finished.stdout.contains("10 of 10 right"), "{finished:?}");
        Ok(())
    })?;
    assert!(ended.stderr.iter().any(|line| line.contains("switches stacks")), "{}", ended.printed());
    counted_by_entry(&ended.profile()?);
    Ok(())
}

/// Functions that both jobs call, without those by which processes begin.
const OF_BOTH: &str = "MPI_Comm_delete_attr,MPI_Comm_size,MPI_Send,MPI_Allreduce";

/// The job that is not observed begins when the probes are there that it has, too.
fn newcomers(mpi: Mpi) -> Result<(), Failed> {
    let ring = Job::builder(mpi, program::RING).own_library().args(["10"]).ranks(2).gates(&["start"]).own_name();
    let mut ring = ring.spawn()?;
    ring.wait_for_gate("start")?;
    let arguments = ["--attach", "multi", "--functions", OF_BOTH, "--pid-of", ring.called()];
    let mut profiler = Profiler::observe(arguments)?;
    let odd = Job::builder(mpi, program::STACKS).args(["up"]).ranks(2).gates(&["1"]).own_name().library_of(&ring);
    let mut odd = odd.spawn()?;
    profiler.wait_for("switches stacks")?;
    odd.open_gate("1")?;
    let finished = odd.wait()?.success()?;
    assert!(finished.stdout.contains("10 of 10 right"), "{finished:?}");
    ring.open_gate("start")?;
    ring.wait()?.success()?;
    counted_by_entry(&profiler.wait()?.profile()?);
    Ok(())
}

/// What two jobs have in common is a tool only: of the one that is not observed, one process is there before the probes, and another begins
/// when they are.
fn with_a_tool(mpi: Mpi) -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let tool = tool_of_beginnings(mpi, directory.path())?;
    let odd = || {
        let odd = Job::builder(mpi, program::STACKS).args(["up"]).ranks(2).gates(&["1"]).own_name().own_library();
        let mut odd = odd.preload(&tool).spawn()?;
        odd.wait_for_gate("1").map(|()| odd)
    };
    for is_newcomer in [false, true] {
        let ring = Job::builder(mpi, program::RING).own_library().preload(&tool).args(["10"]);
        let mut ring = ring.ranks(2).gates(&["start"]).own_name().spawn()?;
        ring.wait_for_gate("start")?;
        let before = if is_newcomer { None } else { Some(odd()?) };
        let mut profiler = Profiler::observe(["--attach", "multi", "--functions", OF_BOTH, "--pid-of", ring.called()])?;
        let mut bystander = before.map_or_else(odd, Ok)?;
        if is_newcomer {
            profiler.wait_for("switches stacks")?;
        }
        bystander.open_gate("1")?;
        let finished = bystander.wait()?.success()?;
        assert!(finished.stdout.contains("10 of 10 right"), "{finished:?}");
        ring.open_gate("start")?;
        ring.wait()?.success()?;
        let ended = profiler.wait()?;
        assert!(ended.stderr.iter().any(|line| line.contains("switches stacks")), "{}", ended.printed());
        counted_by_entry(&ended.profile()?);
    }
    Ok(())
}

/// Somebody has probes in the job's library, for single processes of another job, and the kernel would have their returns armed in this job,
/// as soon as it has a breakpoint.
fn armed_by_others(mpi: Mpi, way: &str) -> Result<(), Failed> {
    const FEW: &str = "MPI_Comm_delete_attr,MPI_Comm_size,MPI_Send,MPI_Recv";
    let (mut odd, ring) = of_one_library(mpi)?;
    let mut ring = ring.ranks(2).gates(&["start"]).own_name().spawn()?;
    ring.wait_for_gate("start")?;
    let pids = ring.ranks()?.into_values().flat_map(|pid| ["--pid".to_owned(), pid.to_string()]);
    let options = ["--attach", way, "--functions", FEW].map(str::to_owned);
    let others = Profiler::observe(pids.chain(options.clone()))?;
    let called = ["--pid-of", odd.called()].map(str::to_owned);
    let refused = Profiler::start(called.into_iter().chain(options))?.wait()?;
    assert!(!refused.status.success(), "{}", refused.printed());
    let is_told =
        refused.stderr.iter().any(|line| line.contains("is not observed") && line.contains("switches stacks"));
    assert!(is_told, "{}", refused.printed());
    odd.open_gate("1")?;
    let finished = odd.wait()?.success()?;
    assert!(finished.stdout.contains("10 of 10 right"), "{finished:?}");
    ring.open_gate("start")?;
    ring.wait()?.success()?;
    let profile = others.wait()?.profile()?;
    assert!(profile.ranks.iter().all(|row| row.completed().contains_key("MPI_Send")), "{profile:?}");
    Ok(())
}

/// The other way round: who comes with return probes sees that they would be armed where somebody counts calls by their entries.
fn arming_for_others(mpi: Mpi) -> Result<(), Failed> {
    let (mut odd, ring) = of_one_library(mpi)?;
    let observe = |whom: &[String]| {
        let options = ["--attach", "multi", "--functions", "all"].map(str::to_owned);
        Profiler::observe(whom.iter().cloned().chain(options))
    };
    let first = observe(&["--pid-of", odd.called()].map(str::to_owned))?;
    let mut ring = ring.ranks(2).gates(&["start"]).own_name().spawn()?;
    ring.wait_for_gate("start")?;
    let pids: Vec<String> = ring.ranks()?.into_values().flat_map(|pid| ["--pid".to_owned(), pid.to_string()]).collect();
    let second = observe(&pids)?;
    odd.open_gate("1")?;
    let finished = odd.wait()?.success()?;
    assert!(finished.stdout.contains("10 of 10 right"), "{finished:?}");
    ring.open_gate("start")?;
    ring.wait()?.success()?;
    for ended in [first.wait()?, second.wait()?] {
        assert!(ended.stderr.iter().any(|line| line.contains("switches stacks")), "{}", ended.printed());
        counted_by_entry(&ended.profile()?);
    }
    Ok(())
}

/// A job that must not have return probes, which waits, and another one that uses the same copy of the library.
fn of_one_library(mpi: Mpi) -> Result<(Job, JobBuilder), Failed> {
    let odd = Job::builder(mpi, program::STACKS).args(["up"]).ranks(2).gates(&["1"]).own_name().own_library();
    let mut odd = odd.spawn()?;
    odd.wait_for_gate("1")?;
    let ring = Job::builder(mpi, program::RING).args(["10"]).library_of(&odd);
    Ok((odd, ring))
}

/// The return address of the call that was left stays on the stack: it is not known until the end that it was left.
fn longjmp(mpi: Mpi) -> Result<(), Failed> {
    let (_, ended) = observed(Job::builder(mpi, program::STACKS).own_library().args(["jump"]), &[])?;
    let profile = ended.profile()?;
    for row in &profile.ranks {
        let counted = row.completed();
        for (name, calls) in
            [("MPI_Comm_get_parent", 10), ("MPI_Errhandler_free", 1), ("MPI_Barrier", 1), ("MPI_Finalize", 1)]
        {
            assert_eq!(counted.get(name), Some(&calls), "{name}: {}", ended.printed());
        }
        assert_eq!(row.open_calls, Vec::new());
    }
    // Of the sends, each on each rank was left.
    assert_eq!(profile.lost().into_iter().collect::<Vec<_>>(), [("entries_without_return", 20)]);
    assert!(!profile.complete && ended.status.code() == Some(3), "{}", ended.printed());
    Ok(())
}

fn counted_by_entry(profile: &Profile) {
    let why = profile.incomplete_because.concat();
    assert!(!profile.complete && why.contains("counted at their entry only"), "{why}");
    let times: u64 = profile.ranks.iter().flat_map(|row| &row.functions).map(|row| row.time_ns).sum();
    assert_eq!(times, 0);
    // Nobody takes them for nothing.
    assert!(profile.ranks.iter().all(|row| row.mpi_percent.is_none()), "{profile:?}");
}

/// The handler throws: the program says how many exceptions it has caught.
fn exceptions(mpi: Mpi) -> Result<(), Failed> {
    left_by_handler(mpi, program::THROWS, "10 exceptions caught", "throws C++ exceptions")
}

/// The handler ends its thread: the program says how many destructors have run.
fn threads_that_end(mpi: Mpi) -> Result<(), Failed> {
    left_by_handler(mpi, program::ENDS_THREADS, "10 threads cleaned up", "ends threads by pthread_exit")
}

/// A program whose error handlers leave 10 sends, which it has `printed`, is recognised, and `why` is said.
fn left_by_handler(mpi: Mpi, program: Program, printed: &str, why: &str) -> Result<(), Failed> {
    let (job, ended) = observed(Job::builder(mpi, program).own_library().args(["10"]), &[])?;
    assert!(job.output().0.contains(printed), "{:?}", job.output());
    assert!(ended.stderr.iter().any(|line| line.contains(why)), "{}", ended.printed());
    let profile = ended.profile()?;
    counted_by_entry(&profile);
    for row in &profile.ranks {
        let counted = row.completed();
        assert_eq!((counted.get("MPI_Send"), counted.get("MPI_Barrier")), (Some(&10), Some(&1)), "{counted:?}");
    }
    Ok(())
}

/// By one of two observers, probes are wanted for one process only. Who has a breakpoint by the other one must not get its return probes:
/// neither somebody who is not observed, nor who is so without them.
fn exceptions_of_strangers(mpi: Mpi) -> Result<(), Failed> {
    let ring = Job::builder(mpi, program::RING).own_library().args(["10"]).ranks(2).gates(&["start"]).own_name();
    let mut ring = ring.spawn()?;
    ring.wait_for_gate("start")?;
    let pid = ring.ranks()?.get(&0).ok_or("no rank 0")?.to_string();
    let observers = [Profiler::observe(["--pid", &pid])?, Profiler::observe(["--pid-of", ring.called()])?];
    for is_observed in [false, true] {
        let stranger = Job::builder(mpi, program::THROWS).ranks(2).args(["10"]).gates(&["1"]).own_name();
        let mut stranger = stranger.library_of(&ring).spawn()?;
        stranger.wait_for_gate("1")?;
        let observer = is_observed.then(|| Profiler::observe(["--pid-of", stranger.called()])).transpose()?;
        stranger.open_gate("1")?;
        let finished = stranger.wait()?.success()?;
        assert!(finished.stdout.contains("10 exceptions caught"), "{finished:?}");
        if let Some(observer) = observer {
            counted_by_entry(&observer.wait()?.profile()?);
        }
    }
    ring.open_gate("start")?;
    ring.wait()?.success()?;
    for (observer, ranks) in observers.into_iter().zip([1, 2]) {
        assert_eq!(complete(&observer.wait()?)?.ranks.len(), ranks);
    }
    Ok(())
}

fn exceptions_run(mpi: Mpi) -> Result<(), Failed> {
    let run = |engine| -> Result<Job, Failed> {
        let builder = Job::builder(mpi, program::THROWS).own_library().ranks(2).args(["10"]);
        let mut job = builder.run_by(engine, [] as [&str; 0])?.spawn()?;
        let finished = job.wait()?.success()?;
        assert!(finished.stdout.contains("10 exceptions caught"), "{finished:?}");
        Ok(job)
    };
    let job = run("auto")?;
    assert_eq!(job.profile()?.engine.attached_by, "LD_PRELOAD");
    assert!(job.output().1.contains("throws C++ exceptions"), "{:?}", job.output());
    counted_by_entry(&run("ebpf")?.profile()?);
    Ok(())
}

fn without_returns(mpi: Mpi) -> Result<(), Failed> {
    for way in ["session", "multi"] {
        let (job, ended) =
            observed(Job::builder(mpi, program::RING).args(["10"]), &["--returns", "off", "--attach", way])?;
        let profile = ended.profile()?;
        counted_by_entry(&profile);
        expect_counts(&profile, &job.snapshot()?, None, &functions("all")?)?;
    }
    Ok(())
}
