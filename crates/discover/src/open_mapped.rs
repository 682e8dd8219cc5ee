//! Opens the very file that a process has mapped, not one that has its name today.

use std::io;

use super::{
    foreign::{ForeignFile, Opening, Request, Whose, has_no_answer, open, open_here},
    mappings::{FileId, MappedFile, Mappings, TextRange},
    process::Process,
    process_error::ProcessError,
};

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
    /// Its file system keeps whoever asks for it waiting.
    #[error("{path}, mapped by process {pid}, was not looked at: {source}")]
    NoAnswer { pid: u32, path: String, user: u32, source: io::Error },
    #[error("cannot open {path}, mapped by process {pid}: {source}")]
    Io { pid: u32, path: String, source: io::Error },
}

/// Ranges of one file that are tried; files have one or two that are executable.
const MOST_LINKS: usize = 64;

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
pub fn open_mapped(process: &Process, mapped: &MappedFile) -> Result<ForeignFile, OpenMappedError> {
    let pid = process.pid();
    let path = mapped.display_path();
    let user = process.user()?;
    let opened = match open_by_link(process, user, mapped) {
        Ok(Opening::File(file)) => return Ok(process.alive_after("map_files", Ok(file))?),
        Err(error) if has_no_answer(&error) => Err(error),
        Ok(_) | Err(_) => open_by_name(process, user, mapped),
    };
    match opened {
        Ok(Opening::File(file)) => Ok(process.alive_after("root", Ok(file))?),
        _ if !process.is_alive() || !is_mapped(process, mapped) => Err(ProcessError::Vanished { pid }.into()),
        Ok(Opening::Nothing) => Err(OpenMappedError::Deleted { pid, path, id: mapped.id }),
        Ok(Opening::Other) => Err(OpenMappedError::Replaced { pid, path, id: mapped.id }),
        Err(source) if has_no_answer(&source) => Err(OpenMappedError::NoAnswer { pid, path, user, source }),
        Err(source) => Err(OpenMappedError::Io { pid, path, source }),
    }
}

/// Whether the process still has the file mapped: one that is about to end has no memory any more, and no root directory, long before
/// its end is told, and one that executes another program has other files.
fn is_mapped(process: &Process, mapped: &MappedFile) -> bool {
    match Mappings::of(process) {
        Ok(now) => now.incomplete || now.files.iter().any(|file| file.id == mapped.id),
        Err(error) => !error.is_gone(),
    }
}

/// Whether the name that a process mapped a file by still leads to that file.
pub fn on_disk(process: &Process, mapped: &MappedFile) -> Result<OnDisk, ProcessError> {
    let found = open_by_name(process, process.user()?, mapped).map(|found| match found {
        Opening::File(_) => OnDisk::Same,
        Opening::Other => OnDisk::Replaced,
        Opening::Nothing => OnDisk::Deleted,
    });
    process.alive_after("root", found)
}

fn open_by_link(process: &Process, user: u32, mapped: &MappedFile) -> io::Result<Opening<ForeignFile>> {
    #[cfg(test)]
    if BY_NAME_ONLY.get() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let links: Vec<String> = mapped.ranges.iter().take(MOST_LINKS).map(TextRange::link_name).collect();
    if let Some(file) = open_here(process.directory(), &links, mapped.id) {
        return Ok(Opening::File(file.into()));
    }
    // No other file system is asked than the one that the file is on.
    let whose = Whose { user, device: Some((mapped.id.major, mapped.id.minor)) };
    open(&Request::Links { links, id: mapped.id }, process.directory(), whose)
}

fn open_by_name(process: &Process, user: u32, mapped: &MappedFile) -> io::Result<Opening<ForeignFile>> {
    let request = Request::Names { paths: mapped.candidate_paths(), id: mapped.id };
    open(&request, process.directory(), Whose { user, device: None })
}

#[cfg(test)]
thread_local! {
    /// As if links to mapped files could not be opened.
    static BY_NAME_ONLY: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

#[cfg(test)]
#[path = "open_mapped_tests.rs"]
mod tests;
