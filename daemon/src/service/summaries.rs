//! The file to which a line is added when a job has ended. It is written by the half that has the rights, on a thread of its own: a file
//! system that does not answer, or is full, costs lines and nothing else.

use std::{
    fs::File,
    io::{self, Write as _},
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    sync::mpsc::{SyncSender, TrySendError, sync_channel},
    thread,
};

use mpiprobe_report::present::say;
use rustix::{
    fs::{CWD, Mode, OFlags, openat},
    process::geteuid,
};

/// Lines that wait to be written. More are lost, and counted.
const WAITING: usize = 256;
/// Bytes of a line.
const LONGEST: usize = 96 << 10;

/// A line, and where it belongs.
struct Line {
    path: PathBuf,
    mode: u32,
    text: String,
}

/// Gives lines to the thread that writes them.
#[derive(Debug)]
pub(super) struct Summaries {
    to: SyncSender<Line>,
    /// Lines that did not get there.
    lost: u64,
}

impl Summaries {
    /// Begins the thread.
    pub(super) fn begin() -> io::Result<Self> {
        let (to, lines) = sync_channel::<Line>(WAITING);
        let writing = move || {
            let mut told = Told::default();
            for line in lines {
                told.tell(&line.path, append(&line.path, line.mode, &line.text));
            }
        };
        thread::Builder::new().name("summaries".into()).spawn(writing)?;
        Ok(Self { to, lost: 0 })
    }

    /// Has a line written, if there is room.
    pub(super) fn write(&mut self, path: &Path, mode: u32, text: String) {
        match self.to.try_send(Line { path: path.into(), mode, text }) {
            Ok(()) if self.lost > 0 => {
                say(format_args!(
                    "summaries are written again; {} were lost, because their file has not answered",
                    self.lost
                ));
                self.lost = 0;
            }
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                if self.lost == 0 {
                    say(format_args!("summaries of jobs are lost: {} does not answer", path.display()));
                }
                self.lost += 1;
            }
        }
    }
}

/// What was said, so that it is not said of each job.
#[derive(Default)]
struct Told {
    lost: u64,
}

impl Told {
    fn tell(&mut self, path: &Path, written: io::Result<()>) {
        match written {
            Ok(()) if self.lost > 0 => {
                say(format_args!("summaries are written to {} again; {} were lost", path.display(), self.lost));
                self.lost = 0;
            }
            Ok(()) => {}
            Err(error) => {
                if self.lost == 0 {
                    say(format_args!(
                        "the summary of a job cannot be written to {}: {error}; the service goes on, and counts those that are lost",
                        path.display()
                    ));
                }
                self.lost += 1;
            }
        }
    }
}

/// Adds a line: all of it, or nothing.
fn append(path: &Path, mode: u32, text: &str) -> io::Result<()> {
    if text.len() > LONGEST || text.chars().any(char::is_control) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "not one line"));
    }
    let mut file = open(path, mode)?;
    let before = file.metadata()?.len();
    file.write_all(format!("{text}\n").as_bytes()).inspect_err(|_| {
        // Half a line would spoil the next one. Nobody else writes it.
        let _ = file.set_len(before);
    })
}

/// Opens a file of this process's own in a directory where nobody else may put one, or makes it. No link is followed, and nothing is
/// waited for.
fn open(path: &Path, mode: u32) -> io::Result<File> {
    let refused = |why: &str| io::Error::new(io::ErrorKind::PermissionDenied, why.to_owned());
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let user = geteuid().as_raw();
    let is_own = |owner: u32| owner == 0 || owner == user;
    let folder = openat(CWD, folder, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let folder = File::from(folder);
    let state = folder.metadata()?;
    if !is_own(state.uid()) || state.mode() & 0o022 != 0 {
        return Err(refused("its directory belongs to somebody else, or others may write there"));
    }
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match openat(&folder, name, flags | OFlags::CREATE | OFlags::EXCL, Mode::RUSR | Mode::WUSR) {
        Ok(new) => {
            let new = File::from(new);
            // As asked for, whatever the umask is.
            new.set_permissions(std::fs::Permissions::from_mode(mode))?;
            new
        }
        Err(rustix::io::Errno::EXIST) => File::from(openat(&folder, name, flags, Mode::empty())?),
        Err(error) => return Err(error.into()),
    };
    let state = file.metadata()?;
    if !state.is_file() || state.nlink() != 1 || state.uid() != user {
        return Err(refused("there is something else than a file of the service's own"));
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o7777
    }

    /// Invariant NEW-FILES.
    #[test]
    fn lines_are_added_to_a_file_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("jobs.jsonl");
        append(&path, 0o600, "{}").unwrap();
        append(&path, 0o600, "[]").unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), mode(&path)), ("{}\n[]\n", 0o600));
        // Who turns files over has the next line in a new one.
        fs::rename(&path, folder.path().join("jobs.jsonl.1")).unwrap();
        append(&path, 0o640, "1").unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), mode(&path)), ("1\n", 0o640));
    }

    #[test]
    fn nothing_else_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("precious"), "precious").unwrap();
        symlink(path("precious"), path("link")).unwrap();
        fs::hard_link(path("precious"), path("second")).unwrap();
        symlink(path("nowhere"), path("dangling")).unwrap();
        rustix::fs::mknodat(CWD, path("fifo"), rustix::fs::FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        for name in ["link", "second", "dangling", "fifo", "missing/file"] {
            assert!(append(&path(name), 0o600, "{}").is_err(), "{name}");
        }
        assert_eq!(fs::read_to_string(path("precious")).unwrap(), "precious");
        assert!(!path("nowhere").exists());
        // Where others may put files, or what is no line.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        assert!(append(&path("new"), 0o600, "{}").unwrap_err().to_string().contains("others may write"));
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
        assert!(append(&path("new"), 0o600, "{}\n{}").is_err() && !path("new").exists());
    }
}
