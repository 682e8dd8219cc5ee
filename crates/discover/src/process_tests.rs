use std::os::unix::process::CommandExt as _;
use std::process::Command;

use super::*;
use crate::{
    fake::FakeProc,
    test_child::{TestChild, copy_of_cat},
};

fn system() -> ProcRoot {
    ProcRoot::system().unwrap()
}

#[test]
fn the_own_process_is_known() {
    let pid = std::process::id();
    let own = Process::open(&system(), pid).unwrap();
    assert!(own.is_alive());
    assert_eq!(own.id(), ProcessId { pid, start_ticks: own.stat().unwrap().start_ticks });
    assert_eq!(own.executable().unwrap().path, std::env::current_exe().unwrap().into_os_string().into_encoded_bytes());
    assert_eq!(own.architecture().unwrap(), Architecture::NATIVE);
    assert_eq!(own.status().unwrap().users.real, rustix::process::getuid().as_raw());
    let arguments: Vec<_> = std::env::args_os().map(std::ffi::OsString::into_encoded_bytes).collect();
    assert_eq!(own.command_line().unwrap().arguments(), arguments);
    assert!(own.threads().unwrap().contains(&pid));
}

#[test]
fn a_renamed_program_with_an_environment_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let program = copy_of_cat(folder.path(), "a name (of 23 b)ytes");
    let mut command = Command::new(&program);
    command.env_clear().env("PMI_RANK", "3");
    let child = TestChild::cat(&mut command);
    let process = child.process();
    assert_eq!(process.comm().unwrap(), b"a name (of 23 b");
    assert_eq!(process.stat().unwrap().comm, b"a name (of 23 b");
    assert_eq!(process.stat().unwrap().parent, std::process::id());
    assert_eq!(process.environment().unwrap(), [("PMI_RANK", "3")].into_iter().collect());
    let path = program.into_os_string().into_encoded_bytes();
    assert_eq!(process.executable().unwrap(), Executable { path, deleted: false });
}

#[test]
fn a_deleted_executable_is_told_and_still_read() {
    let folder = tempfile::tempdir().unwrap();
    let program = copy_of_cat(folder.path(), "gone");
    let child = TestChild::waiting(&program);
    std::fs::remove_file(&program).unwrap();
    let process = child.process();
    let path = program.into_os_string().into_encoded_bytes();
    assert_eq!(process.executable().unwrap(), Executable { path, deleted: true });
    assert_eq!(process.architecture().unwrap(), Architecture::NATIVE);
}

/// Asserts that nothing can be learnt about an ended process any more.
fn assert_vanished(process: &Process) {
    fn gone<T: std::fmt::Debug>(pid: u32, result: &Result<T, ProcessError>) {
        assert!(matches!(result, Err(ProcessError::Vanished { pid: vanished }) if *vanished == pid), "{result:?}");
    }
    let pid = process.pid();
    assert!(!process.is_alive());
    gone(pid, &process.stat());
    gone(pid, &process.status());
    gone(pid, &process.comm());
    gone(pid, &process.command_line());
    gone(pid, &process.environment());
    gone(pid, &process.executable());
    gone(pid, &process.architecture());
    gone(pid, &process.owner());
    gone(pid, &process.threads());
    gone(pid, &crate::mappings::Mappings::of(process));
}

/// Invariant NO-PID-TWICE.
#[test]
fn after_the_end_nothing_is_read_neither_from_a_zombie_nor_from_a_reused_pid() {
    let mut child = TestChild::waiting("/bin/cat");
    let process = child.process();
    process.stat().unwrap();
    child.kill();
    assert_vanished(&process);
    assert!(matches!(Process::open(&system(), child.pid()), Err(ProcessError::Vanished { .. })));
    // From here on the number may be anybody's; the descriptors are not.
    child.reap();
    assert_vanished(&process);
    assert!(!matches!(Process::open(&system(), child.pid()), Ok(next) if next.id() == process.id()));
}

/// How old a kernel has to be whose parent of a process has been told, and that knows no more with what it has ended.
fn forgets() -> bool {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let mut numbers = release.split(|one: char| !one.is_ascii_digit()).map(|one| one.parse::<u32>().unwrap_or(0));
    (numbers.next(), numbers.next()) < (Some(6), Some(15))
}

#[test]
fn it_is_known_with_what_a_process_has_ended() {
    let mut child = TestChild::waiting("/bin/cat");
    let process = child.process();
    assert_eq!(process.failure(), None, "it goes on");
    child.kill();
    assert_eq!(process.failure(), Some(Failure::Signal(9)));
    child.reap();
    assert_eq!(process.failure(), Some(Failure::Signal(9)).filter(|_| !forgets()));

    for (status, expected) in [("7", Some(Failure::ExitStatus(7))), ("0", None)] {
        let mut shell = Command::new("/bin/sh");
        let mut child = TestChild::cat(shell.args(["-c", &format!("head -c 1; read line; exit {status}")]));
        let process = child.process();
        child.end();
        assert_eq!(process.failure(), expected);
        child.reap();
        assert_eq!(process.failure(), expected.filter(|_| !forgets()));
    }
}

#[test]
fn a_pid_that_nothing_has() {
    for pid in [0, u32::MAX, 1 << 30] {
        let error = Process::open(&system(), pid).unwrap_err();
        assert!(matches!(error, ProcessError::NoSuchProcess { pid: none } if none == pid), "{error:?}");
    }
}

#[test]
fn a_thread_is_told_from_a_process() {
    let (started, thread_id) = std::sync::mpsc::channel();
    let (done, wait) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::spawn(move || {
        started.send(rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned()).unwrap();
        wait.recv().unwrap();
    });
    let thread_id = thread_id.recv().unwrap();
    let error = Process::open(&system(), thread_id).unwrap_err();
    let pid = std::process::id();
    assert_eq!(error.to_string(), format!("{thread_id} is a thread of process {pid}, not a process; use --pid {pid}"));
    assert!(Process::open(&system(), pid).unwrap().threads().unwrap().contains(&thread_id));
    done.send(()).unwrap();
    thread.join().unwrap();
}

#[test]
fn a_made_up_process_lives_as_long_as_its_directory() {
    let proc = FakeProc::new();
    proc.process(7, 1, "ring", &["./ring", "x"]);
    let process = Process::open(&proc.root(), 7).unwrap();
    assert!(process.pidfd().is_none());
    assert_eq!(process.comm().unwrap(), b"ring");
    std::fs::remove_dir_all(proc.path(7)).unwrap();
    // A directory of the same name is another process.
    proc.process(7, 1, "other", &[]);
    assert!(matches!(process.comm(), Err(ProcessError::Vanished { pid: 7 })));
}

#[test]
fn damaged_files_are_malformed_and_huge_ones_are_cut() {
    let proc = FakeProc::new();
    proc.process(7, 1, "ring", &["./ring"]);
    let process = Process::open(&proc.root(), 7).unwrap();
    proc.file(7, "status", b"Name:\tring\n");
    assert!(matches!(process.status(), Err(ProcessError::Malformed { pid: 7, what: "status" })));
    proc.file(7, "environ", &vec![b'x'; Environment::LIMIT + 1]);
    assert!(process.environment().unwrap().is_truncated());
    proc.file(7, "stat", b"7 (ring");
    assert!(matches!(Process::open(&proc.root(), 7), Err(ProcessError::Malformed { pid: 7, what: "stat" })));
}

#[test]
fn missing_rights_are_told_from_absence() {
    if !rustix::process::getuid().is_root() {
        assert!(std::env::var_os("CI").is_none(), "missing_rights_are_told_from_absence needs root");
        eprintln!("missing_rights_are_told_from_absence needs root: not run");
        return;
    }
    let mut command = Command::new("/bin/cat");
    let child = TestChild::cat(command.uid(4242).gid(4242));
    let process = child.process();
    // Capabilities belong to a thread: this one gives up its own.
    let result = std::thread::spawn(move || {
        let none = rustix::thread::CapabilitySet::empty();
        let sets = rustix::thread::CapabilitySets { effective: none, permitted: none, inheritable: none };
        rustix::thread::set_capabilities(None, sets).unwrap();
        (process.comm().unwrap(), process.environment())
    });
    let (comm, environment) = result.join().unwrap();
    assert_eq!(comm, b"cat");
    assert!(matches!(environment, Err(ProcessError::Denied { what: "environ", .. })), "{environment:?}");
}
