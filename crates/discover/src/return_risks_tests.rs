//! Invariant RISKS-KNOWN.
use std::fs::{self, File};
use std::process::Command;

use super::*;

/// What is found in a library made of this source.
fn way(language: &str, source: &str) -> Option<Way> {
    let directory = tempfile::tempdir().unwrap();
    let (from, to) = (directory.path().join(format!("source.{language}")), directory.path().join("libown.so"));
    fs::write(&from, source).unwrap();
    let compiler = if language == "c" { "cc" } else { "c++" };
    let made = Command::new(compiler).args(["-O1", "-shared", "-fPIC", "-o"]).arg(&to).arg(&from).output();
    let made = made.expect("a C and a C++ compiler are needed for this test: install gcc and g++");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let file = File::open(&to).unwrap();
    ReturnRisks::of_file(&file, "libown.so").map(|risk| risk.way)
}

fn c(calls: &str) -> Option<Way> {
    way("c", &format!("extern void f(); {} void g(void) {{ {calls} }}", declarations(calls)))
}

fn cxx(calls: &str) -> Option<Way> {
    let declared = declarations(calls);
    way("cpp", &format!("extern \"C\" {{ {declared} }} void g() {{ {calls} }}"))
}

fn declarations(calls: &str) -> String {
    let names = calls.split(';').filter_map(|call| call.trim().strip_suffix("()"));
    names.map(|name| format!("void {name}();")).collect::<Vec<_>>().concat()
}

#[test]
fn handlers_and_exceptions_in_one_file_are_there_for_each_other() {
    assert_eq!(cxx("MPI_Comm_create_errhandler(); throw 1;"), Some(Way::Throws));
    assert_eq!(cxx("PMPI_Win_create_errhandler(); throw 1;"), Some(Way::Throws));
    assert_eq!(cxx("MPI_Errhandler_create(); throw 1;"), Some(Way::Throws));
    assert_eq!(cxx("MPI_Comm_create_keyval(); throw 1;"), Some(Way::MayThrow));
    assert_eq!(cxx("MPI_Op_create(); throw 1;"), Some(Way::MayThrow));
    assert_eq!(c("MPI_Comm_create_errhandler(); pthread_exit();"), Some(Way::EndsThreads));
    assert_eq!(c("MPI_Send(); pthread_exit();"), None);
    // Handlers that do not throw, and exceptions that MPI does not see.
    assert_eq!(cxx("MPI_Comm_create_errhandler();"), None);
    assert_eq!(cxx("MPI_Send(); throw 1;"), None);
    assert_eq!(cxx("MPI_Comm_set_errhandler(); throw 1;"), None);
    assert_eq!(cxx("throw 1;"), None);
}

#[test]
fn stacks_and_threads_of_the_programs_own_are_recognised() {
    assert_eq!(c("MPI_Comm_create_keyval(); swapcontext();"), Some(Way::SwitchesStacks));
    assert_eq!(c("MPI_Comm_create_keyval(); swapcontext(); pthread_create();"), Some(Way::MovesThreads));
    assert_eq!(c("MPI_Send(); ABT_thread_create();"), Some(Way::MovesThreads));
    assert_eq!(c("MPI_Send(); qthread_fork();"), Some(Way::MovesThreads));
    // Without callbacks, MPI's calls return where they were entered.
    assert_eq!(c("MPI_Send(); swapcontext(); pthread_create();"), None);
    // Not the code that calls MPI: what MPI's own libraries use of it is theirs.
    assert_eq!(c("ABT_thread_create(); swapcontext();"), None);
}

#[test]
fn mpi_itself_and_its_bindings_are_no_risk() {
    let library = "void MPI_Comm_create_errhandler() {} void MPI_Init(); void g() { MPI_Init(); throw 1; }";
    assert_eq!(way("cpp", &format!("extern \"C\" {{ {library} }}")), None);
    for mpi in ["libmpi_cxx.so", "libmpichcxx.so"] {
        let path = format!("/usr/lib/x86_64-linux-gnu/{mpi}");
        let Ok(file) = File::open(&path) else { continue };
        assert_eq!(ReturnRisks::of_file(&file, &path), None);
    }
}

#[test]
fn what_forbids_return_probes_depends_on_whether_the_kernel_asks() {
    assert!([Way::Throws, Way::EndsThreads, Way::MovesThreads].iter().all(|way| way.forbids_returns(true)));
    assert!(!Way::SwitchesStacks.forbids_returns(true) && Way::SwitchesStacks.forbids_returns(false));
    assert!(!Way::MayThrow.forbids_returns(false));
}

#[test]
fn what_is_not_elf_uses_nothing() {
    assert_eq!(ReturnRisks::of_file(&File::open("/etc/passwd").unwrap(), "/etc/passwd"), None);
}
