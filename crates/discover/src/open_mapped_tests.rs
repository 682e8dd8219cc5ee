use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

use super::*;
use crate::{
    fake::FakeProc,
    mappings::Mappings,
    test_child::{TestChild, copy_of_cat},
};

/// A running copy of `cat`, and the mapping of its program.
fn running_copy(folder: &Path, name: &str) -> (TestChild, Process, MappedFile, PathBuf) {
    let program = copy_of_cat(folder, name);
    let child = TestChild::waiting(&program);
    let process = child.process();
    let mapped = mapping(&process, &program);
    (child, process, mapped, program)
}

fn mapping(process: &Process, program: &Path) -> MappedFile {
    let mappings = Mappings::of(process).unwrap();
    assert!(!mappings.incomplete);
    mappings.files.into_iter().find(|file| Path::new(&file.display_path()) == program).unwrap()
}

fn content(file: &ForeignFile) -> Vec<u8> {
    let mut bytes = Vec::new();
    file.reader().read_to_end(&mut bytes).unwrap();
    bytes
}

/// Runs `body` in a thread that may not use map_files.
fn by_name_only<T: Send>(body: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let mut sets = capabilities(None).unwrap();
            sets.effective.remove(CapabilitySet::SYS_ADMIN | CapabilitySet::CHECKPOINT_RESTORE);
            set_capabilities(None, sets).unwrap();
            // Nor may whoever opens files for this thread.
            BY_NAME_ONLY.set(true);
            body()
        });
        thread.join().unwrap()
    })
}

#[test]
fn the_mapped_file_is_opened_by_either_way() {
    let folder = tempfile::tempdir().unwrap();
    let (_child, process, mapped, program) = running_copy(folder.path(), "plain");
    let expected = fs::read(&program).unwrap();
    assert_eq!(content(&open_mapped(&process, &mapped).unwrap()), expected);
    assert_eq!(content(&by_name_only(|| open_mapped(&process, &mapped).unwrap())), expected);
    assert_eq!(on_disk(&process, &mapped).unwrap(), OnDisk::Same);
}

#[test]
fn names_with_newlines_backslashes_and_false_deletions() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["new\nline", "literal\\012", "not (deleted)"] {
        let program = copy_of_cat(folder.path(), name);
        let child = TestChild::waiting(&program);
        let process = child.process();
        let mappings = Mappings::of(&process).unwrap();
        let is_ours = |file: &&MappedFile| {
            file.candidate_paths().iter().any(|path| path == program.as_os_str().as_encoded_bytes())
        };
        let mapped = mappings.files.iter().find(is_ours).unwrap();
        let opened = by_name_only(|| open_mapped(&process, mapped).unwrap());
        assert_eq!(content(&opened), fs::read(&program).unwrap(), "{name:?}");
    }
}

/// Invariant SAME-FILE.
#[test]
fn a_deleted_file_is_opened_by_its_mapping_and_never_by_a_successor() {
    let folder = tempfile::tempdir().unwrap();
    let (_child, process, _, program) = running_copy(folder.path(), "updated");
    let expected = fs::read(&program).unwrap();

    fs::remove_file(&program).unwrap();
    let mapped = mapping(&process, &program);
    assert!(mapped.is_deleted());
    assert_eq!(on_disk(&process, &mapped).unwrap(), OnDisk::Deleted);
    let error = by_name_only(|| open_mapped(&process, &mapped).unwrap_err());
    assert!(matches!(error, OpenMappedError::Deleted { .. }), "{error}");

    fs::write(&program, b"the next version").unwrap();
    assert_eq!(on_disk(&process, &mapped).unwrap(), OnDisk::Replaced);
    let error = by_name_only(|| open_mapped(&process, &mapped).unwrap_err());
    assert!(matches!(error, OpenMappedError::Replaced { .. }), "{error}");
    if rustix::process::getuid().is_root() {
        assert_eq!(content(&open_mapped(&process, &mapped).unwrap()), expected);
    }
}

#[test]
fn a_fifo_or_device_in_the_files_place_is_not_opened() {
    let folder = tempfile::tempdir().unwrap();
    let (_child, process, mapped, program) = running_copy(folder.path(), "trap");
    fs::remove_file(&program).unwrap();
    let fifo = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, &program, fifo, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR, 0).unwrap();
    let error = by_name_only(|| open_mapped(&process, &mapped).unwrap_err());
    assert!(matches!(error, OpenMappedError::Deleted { .. }), "{error}");
    fs::remove_file(&program).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &program).unwrap();
    let error = by_name_only(|| open_mapped(&process, &mapped).unwrap_err());
    assert!(matches!(error, OpenMappedError::Deleted { .. }), "{error}");
}

#[test]
fn an_ended_process_has_no_mapped_files() {
    let folder = tempfile::tempdir().unwrap();
    let (mut child, process, mapped, _) = running_copy(folder.path(), "ended");
    child.kill();
    child.reap();
    let error = open_mapped(&process, &mapped).unwrap_err();
    assert!(matches!(error, OpenMappedError::Process(ProcessError::Vanished { .. })), "{error}");
    assert!(matches!(on_disk(&process, &mapped), Err(ProcessError::Vanished { .. })));
}

#[test]
fn a_link_in_map_files_to_another_file_is_not_believed() {
    let proc = FakeProc::new();
    proc.process(7, 1, "ring", &["ring"]);
    let folder = tempfile::tempdir().unwrap();
    let (right, wrong) = (folder.path().join("right"), folder.path().join("wrong"));
    fs::write(&right, "right").unwrap();
    fs::write(&wrong, "wrong").unwrap();
    proc.map(7, &right);
    let link = proc.path(7).join("map_files/1000-2000");
    fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink(&wrong, link).unwrap();
    let process = Process::open(&proc.root(), 7).unwrap();
    let mapped = Mappings::of(&process).unwrap().files.remove(0);
    assert_eq!(content(&open_mapped(&process, &mapped).unwrap()), b"right");
    fs::rename(&wrong, &right).unwrap();
    assert!(matches!(open_mapped(&process, &mapped), Err(OpenMappedError::Replaced { .. })));
}
