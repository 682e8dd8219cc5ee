//! What programs ask for by `MPI_Pcontrol`, against what `tests/programs/phases.c` says it calls.

use std::collections::BTreeMap;

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::{Job, Language, Mpi, Profile, Profiler, program};

use crate::check::complete;
use crate::trial;

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    vec![
        trial(mpi, Language::C, "phases_have_their_own_counts", phases),
        trial(mpi, Language::C, "phases_are_ignored_if_asked_for", ignored),
        trial(mpi, Language::C, "phases_too_deep_are_counted_in_the_innermost", deep),
    ]
}

/// Calls, bytes sent and received, by function.
type Counts = BTreeMap<&'static str, [u64; 3]>;

const BARRIER: &str = "MPI_Barrier";
const SENDRECV: &str = "MPI_Sendrecv";

/// By name: how often opened, and what is called in it.
fn expected() -> BTreeMap<&'static str, (u64, Counts)> {
    BTreeMap::from([
        ("solve", (2, Counts::from([(BARRIER, [24, 0, 0]), (SENDRECV, [5, 500, 500])]))),
        ("halo", (1, Counts::from([(SENDRECV, [7, 7000, 7000]), (BARRIER, [2, 0, 0])]))),
        ("phase 5", (1, Counts::from([(BARRIER, [4, 0, 0])]))),
        ("left open", (1, Counts::from([(BARRIER, [1, 0, 0])]))),
        ("post", (1, Counts::from([("MPI_Irecv", [1, 0, 0]), ("MPI_Isend", [1, 300, 0])]))),
        // What is received counts when it has arrived.
        ("complete", (1, Counts::from([("MPI_Waitall", [1, 0, 0]), ("MPI_Irecv", [0, 0, 300])]))),
    ])
}

fn observe(mpi: Mpi, arguments: &[&'static str], options: &[&str]) -> Result<(Job, Profiler), Failed> {
    let gates: &[&str] = if arguments.is_empty() { &["1", "2"] } else { &["1"] };
    let builder = Job::builder(mpi, program::PHASES).ranks(2).args(arguments.iter().copied()).gates(gates).own_name();
    let mut job = builder.spawn()?;
    job.wait_for_gate("1")?;
    let profiler = Profiler::observe(["--traffic", "--pid-of", job.called()].iter().chain(options))?;
    job.open_gate("1")?;
    Ok((job, profiler))
}

fn barriers(profile: &Profile, rank: u32) -> Result<u64, Failed> {
    let rank = profile.rank(rank).ok_or("no such rank")?;
    Ok(rank.functions.iter().filter(|row| row.name == BARRIER).map(|row| row.calls).sum())
}

fn phases(mpi: Mpi) -> Result<(), Failed> {
    let (mut job, mut profiler) = observe(mpi, &[], &[])?;
    // Written out when rank 0 asks for it: nobody else does in an hour.
    let flushed: Profile = serde_json::from_str(&profiler.wait_for_output(0)?)?;
    assert_eq!(flushed.end, None);
    assert_eq!(barriers(&flushed, 0)?, 10 + 20 + 2 + 3 + 4 + 1 + 1);
    job.wait_for_gate("2")?;
    job.open_gate("2")?;
    job.wait()?.success()?;
    let profile = complete(&profiler.wait()?)?;
    for rank in 0..2 {
        assert_eq!(barriers(&profile, rank)?, 47, "rank {rank}");
        let row = profile.rank(rank).ok_or("no such rank")?;
        assert_eq!(row.calls_while_off, 12, "rank {rank}");
        assert!(row.off_ns > 0, "rank {rank}");
        let found: BTreeMap<&str, _> = row.phases.iter().map(|phase| (phase.name.as_str(), phase)).collect();
        let names: Vec<_> = found.keys().copied().collect();
        let wanted = expected();
        assert_eq!(names, wanted.keys().copied().collect::<Vec<_>>(), "rank {rank}");
        for (name, (opened, counts)) in wanted {
            let Some(phase) = found.get(name) else { continue };
            assert_eq!((phase.opened, phase.is_open), (opened, false), "rank {rank}, {name}");
            let counted: BTreeMap<&str, _> = phase.counts().filter(|(name, _)| *name != "MPI_Pcontrol").collect();
            assert_eq!(counted, counts, "rank {rank}, {name}");
            assert!(phase.wall_ns >= phase.mpi_ns, "rank {rank}, {name}");
        }
    }
    for (name, (opened, _)) in expected() {
        let all = profile.phases.iter().find(|phase| phase.name == name).ok_or(name)?;
        let calls: u64 = profile
            .ranks
            .iter()
            .flat_map(|rank| &rank.phases)
            .filter(|one| one.name == name)
            .map(|one| one.calls)
            .sum();
        assert_eq!((all.ranks, all.opened, all.calls), (2, 2 * opened, calls), "{name}");
    }
    Ok(())
}

fn ignored(mpi: Mpi) -> Result<(), Failed> {
    let (mut job, profiler) = observe(mpi, &[], &["--ignore-pcontrol"])?;
    job.wait_for_gate("2")?;
    job.open_gate("2")?;
    job.wait()?.success()?;
    let ended = profiler.wait()?;
    let profile = complete(&ended)?;
    assert_eq!(ended.stdout.len(), 1, "{}", ended.printed());
    assert!(profile.phases.is_empty());
    for rank in 0..2 {
        assert_eq!(barriers(&profile, rank)?, 47 + 9, "rank {rank}");
    }
    Ok(())
}

fn deep(mpi: Mpi) -> Result<(), Failed> {
    let (mut job, profiler) = observe(mpi, &["deep"], &[])?;
    job.wait()?.success()?;
    let profile = profiler.wait()?.profile()?;
    for rank in 0..2 {
        assert_eq!(barriers(&profile, rank)?, 21, "rank {rank}");
        let row = profile.rank(rank).ok_or("no such rank")?;
        let [phase] = row.phases.as_slice() else { return Err(format!("{:?}", row.phases).into()) };
        let in_phase: u64 = phase.counts().filter(|(name, _)| *name == BARRIER).map(|(_, [calls, ..])| calls).sum();
        assert_eq!((phase.opened, phase.is_open, in_phase), (16, false, 20), "rank {rank}");
        assert_eq!(row.losses.get("phase_table_full"), Some(&Some(4)), "rank {rank}");
    }
    Ok(())
}
