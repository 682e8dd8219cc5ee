//! Wait states that were found out while a job ran, against those that are found in its trace.
//!
//! Invariant LIVE-AGREES.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use libtest_mimic::Failed;
use mpiprobe_trace::{Trace as _, store::TraceFiles};
use serde_json::Value;

use crate::{Job, JobBuilder, Mpi, Profiler, Program, neighbours, nodes::write_node, program};

/// Jobs of some thousand calls, on a machine that may be busy.
const DEADLINE: Duration = Duration::from_mins(5);
/// Sums of shares of nanoseconds depend on the order in which they are added up.
const ROUNDING_NS: f64 = 2.0;

/// What holds by either engine.
type Check = fn(Mpi, &str) -> Result<(), Failed>;

/// Those checks, by the names of their trials.
pub fn checks(mpi: Mpi) -> Vec<(&'static str, Check)> {
    let mut checks: Vec<(&'static str, Check)> = vec![
        ("waits_of_a_ring_live_and_in_a_trace", ring_agrees),
        ("waits_of_windows_and_files_live_and_in_a_trace", fences_agree),
        ("waits_over_communicators_in_any_order", communicators_agree),
        ("waits_over_communicators_that_threads_make", communicators_of_threads_agree),
        ("waits_in_epochs", epochs_agree),
        ("waits_for_locks", locks_agree),
        ("waits_between_two_groups", groups_agree),
        ("waits_without_what_completes_requests", unseen_completions_are_counted),
        ("waits_where_counting_was_off", switched_off_agrees),
        ("neighbours_are_known", neighbours::are_known),
    ];
    // Debian's MPICH, and Intel's without its launcher's service, do not spawn.
    if matches!(mpi, Mpi::OpenMpi | Mpi::OpenMpi5 | Mpi::Mpich5) {
        checks.push(("waits_of_worlds_that_were_spawned", worlds_agree));
    }
    checks
}

/// Live and post-mortem agree on the same run: a job that is recorded into a file by `run --waits --trace`. Gives the wait states.
pub fn agree(mpi: Mpi, engine: &str, program: Program, arguments: &[&str]) -> Result<Value, Failed> {
    job_agrees(Job::builder(mpi, program).args(arguments.iter().copied()), engine)
}

fn job_agrees(job: JobBuilder, engine: &str) -> Result<Value, Failed> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("job.trace");
    let live = live_agrees(job, engine, &path)?;
    over_nodes_agree(&live, &path)?;
    Ok(live)
}

/// Without regard to what clocks of several nodes would leave unsure.
fn live_agrees(job: JobBuilder, engine: &str, path: &Path) -> Result<Value, Failed> {
    let options: [OsString; 5] = ["--functions".into(), "all".into(), "--waits".into(), "--trace".into(), path.into()];
    let mut job = job.truth(true).deadline(DEADLINE).run_by(engine, options)?.spawn()?;
    job.wait()?.success()?;
    let live = wait_states(&std::fs::read_to_string(job.profile_path())?)?;
    expect_agreement(&live, path)?;
    Ok(live)
}

/// A job's trace as two nodes would have written it, with clocks that have nothing to do with each other: the same ends belong together, and
/// the offset that is found is the true one to within what is said of it.
///
/// Invariant CLOCKS-BOUNDED.
fn over_nodes_agree(whole: &Value, trace: &Path) -> Result<(), Failed> {
    const APART_NS: u64 = 3 * 86_400_000_000_000;
    let other_clock = |ns: u64| ns + APART_NS + ns / 25_000;
    let directory = tempfile::tempdir()?;
    let [first, second] = ["first.trace", "second.trace"].map(|name| directory.path().join(name));
    let files = TraceFiles::open(&[trace])?;
    let ranks = files.definitions().processes.len() as u64;
    write_node(&files, |rank| u64::from(rank) < ranks / 2, "first", &|ns| ns, &first)?;
    write_node(&files, |rank| u64::from(rank) >= ranks / 2, "second", &other_clock, &second)?;
    let ended = Profiler::start([OsString::from("waits"), "--json".into(), first.into(), second.into()])?.wait()?;
    let apart: Value = serde_json::from_str(&ended.stdout.join("\n"))?;
    let counts = |states: &Value| {
        let mut counts = states.get("unmatched").cloned().unwrap_or_default();
        // That is what is new.
        counts.as_object_mut().and_then(|counts| counts.remove("between_clocks"));
        counts
    };
    if counts(whole) != counts(&apart) {
        return Err(format!("over two nodes: {} in place of {}", counts(&apart), counts(whole)).into());
    }
    let number = |states: &Value, at: &str| states.pointer(at).and_then(Value::as_i64);
    if number(&apart, "/clocks/violations") > number(whole, "/clocks/violations") {
        return Err(format!("over two nodes: {}", apart.get("clocks").unwrap_or(&Value::Null)).into());
    }
    let Some(within) = number(&apart, "/clocks/nodes/1/within_ns") else {
        // Nobody has sent anything to anybody, and windows tell nothing of clocks.
        return if count(whole, "matched_messages") == Some(0) {
            Ok(())
        } else {
            Err("nothing bounds the clocks".into())
        };
    };
    let (offset, from) = (number(&apart, "/clocks/nodes/1/offset_ns"), number(&apart, "/from_ns"));
    let (offset, from) = offset.zip(from).ok_or("no offset")?;
    let truly = from - other_clock(from.unsigned_abs()).cast_signed();
    if (offset - truly).abs() <= within + 1 {
        return Ok(());
    }
    Err(format!("the offset is {truly} ns, and {offset} ± {within} were found").into())
}

/// Of the last profile that was printed.
pub fn wait_states(profiles: &str) -> Result<Value, Failed> {
    let last = profiles.lines().last().ok_or("no profile")?;
    let profile: Value = serde_json::from_str(last)?;
    let states = profile.get("wait_states").filter(|states| !states.is_null());
    Ok(states.ok_or("the profile has no wait states")?.clone())
}

/// What was found out live is what is found in a trace.
pub fn expect_agreement(live: &Value, trace: &Path) -> Result<(), Failed> {
    let ended = Profiler::start([OsString::from("waits"), "--json".into(), trace.into()])?.wait()?;
    let found: Value = serde_json::from_str(&ended.stdout.join("\n"))?;
    let mut differences = Vec::new();
    differ(live, &found, "", &mut differences);
    if differences.is_empty() {
        return Ok(());
    }
    differences.truncate(20);
    Err(format!("live and post-mortem differ: {differences:#?}").into())
}

/// Messages and calls of collectives of which both ends were found.
pub fn matched(states: &Value) -> [Option<u64>; 2] {
    ["matched_messages", "matched_collective_calls"].map(|name| count(states, name))
}

/// What is said of ends that were not found.
pub fn count(states: &Value, name: &str) -> Option<u64> {
    states.get("unmatched")?.get(name)?.as_u64()
}

/// What `ring` has to have matched: in each iteration each rank sends three messages and reduces, in each tenth all meet in a barrier.
pub fn of_ring(ranks: u64, iterations: u64) -> [Option<u64>; 2] {
    let once = if ranks > 0 { 3 } else { 0 };
    let collective = iterations + iterations.div_ceil(10) + once;
    [Some(3 * ranks * iterations), Some(ranks * collective)]
}

fn cost(row: &Value) -> f64 {
    row.get("ns").and_then(Value::as_u64).unwrap_or(0) as f64
}

/// Only so many causes are named: which of those that cost as much as the last one is left to chance.
fn leave_out_those_at_the_end<'a>(one: &mut Vec<&'a Value>, other: &mut Vec<&'a Value>) {
    let is_named = |row: &&Value| row.get("thread").is_some_and(|thread| !thread.is_null());
    let least = one.iter().filter(|row| is_named(row)).map(|row| cost(row)).fold(f64::INFINITY, f64::min);
    let named = one.iter().filter(|row| is_named(row));
    let left_out = named.filter(|row| cost(row) <= least + 2.0 * ROUNDING_NS).count();
    for rows in [one, other] {
        // Stable, and the dearest first.
        rows.sort_by(|one, other| is_named(other).cmp(&is_named(one)).then(cost(other).total_cmp(&cost(one))));
        let named = rows.iter().filter(|row| is_named(row)).count();
        rows.drain(named.saturating_sub(left_out)..named);
    }
}

/// Who does what.
fn about(row: &Value) -> String {
    format!("{:?} {:?}", row.get("thread"), row.get("activity"))
}

fn differ(one: &Value, other: &Value, path: &str, differences: &mut Vec<String>) {
    // Of one that was found out later, nobody asks what it took.
    if path == "/own_cpu_ns" {
        return;
    }
    // What shares of waits are charged to.
    let is_share = path.contains("/caused_by/") || path.contains("/unexplained_ns");
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            for (name, value) in one {
                differ(value, other.get(name).unwrap_or(&Value::Null), &format!("{path}/{name}"), differences);
            }
        }
        (Value::Array(one), Value::Array(other)) => {
            let (mut one, mut other): (Vec<&Value>, Vec<&Value>) = (one.iter().collect(), other.iter().collect());
            if path.ends_with("/caused_by") {
                // Less than half a nanosecond is not shown.
                for rows in [&mut one, &mut other] {
                    rows.retain(|row| cost(row) > ROUNDING_NS);
                }
                leave_out_those_at_the_end(&mut one, &mut other);
            }
            if one.len() != other.len() {
                differences.push(format!("{path}: {} and {} of them", one.len(), other.len()));
                return;
            }
            // Of those that cost the same, either may come first.
            if ["/caused_by", "/delays", "/imbalance"].iter().any(|name| path.ends_with(name)) {
                one.sort_by_key(|row| about(row));
                other.sort_by_key(|row| about(row));
            }
            for (index, (one, other)) in one.into_iter().zip(other).enumerate() {
                differ(one, other, &format!("{path}/{index}"), differences);
            }
        }
        (Value::Number(one), Value::Number(other)) if one.is_f64() || other.is_f64() || is_share => {
            let (one, other) = (one.as_f64().unwrap_or(f64::NAN), other.as_f64().unwrap_or(f64::NAN));
            // Also if one of them is no number.
            let is_near = (one - other).abs() <= ROUNDING_NS;
            if !is_near {
                differences.push(format!("{path}: {one} and {other}"));
            }
        }
        _ if one == other => {}
        _ => {
            let shown = |value: &Value| value.to_string().chars().take(100).collect::<String>();
            differences.push(format!("{path}: {} and {}", shown(one), shown(other)));
        }
    }
}

/// `ring`, of which it is known what there is to be matched.
fn ring_agrees(mpi: Mpi, engine: &str) -> Result<(), Failed> {
    let states = agree(mpi, engine, program::RING, &["200", "--pause-us", "200", "--imbalance"])?;
    let ranks = states.get("threads").and_then(Value::as_array).map_or(0, Vec::len) as u64;
    let has_waits = states.get("waits").and_then(Value::as_array).is_some_and(|waits| !waits.is_empty());
    let is_complete = states.get("complete") == Some(&Value::Bool(true));
    if has_waits && is_complete && matched(&states) == of_ring(ranks, 200) {
        return Ok(());
    }
    Err(format!("waits: {has_waits}, {}", states.get("unmatched").unwrap_or(&Value::Null)).into())
}

/// `communicator_orders`: what each process calls by names of its own is one for all, whoever has used it when, or has not.
fn communicators_agree(mpi: Mpi, engine: &str) -> Result<(), Failed> {
    const RANKS: u32 = 3;
    // MPI_Init and MPI_Finalize, communicators made, and what is called over them.
    const COLLECTIVE: u64 = 2 + 3 + 2 + 2 * 20;
    let states = job_agrees(Job::builder(mpi, program::COMMUNICATOR_ORDERS).ranks(RANKS), engine)?;
    expect_all_matched(&states, 1, u64::from(RANKS) * COLLECTIVE)
}

/// `communicator_threads`: what threads make at once is told apart by what they make it from.
fn communicators_of_threads_agree(mpi: Mpi, engine: &str) -> Result<(), Failed> {
    const RANKS: u32 = 3;
    const ROUNDS: u64 = 30;
    // MPI_Init and MPI_Finalize, the threads' own communicators; and of each thread, a copy, and what is called over it.
    const COLLECTIVE: u64 = 2 + 2 + 2 * 2 * ROUNDS;
    let states = job_agrees(Job::builder(mpi, program::COMMUNICATOR_THREADS).ranks(RANKS), engine)?;
    let ranks = u64::from(RANKS);
    expect_all_matched(&states, ranks * 2 * ROUNDS, ranks * COLLECTIVE)
}

fn expect_all_matched(states: &Value, messages: u64, collective_calls: u64) -> Result<(), Failed> {
    let is_complete = states.get("complete") == Some(&Value::Bool(true));
    if is_complete && matched(states) == [Some(messages), Some(collective_calls)] {
        return Ok(());
    }
    Err(format!("{}", states.get("unmatched").unwrap_or(&Value::Null)).into())
}

/// `between_groups`: collectives between the two groups of an inter-communicator, and who is late there.
fn groups_agree(mpi: Mpi, engine: &str) -> Result<(), Failed> {
    const RANKS: u32 = 4;
    // MPI_Init and MPI_Finalize, a split, six over both groups in each step, and what follows.
    const COLLECTIVE: u64 = 2 + 1 + 6 * 10 + 4;
    let states = job_agrees(Job::builder(mpi, program::BETWEEN_GROUPS).ranks(RANKS), engine)?;
    expect_all_matched(&states, 0, u64::from(RANKS) * COLLECTIVE)?;
    for (kind, late) in [("barrier", RANKS - 1), ("late-broadcast", 0)] {
        if !waits_for(&states, kind, late.into()) {
            return Err(format!("nobody waits for rank {late} in {kind}: {:?}", states.get("waits")).into());
        }
    }
    Ok(())
}

/// `epochs`: who exposes a window late, and who completes an access late.
fn epochs_agree(mpi: Mpi, engine: &str) -> Result<(), Failed> {
    const RANKS: u32 = 3;
    // MPI_Init and MPI_Finalize, and a window made and freed.
    const COLLECTIVE: u64 = 2 + 2;
    let states = job_agrees(Job::builder(mpi, program::EPOCHS).ranks(RANKS), engine)?;
    expect_all_matched(&states, 0, u64::from(RANKS) * COLLECTIVE)?;
    for (kind, late) in [("late-post", 0), ("early-wait", RANKS - 1)] {
        if !waits_for(&states, kind, late.into()) {
            return Err(format!("nobody waits for rank {late} in {kind}: {:?}", states.get("waits")).into());
        }
    }
    Ok(())
}

/// `locks`: whoever asks for a lock waits for the one that has it, by the whole time for which it is kept.
fn locks_agree(mpi: Mpi, engine: &str) -> Result<(), Failed> {
    const RANKS: u32 = 3;
    const STEPS: u64 = 10;
    const KEPT_NS: u64 = 5_000_000;
    let states = job_agrees(Job::builder(mpi, program::LOCKS).ranks(RANKS), engine)?;
    expect_all_matched(&states, 4 * STEPS, u64::from(RANKS) * (4 + STEPS))?;
    let rows = states.get("waits").and_then(Value::as_array).into_iter().flatten();
    let of_locks = rows.filter(|row| row.get("kind") == Some(&"lock-contention".into()));
    let sum = |name: &str| of_locks.clone().filter_map(|row| row.get(name)?.as_u64()).sum::<u64>();
    // On a machine that has much to do, it may be given up before it is asked for, in some of the steps.
    let (count, ns) = (sum("count"), sum("ns"));
    if (1..=STEPS).contains(&count) && ns > KEPT_NS / 4 && waits_for(&states, "lock-contention", 1) {
        return Ok(());
    }
    Err(format!("{count} waits for locks, {ns} ns: {:?}", states.get("waits")).into())
}

/// `spawns`: each world has its own collectives and messages. What is called over both is of a group that is not known.
fn worlds_agree(mpi: Mpi, engine: &str) -> Result<(), Failed> {
    const STEPS: u64 = 10;
    // Of each of two ranks of both worlds together.
    const COLLECTIVE: u64 = 2 * 2 + 3 * STEPS;
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("job.trace");
    let job = Job::builder(mpi, program::SPAWNS).ranks(2).spawns();
    let states = live_agrees(job, engine, &path)?;
    let others = ["sends", "receives", "outside", "unsure", "contradictions", "incomplete_collective_calls"];
    let are_others = others.iter().any(|name| count(&states, name) != Some(0));
    if matched(&states) == [Some(4 * STEPS), Some(2 * COLLECTIVE)]
        && count(&states, "of_partial_groups") == Some(4)
        && !are_others
    {
        return Ok(());
    }
    Err(format!("{}", states.get("unmatched").unwrap_or(&Value::Null)).into())
}

/// Functions that complete requests are not recorded: that is said.
fn unseen_completions_are_counted(mpi: Mpi, engine: &str) -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("job.trace");
    let options: [OsString; 4] = ["--functions".into(), "p2p".into(), "--trace".into(), (&path).into()];
    let job = Job::builder(mpi, program::SEMANTICS).args(["requests"]).deadline(DEADLINE);
    let mut job = job.run_by(engine, options)?.spawn()?;
    job.wait()?.success()?;
    let ended = Profiler::start([OsString::from("waits"), "--json".into(), path.into()])?.wait()?;
    let states: Value = serde_json::from_str(&ended.stdout.join("\n"))?;
    if count(&states, "completed_unseen") > Some(0) && ended.status.code() == Some(3) {
        return Ok(());
    }
    Err(format!("{} {}", ended.status, states.get("unmatched").unwrap_or(&Value::Null)).into())
}

/// Whether somebody waits for a rank in waits of a kind, whoever else is late on a machine that has much to do.
fn waits_for(states: &Value, kind: &str, late: u64) -> bool {
    let rows = |name: &str| states.get(name).and_then(Value::as_array).into_iter().flatten();
    let rank_of = |thread: &Value| {
        let place = usize::try_from(thread.as_u64()?).ok()?;
        rows("threads").nth(place)?.get("rank")?.as_u64()
    };
    let of_kind = rows("waits").filter(|row| row.get("kind") == Some(&kind.into()));
    let causes = of_kind.filter_map(|row| row.get("caused_by")?.as_array()).flatten();
    causes.filter_map(|cause| rank_of(cause.get("thread")?)).any(|rank| rank == late)
}

/// `switched_off`: what is called while counting is off is missing, and nothing else is taken for it.
fn switched_off_agrees(mpi: Mpi, engine: &str) -> Result<(), Failed> {
    // What rank 0 calls first after that is not sure: a broadcast. All meet in the next step.
    const OFF: u64 = 7 + 2;
    const UNSURE: u64 = 1;
    let directory = tempfile::tempdir()?;
    // Where nobody knows the clocks well enough, no meeting tells after a gap what belongs together.
    let path = directory.path().join("job.trace");
    let states = live_agrees(Job::builder(mpi, program::SWITCHED_OFF).ranks(3), engine, &path)?;
    // Whether rank 1 comes back before the others are in the same step is left to chance: if they are, all meet in the next one.
    let [messages, collective] = matched(&states);
    let steps = 30 - OFF - UNSURE;
    let are_met = [steps, steps - 1].map(|steps| Some(3 * (2 + steps))).contains(&collective);
    // Which messages belong together after it, those tell that somebody waits for.
    let are_true =
        messages > Some(0) && messages <= Some(2 * (30 - OFF)) && count(&states, "contradictions") == Some(0);
    if are_met && are_true {
        return Ok(());
    }
    Err(format!("{}", states.get("unmatched").unwrap_or(&Value::Null)).into())
}

/// `fences`, where each process has a name of its own for what all have made together: nothing is left without others, and who is late is
/// waited for.
fn fences_agree(mpi: Mpi, engine: &str) -> Result<(), Failed> {
    // MPI_Init and MPI_Finalize, windows made and freed, fences, and a file opened, written to and closed.
    const COLLECTIVE: u64 = 2 + 4 + 40 + 7;
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("file");
    let states = agree(mpi, engine, program::FENCES, &[file.to_str().ok_or("no text")?])?;
    let rows = |name: &str| states.get(name).and_then(Value::as_array).into_iter().flatten();
    let ranks = rows("threads").count() as u64;
    if matched(&states) == [Some(0), Some(ranks * COLLECTIVE)]
        && count(&states, "incomplete_collective_calls") == Some(0)
        && waits_for(&states, "window", ranks - 1)
        && waits_for(&states, "common", 0)
    {
        return Ok(());
    }
    Err(format!(
        "{ranks} ranks: {} {:?}",
        states.get("unmatched").unwrap_or(&Value::Null),
        rows("waits").collect::<Vec<_>>()
    )
    .into())
}
