//! What the communicators of the program `semantics communicators` are called, and which call has made them from which other one.
#![expect(clippy::missing_panics_doc, reason = "its assertions fail a test")]

use libtest_mimic::Failed;

use crate::Profile;

/// Whether a profile of all its calls tells the truth about them. An engine that does not list members still says how many there are.
pub fn are_told(profile: &Profile, lists_members: bool) -> Result<(), Failed> {
    let traffic = profile.traffic.as_ref().ok_or("no traffic")?;
    let by_name = |name: &str| {
        let mut found = traffic.communicators.iter().filter(|row| row.name == name);
        let only = found.next().filter(|_| found.next().is_none());
        only.ok_or_else(|| format!("not one {name} in {:?}", traffic.communicators))
    };
    let world = by_name("world")?.id;
    for (name, made_by, parent, members) in [
        ("copy", "MPI_Comm_dup", "world", &[0, 1, 2, 3][..]),
        ("odd", "MPI_Comm_split", "world", &[1, 3]),
        ("even", "MPI_Comm_split", "world", &[0, 2]),
        ("split#3 of world", "MPI_Comm_split", "world", &[3, 2, 1, 0]),
        ("create_group#1 of world", "MPI_Comm_create_group", "world", &[3, 1]),
        ("grid", "MPI_Cart_create", "world", &[0, 1, 2, 3]),
        ("cart_sub#1 of grid", "MPI_Cart_sub", "grid", &[]),
        ("cart_sub#2 of grid", "MPI_Cart_sub", "grid", &[]),
        ("graph#1 of world", "MPI_Graph_create", "world", &[0, 1, 2, 3]),
        ("intercomm_merge#1 of bridge", "MPI_Intercomm_merge", "bridge", &[0, 2, 1, 3]),
        ("idup#1 of copy", "MPI_Comm_idup", "copy", &[0, 1, 2, 3]),
    ] {
        let row = by_name(name)?;
        assert_eq!((row.made_by.as_deref(), row.parent), (Some(made_by), Some(by_name(parent)?.id)), "{name}");
        let all = &traffic.communicators;
        assert!(row.freed && row.ranks == row.size.unwrap_or(0), "{row:?} among {all:?}");
        if lists_members && !members.is_empty() {
            let members: Vec<Option<u32>> = members.iter().map(|&rank| Some(rank)).collect();
            assert_eq!(row.members, Some(members), "{name}");
        }
    }
    let bridge = by_name("bridge")?;
    assert_eq!((bridge.size, bridge.remote_size, bridge.ranks), (Some(2), Some(2), 4));
    assert_eq!(by_name("world")?.parent, None);
    assert_eq!(traffic.communicators.iter().filter(|row| row.id == world).count(), 1);
    Ok(())
}
