//! The file to which a line is added when a job has ended, and the directory that then gets a file. They are written by the half that has
//! the rights, on a thread of its own: a file system that does not answer, or is full, costs summaries and nothing else.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs::File,
    io::{self, Write as _},
    os::{fd::AsFd, unix::fs::MetadataExt as _},
    path::{Path, PathBuf},
    sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, channel, sync_channel},
    thread,
    time::Duration,
};

use mpiprobe_report::present::say;
use rustix::{
    fs::{AtFlags, CWD, Mode, OFlags, RenameFlags, fchmod, mkdirat, openat, renameat_with, unlinkat},
    process::geteuid,
};

/// Summaries that wait to be written. More are lost, and counted.
const WAITING: usize = 256;
/// Bytes of a line.
const LONGEST: usize = 96 << 10;
/// Characters of a file's name.
const LONGEST_NAME: usize = 200;

/// A summary of a job, as its file has it.
#[derive(Debug)]
pub(super) enum Content {
    /// Added to the file.
    Line(String),
    /// A file of its own in a directory, of this name without its extension.
    Table { name: String, bytes: Vec<u8> },
}

/// A summary, and where it belongs.
struct Summary {
    path: PathBuf,
    mode: u32,
    content: Content,
}

/// Gives summaries to the thread that writes them.
#[derive(Debug)]
pub(super) struct Summaries {
    to: SyncSender<Summary>,
    /// Closed when all are written.
    written: Receiver<()>,
    /// Those that did not get there.
    lost: u64,
}

impl Summaries {
    /// Begins the thread.
    pub(super) fn begin() -> io::Result<Self> {
        let (to, summaries) = sync_channel::<Summary>(WAITING);
        let (until, written) = channel();
        let writing = move || {
            // As long as this thread.
            let _until = until;
            let mut told = Told::default();
            for Summary { path, mode, content } in summaries {
                let written = match &content {
                    Content::Line(text) => append(&path, mode, text),
                    Content::Table { name, bytes } => add(&path, mode, name, bytes),
                };
                told.tell(&path, written);
            }
        };
        thread::Builder::new().name("summaries".into()).spawn(writing)?;
        Ok(Self { to, written, lost: 0 })
    }

    /// Has a summary written where that is wanted, if there is room.
    pub(super) fn write(&mut self, path: Option<&Path>, mode: u32, content: Content) {
        let Some(path) = path else { return };
        match self.to.try_send(Summary { path: path.into(), mode, content }) {
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

    /// Waits until all are written, but not for ever. Whether they are.
    pub(super) fn end(self, patience: Duration) -> bool {
        drop(self.to);
        matches!(self.written.recv_timeout(patience), Err(RecvTimeoutError::Disconnected))
    }
}

/// Those that were lost, by where they belong: so that it is not said of each job.
#[derive(Default)]
struct Told(BTreeMap<PathBuf, u64>);

impl Told {
    fn tell(&mut self, path: &Path, written: io::Result<()>) {
        match (written, self.0.get_mut(path)) {
            (Ok(()), None) => {}
            (Ok(()), Some(&mut lost)) => {
                say(format_args!("summaries are written to {} again; {lost} were lost", path.display()));
                self.0.remove(path);
            }
            (Err(_), Some(lost)) => *lost += 1,
            (Err(error), None) => {
                say(format_args!(
                    "the summary of a job cannot be written to {}: {error}; the service goes on, and counts those that are lost",
                    path.display()
                ));
                self.0.insert(path.into(), 1);
            }
        }
    }
}

/// What names of files are made of.
pub(super) fn is_plain(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-' | '_')
}

fn refused(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, why.to_owned())
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

/// Adds a file to a directory, which is made if it is missing. It has its name as soon as it is whole.
fn add(directory: &Path, mode: u32, name: &str, bytes: &[u8]) -> io::Result<()> {
    if name.len() > LONGEST_NAME || name.starts_with('.') || name.is_empty() || !name.chars().all(is_plain) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "not a name"));
    }
    let (above, last) = above(directory)?;
    // Who may read files in it may also list it.
    let readable = mode & 0o444;
    match mkdirat(&above, last, Mode::from_raw_mode(0o700 | readable | readable >> 2)) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    let directory = open_directory(&above, last)?;
    let (part, whole) = (format!(".{name}.part"), format!("{name}.parquet"));
    // Of an earlier attempt.
    let _ = unlinkat(&directory, &part, AtFlags::empty());
    let mut file = make(&directory, part.as_ref(), mode, OFlags::WRONLY)?;
    let written = file.write_all(bytes);
    let named =
        written.and_then(|()| Ok(renameat_with(&directory, &part, &directory, &whole, RenameFlags::NOREPLACE)?));
    named.inspect_err(|_| {
        let _ = unlinkat(&directory, &part, AtFlags::empty());
    })
}

/// The directory that something is in, and its name there.
fn above(path: &Path) -> io::Result<(File, &OsStr)> {
    let (Some(above), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    Ok((open_directory(CWD, above)?, name))
}

/// A directory where nobody else than this process's user and root may put anything.
fn open_directory(at: impl AsFd, path: impl AsRef<Path>) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = File::from(openat(at, path.as_ref(), flags, Mode::empty())?);
    let state = directory.metadata()?;
    let is_own = state.uid() == 0 || state.uid() == geteuid().as_raw();
    if !is_own || state.mode() & 0o022 != 0 {
        return Err(refused("its directory belongs to somebody else, or others may write there"));
    }
    Ok(directory)
}

/// Makes a file that is not there yet.
fn make(directory: &File, name: &OsStr, mode: u32, flags: OFlags) -> rustix::io::Result<File> {
    let flags = flags | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let new = File::from(openat(directory, name, flags, Mode::RUSR | Mode::WUSR)?);
    // As asked for, whatever the umask is.
    fchmod(&new, Mode::from_raw_mode(mode))?;
    Ok(new)
}

/// Opens a file of this process's own in a directory where nobody else may put one, or makes it. No link is followed, and nothing is
/// waited for.
fn open(path: &Path, mode: u32) -> io::Result<File> {
    let (folder, name) = above(path)?;
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::NONBLOCK;
    let file = match make(&folder, name, mode, flags) {
        Err(rustix::io::Errno::EXIST) => {
            File::from(openat(&folder, name, flags | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?)
        }
        new => new?,
    };
    let state = file.metadata()?;
    if !state.is_file() || state.nlink() != 1 || state.uid() != geteuid().as_raw() {
        return Err(refused("there is something else than a file of the service's own"));
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::{PermissionsExt as _, symlink},
    };

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
    fn all_that_were_given_are_there_at_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("jobs.jsonl");
        let mut summaries = Summaries::begin().unwrap();
        for number in 0..WAITING {
            summaries.write(Some(&path), 0o600, Content::Line(number.to_string()));
        }
        assert!(summaries.end(Duration::from_mins(10)));
        let expected: Vec<String> = (0..WAITING).map(|number| number.to_string()).collect();
        assert_eq!(fs::read_to_string(&path).unwrap().lines().collect::<Vec<_>>(), expected);
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Invariant NEW-FILES.
    #[test]
    fn files_are_added_to_a_directory_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("jobs");
        add(&directory, 0o640, "one", b"1").unwrap();
        // What an earlier attempt has left is in nobody's way.
        fs::write(directory.join(".two.part"), "half").unwrap();
        add(&directory, 0o600, "two", b"2").unwrap();
        assert_eq!(names(&directory), ["one.parquet", "two.parquet"]);
        assert_eq!(["one.parquet", "two.parquet"].map(|name| mode(&directory.join(name))), [0o640, 0o600]);
        assert_eq!((mode(&directory), fs::read(directory.join("two.parquet")).unwrap()), (0o750, b"2".to_vec()));
        // None is written over.
        assert!(add(&directory, 0o600, "one", b"other").is_err());
        assert_eq!(fs::read(directory.join("one.parquet")).unwrap(), b"1");
        for name in ["", ".hidden", "../out", "a/b", "a b", "\n", &"x".repeat(300)] {
            assert!(add(&directory, 0o600, name, b"").is_err(), "{name}");
        }
        assert_eq!((names(&directory).len(), names(folder.path()).len()), (2, 1));
        // Where others may put files.
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(add(&directory, 0o600, "three", b"").unwrap_err().to_string().contains("others may write"));
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
