//! What observing may cost: functions of jobs that poll are counted with less care, all others exactly, and what is said of the former is
//! true.

use std::{collections::BTreeMap, process::Command};

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::{
    Job, Language, Mpi, Profile, Profiler,
    profiler::{Budget, Flow, FunctionRow, binary},
    program,
};

use crate::trial;

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    vec![
        trial(mpi, Language::C, "budget_samples_what_polls", sampled),
        trial(mpi, Language::C, "budget_counts_entries_exactly", by_entry),
        trial(mpi, Language::C, "budget_off_counts_everything", off),
        trial(mpi, Language::C, "budget_gives_traffic_up_for_requests", without_traffic),
        trial(mpi, Language::C, "budget_finds_traffic_out_again", with_traffic_again),
    ]
}

/// A minute of three seconds, so that everything happens within a short job.
const SHORT: [(&str, &str); 1] = [("MPIPROBE_BUDGET_MINUTE_MS", "3000")];

/// How often each rank has called, as it says itself: where the truth library is before MPI, as any tool, nothing is reduced.
type Truth = BTreeMap<u32, BTreeMap<&'static str, u64>>;

fn truth(stdout: &str) -> Truth {
    let numbers = |line: &str| -> Option<(u32, Vec<u64>)> {
        let (rank, said) = line.strip_prefix("rank ")?.split_once(": ")?;
        let said = said.split(", ").filter_map(|word| word.split(' ').next()?.parse().ok());
        Some((rank.parse().ok()?, said.collect()))
    };
    let ranks = stdout.lines().filter_map(numbers);
    ranks
        .map(|(rank, calls)| (rank, ["MPI_Iprobe", "MPI_Test", "MPI_Sendrecv"].into_iter().zip(calls).collect()))
        .collect()
}

fn observe(mpi: Mpi, arguments: &[&str]) -> Result<(Profile, Truth), Failed> {
    let mut job = Job::builder(mpi, program::POLLS)
        .ranks(2)
        .args(["4", "50"])
        .gates(&["start"])
        .gates_are_linked_in()
        .own_name()
        .own_library()
        .spawn()?;
    job.wait_for_gate("start")?;
    let profiler = Profiler::observe_with(&SHORT, ["--pid-of", job.called()].iter().chain(arguments))?;
    job.open_gate("start")?;
    let truth = truth(&job.wait()?.success()?.stdout);
    assert_eq!(truth.len(), 2, "{truth:?}");
    Ok((profiler.wait()?.profile()?, truth))
}

fn each_rank(
    (profile, truth): &(Profile, Truth),
    mut look: impl FnMut(&FunctionRow, u64) -> Result<(), Failed>,
) -> Result<(), Failed> {
    for (rank, calls) in truth {
        let row = profile.rank(*rank).ok_or("no such rank")?;
        for (name, calls) in calls {
            let function = row.functions.iter().find(|function| function.name == *name);
            look(function.ok_or_else(|| format!("rank {rank} has no {name}"))?, *calls)?;
        }
    }
    Ok(())
}

/// Invariant WITHIN-BUDGET.
fn sampled(mpi: Mpi) -> Result<(), Failed> {
    let observed = observe(mpi, &["--max-overhead", "2/1m"])?;
    let budget = observed.0.budget.as_ref().ok_or("no budget")?;
    assert_eq!(budget.max_overhead, Some(2.0));
    let polls = budget.levels.iter().find(|reduced| reduced.function == "MPI_Test").ok_or("polls are not reduced")?;
    assert!(polls.sampled_ns > 0 && !observed.0.complete, "{budget:?}");
    // On a busy machine it may have to be counted by entry, which is as exact.
    let exchanges = budget.levels.iter().find(|reduced| reduced.function == "MPI_Sendrecv");
    assert!(exchanges.is_none_or(|reduced| reduced.level == "entries" && reduced.sampled_ns == 0), "{budget:?}");
    let mut untimed = 0;
    each_rank(&observed, |row, truth| {
        match row.estimated {
            // Counted by entry for some time at most.
            None => {
                let is_reduced = budget.levels.iter().any(|reduced| reduced.function == row.name);
                assert!(row.calls == truth && (is_reduced || row.untimed_calls == 0), "{truth}: {row:?}");
            }
            Some(estimate) => {
                let high = estimate.calls_high.unwrap_or(u64::MAX);
                assert!((estimate.calls_low..=high).contains(&truth), "{truth}: {row:?}");
                // Of a rank, there may be no call in any window.
                assert!(row.calls <= truth, "{truth}: {row:?}");
                untimed += row.untimed_calls;
            }
        }
        Ok(())
    })?;
    assert!(untimed > 0, "{:?}", observed.0);
    Ok(())
}

/// Where probes cannot be taken off and put on quickly nothing is sampled.
fn by_entry(mpi: Mpi) -> Result<(), Failed> {
    // The kernel takes a tenth of a second for the end of each such probe.
    let few = ["--functions", "Iprobe,Test,Sendrecv"];
    let observed = observe(mpi, &["--max-overhead", "2/1m", "--attach", "perf-event", few[0], few[1]])?;
    let budget = observed.0.budget.as_ref().ok_or("no budget")?;
    let polls = budget.levels.iter().find(|reduced| reduced.function == "MPI_Test").ok_or("polls are not reduced")?;
    assert!(polls.level == "entries" && polls.sampled_ns == 0, "{budget:?}");
    each_rank(&observed, |row, truth| {
        assert_eq!((row.calls, row.estimated), (truth, None), "{row:?}");
        assert!(row.name != "MPI_Test" || row.untimed_calls > 0, "{row:?}");
        Ok(())
    })
}

fn off(mpi: Mpi) -> Result<(), Failed> {
    let observed = observe(mpi, &["--max-overhead", "off"])?;
    let budget = observed.0.budget.as_ref().ok_or("no budget")?;
    assert!(observed.0.complete && budget.max_overhead.is_none() && budget.levels.is_empty(), "{budget:?}");
    each_rank(&observed, |row, truth| {
        assert_eq!((row.calls, row.estimated, row.untimed_calls), (truth, None, 0), "{row:?}");
        Ok(())
    })
}

/// `MPI_Test` completes requests: what calls move is not found out any more, and what is told of bytes until then is true.
fn without_traffic(mpi: Mpi) -> Result<(), Failed> {
    let observed = observe(mpi, &["--max-overhead", "2/1m", "--traffic"])?;
    let budget = observed.0.budget.as_ref().ok_or("no budget")?;
    assert!(budget.traffic_until_ns.is_some() && !observed.0.complete, "{budget:?}");
    for rank in &observed.0.ranks {
        let traffic = rank.traffic.as_ref().ok_or("no traffic")?;
        assert!(traffic.pending.is_empty(), "{traffic:?}");
    }
    each_rank(&observed, |row, truth| {
        assert!(row.estimated.is_some() || row.calls == truth, "{truth}: {row:?}");
        Ok(())
    })
}

/// When nobody polls any more everything is counted as in the beginning, and what calls move is found out of all but requests from before.
fn with_traffic_again(mpi: Mpi) -> Result<(), Failed> {
    const EXCHANGES: u64 = 300;
    let mut job = Job::builder(mpi, program::POLLS_ONCE)
        .ranks(2)
        .args([EXCHANGES.to_string()])
        .gates(&["start", "2"])
        .gates_are_linked_in()
        .own_name()
        .own_library()
        .spawn()?;
    job.wait_for_gate("start")?;
    let mut command = Command::new(binary()?);
    command.envs(SHORT).args([
        "--json",
        "--interval",
        "200ms",
        "--traffic",
        "--max-overhead",
        "2/1m",
        "--pid-of",
        job.called(),
    ]);
    let mut profiler = Profiler::spawn(command)?;
    profiler.wait_for("mpiprobe: observing ")?;
    job.open_gate("start")?;
    let mut outputs = 0..;
    let mut wait_until = |profiler: &mut Profiler, is_so: fn(&Budget) -> bool| -> Result<(), Failed> {
        for nth in &mut outputs {
            let profile: Profile = serde_json::from_str(&profiler.wait_for_output(nth)?)?;
            if profile.budget.as_ref().is_some_and(is_so) {
                break;
            }
        }
        Ok(())
    };
    wait_until(&mut profiler, |budget| budget.levels.iter().any(|reduced| reduced.level == "sampled"))?;
    job.stop()?;
    wait_until(&mut profiler, |budget| budget.traffic_is_back)?;
    job.open_gate("2")?;
    job.wait()?.success()?;
    let profile = profiler.wait()?.profile()?;
    let budget = profile.budget.as_ref().ok_or("no budget")?;
    assert!(budget.levels.iter().all(|reduced| reduced.level == "full"), "{budget:?}");
    assert!(budget.traffic_is_back && budget.traffic_paused_ns > 0 && !profile.complete, "{budget:?}");
    for rank in &profile.ranks {
        let traffic = rank.traffic.as_ref().ok_or("no traffic")?;
        for (name, sent) in [("MPI_Isend", 1000 * EXCHANGES), ("MPI_Irecv", 0)] {
            let flows = || traffic.flows.iter().filter(|flow| flow.function == name);
            let sum = |of: fn(&Flow) -> u64| flows().map(of).sum::<u64>();
            assert_eq!((sum(|flow| flow.calls), sum(|flow| flow.completed)), (EXCHANGES, EXCHANGES), "{traffic:?}");
            let bytes = (sum(|flow| flow.sent_bytes), sum(|flow| flow.received_bytes));
            assert_eq!(bytes, (sent, 1000 * EXCHANGES - sent), "{traffic:?}");
            assert_eq!(sum(|flow| flow.calls_of_unknown_bytes), 0, "{traffic:?}");
        }
        // Of persistent requests that were made before nothing is known.
        let started = traffic.flows.iter().find(|flow| flow.function == "MPI_Startall").ok_or("nothing was started")?;
        assert_eq!((started.calls, started.calls_of_unknown_bytes), (5, 10), "{traffic:?}");
        assert!(traffic.pending.is_empty(), "{traffic:?}");
    }
    Ok(())
}
