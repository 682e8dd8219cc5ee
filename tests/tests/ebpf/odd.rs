//! Programs that do legal things that few do, in the short form of `cargo xtask soak odd`: nobody is harmed, and what is not known is
//! said.
//!
//! Invariant OPEN-CALL-RETURNS.

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::campaign::odd::{self, Verdict, Way};
use mpiprobe_tests::check::{expect_counts, functions};
use mpiprobe_tests::{Ended, Job, JobBuilder, Language, Mpi, Profile, Profiler, program};

use crate::check::complete;
use crate::{trial, trial_with};

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    let mut tests = vec![
        trial(mpi, Language::C, "callbacks_on_other_stacks_are_inner_calls", other_stacks),
        trial(mpi, Language::C, "longjmp_far_up_the_stack_loses_no_call", longjmp),
        trial(mpi, Language::Cxx, "exceptions_through_calls_are_not_the_end", exceptions),
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
    let mut job = builder.ranks(2).gates(&["start"]).truth(true).own_name().spawn()?;
    job.wait_for_gate("start")?;
    let called = job.called().to_owned();
    let profiler =
        Profiler::observe(["--pid-of", &called, "--functions", "all"].into_iter().chain(arguments.iter().copied()))?;
    job.open_gate("start")?;
    job.wait()?.success()?;
    Ok((job, profiler.wait()?))
}

/// As the program's source says, and the truth library.
fn other_stacks(mpi: Mpi) -> Result<(), Failed> {
    for mode in ["up", "down", "signal"] {
        let (job, ended) = observed(Job::builder(mpi, program::STACKS).args([mode]), &[])?;
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

/// The return address of the call that was left stays on the stack: it is not known until the end that it was left.
fn longjmp(mpi: Mpi) -> Result<(), Failed> {
    let (_, ended) = observed(Job::builder(mpi, program::STACKS).args(["jump"]), &[])?;
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
    let (job, ended) = observed(Job::builder(mpi, program::THROWS).args(["10"]), &[])?;
    assert!(job.output().0.contains("10 exceptions caught"), "{:?}", job.output());
    assert!(ended.stderr.iter().any(|line| line.contains("throws C++ exceptions")), "{}", ended.printed());
    let profile = ended.profile()?;
    counted_by_entry(&profile);
    for row in &profile.ranks {
        let counted = row.completed();
        assert_eq!((counted.get("MPI_Send"), counted.get("MPI_Barrier")), (Some(&10), Some(&1)), "{counted:?}");
    }
    Ok(())
}

fn exceptions_run(mpi: Mpi) -> Result<(), Failed> {
    let run = |engine| -> Result<Job, Failed> {
        let builder = Job::builder(mpi, program::THROWS).ranks(2).args(["10"]);
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
