use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use mpiprobe_elf::Architecture;
use proptest::prelude::*;

use super::*;

const ID: FileId = FileId { major: 0, minor: 0, inode: 1 };

fn recognise(path: &Path) -> Option<Recognised> {
    SymbolRecogniser.recognise(&std::fs::File::open(path).unwrap().into(), ID)
}

/// A shared library or program of this source, without any system library. The compiler is that of Rust's own linking.
fn build(folder: &Path, source: &str, options: &[&str]) -> std::path::PathBuf {
    let (code, file) = (folder.join("code.c"), folder.join("file"));
    std::fs::write(&code, source).unwrap();
    let output = Command::new("cc").args(["-nostdlib", "-o"]).arg(&file).arg(&code).args(options).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    file
}

const LIBRARY: &[&str] = &["-shared", "-fPIC", "-Wl,-soname,libany.so.1"];
const ALL: &str = "int MPI_Init(void){return 0;} int MPI_Send(void){return 0;} int PMPI_Init(void){return 0;}";

#[test]
fn a_library_that_defines_the_functions() {
    let folder = tempfile::tempdir().unwrap();
    let expected = Recognised {
        role: Role::Library,
        soname: Some("libany.so.1".to_owned()),
        defines_pmpi: true,
        is_static: false,
        architecture: Architecture::NATIVE,
        implementation: None,
    };
    assert_eq!(recognise(&build(folder.path(), ALL, LIBRARY)), Some(expected.clone()));
    let stripped = [LIBRARY, &["-s"]].concat();
    assert_eq!(recognise(&build(folder.path(), ALL, &stripped)), Some(expected));
}

#[test]
fn data_and_calls_of_those_names_are_no_definitions() {
    let folder = tempfile::tempdir().unwrap();
    let data = "int MPI_Init, MPI_Send;";
    assert_eq!(recognise(&build(folder.path(), data, LIBRARY)), None);
    let calls = "int MPI_Init(void); int MPI_Send(void); int f(void){ return MPI_Init() + MPI_Send(); }";
    assert_eq!(recognise(&build(folder.path(), calls, LIBRARY)), None);
    let half = "int MPI_Init(void){return 0;}";
    assert_eq!(recognise(&build(folder.path(), half, LIBRARY)), None);
}

#[test]
fn a_tool_is_who_passes_calls_on() {
    let folder = tempfile::tempdir().unwrap();
    let role = |source, options| recognise(&build(folder.path(), source, options)).map(|found| found.role);
    let by_name = "int PMPI_Recv(void); int MPI_Recv(void){return PMPI_Recv();}";
    assert_eq!(role(by_name, LIBRARY), Some(Role::Tool));
    let looking = "void *dlsym(void*, char*); int MPI_Recv(void){return dlsym((void*)-1l, \"MPI_Recv\") != 0;}";
    assert_eq!(role(looking, LIBRARY), Some(Role::Tool));
    let all = "int PMPI_Init(void); int MPI_Init(void){return PMPI_Init();} int MPI_Send(void){return 0;}";
    assert_eq!(role(all, LIBRARY), Some(Role::ToolOrLibrary));
    // As mpiprobe's wrapper.
    let both = "void *dlsym(void*, char*); int MPI_Recv(void){return 0;} int PMPI_Recv(void){return dlsym(0, 0) != 0;}";
    assert_eq!(role(both, LIBRARY), None);
    // Of a program's own name, not of another file's.
    assert_eq!(role("int MPI_Recv(void){return 0;}", LIBRARY), None);
}

#[test]
fn a_program_that_contains_what_it_calls() {
    let folder = tempfile::tempdir().unwrap();
    let source = "static int x; int MPI_Init_thread(void){return x;} void _start(void){ MPI_Init_thread(); for(;;); }";
    for options in [&["-static"][..], &["-static-pie", "-fPIE"], &["-pie", "-fPIE"]] {
        let found = recognise(&build(folder.path(), source, options)).unwrap();
        assert!(found.is_static && found.soname.is_none(), "{options:?}");
    }
    assert_eq!(recognise(&build(folder.path(), source, &["-static", "-s"])), None);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn a_32_bit_library_is_recognised_as_foreign() {
    let folder = tempfile::tempdir().unwrap();
    let found = recognise(&build(folder.path(), ALL, &[LIBRARY, &["-m32"]].concat())).unwrap();
    assert_eq!(found.architecture.to_string(), "32-bit x86");
    assert!(!found.architecture.is_native());
}

#[test]
fn other_files_are_nothing() {
    for path in ["/proc/self/exe", "/etc/passwd", "/dev/null"] {
        assert_eq!(recognise(Path::new(path)), None, "{path}");
    }
}

proptest! {
    #[test]
    fn damaged_files_are_survived(damage in proptest::collection::vec((0usize..20_000, any::<u8>()), 1..40), cut in 0usize..20_000) {
        static LIBRARY_BYTES: std::sync::LazyLock<Vec<u8>> = std::sync::LazyLock::new(|| {
            let folder = tempfile::tempdir().unwrap();
            std::fs::read(build(folder.path(), ALL, LIBRARY)).unwrap()
        });
        let mut bytes = LIBRARY_BYTES.clone();
        let length = bytes.len();
        for (place, byte) in damage {
            bytes[place % length] = byte;
        }
        bytes.truncate(length.saturating_sub(cut % length / 4));
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&bytes).unwrap();
        let _ = recognise(file.path());
    }
}
