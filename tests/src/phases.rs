//! What `programs/phases.c` says that it calls in which phase, and whether a profile says the same.

use std::collections::BTreeMap;

use crate::Profile;
use crate::profiler::Flow;

/// Calls, bytes sent and received, by function.
type Counts = BTreeMap<&'static str, [u64; 3]>;

/// The function that most phases call.
pub const BARRIER: &str = "MPI_Barrier";
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

/// How often a rank has called `MPI_Barrier`, in all phases and in none.
pub fn barriers(profile: &Profile, rank: u32) -> Result<u64, &'static str> {
    let rank = profile.rank(rank).ok_or("no such rank")?;
    Ok(rank.functions.iter().filter(|row| row.name == BARRIER).map(|row| row.calls).sum())
}

/// Checks the profile of a whole run on two ranks.
///
/// # Panics
/// If it says something else.
pub fn expect_phases(profile: &Profile) -> Result<(), &'static str> {
    for rank in 0..2 {
        assert_eq!(barriers(profile, rank)?, 47, "rank {rank}");
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

/// Checks the profile of a run with `deep` as its argument.
///
/// # Panics
/// If it says something else.
pub fn expect_deep_phases(profile: &Profile) -> Result<(), String> {
    for rank in 0..2 {
        assert_eq!(barriers(profile, rank)?, 21, "rank {rank}");
        let row = profile.rank(rank).ok_or("no such rank")?;
        let [phase] = row.phases.as_slice() else { return Err(format!("{:?}", row.phases)) };
        let in_phase: u64 = phase.counts().filter(|(name, _)| *name == BARRIER).map(|(_, [calls, ..])| calls).sum();
        assert_eq!((phase.opened, phase.is_open, in_phase), (16, false, 20), "rank {rank}");
        assert_eq!(row.losses.get("phase_table_full"), Some(&Some(4)), "rank {rank}");
    }
    Ok(())
}

/// Checks the profile of a run of `programs/completed_unseen.c`: what nobody has seen completed is complete, with all that its buffer had room for.
/// `told`: receives that were seen completed, of which it is known how much has come.
///
/// # Panics
/// If it says something else.
pub fn expect_completed_unseen(profile: &Profile, told: u64) -> Result<(), &'static str> {
    for rank in 0..2 {
        let traffic = profile.rank(rank).and_then(|row| row.traffic.as_ref()).ok_or("no traffic")?;
        let most = 100 * (9 - told);
        for (function, sent, received, at_most) in [
            ("MPI_Irecv", 0, 80 * told + most, most),
            ("MPI_Recv_init", 0, 200, 200),
            ("MPI_Isend", 400, 0, 0),
            ("MPI_Send_init", 160, 0, 0),
        ] {
            let flows = || traffic.flows.iter().filter(|flow| flow.function == function);
            let sum = |what: fn(&Flow) -> u64| flows().map(what).sum::<u64>();
            assert_eq!(
                (sum(|flow| flow.sent_bytes), sum(|flow| flow.received_bytes), sum(|flow| flow.received_at_most_bytes)),
                (sent, received, at_most),
                "{function} of rank {rank}"
            );
            assert_eq!(sum(|flow| flow.calls_of_unknown_bytes), 0, "{function} of rank {rank}");
        }
        assert!(traffic.pending.is_empty(), "{:?}", traffic.pending);
        // It has returned an error, over a communicator all the same.
        let refused: Vec<_> = traffic.flows.iter().filter(|flow| flow.function == "MPI_Bcast").collect();
        let is_told = matches!(refused.as_slice(), [Flow { calls: 1, communicator: Some(_), .. }]);
        assert!(is_told, "rank {rank}: {refused:?}");
    }
    Ok(())
}
