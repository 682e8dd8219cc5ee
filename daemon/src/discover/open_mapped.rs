//! Opens the very file that a process has mapped, not one that has its name today.

use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;

use rustix::fs::{Mode, OFlags, openat};

use super::mapped_identity::is_mapped_as;
use super::mappings::{FileId, MappedFile};
use super::open_file::{open_regular_at, open_regular_in_root};
use super::process::Process;
use super::process_error::ProcessError;

/// Why a mapped file could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenMappedError {
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// The name now leads to another file, and only the name could be used.
    #[error(
        "{path}, mapped by process {pid} as {id}, has been replaced since; the mapped file itself can be opened with \
         CAP_CHECKPOINT_RESTORE (run as root, or: setcap cap_checkpoint_restore+ep on mpiprobe besides its other \
         capabilities), or restart the job"
    )]
    Replaced { pid: u32, path: String, id: FileId },
    /// The name is gone, and only the name could be used.
    #[error(
        "{path}, mapped by process {pid} as {id}, has been deleted since; the mapped file itself can be opened with \
         CAP_CHECKPOINT_RESTORE (run as root, or: setcap cap_checkpoint_restore+ep on mpiprobe besides its other \
         capabilities), or restart the job"
    )]
    Deleted { pid: u32, path: String, id: FileId },
    #[error("cannot open {path}, mapped by process {pid}: {source}")]
    Io { pid: u32, path: String, source: io::Error },
}

/// What became of the name of a mapped file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnDisk {
    /// The name still leads to the mapped file.
    Same,
    /// The name leads to another file: a new version was installed.
    Replaced,
    /// The name leads nowhere (or to no regular file).
    Deleted,
}

/// Opens the file behind `mapped`, for reading.
///
/// First through `/proc/PID/map_files`, which leads to the mapped file whatever became of its name but takes
/// CAP_CHECKPOINT_RESTORE (kernel: fs/proc/base.c, proc_map_files_get_link), then by name below `/proc/PID/root`.
/// Either way the file is checked to be the mapped one.
pub fn open_mapped(process: &Process, mapped: &MappedFile) -> Result<File, OpenMappedError> {
    for range in &mapped.ranges {
        let link = format!("map_files/{}", range.link_name());
        match open_regular_at(process.directory(), &link) {
            Ok(file) => {
                // The process may have mapped another file there since.
                if matches!(is_mapped_as(&file, mapped.id), Ok(true)) {
                    return Ok(process.alive_after("map_files", Ok(file))?);
                }
            }
            // A missing link: the range was split or joined since. The next may do.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(_) => break,
        }
    }
    let pid = process.pid();
    let path = mapped.display_path();
    match open_by_name(process, mapped) {
        Ok((Some(file), _)) => Ok(process.alive_after("root", Ok(file))?),
        _ if !process.is_alive() => Err(ProcessError::Vanished { pid }.into()),
        Ok((None, OnDisk::Deleted)) => Err(OpenMappedError::Deleted { pid, path, id: mapped.id }),
        Ok((None, _)) => Err(OpenMappedError::Replaced { pid, path, id: mapped.id }),
        Err(source) => Err(OpenMappedError::Io { pid, path, source }),
    }
}

/// Whether the name that a process mapped a file by still leads to that file.
pub fn on_disk(process: &Process, mapped: &MappedFile) -> Result<OnDisk, ProcessError> {
    process.alive_after("root", open_by_name(process, mapped).map(|(_, on_disk)| on_disk))
}

fn open_by_name(process: &Process, mapped: &MappedFile) -> io::Result<(Option<File>, OnDisk)> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = openat(process.directory(), "root", flags, Mode::empty())?;
    let mut on_disk = OnDisk::Deleted;
    for path in mapped.candidate_paths() {
        match open_regular_in_root(root.as_fd(), &path) {
            Ok(file) if is_mapped_as(&file, mapped.id)? => return Ok((Some(file), OnDisk::Same)),
            Ok(_) => on_disk = OnDisk::Replaced,
            // No such name, or a directory, FIFO or device of that name.
            Err(error) if is_absence(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok((None, on_disk))
}

fn is_absence(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidInput, NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory | InvalidInput)
}

#[cfg(test)]
#[path = "open_mapped_tests.rs"]
mod tests;
