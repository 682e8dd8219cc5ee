//! Traces, as they are named on the command line: the same by every command that takes them.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ops::RangeInclusive,
    os::unix::fs::{FileExt as _, MetadataExt as _},
    path::{Path, PathBuf},
    time::Duration,
};

use clap::Args;
use mpiprobe_discover::open_regular;
use mpiprobe_replay::{Clocks, estimate, threads};
use mpiprobe_report::present::{Progress, say, units};
use mpiprobe_trace::{Definitions, NodeId, ProcessId, ReadError, Selected, Span, Trace, store, store::TraceFiles};
use thiserror::Error;

/// Which part of which trace is meant.
#[derive(Args, Clone, Debug)]
pub struct TraceArguments {
    /// A trace; several are parts of one, of a node each.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// What happens from this time on, such as 1.5s or 200ms since the beginning of the trace.
    #[arg(long, value_name = "TIME", value_parser = since, help_heading = "What of it")]
    pub from: Option<Duration>,
    /// What happens until this time.
    #[arg(long, value_name = "TIME", value_parser = since, help_heading = "What of it")]
    pub until: Option<Duration>,
    /// Only these ranks, such as 0..15,32.
    #[arg(long, value_name = "RANKS", value_parser = ranks, help_heading = "What of it")]
    pub ranks: Option<Ranks>,
}

/// Why a trace, or the part of it that was asked for, cannot be used.
#[derive(Debug, Error)]
pub enum TraceError {
    #[error(transparent)]
    Open(#[from] store::OpenError),
    #[error("{first} and {second} are the same file: name each part of a trace once")]
    Twice { first: String, second: String },
    #[error("{first} and {second} both have {rank}: they are of the same node, or one is a copy of the other")]
    SameRank { first: String, second: String, rank: String },
    #[error("nothing lies between --from and --until, which is not later: give --until a later time")]
    EmptySpan,
    #[error("the trace has none of the ranks that --ranks names: {0}")]
    NoSuchRanks(String),
}

impl TraceError {
    /// Whether what was asked for can never be.
    pub(super) fn is_wrong_usage(&self) -> bool {
        matches!(self, Self::EmptySpan)
    }
}

/// Some ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranks(Vec<RangeInclusive<u32>>);

impl Ranks {
    pub fn contains(&self, rank: u32) -> bool {
        self.0.iter().any(|range| range.contains(&rank))
    }
}

impl TraceArguments {
    /// Opens the files, and says what is wrong with them. What cannot be one trace, or has nothing of what was asked for, is refused.
    pub fn open(&self) -> Result<TraceFiles, TraceError> {
        if let (Some(from), Some(until)) = (self.from, self.until)
            && from >= until
        {
            return Err(TraceError::EmptySpan);
        }
        let trace = open(&self.files)?;
        trace.notes().iter().for_each(say);
        let definitions = trace.definitions();
        if let Some(ranks) = &self.ranks {
            let mut known: Vec<u32> = definitions.processes.iter().filter_map(|process| process.rank).collect();
            known.sort_unstable();
            if !known.iter().any(|&rank| ranks.contains(rank)) {
                let has = match (known.first(), known.last()) {
                    (Some(first), Some(last)) => format!("its ranks are {first} to {last}"),
                    _ => "no ranks are known of its processes, leave --ranks out".into(),
                };
                return Err(TraceError::NoSuchRanks(has));
            }
        }
        Ok(trace)
    }

    /// Without the ranks that were not asked for.
    pub fn selected<'a>(&self, trace: &'a dyn Trace) -> Selected<'a> {
        let rank = |definitions: &Definitions, id: ProcessId| definitions.process(id).and_then(|process| process.rank);
        Selected::new(trace, |id| {
            let rank = rank(trace.definitions(), id);
            self.ranks.as_ref().is_none_or(|ranks| rank.is_some_and(|rank| ranks.contains(rank)))
        })
    }

    /// Whether not all of it was asked for.
    pub fn is_part(&self) -> bool {
        self.from.is_some() || self.until.is_some() || self.ranks.is_some()
    }

    /// The time that was asked for, of a trace that begins then.
    pub fn span(&self, begin_ns: u64) -> Span {
        let at = |time: Duration| begin_ns.saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        Span { from_ns: self.from.map_or(0, at), until_ns: self.until.map_or(u64::MAX, at) }
    }
}

/// Opens the files of a trace. What cannot be one trace is refused.
pub(super) fn open(files: &[PathBuf]) -> Result<TraceFiles, TraceError> {
    look_at(files)?;
    let trace = TraceFiles::open(files)?;
    let definitions = trace.definitions();
    if let Some((first, second, rank)) = same_rank(definitions) {
        let name = |node: NodeId| files.get(node.index()).map(|path| path.display().to_string());
        // A file is of one node, so that nodes have its place unless one is damaged.
        let is_known = definitions.nodes.len() == files.len();
        let name = |node, other: &str| name(node).filter(|_| is_known).unwrap_or_else(|| other.to_owned());
        return Err(TraceError::SameRank { first: name(first, "a file"), second: name(second, "another"), rank });
    }
    if let Some([first, second]) = other_job(definitions) {
        say(format_args!(
            "no file has parts of both {first} and {second}: these may be traces of several jobs, and all of them are shown as one"
        ));
    }
    Ok(trace)
}

/// Refuses what is no regular file, such as a FIFO, which would be waited for, and files that are named twice.
fn look_at(files: &[PathBuf]) -> Result<(), TraceError> {
    let mut seen: HashMap<(u64, u64), &Path> = HashMap::new();
    for path in files {
        let found = open_regular(path).and_then(|file| file.metadata());
        let found = found.map_err(|error| store::OpenError::Io { path: path.display().to_string(), error })?;
        if let Some(first) = seen.insert((found.dev(), found.ino()), path) {
            let shown = |path: &Path| path.display().to_string();
            return Err(TraceError::Twice { first: shown(first), second: shown(path) });
        }
    }
    Ok(())
}

/// A rank that two nodes have, and which they are: of one job, no two parts of a trace have it.
fn same_rank(definitions: &Definitions) -> Option<(NodeId, NodeId, String)> {
    let mut nodes: HashMap<(&str, u32), NodeId> = HashMap::new();
    for (id, process) in (0..).map(ProcessId).zip(&definitions.processes) {
        // Jobs without a name may be different ones.
        let (Some(job), Some(rank)) = (process.job.as_deref(), process.rank) else { continue };
        let first = *nodes.entry((job, rank)).or_insert(process.node);
        if first != process.node {
            return Some((first, process.node, definitions.process_name(id)?));
        }
    }
    None
}

/// Two jobs that no file has parts of both of, not even by way of a third one.
fn other_job(definitions: &Definitions) -> Option<[&str; 2]> {
    let mut nodes: BTreeMap<NodeId, BTreeSet<&str>> = BTreeMap::new();
    for process in &definitions.processes {
        nodes.entry(process.node).or_default().extend(process.job.as_deref());
    }
    // Of processes whose job has no name nobody knows whose they are.
    let mut others: Vec<BTreeSet<&str>> = nodes.into_values().filter(|jobs| !jobs.is_empty()).collect();
    let mut together = others.pop()?;
    while let Some(place) = others.iter().position(|jobs| !jobs.is_disjoint(&together)) {
        together.append(&mut others.swap_remove(place));
    }
    let mut pair = [others.first()?.first()?, together.first()?].map(|job| *job);
    pair.sort_unstable();
    Some(pair)
}

/// What is known of the clocks of a trace's nodes. Of one node nothing is read.
pub(super) fn compared(trace: &dyn Trace) -> Result<Clocks, ReadError> {
    if trace.definitions().nodes.len() < 2 {
        return Ok(Clocks::same());
    }
    let events = usize::try_from(trace.event_count()).unwrap_or(usize::MAX);
    let progress = Progress::new("comparing clocks", events);
    estimate(trace, threads(), |events| progress.advance(events))
}

/// How well times of different nodes are known, in words; empty: there is one clock.
pub(super) fn of_clocks(clocks: &Clocks) -> Vec<String> {
    let within = clocks.worst_within_ns().map(|within_ns| {
        format!("times are by the clock of the first node, those of others true to ± {}", units::ns(within_ns))
    });
    let nodes = clocks.not_compared();
    let unknown = (nodes > 0).then(|| {
        format!(
            "nothing compares the clocks of {nodes} nodes with that of the first one: what is between them is not told"
        )
    });
    within.into_iter().chain(unknown).collect()
}

/// Whether a file begins as a trace does.
pub(super) fn is_trace(path: &Path) -> bool {
    let mut begin = [0; store::MAGIC.len()];
    let read = open_regular(path).and_then(|file| file.read_exact_at(&mut begin, 0));
    read.is_ok() && begin == store::MAGIC
}

fn since(text: &str) -> Result<Duration, String> {
    // A bare number means seconds to everybody.
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let time = seconds.or_else(|| humantime::parse_duration(text).ok());
    time.ok_or_else(|| "no time since the beginning, such as 1.5s, 200ms or 2min".into())
}

/// "0..15,32", or "0-15,32", where both ends are meant.
pub(super) fn ranks(text: &str) -> Result<Ranks, String> {
    let number = |text: &str| {
        text.trim()
            .parse::<u32>()
            .map_err(|_| format!("{text:?} is no rank: ranks are given as 0..15, or 7, or 0..3,8"))
    };
    let range = |text: &str| {
        let (first, last) = ends_of(text);
        let (first, last) = (number(first)?, number(last)?);
        if first > last { Err(format!("there are no ranks from {first} to {last}")) } else { Ok(first..=last) }
    };
    text.split(',').map(range).collect::<Result<_, String>>().map(Ranks)
}

/// The first and the last of a range, "0..15" or "0-15"; of "7", which is one number, twice that.
pub(super) fn ends_of(range: &str) -> (&str, &str) {
    range.split_once("..").or_else(|| range.split_once('-')).unwrap_or((range, range))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use mpiprobe_trace::HandMade;
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    fn of(files: &[PathBuf]) -> TraceArguments {
        TraceArguments { files: files.to_vec(), from: None, until: None, ranks: None }
    }

    #[test]
    fn parts_of_a_trace_are_each_there_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let mut made = HandMade::of_ranks(2);
        made.definitions.processes.iter_mut().for_each(|process| process.job = Some("ring".into()));
        store::copy(&made, Span::ALL, File::create(path("a")).unwrap()).unwrap();
        fs::copy(path("a"), path("b")).unwrap();
        fs::hard_link(path("a"), path("c")).unwrap();
        let refused = |arguments: &TraceArguments| arguments.open().unwrap_err().to_string();
        assert!(of(&[path("a")]).open().is_ok());
        assert!(refused(&of(&[path("a"), path("a")])).contains("the same file"));
        assert!(refused(&of(&[path("a"), path("c")])).contains("the same file"));
        assert!(refused(&of(&[path("a"), path("b")])).contains("b both have rank 0"));
        let of_ranks = |text: &str| TraceArguments { ranks: Some(ranks(text).unwrap()), ..of(&[path("a")]) };
        assert!(of_ranks("1..7").open().is_ok());
        assert!(refused(&of_ranks("7")).contains("its ranks are 0 to 1"));
        let (from, until) = (Some(Duration::from_secs(5)), Some(Duration::from_secs(1)));
        let backwards = TraceArguments { from, until, ..of(&[path("a")]) }.open().unwrap_err();
        assert!(backwards.is_wrong_usage());
    }

    #[test]
    fn traces_of_jobs_that_have_nothing_in_common_are_told() {
        let told = |files: &[&[Option<&str>]]| {
            let mut made = HandMade::of_ranks(8).definitions;
            let jobs = (0..).map(NodeId).zip(files).flat_map(|(node, jobs)| jobs.iter().map(move |job| (node, *job)));
            made.processes.truncate(files.iter().map(|jobs| jobs.len()).sum());
            for (process, (node, job)) in made.processes.iter_mut().zip(jobs) {
                (process.node, process.job) = (node, job.map(str::to_owned));
            }
            other_job(&made).map(|pair| pair.map(str::to_owned))
        };
        let (a, b, c) = (Some("a"), Some("b"), Some("c"));
        assert_eq!(told(&[&[a, a], &[b]]), Some(["a".into(), "b".into()]));
        assert_eq!(told(&[&[a], &[c], &[a, b], &[None]]), Some(["a".into(), "c".into()]));
        // One node may have several, and a third one both.
        for one in
            [&[&[a, b][..]][..], &[&[a], &[a]], &[&[a], &[b], &[b, a]], &[&[a], &[None]], &[&[None], &[None]], &[]]
        {
            assert_eq!(told(one), None, "{one:?}");
        }
    }

    #[test]
    fn a_fifo_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fifo");
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        assert!(of(&[path]).open().unwrap_err().to_string().contains("not a regular file"));
    }

    #[test]
    fn ranks_are_numbers_and_ranges() {
        for text in ["0..2, 7", "0-2,7"] {
            let some = ranks(text).unwrap();
            let kept: Vec<u32> = (0..10).filter(|&rank| some.contains(rank)).collect();
            assert_eq!(kept, [0, 1, 2, 7]);
        }
        for wrong in ["", "3..1", "x", "1..", "1,,2", "-1", "1-"] {
            assert!(ranks(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn times_are_since_the_beginning() {
        assert_eq!(since("1.5"), Ok(Duration::from_millis(1500)));
        assert_eq!(since("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(since("200ms"), Ok(Duration::from_millis(200)));
        assert!(since("-1").is_err() && since("soon").is_err());
    }
}
