//! A trace that stays in memory: when the last part of it becomes a file, and which.

use std::{
    collections::BTreeSet,
    io,
    path::{Path, PathBuf},
    sync::mpsc::Sender,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use mpiprobe_discover::files::NewFile;
use mpiprobe_report::present::say;
use mpiprobe_trace::{
    Process,
    store::{Dump, FlightSpan, WriteError},
};

use super::{
    TraceError,
    options::{FlightOptions, distinguished},
};

/// How long after a rank's death the others are waited for: what they come to because of it belongs to the same file.
const SETTLING: Duration = Duration::from_secs(1);
/// Names that are tried for a file, from the last one that was free on.
const MOST_NAMES: u32 = 10_000;
/// How often it is looked at what is too old, at least and at most.
const TRIM_INTERVALS: (Duration, Duration) = (Duration::from_millis(5), Duration::from_secs(1));

/// Who is told what has come of a dump: the path of the file, or why there is none.
pub(super) type Reply = Sender<Result<String, String>>;

/// When a recording in memory is written down, and what has been.
#[derive(Debug)]
pub(super) struct Flight {
    options: FlightOptions,
    names: Names,
    /// Whether whoever ends without `MPI_Finalize` is known by that.
    judges_ends: bool,
    /// Why it is to be written as soon as possible.
    asked: Vec<Asked>,
    /// What has gone wrong, and when it is written down.
    failure: Option<(Instant, String)>,
    /// Jobs of which a rank has died: one file of each.
    failed: BTreeSet<Option<String>>,
    writing: Option<JoinHandle<()>>,
    is_short_told: bool,
    quiet: Quiet,
    dumps: u32,
}

#[derive(Debug)]
struct Asked {
    why: String,
    reply: Option<Reply>,
}

/// For how long no call has returned.
#[derive(Debug)]
struct Quiet {
    returns: u64,
    since: Instant,
    next_look: Instant,
    is_told: bool,
}

impl Quiet {
    fn new(returns: u64) -> Self {
        let now = Instant::now();
        Self { returns, since: now, next_look: now, is_told: false }
    }
}

impl Flight {
    /// Tries whether files can be made there, and leaves none.
    pub(super) fn new(options: FlightOptions, path: &Path, mode: u32, judges_ends: bool) -> Result<Self, TraceError> {
        drop(NewFile::create(path, mode).map_err(|error| TraceError::file(path, error))?);
        Ok(Self {
            options,
            names: Names { path: path.into(), mode, next: 1 },
            judges_ends,
            asked: Vec::new(),
            failure: None,
            failed: BTreeSet::new(),
            writing: None,
            is_short_told: false,
            quiet: Quiet::new(0),
            dumps: 0,
        })
    }

    /// How often the buffer is to be trimmed.
    pub(super) fn trim_interval(&self) -> Duration {
        match self.options.span {
            FlightSpan::Time(ns) => (Duration::from_nanos(ns) / 16).clamp(TRIM_INTERVALS.0, TRIM_INTERVALS.1),
            FlightSpan::Calls(_) => TRIM_INTERVALS.1,
        }
    }

    /// Somebody wants it.
    pub(super) fn ask(&mut self, why: String, reply: Option<Reply>) {
        self.asked.push(Asked { why, reply });
    }

    /// Something has gone wrong that ends a job. Only the first is of interest: what follows is because of that.
    pub(super) fn fail(&mut self, job: Option<&str>, why: String) {
        if self.failed.insert(job.map(str::to_owned)) {
            say(&why);
            self.failure.get_or_insert_with(|| (Instant::now() + SETTLING, why));
        }
    }

    /// Whether something has gone wrong that is not written down yet.
    pub(super) fn has_failure(&self) -> bool {
        self.failure.is_some()
    }

    /// A process has ended. `is_in_mpi`: it had called MPI, and was not seen to finalise it.
    pub(super) fn note_end(&mut self, process: &Process, is_in_mpi: bool) {
        if self.judges_ends && is_in_mpi {
            let who = process.rank.map_or_else(|| "a rank".to_owned(), |rank| format!("rank {rank}"));
            let pid = process.pid;
            self.fail(process.job.as_deref(), format!("{who} (process {pid}) has ended without MPI_Finalize"));
        }
    }

    /// Notes how many calls have returned by now; tells whether it is time to look whether the job hangs.
    pub(super) fn looks_quiet(&mut self, returns: u64) -> bool {
        let Some(patience) = self.options.hang else { return false };
        if returns != self.quiet.returns {
            self.quiet = Quiet::new(returns);
        }
        let now = Instant::now();
        let looks = !self.quiet.is_told && now - self.quiet.since >= patience && now >= self.quiet.next_look;
        if looks {
            self.quiet.next_look = now + SETTLING;
        }
        looks
    }

    /// No call has returned for that time. `inside`: how many calls are open for as long; where all compute, nobody hangs.
    pub(super) fn note_quiet(&mut self, inside: usize) {
        let Some(patience) = self.options.hang.filter(|_| inside > 0) else { return };
        self.quiet.is_told = true;
        let calls = if inside == 1 { "one is".to_owned() } else { format!("{inside} are") };
        let patience = humantime::format_duration(patience);
        self.ask(format!("no call has returned for {patience}, and {calls} open for longer"), None);
    }

    /// How long a call has to be open to be part of a hang.
    pub(super) fn patience(&self) -> Option<Duration> {
        self.options.hang
    }

    /// Less than the span is kept.
    pub(super) fn note_short(&mut self) {
        if !self.is_short_told {
            self.is_short_told = true;
            say(format_args!(
                "the calls of {} take more memory than they may have: less is kept (--flight-memory {})",
                shown(self.options.span),
                mpiprobe_report::present::units::binary(self.options.memory)
            ));
        }
    }

    /// Whether it is to be written down now. `is_last`: there will be no later time.
    pub(super) fn is_due(&mut self, is_last: bool) -> bool {
        if !is_last && self.writing.as_ref().is_some_and(|writing| !writing.is_finished()) {
            return false;
        }
        self.wait();
        let is_due = |(moment, _): &(Instant, String)| is_last || *moment <= Instant::now();
        if let Some((_, why)) = self.failure.take_if(|failure| is_due(failure)) {
            self.ask(why, None);
        }
        !self.asked.is_empty()
    }

    /// Writes it down, beside whatever goes on, and tells all who have asked.
    pub(super) fn write(&mut self, dump: Result<Dump, WriteError>) {
        let asked = std::mem::take(&mut self.asked);
        let dump = match dump {
            Ok(dump) if dump.event_count() > 0 => dump,
            Ok(_) => return refuse(asked, "no call has been recorded yet: nothing is written".into()),
            Err(error) => return refuse(asked, error.to_string()),
        };
        let why = asked.iter().map(|asked| asked.why.as_str()).collect::<BTreeSet<_>>();
        let why = why.into_iter().collect::<Vec<_>>().join("; ");
        match self.names.create() {
            Ok((path, file)) => {
                self.dumps += 1;
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
        self.dumps
    }
}

fn refuse(asked: Vec<Asked>, why: String) {
    say(&why);
    tell(asked, &Err(why));
}

fn tell(asked: Vec<Asked>, what: &Result<String, String>) {
    for reply in asked.into_iter().filter_map(|asked| asked.reply) {
        // Who has gone away does not want to know.
        let _ = reply.send(what.clone());
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

/// As it is typed.
pub(super) fn shown(span: FlightSpan) -> String {
    match span {
        FlightSpan::Time(ns) => format!("the last {}", humantime::format_duration(Duration::from_nanos(ns))),
        FlightSpan::Calls(calls) => format!("the last {calls} calls of each process"),
    }
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
