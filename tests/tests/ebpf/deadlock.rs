//! Ranks that wait for each other, and what they wait in.
//!
//! Invariant UNSEEN-IS-UNKNOWN.

use std::{collections::BTreeMap, path::Path};

use libtest_mimic::{Failed, Trial};
use mpiprobe_observe::monotonic_ns;
use mpiprobe_tests::{
    Ended, Job, Language, Mpi, Profiler,
    hang::answer,
    open_calls::{circle, expect_circle, expect_names, expect_waiting_at_end, kill_in_circle, named_datatype},
    program,
    waits::{expect_agreement, wait_states},
};
use mpiprobe_trace::{Bytes, Call, Event, Partner, Span, Trace as _, store::TraceFiles};
use serde_json::Value;

use crate::{
    call_sites::place,
    flight::By,
    hang::{HUNG_IN, is_hung_in},
    trial,
};

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    vec![
        trial(mpi, Language::C, "one_look_shows_the_circle_of_a_deadlock", |mpi| {
            expect_circle(circle(mpi, false).spawn()?, false)
        }),
        trial(mpi, Language::C, "one_look_shows_a_circle_of_exchanges", |mpi| {
            expect_circle(circle(mpi, true).spawn()?, true)
        }),
        trial(mpi, Language::C, "datatypes_of_open_calls_have_their_names", |mpi| {
            expect_names(named_datatype(mpi).spawn()?)
        }),
        trial(mpi, Language::C, "a_killed_job_says_what_it_waited_for", killed),
        trial(mpi, Language::C, "calls_that_began_before_and_are_open_are_time_in_mpi", open_since_before),
        trial(mpi, Language::C, "calls_that_began_before_have_their_places_and_arguments", open_calls_from_before),
        trial(mpi, Language::C, "a_call_that_began_before_counts_until_it_returns", returned_since),
        trial(mpi, Language::C, "what_is_called_in_a_call_that_began_before_is_inside", called_inside),
        trial(mpi, Language::C, "a_call_that_began_before_is_in_the_trace_when_it_has_returned", returned_in_trace),
        trial(mpi, Language::C, "a_trace_of_a_job_that_hangs_since_before_says_in_what", hung_in_trace),
        trial(mpi, Language::C, "a_job_that_hangs_since_before_is_written_down", hung_in_dump),
    ]
}

/// Attached to when all are inside for good, as the truth library says: it counts all time as MPI from there on, and so does mpiprobe.
fn open_since_before(mpi: Mpi) -> Result<(), Failed> {
    let mut job = Job::builder(mpi, program::HANG).ranks(2).args(["7"]).truth(true).own_name().spawn()?;
    job.ranks()?;
    job.wait_until_inside(1, "MPI_Recv")?;
    job.wait_until_inside(0, "MPI_Barrier")?;
    let profile = known(&job)?;
    for (rank, function) in [(0, "MPI_Barrier"), (1, "MPI_Recv")] {
        let at = |pointer: &str| profile.pointer(&format!("/ranks/{rank}/{pointer}")).cloned().unwrap_or_default();
        assert!(at("mpi_percent").as_f64().is_some_and(|percent| percent >= 98.0), "{profile}");
        assert_eq!(at("mpi_ns"), at("wall_ns"), "{profile}");
        assert_eq!((at("functions/0/name"), at("functions/0/calls")), (function.into(), 0.into()), "{profile}");
        assert_eq!((at("functions/0/open_ns"), at("functions/0/began_before")), (at("wall_ns"), 1.into()), "{profile}");
    }
    assert!(profile.pointer("/totals/mpi_percent_of_all").and_then(Value::as_f64).is_some_and(|all| all >= 98.0));
    Ok(())
}

/// The same with no other library between the program and MPI: where the calls were made, and what they were given.
fn open_calls_from_before(mpi: Mpi) -> Result<(), Failed> {
    let job = Job::builder(mpi, program::HANG).ranks(2).args(["7"]).own_name().spawn()?;
    answer(&job, &[], |answer| is_hung_in(answer, &HUNG_IN))?;
    let profile = known(&job)?;
    for (rank, function) in HUNG_IN {
        let at = |pointer: &str| profile.pointer(&format!("/ranks/{rank}/{pointer}")).cloned().unwrap_or_default();
        assert_eq!((at("open_calls/0/function"), at("open_calls/0/site")), (function.into(), place(function).into()));
        assert_eq!((at("open_calls/0/began_before"), at("began_before/0/is_open")), (true.into(), true.into()));
        assert_eq!(
            (at("began_before/0/function"), at("began_before/0/site")),
            (function.into(), place(function).into())
        );
    }
    assert_eq!(profile.pointer("/ranks/1/open_calls/0/arguments/source/rank"), Some(&0.into()), "{profile}");
    Ok(())
}

/// The first profile of a new observation of which so little is not known that shares are.
fn known(job: &Job) -> Result<Value, Failed> {
    let mut profiler = Profiler::start(["--json", "--interval", "1", "--pid-of", job.called()])?;
    for nth in 0.. {
        let profile: Value = serde_json::from_str(&profiler.wait_for_output(nth)?)?;
        if profile.pointer("/totals/mpi_percent_of_all").is_some_and(Value::is_number) {
            return Ok(profile);
        }
    }
    Err("no more reports".into())
}

/// The time in it, by the clock of the target itself, is what is counted, but for what is said not to be known.
fn returned_since(mpi: Mpi) -> Result<(), Failed> {
    let mut job = Job::builder(mpi, program::LATE).ranks(2).gates(&["1", "2"]).truth(true).own_name().spawn()?;
    job.ranks()?;
    job.wait_until_inside(0, "MPI_Recv")?;
    let before_ns = monotonic_ns();
    let profiler = Profiler::observe(["--pid-of", job.called()])?;
    let attached_ns = monotonic_ns();
    job.open_gate("1")?;
    job.wait_for_gate("2")?;
    let profile = last_profile(&profiler.interrupt()?)?;
    let at = |pointer: &str| profile.pointer(&format!("/ranks/0/{pointer}")).cloned().unwrap_or_default();
    let number = |pointer: &str| at(pointer).as_u64().unwrap_or(u64::MAX);
    let (mpi_ns, unseen_ns) = (number("mpi_ns"), number("unseen_ns"));
    job.open_gate("2")?;
    let output = job.wait()?.success()?.stdout;
    let left_ns: u64 = output.lines().find_map(|line| line.strip_prefix("left ")?.parse().ok()).ok_or("not left")?;
    assert!(mpi_ns <= left_ns - before_ns, "{mpi_ns} of {}: {profile}", left_ns - before_ns);
    assert!(mpi_ns + unseen_ns >= left_ns - attached_ns, "{mpi_ns} + {unseen_ns} of {}", left_ns - attached_ns);
    assert_eq!((at("began_before/0/function"), at("began_before/0/is_open")), ("MPI_Recv".into(), false.into()));
    assert_eq!((at("began_before/0/time_ns"), at("functions/0/began_before_ns")), (mpi_ns.into(), mpi_ns.into()));
    assert_eq!((at("calls"), at("open_calls")), (0.into(), Value::Array(Vec::new())), "{profile}");
    // The other one was outside all the while, and then called.
    assert_eq!(profile.pointer("/ranks/1/functions/0/name"), Some(&"MPI_Send".into()), "{profile}");
    assert_eq!(profile.pointer("/ranks/1/began_before"), Some(&Value::Array(Vec::new())), "{profile}");
    Ok(())
}

/// The calls of a trace, by rank.
fn calls_of(path: &Path) -> Result<BTreeMap<u32, Vec<Call>>, Failed> {
    let trace = TraceFiles::open(&[path])?;
    let mut calls: BTreeMap<u32, Vec<Call>> = BTreeMap::new();
    for location in trace.definitions().location_ids() {
        let process = trace.definitions().location(location).ok_or("no location")?.process;
        let rank = trace.definitions().process(process).and_then(|process| process.rank).ok_or("no rank")?;
        for event in trace.events(location, Span::ALL) {
            if let Event::Call(call) = event? {
                calls.entry(rank).or_default().push(call);
            }
        }
    }
    Ok(calls)
}

/// What was asked for is known, and so is when it was over, if its return could be probed; what comes later is in its order.
fn returned_in_trace(mpi: Mpi) -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("job.trace");
    let job = Job::builder(mpi, program::LATE).ranks(2).gates(&["1", "2"]).own_name();
    let mut job = job.spawn()?;
    job.ranks()?;
    answer(&job, &[], |answer| answer["threads"].to_string().contains("\"MPI_Recv\""))?;
    let before_ns = monotonic_ns();
    let profiler = By::Root.record(&job, &path, &["--waits"])?;
    job.open_gate("1")?;
    job.wait_for_gate("2")?;
    job.open_gate("2")?;
    let output = job.wait()?.success()?.stdout;
    let left_ns: u64 = output.lines().find_map(|line| line.strip_prefix("left ")?.parse().ok()).ok_or("not left")?;
    let profile = last_profile(&profiler.wait()?)?;
    let calls = calls_of(&path)?;
    let shown = |call: &Call| (call.function().function().name, call.number);
    let names = calls.values().map(|calls| calls.iter().map(shown).collect::<Vec<_>>());
    let expected = [[("MPI_Recv", 0), ("MPI_Finalize", 1)], [("MPI_Send", 0), ("MPI_Finalize", 1)]];
    assert_eq!(names.collect::<Vec<_>>(), expected);
    let mut first = calls.values().filter_map(|calls| calls.first());
    let (receive, send) = first.next().zip(first.next()).ok_or("no calls")?;
    assert!((receive.began_before, receive.has_returned, send.began_before) == (true, true, false), "{receive:?}");
    assert!(before_ns <= receive.entry_ns && receive.entry_ns < send.entry_ns, "{receive:?} {send:?}");
    assert!(send.entry_ns <= receive.return_ns && receive.return_ns <= left_ns, "{receive:?} {send:?} {left_ns}");
    let given = receive.operation.receive.ok_or("nobody knows what was asked for")?;
    assert_eq!((given.partner, given.tag, given.bytes), (Partner::Rank(1), Some(3), Bytes::Unknown));
    assert_eq!(receive.operation.communicator, send.operation.communicator);
    // The profile counts the calls that have begun since.
    let at = |pointer: &str| profile.pointer(pointer).cloned().unwrap_or_default();
    assert_eq!((at("/ranks/0/calls"), at("/ranks/0/began_before/0/function")), (1.into(), "MPI_Recv".into()));
    assert_eq!(at("/wait_states/calls").as_u64(), Some(4), "{profile}");
    expect_agreement(&wait_states(&profile.to_string())?, &path)
}

/// The recording ends before the job.
fn hung_in_trace(mpi: Mpi) -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("job.trace");
    let job = Job::builder(mpi, program::HANG).ranks(2).args(["7"]).own_name().spawn()?;
    answer(&job, &[], |answer| is_hung_in(answer, &HUNG_IN))?;
    By::Root.record(&job, &path, &[])?.interrupt()?;
    expect_hung(&path)
}

fn expect_hung(path: &Path) -> Result<(), Failed> {
    let calls = calls_of(path)?;
    let sites = TraceFiles::open(&[path])?.definitions().call_sites.clone();
    for (rank, function) in HUNG_IN {
        let [call] = calls.get(&u32::try_from(rank)?).ok_or("nothing of a rank")?.as_slice() else {
            return Err(format!("{calls:?}").into());
        };
        let site = call.call_site.and_then(|site| sites.get(site.index())).ok_or("no call site")?;
        assert_eq!((call.function().function().name, site.text.as_str()), (function, place(function).as_str()));
        assert!((call.began_before, call.has_returned) == (true, false) && call.duration_ns() > 0, "{call:?}");
    }
    Ok(())
}

/// Nobody has asked.
fn hung_in_dump(mpi: Mpi) -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("job.trace");
    let job = Job::builder(mpi, program::HANG).ranks(2).args(["7"]).own_name().spawn()?;
    answer(&job, &[], |answer| is_hung_in(answer, &HUNG_IN))?;
    let mut profiler = By::Root.record(&job, &path, &["--flight", "1h", "--dump-on-hang", "1s"])?;
    profiler.wait_for("because no call has returned for 1s, and 2 are open for longer")?;
    expect_hung(&path)
}

/// All are in a function of their own that MPI has called. What it calls is no call of the program, nor is what is called at the same place
/// as the outer call was, and that one ends when it returns: not before the function has said that it is done, nor after the program has
/// said that it has left the call.
///
/// Invariant OUTERMOST.
fn called_inside(mpi: Mpi) -> Result<(), Failed> {
    let mut job = Job::builder(mpi, program::CALLBACK).ranks(2).gates(&["1", "2"]).own_name().spawn()?;
    job.wait_for_gate("1")?;
    let before_ns = monotonic_ns();
    let profiler = Profiler::observe(["--functions", "all", "--pid-of", job.called()])?;
    let attached_ns = monotonic_ns();
    job.open_gate("1")?;
    job.wait_for_gate("2")?;
    let profile = last_profile(&profiler.interrupt()?)?;
    job.open_gate("2")?;
    let output = job.wait()?.success()?.stdout;
    for rank in 0..2 {
        let said = |what: &str| -> Option<u64> {
            let line = output.lines().find(|line| line.starts_with(&format!("rank {rank} ")))?;
            line.split(' ').skip_while(|word| *word != what).nth(1)?.parse().ok()
        };
        let (done_ns, left_ns) = said("done").zip(said("left")).ok_or("no times")?;
        let at = |pointer: &str| profile.pointer(&format!("/ranks/{rank}/{pointer}")).cloned().unwrap_or_default();
        let number = |pointer: &str| at(pointer).as_u64().unwrap_or(u64::MAX);
        let functions = at("functions").as_array().cloned().unwrap_or_default();
        let mut counts: Vec<_> = functions
            .iter()
            .map(|row| (row["name"].as_str().unwrap_or_default(), row["calls"].as_u64(), row["began_before"].as_u64()))
            .collect();
        counts.sort_unstable();
        assert_eq!(counts, [("MPI_Barrier", Some(2), Some(0)), ("MPI_Comm_dup", Some(1), Some(1))], "{profile}");
        assert!((5..u64::MAX).contains(&number("inner_calls_of_unseen")), "{profile}");
        assert_eq!((at("open_calls"), at("began_before/1")), (Value::Array(Vec::new()), Value::Null), "{profile}");
        assert_eq!(
            (at("began_before/0/function"), at("began_before/0/is_open")),
            ("MPI_Comm_dup".into(), false.into())
        );
        let time_ns = number("began_before/0/time_ns");
        assert!(time_ns <= left_ns - before_ns, "{time_ns} of {}: {profile}", left_ns - before_ns);
        assert!(time_ns >= done_ns - attached_ns, "{time_ns} of {}: {profile}", done_ns - attached_ns);
    }
    assert_eq!(profile.pointer("/complete"), Some(&true.into()), "{profile}");
    Ok(())
}

fn last_profile(ended: &Ended) -> Result<Value, Failed> {
    Ok(serde_json::from_str(ended.stdout.last().ok_or("no profile")?)?)
}

fn killed(mpi: Mpi) -> Result<(), Failed> {
    let mut job = circle(mpi, false).spawn()?;
    job.wait_for_gate("1")?;
    let profiler = Profiler::observe(["--pid-of", job.called()])?;
    kill_in_circle(&mut job)?;
    // Older kernels have let go of return probes by then.
    expect_waiting_at_end(&profiler.wait()?.profile()?, false)
}
