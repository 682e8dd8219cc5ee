//! What is kept in memory as files, each of a name of its own.

use std::{
    collections::BTreeSet,
    io,
    path::{Path, PathBuf},
    sync::mpsc::{Sender, channel},
    thread::{self, JoinHandle},
};

use mpiprobe_discover::files::NewFile;
use mpiprobe_report::present::say;
use mpiprobe_trace::store::{Dump, WriteError};

use super::{TraceError, options::distinguished};

/// Names that are tried for a file, from the last one that was free on.
const MOST_NAMES: u32 = 10_000;

/// What has come of a dump: the paths of the files, and why there is none of some nodes, or none at all.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Dumped {
    pub files: Vec<String>,
    pub failures: Vec<String>,
}

/// Who is told.
pub(super) type Reply = Sender<Dumped>;

/// That what is kept is to be written down.
#[derive(Debug)]
pub(in crate::session) struct Asked {
    /// Empty: whoever writes it down knows.
    pub(super) why: String,
    pub(super) reply: Option<Reply>,
}

impl Asked {
    /// Nobody waits to be told.
    pub(in crate::session) fn because(why: String) -> Self {
        Self { why, reply: None }
    }

    /// The same of each of several that keep a part. Whoever has asked is told once, of all.
    pub(in crate::session) fn of_parts(self, parts: usize) -> Vec<Self> {
        let Self { why, reply } = self;
        let part = |reply| Self { why: why.clone(), reply };
        let Some(whole) = reply else { return (0..parts).map(|_| part(None)).collect() };
        let (to, all) = channel::<Dumped>();
        let parts: Vec<_> = (0..parts).map(|_| part(Some(to.clone()))).collect();
        drop(to);
        let gather = move || {
            let mut dumped = Dumped::default();
            // Until nobody has a part any more who has not been told.
            for mut part in all {
                dumped.files.append(&mut part.files);
                dumped.failures.append(&mut part.failures);
            }
            let _ = whole.send(dumped);
        };
        if let Err(error) = thread::Builder::new().name("replies".into()).spawn(gather) {
            say(format_args!("whoever has asked for the last calls will not be told of them: {error}"));
        }
        parts
    }

    /// Nothing is written for it.
    pub(in crate::session) fn refuse(self, why: &str) {
        refuse(vec![self], why.into());
    }
}

/// All reasons, each once.
pub(super) fn reasons(asked: &[Asked]) -> String {
    let why = asked.iter().map(|asked| asked.why.as_str()).filter(|why| !why.is_empty()).collect::<BTreeSet<_>>();
    why.into_iter().collect::<Vec<_>>().join("; ")
}

/// Files, one after the other.
#[derive(Debug)]
pub(super) struct Dumps {
    names: Names,
    writing: Option<JoinHandle<()>>,
    count: u32,
}

impl Dumps {
    /// Tries whether files can be made there, and leaves none.
    pub(super) fn new(path: &Path, mode: u32) -> Result<Self, TraceError> {
        drop(NewFile::create(path, mode).map_err(|error| TraceError::file(path, error))?);
        Ok(Self { names: Names { path: path.into(), mode, next: 1 }, writing: None, count: 0 })
    }

    /// Whether the last one is not whole yet.
    pub(super) fn is_writing(&self) -> bool {
        self.writing.as_ref().is_some_and(|writing| !writing.is_finished())
    }

    /// Writes it down, beside whatever goes on, and tells all who have asked.
    pub(super) fn write(&mut self, dump: Result<Dump, WriteError>, asked: Vec<Asked>) {
        self.wait();
        let dump = match dump {
            Ok(dump) if dump.event_count() > 0 => dump,
            Ok(_) => return refuse(asked, "no call has been recorded yet: nothing is written".into()),
            Err(error) => return refuse(asked, error.to_string()),
        };
        let why = reasons(&asked);
        match self.names.create() {
            Ok((path, file)) => {
                self.count += 1;
                let write = move || tell(asked, &written(&dump, &path, file, &why));
                match thread::Builder::new().name("dump".into()).spawn(write) {
                    Ok(writing) => self.writing = Some(writing),
                    Err(error) => say(format_args!("cannot write down the last calls: {error}")),
                }
            }
            Err(error) => refuse(asked, TraceError::file(&self.names.path, error).to_string()),
        }
    }

    fn wait(&mut self) {
        if let Some(writing) = self.writing.take() {
            // A panic has been told already.
            let _ = writing.join();
        }
    }

    /// All has been written. Gives how many files there are.
    pub(super) fn finish(mut self) -> u32 {
        self.wait();
        self.count
    }
}

/// Nothing is written.
pub(super) fn refuse(asked: Vec<Asked>, why: String) {
    say(&why);
    tell(asked, &Err(why));
}

fn tell(asked: Vec<Asked>, what: &Result<String, String>) {
    for reply in asked.into_iter().filter_map(|asked| asked.reply) {
        let (files, failures) = match what.clone() {
            Ok(path) => (vec![path], Vec::new()),
            Err(why) => (Vec::new(), vec![why]),
        };
        // Who has gone away does not want to know.
        let _ = reply.send(Dumped { files, failures });
    }
}

/// Writes a file whole or not at all, and says so.
fn written(dump: &Dump, path: &Path, file: NewFile, why: &str) -> Result<String, String> {
    let mut bytes = 0;
    let content = |to: &mut dyn io::Write| {
        let counting = dump.write(Counting { to, bytes: 0 }).map_err(io::Error::other)?;
        bytes = counting.bytes;
        Ok(())
    };
    let (shown, events) = (path.display(), dump.event_count());
    match file.write_with(content) {
        Ok(()) => {
            let seconds = dump.span_ns().unwrap_or(0) as f64 / 1e9;
            let each = bytes as f64 / events.max(1) as f64;
            say(format_args!(
                "{shown}: {events} events of the last {seconds:.1} s, {bytes} bytes ({each:.1} each), because {why}"
            ));
            Ok(std::path::absolute(path).unwrap_or_else(|_| path.into()).display().to_string())
        }
        Err(error) => {
            let error = format!("cannot write a trace to {shown}: {error}");
            say(&error);
            Err(error)
        }
    }
}

/// Counts what is written.
struct Counting<'a> {
    to: &'a mut dyn io::Write,
    bytes: u64,
}

impl io::Write for Counting<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.to.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// `ring.trace`, `ring.2.trace`, `ring.3.trace`…: the first that does not exist.
#[derive(Debug)]
struct Names {
    path: PathBuf,
    mode: u32,
    next: u32,
}

impl Names {
    fn create(&mut self) -> io::Result<(PathBuf, NewFile)> {
        let first = self.next;
        loop {
            let path = numbered(&self.path, self.next);
            match NewFile::create(&path, self.mode) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && self.next - first < MOST_NAMES => {
                    self.next += 1;
                }
                made => {
                    self.next += u32::from(made.is_ok());
                    return made.map(|file| (path, file));
                }
            }
        }
    }
}

/// The path with a number before its ending; that of the first one is the path itself.
fn numbered(path: &Path, number: u32) -> PathBuf {
    if number <= 1 {
        return path.into();
    }
    distinguished(path, &number.to_string())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn files_are_numbered_before_their_ending() {
        let number = |path: &str, number| numbered(Path::new(path), number).display().to_string();
        assert_eq!(number("a/ring.trace", 1), "a/ring.trace");
        assert_eq!(number("a/ring.trace", 2), "a/ring.2.trace");
        assert_eq!(number("ring.v2.trace", 12), "ring.v2.12.trace");
        assert_eq!((number("ring", 3), number("/x/.ring", 2)), ("ring.3".into(), "/x/.ring.2".into()));
    }

    #[test]
    fn whoever_asks_for_several_parts_is_told_once() {
        let (reply, told) = channel();
        let asked = Asked { why: "x".into(), reply: Some(reply) };
        let mut parts = asked.of_parts(3).into_iter();
        tell(vec![parts.next().unwrap()], &Ok("a".into()));
        tell(vec![parts.next().unwrap()], &Err("no".into()));
        let last = parts.next().unwrap();
        assert_eq!((last.why.as_str(), parts.next().is_none(), told.try_recv().is_err()), ("x", true, true));
        // It is forgotten.
        drop(last);
        assert_eq!(told.recv(), Ok(Dumped { files: vec!["a".into()], failures: vec!["no".into()] }));
        assert!(Asked::because("y".into()).of_parts(2).iter().all(|part| part.why == "y" && part.reply.is_none()));
    }

    #[test]
    fn no_file_is_overwritten_and_no_number_used_twice() {
        let folder = tempfile::tempdir().unwrap();
        let mut names = Names { path: folder.path().join("a.trace"), mode: 0o600, next: 1 };
        fs::write(folder.path().join("a.2.trace"), "precious").unwrap();
        let mut make = || {
            let (path, file) = names.create().unwrap();
            file.write("x").unwrap();
            path.file_name().unwrap().to_str().unwrap().to_owned()
        };
        assert_eq!([make(), make(), make()], ["a.trace", "a.3.trace", "a.4.trace"]);
        assert_eq!(fs::read_to_string(folder.path().join("a.2.trace")).unwrap(), "precious");
    }
}
