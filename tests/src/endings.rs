//! What a profile says of ranks that have ended by themselves, whichever engine has counted them.
#![expect(clippy::missing_panics_doc, reason = "these are assertions")]

use libtest_mimic::Failed;

use crate::profiler::Profile;

/// Of `exits quits`, or `exits quits-inside`.
pub fn expect_quit(profile: &Profile, inside: bool) -> Result<(), Failed> {
    let dead = profile.rank(1).ok_or("no rank 1")?;
    assert_eq!((dead.state.as_str(), dead.completed().get("MPI_Allreduce")), ("ended", Some(&10)), "{dead:?}");
    dead.expect_failure("exit_status", if inside { 5 } else { 4 });
    let open: Vec<_> = dead.open_calls.iter().map(|call| (call.function.as_str(), call.ended_inside)).collect();
    let expected = if inside { &[("MPI_Comm_delete_attr", true)][..] } else { &[] };
    assert_eq!(open, expected, "{dead:?}");
    Ok(())
}

/// Of ranks of `exits` that have gone on as another program: whatever that has ended with is not theirs.
pub fn expect_execed(profile: &Profile, ranks: usize) {
    let execed: Vec<_> = profile.ranks.iter().filter(|row| row.state == "execed").collect();
    assert_eq!(execed.len(), ranks, "{profile:?}");
    assert!(execed.iter().all(|row| row.failure.is_none()), "{execed:?}");
}

/// Of `exits survives`: what its children have done has ended none of the ranks.
pub fn expect_survival(profile: &Profile, state: &str) {
    assert!(profile.ranks.iter().all(|row| row.state == state && row.failure.is_none()), "{profile:?}");
}
