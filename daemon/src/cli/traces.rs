//! Traces, as they are named on the command line: the same by every command that takes them.

use std::{
    ops::RangeInclusive,
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use clap::Args;
use mpiprobe_discover::open_regular;
use mpiprobe_replay::{Clocks, estimate, threads};
use mpiprobe_report::present::{Progress, say, units};
use mpiprobe_trace::{Definitions, ProcessId, ReadError, Selected, Span, Trace, store, store::TraceFiles};

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

/// Some ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranks(Vec<RangeInclusive<u32>>);

impl Ranks {
    pub fn contains(&self, rank: u32) -> bool {
        self.0.iter().any(|range| range.contains(&rank))
    }
}

impl TraceArguments {
    /// Opens the files, and says what is wrong with them.
    pub fn open(&self) -> Result<TraceFiles, store::OpenError> {
        let trace = TraceFiles::open(&self.files)?;
        trace.notes().iter().for_each(say);
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

/// "0..15,32", where both ends are meant.
pub(super) fn ranks(text: &str) -> Result<Ranks, String> {
    let number = |text: &str| {
        text.trim()
            .parse::<u32>()
            .map_err(|_| format!("{text:?} is no rank: ranks are given as 0..15, or 7, or 0..3,8"))
    };
    let range = |text: &str| {
        let (first, last) = text.split_once("..").unwrap_or((text, text));
        let (first, last) = (number(first)?, number(last)?);
        if first > last { Err(format!("there are no ranks from {first} to {last}")) } else { Ok(first..=last) }
    };
    text.split(',').map(range).collect::<Result<_, String>>().map(Ranks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_numbers_and_ranges() {
        let some = ranks("0..2, 7").unwrap();
        let kept: Vec<u32> = (0..10).filter(|&rank| some.contains(rank)).collect();
        assert_eq!(kept, [0, 1, 2, 7]);
        for wrong in ["", "3..1", "x", "1..", "1,,2"] {
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
