use super::*;
use crate::{
    access::Caller,
    elf_symbols::SymbolRecogniser,
    proc_root::ProcRoot,
    test_child::{TestChild, copy_of_cat},
};

fn scanner() -> Scanner<SymbolRecogniser> {
    Scanner::new(ProcRoot::system().unwrap(), Caller::current().unwrap(), SymbolRecogniser)
}

fn error(target: &Target) -> SelectError {
    select(&mut scanner(), target, &JobChoice::Only).unwrap_err()
}

fn pid_error(pid: u32) -> SelectError {
    error(&Target::Pids(vec![pid]))
}

/// The first line: the others list what else runs on this machine.
fn first_line(error: &SelectError) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

#[test]
fn a_name_that_nothing_has_is_met_with_the_nearest() {
    let folder = tempfile::tempdir().unwrap();
    let child = TestChild::waiting(copy_of_cat(folder.path(), "zqxjkvbwy"));
    let SelectError::NoSuchName { name, examined, nearest, .. } = error(&Target::Name("zqxjkbvwy".to_owned())) else {
        panic!("not missing")
    };
    assert_eq!((name.as_str(), nearest), ("zqxjkbvwy", vec!["zqxjkvbwy".to_owned()]));
    assert!(examined > 1);
    drop(child);
    let message = first_line(&error(&Target::Name("zqxjkbvwy".to_owned())));
    assert!(message.starts_with("no process is called \"zqxjkbvwy\" ("), "{message}");
    assert!(message.ends_with(" were looked at, by executable, command name and script)"), "{message}");
}

#[test]
fn a_program_without_mpi() {
    let folder = tempfile::tempdir().unwrap();
    let name = "discover-no-mpi";
    let child = TestChild::waiting(copy_of_cat(folder.path(), name));
    // A path is as good as a name.
    for target in [Target::Name(name.to_owned()), Target::Name(format!("./{name}")), Target::Pids(vec![child.pid()])] {
        let found = error(&target);
        let message = first_line(&found);
        let start = format!("discover-no-mpi (pid {}) does not use MPI: none of the ", child.pid());
        assert!(message.starts_with(&start), "{message}");
        assert!(message.ends_with("files it has mapped for execution defines MPI_Init and MPI_Send"), "{message}");
        assert!(matches!(found, SelectError::NotMpi { files, .. } if files >= 2));
    }
}

#[test]
fn launchers_are_no_targets() {
    let folder = tempfile::tempdir().unwrap();
    let child = TestChild::waiting(copy_of_cat(folder.path(), "mpiexec.discover"));
    let message = first_line(&pid_error(child.pid()));
    assert_eq!(
        message,
        format!(
            "mpiexec.discove (pid {}) starts MPI processes but is none; name its ranks instead, by program or with --job",
            child.pid()
        )
    );
}

#[test]
fn mpiprobe_itself_is_no_target() {
    let own = std::process::id();
    assert_eq!(
        pid_error(own).to_string(),
        format!("process {own} is mpiprobe itself; name the MPI program to observe")
    );
}

#[test]
fn a_pid_that_nothing_has() {
    assert_eq!(
        pid_error(1 << 30).to_string(),
        "there is no process 1073741824; it may have ended: `mpiprobe ps` lists the MPI processes that run now"
    );
}

#[test]
fn an_ended_process() {
    let mut child = TestChild::waiting("/bin/cat");
    child.kill();
    assert_eq!(pid_error(child.pid()).to_string(), format!("process {} has ended", child.pid()));
}

#[test]
fn other_users_processes_are_refused_to_whoever_is_not_root() {
    let folder = tempfile::tempdir().unwrap();
    let child = TestChild::waiting(copy_of_cat(folder.path(), "discover-others"));
    let user = rustix::process::getuid().as_raw();
    let stranger = Caller { user: user.wrapping_add(1), group: 0, may_trace_all: false, within: None };
    let mut scanner = Scanner::new(ProcRoot::system().unwrap(), stranger, SymbolRecogniser);
    for target in [Target::Name("discover-others".to_owned()), Target::Pids(vec![child.pid()])] {
        let error = select(&mut scanner, &target, &JobChoice::Only).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "process {} belongs to user {user} and you are user {}; ask them, or run mpiprobe as root (sudo)",
                child.pid(),
                stranger.user
            )
        );
    }
    // The nearest name is not told.
    let error = select(&mut scanner, &Target::Name("discover-other".to_owned()), &JobChoice::Only).unwrap_err();
    assert!(matches!(&error, SelectError::NoSuchName { nearest, .. } if nearest.is_empty()), "{error}");
    let error = select(&mut scanner, &Target::Any, &JobChoice::Only).unwrap_err();
    assert!(matches!(error, SelectError::NoMpi { refused, .. } if refused > 0), "{error}");
}
