//! The supervisor's rights: four capabilities, and no user who owns anything.

use std::{ffi::OsStr, io, path::Path};

use mpiprobe_discover::users::Users;
use rustix::{
    process::{DumpableBehavior, Gid, Uid, getuid, set_dumpable_behavior},
    thread::{
        CapabilitySet, CapabilitySets, capabilities, configure_capability_in_ambient_set, set_capabilities,
        set_keep_capabilities, set_no_new_privs, set_thread_groups, set_thread_res_gid, set_thread_res_uid,
    },
};

use super::error::ServiceError;

/// What it cannot do without, by their names.
const NEEDED: [(CapabilitySet, &str); 4] = [
    (CapabilitySet::BPF, "CAP_BPF"),
    (CapabilitySet::PERFMON, "CAP_PERFMON"),
    (CapabilitySet::SYS_PTRACE, "CAP_SYS_PTRACE"),
    (CapabilitySet::DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH"),
];
/// The user that runs for want of one of its own.
const NOBODY: &str = "nobody";

/// Checks that everything needed is there.
pub(super) fn check() -> Result<(), ServiceError> {
    let own = capabilities(None).map_err(|error| ServiceError::system("own capabilities")(error.into()))?;
    let missing: Vec<&str> =
        NEEDED.iter().filter(|(needed, _)| !own.permitted.contains(*needed)).map(|(_, name)| *name).collect();
    if missing.is_empty() { Ok(()) } else { Err(ServiceError::Capabilities { missing: missing.join(", ") }) }
}

/// Puts down all rights but those four, which programs that are executed from now on have as well; and if this is root, becomes another
/// user. There must be no other thread yet.
pub(super) fn keep_needed(user: &str) -> Result<(), ServiceError> {
    let needed = NEEDED.iter().fold(CapabilitySet::empty(), |all, (one, _)| all | *one);
    let failed = |source: rustix::io::Errno| ServiceError::User { user: user.to_owned(), source: source.into() };
    if getuid().is_root() {
        let (uid, gid) = ids_of(user)?;
        set_keep_capabilities(true).map_err(failed)?;
        set_thread_groups(&[]).map_err(failed)?;
        set_thread_res_gid(gid, gid, gid).map_err(failed)?;
        set_thread_res_uid(uid, uid, uid).map_err(failed)?;
    }
    let sets = CapabilitySets { effective: needed, permitted: needed, inheritable: needed };
    set_capabilities(None, sets).map_err(failed)?;
    for (one, _) in NEEDED {
        configure_capability_in_ambient_set(one, true).map_err(failed)?;
    }
    set_no_new_privs(true).map_err(failed)?;
    // Nobody of the same user may look into it.
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(failed)
}

fn ids_of(user: &str) -> Result<(Uid, Gid), ServiceError> {
    let users = Users::read();
    let found = users.ids(user).or_else(|| users.ids(NOBODY).filter(|_| user == "mpiprobe"));
    let (uid, gid) = found.ok_or_else(|| ServiceError::NoUser(user.to_owned()))?;
    Ok((Uid::from_raw(uid), Gid::from_raw(gid)))
}

/// Puts down everything that is left.
pub(super) fn keep_nothing() -> io::Result<()> {
    rustix::thread::clear_ambient_capability_set()?;
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
    set_no_new_privs(true)?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    Ok(())
}

/// The number of a group, from `/etc/group` alone.
pub(super) fn group(name: &str) -> io::Result<Option<u32>> {
    let text = std::fs::read_to_string(Path::new(OsStr::new("/etc/group")))?;
    let number = |line: &str| {
        let mut fields = line.split(':');
        (fields.next()? == name).then(|| fields.nth(1)?.parse().ok())?
    };
    Ok(text.lines().find_map(number))
}
