//! Files as the C compiler makes them.

use std::fs;
use std::process::Command;

use super::super::*;

const SOURCE: &str = r#"
#pragma GCC visibility push(default)
char MPII_Version_string[] = "9.8.7";
int PMPI_Init(int *argc, char ***argv) { return argc == 0 && argv == 0; }
int MPI_Init(int *argc, char ***argv) __attribute__((weak, alias("PMPI_Init")));
__attribute__((noinline)) int PMPI_Send(const void *buffer, int count, int type, int to, int tag, int comm)
{ return buffer == 0 ? count + type : to * tag + comm; }
int MPI_Send(const void *, int, int, int, int, int) __attribute__((weak, alias("PMPI_Send")));
int MPI_Get_version(int *version, int *subversion) { *version = 3; *subversion = 1; return 0; }
static int chosen(void) { return 1; }
static void *choose(void) { return (void *)chosen; }
int MPI_Finalize(void) __attribute__((ifunc("choose")));
#pragma GCC visibility pop
"#;

/// Compiles [`SOURCE`] with these options and returns the file.
fn compile(options: &[&str]) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let (source, output) = (folder.path().join("source.c"), folder.path().join("file"));
    fs::write(&source, SOURCE).unwrap();
    let compiler = Command::new("cc").args(options).arg("-o").arg(&output).arg(&source).output();
    let compiler = compiler.expect("cc is needed for this test: install gcc");
    assert!(compiler.status.success(), "{}", String::from_utf8_lossy(&compiler.stderr));
    fs::read(&output).unwrap()
}

pub(super) fn shared_library() -> Vec<u8> {
    compile(&["-O2", "-shared", "-fPIC", "-Wl,-soname,libmine.so.3", "-Wl,--build-id=sha1"])
}

fn check(bytes: &[u8]) {
    let library = Library::parse(bytes).unwrap();
    assert_eq!(library.mpi_role(), MpiRole::CLibrary);
    let implementation = Implementation::of(&library);
    assert_eq!(implementation.to_string(), "MPICH 9.8.7");
    assert_eq!(implementation.standard, Some(StandardVersion { major: 3, minor: 1 }));
    let plan = super::plan_mpi(&library);
    let names = plan
        .functions
        .iter()
        .map(|planned| planned.function.aliases.iter().map(|alias| alias.name.as_str()).collect::<Vec<_>>().join(" "));
    let mut names: Vec<_> = names.collect();
    names.sort();
    assert_eq!(names, ["MPI_Get_version", "MPI_Init PMPI_Init", "MPI_Send PMPI_Send"]);
    let [ifunc] = &plan.rejected[..] else { panic!("{:?}", plan.rejected) };
    assert_eq!((ifunc.name.as_str(), ifunc.reason), ("MPI_Finalize", Rejection::IndirectFunction));
}

#[test]
fn a_shared_library_is_understood_stripped_or_not() {
    let bytes = shared_library();
    check(&bytes);
    let library = Library::parse(&bytes).unwrap();
    assert!(!library.is_stripped());
    assert_eq!(library.soname(), Some("libmine.so.3"));
    assert_eq!(library.build_id().map(str::len), Some(40));
    let stripped = compile(&["-O2", "-shared", "-fPIC", "-s"]);
    check(&stripped);
    let library = Library::parse(&stripped).unwrap();
    assert!(library.is_stripped());
    assert_eq!(library.soname(), None);
}

#[test]
fn executables_with_the_library_linked_in_are_understood() {
    check(&compile(&["-O2", "-static", "-Wl,-e,PMPI_Init", "-nostdlib"]));
    check(&compile(&["-O2", "-pie", "-fPIE", "-Wl,-e,PMPI_Init", "-nostdlib"]));
}

/// Builds for Intel CET begin every function with endbr64, unoptimised ones go on with a push.
#[test]
fn functions_that_begin_with_endbr64_are_probed_after_it() {
    let bytes = compile(&["-O0", "-fcf-protection=full", "-shared", "-fPIC"]);
    check(&bytes);
    let plan = super::plan_mpi(&Library::parse(&bytes).unwrap());
    let kinds: Vec<_> = plan.functions.iter().map(|planned| planned.site.kind).collect();
    assert_eq!(kinds, [SiteKind::Moved { by: 4 }; 3]);
    assert_eq!(plan.census().to_string(), "3 functions: 0 fast, 3 moved, 0 slow");
}
