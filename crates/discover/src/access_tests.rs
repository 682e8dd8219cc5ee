use std::ffi::OsStr;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use super::*;
use crate::{
    fake::FakeProc,
    status::Ids,
    test_child::{TestChild, copy_of_cat},
};

const ALICE: Caller = Caller { user: 1000, group: 100, may_trace_all: false, within: None };

fn status(user: u32, effective_capabilities: u64, ambient_capabilities: u64) -> Status {
    let ids = |id| Ids { real: id, effective: 0, saved: 0, file_system: 0 };
    Status {
        thread_group: 1,
        users: ids(user),
        groups: ids(100),
        supplementary: Vec::new(),
        namespace_pids: Vec::new(),
        seccomp: None,
        effective_capabilities,
        ambient_capabilities,
    }
}

/// The verdict on a process with these ids, whose files belong to `owner`.
fn verdict(users: [u32; 3], groups: [u32; 3], owner: (u32, u32)) -> Result<(), Refusal> {
    let proc = FakeProc::new();
    proc.process(7, 1, "ring", &["ring"]);
    proc.ids(7, users, groups);
    chown(proc.path(7).join("status"), Some(owner.0), Some(owner.1)).unwrap();
    may_trace(&ALICE, &Process::open(&proc.root(), 7).unwrap())
}

/// Invariant CALLERS-RIGHTS.
#[test]
fn rights_that_come_with_the_file_are_not_the_callers() {
    assert_eq!(Caller::of(&status(1000, CAP_SYS_PTRACE, 0)), ALICE);
    // A set-user-id mpiprobe: effective root, but somebody else asked.
    assert!(!Caller::of(&status(1000, u64::MAX, 0)).may_trace_all);
    // Root in a container without the capability.
    assert!(!Caller::of(&status(0, !CAP_SYS_PTRACE, 0)).may_trace_all);
    assert!(Caller::of(&status(0, CAP_SYS_PTRACE, 0)).may_trace_all);
    // A service that was given the capability by its manager.
    assert!(Caller::of(&status(1000, CAP_SYS_PTRACE, CAP_SYS_PTRACE)).may_trace_all);
}

#[test]
fn the_current_caller_is_known() {
    let caller = Caller::current().unwrap();
    assert_eq!(caller.user, rustix::process::getuid().as_raw());
    assert_eq!(caller.group, rustix::process::getgid().as_raw());
}

/// Files must be given to other users for these.
fn is_root() -> bool {
    let root = rustix::process::getuid().is_root();
    assert!(root || std::env::var_os("CI").is_none(), "discover's access tests need root");
    if !root {
        eprintln!("discover's access tests need root: not run");
    }
    root
}

#[test]
fn own_processes_may_be_traced_and_no_others() {
    if !is_root() {
        return;
    }
    assert!(verdict([1000; 3], [100; 3], (1000, 100)).is_ok());
    let refusal = verdict([1001; 3], [100; 3], (1001, 100)).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "process 7 belongs to user 1001 and you are user 1000; ask them, or run mpiprobe as root (sudo)"
    );
    assert!(matches!(verdict([0; 3], [0; 3], (0, 0)), Err(Refusal::OtherUser { owner: 0, .. })));
    assert!(matches!(verdict([1000; 3], [5; 3], (1000, 5)), Err(Refusal::OtherGroup { owner: 5, .. })));
}

#[test]
fn one_foreign_id_of_six_is_enough_to_refuse() {
    if !is_root() {
        return;
    }
    for place in 1..3 {
        let mut ids = [1000; 3];
        ids[place] = 0;
        assert!(matches!(verdict(ids, [100; 3], (1000, 100)), Err(Refusal::ChangedIds { pid: 7 })), "{ids:?}");
        let mut ids = [100; 3];
        ids[place] = 0;
        assert!(matches!(verdict([1000; 3], ids, (1000, 100)), Err(Refusal::ChangedIds { pid: 7 })), "{ids:?}");
    }
    assert!(matches!(verdict([0, 1000, 1000], [100; 3], (1000, 100)), Err(Refusal::OtherUser { owner: 0, .. })));
}

#[test]
fn a_process_that_is_not_dumpable_is_refused() {
    if !is_root() {
        return;
    }
    assert!(matches!(verdict([1000; 3], [100; 3], (0, 0)), Err(Refusal::Protected { pid: 7 })));
}

fn cat_as(user: u32, program: impl AsRef<OsStr>) -> (Process, TestChild) {
    let child = TestChild::cat(Command::new(program).uid(user).gid(user));
    (child.process(), child)
}

#[test]
fn the_kernels_own_files_show_ids_and_protection() {
    if !is_root() {
        return;
    }
    let (plain, _child) = cat_as(4242, "/bin/cat");
    let nobody_else = Caller { user: 4242, group: 4242, may_trace_all: false, within: None };
    may_trace(&nobody_else, &plain).unwrap();
    assert!(matches!(may_trace(&ALICE, &plain), Err(Refusal::OtherUser { owner: 4242, .. })));

    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let elevated = copy_of_cat(folder.path(), "cat");
    chown(&elevated, Some(4243), None).unwrap();
    std::fs::set_permissions(&elevated, std::fs::Permissions::from_mode(0o4755)).unwrap();
    let (elevated, _child) = cat_as(4242, &elevated);
    assert!(matches!(may_trace(&nobody_else, &elevated), Err(Refusal::ChangedIds { .. })));
    assert_eq!(elevated.owner().unwrap(), (0, 0));
    may_trace(&Caller { may_trace_all: true, ..nobody_else }, &elevated).unwrap();
}

/// Invariant CALLERS-RIGHTS.
#[test]
fn whom_a_caller_can_trace_from_its_namespaces_only() {
    if !is_root() {
        return;
    }
    let (own, _child) = cat_as(4242, "/bin/cat");
    let (user, pid) = (own.user_namespace().unwrap(), own.pid_namespace().unwrap());
    let of = |user, pid| Caller::other(4242, 4242, Some(Within { user, pid }));
    may_trace(&of(user, None), &own).unwrap();
    may_trace(&of(user, Some(pid)), &own).unwrap();
    for other in [of(user + 1, None), of(user, Some(pid + 1))] {
        assert!(matches!(may_trace(&other, &own), Err(Refusal::OtherNamespaces { .. })), "{other:?}");
    }
    assert!(may_trace(&Caller::other(4243, 4242, Some(Within { user, pid: None })), &own).is_err());
    may_trace(&Caller::other(0, 0, None), &own).unwrap();
}
