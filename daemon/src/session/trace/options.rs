//! What of the course of events is to be kept, and where.

use std::{
    fmt,
    ops::RangeInclusive,
    path::{Path, PathBuf},
    str::FromStr,
    sync::Arc,
    time::Duration,
};

use mpiprobe_trace::store::{FlightSpan, Window};
use mpiprobe_tracer::Selection;

use super::{TraceError, stream::Listener};

/// How much memory the latest calls may take that are kept for whoever looks at them, bytes: some 15 million calls.
pub(in crate::session) const WINDOW: u64 = 64 << 20;
/// The same where they are handed on: enough for those that come before somebody takes them.
pub(super) const HANDED_ON: u64 = 1 << 16;

/// A trace that was asked for.
#[derive(Clone, Debug)]
pub struct TraceOptions {
    pub to: TraceTo,
    pub selection: Selection,
    /// Ranks whose calls are recorded; `None`: all.
    pub ranks: Option<Ranks>,
    pub when: When,
    /// Find out who waits for whom, while it goes on.
    pub waits: bool,
    /// For whoever looks at single calls meanwhile.
    pub latest: LatestCalls,
}

/// Which of the latest calls are kept, besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatestCalls {
    None,
    /// Those that wait to be handed on to somebody elsewhere, who keeps them.
    HandedOn,
    Kept,
}

impl LatestCalls {
    pub(super) fn window(self) -> Option<Arc<Window>> {
        let limit = match self {
            Self::None => return None,
            Self::HandedOn => HANDED_ON,
            Self::Kept => WINDOW,
        };
        Some(Arc::new(Window::new(limit)))
    }
}

/// Where a trace goes.
#[derive(Clone, Debug)]
pub enum TraceTo {
    /// Nothing is kept but what is found out meanwhile.
    Nobody,
    /// A new file.
    File { path: PathBuf, mode: u32 },
    /// Somebody elsewhere, chunk by chunk.
    Listener(Listener),
}

impl TraceTo {
    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            Self::File { path, .. } => Some(path),
            Self::Nobody | Self::Listener(_) => None,
        }
    }

    /// Nothing is there that would be overwritten.
    pub(in crate::session) fn check(&self) -> Result<(), TraceError> {
        let taken = self.path().filter(|path| path.symlink_metadata().is_ok());
        taken.map_or(Ok(()), |path| Err(TraceError::Exists(path.into())))
    }

    /// The same for what one of several nodes has seen, in a file of its own.
    pub(in crate::session) fn of_node(&self, node: &str) -> Self {
        match self {
            Self::File { path, mode } => Self::File { path: distinguished(path, node), mode: *mode },
            other => other.clone(),
        }
    }
}

/// The path with something before its ending: `ring.2.trace`.
pub(super) fn distinguished(path: &Path, by: &str) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!(".{by}"));
    if let Some(ending) = path.extension() {
        name.push(".");
        name.push(ending);
    }
    path.with_file_name(name)
}

/// When calls are recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum When {
    /// All the time.
    #[default]
    Always,
    /// For some time in each period.
    Windows { length: Duration, every: Duration },
    /// All the time, but only the last part is kept, in memory, until somebody wants it.
    Flight(FlightOptions),
}

/// What is kept in memory, and when it is written down besides when somebody asks for it or a rank dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlightOptions {
    pub span: FlightSpan,
    /// Bytes that it may take.
    pub memory: u64,
    /// When no call has returned for so long.
    pub hang: Option<Duration>,
    /// SIGUSR1 asks for it.
    pub by_signal: bool,
}

/// `30s`, `100000calls`
pub fn flight_span(text: &str) -> Result<FlightSpan, String> {
    let wanted = "such as 30s, or 100000calls";
    if let Some(calls) = text.strip_suffix("calls") {
        let calls = calls.trim().parse().map_err(|_| wanted.to_owned())?;
        return if calls > 0 { Ok(FlightSpan::Calls(calls)) } else { Err("at least one call".into()) };
    }
    let time = humantime::parse_duration(text).map_err(|error| format!("{error}; {wanted}"))?;
    let ns = u64::try_from(time.as_nanos()).map_err(|_| wanted.to_owned())?;
    if time < Duration::from_millis(100) { Err("at least 100ms".into()) } else { Ok(FlightSpan::Time(ns)) }
}

/// As it is typed.
pub fn typed_flight_span(span: FlightSpan) -> String {
    match span {
        FlightSpan::Time(ns) => humantime::format_duration(Duration::from_nanos(ns)).to_string().replace(' ', ""),
        FlightSpan::Calls(calls) => format!("{calls}calls"),
    }
}

/// As it is typed; of what is kept in memory, nothing.
impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Windows { length, every } => {
                let [length, every] = [*length, *every].map(humantime::format_duration);
                write!(f, "{}@every:{}", length.to_string().replace(' ', ""), every.to_string().replace(' ', ""))
            }
            Self::Always | Self::Flight(_) => Ok(()),
        }
    }
}

impl FromStr for When {
    type Err = String;

    /// `200ms@every:10s`
    fn from_str(text: &str) -> Result<Self, String> {
        let wanted = || "such as 200ms@every:10s".to_owned();
        let (length, every) = text.split_once("@every:").ok_or_else(wanted)?;
        let time = |text: &str| humantime::parse_duration(text).map_err(|error| format!("{error}; {}", wanted()));
        let (length, every) = (time(length)?, time(every)?);
        if length < Duration::from_millis(1) || every <= length {
            return Err(format!("a window of at least 1ms, and less than what there is one of it in, {}", wanted()));
        }
        Ok(Self::Windows { length, every })
    }
}

/// Some ranks of `MPI_COMM_WORLD`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranks(Vec<RangeInclusive<u32>>);

impl Ranks {
    pub fn contains(&self, rank: u32) -> bool {
        self.0.iter().any(|range| range.contains(&rank))
    }
}

/// As it is typed.
impl fmt::Display for Ranks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ranges = self.0.iter().map(|range| match (range.start(), range.end()) {
            (first, last) if first == last => first.to_string(),
            (first, last) => format!("{first}-{last}"),
        });
        f.write_str(&ranges.collect::<Vec<_>>().join(","))
    }
}

impl FromStr for Ranks {
    type Err = String;

    /// `0,4-7`
    fn from_str(text: &str) -> Result<Self, String> {
        let range = |part: &str| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let rank = |text: &str| text.trim().parse::<u32>().map_err(|_| "ranks, such as 0,4-7".to_owned());
            let (first, last) = (rank(first)?, rank(last)?);
            if first <= last { Ok(first..=last) } else { Err(format!("{last} comes before {first}")) }
        };
        text.split(',').map(range).collect::<Result<_, _>>().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_listed() {
        let ranks: Ranks = "0,4-7, 9".parse().unwrap();
        let chosen: Vec<u32> = (0..12).filter(|&rank| ranks.contains(rank)).collect();
        assert_eq!(chosen, [0, 4, 5, 6, 7, 9]);
        assert_eq!(ranks.to_string(), "0,4-7,9");
        for wrong in ["", "a", "1-", "-1", "5-4", "1,,2"] {
            assert!(wrong.parse::<Ranks>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn each_node_has_a_file_of_its_own() {
        let of = |path: &str| distinguished(Path::new(path), "n1").display().to_string();
        assert_eq!(of("/a.b/ring.trace"), "/a.b/ring.n1.trace");
        assert_eq!((of("ring"), of("a/.ring")), ("ring.n1".into(), "a/.ring.n1".into()));
    }

    #[test]
    fn the_last_part_is_a_time_or_calls() {
        assert_eq!(flight_span("30s"), Ok(FlightSpan::Time(30_000_000_000)));
        assert_eq!(flight_span("100000calls"), Ok(FlightSpan::Calls(100_000)));
        for span in [FlightSpan::Calls(7), FlightSpan::Time(61_234_000_000)] {
            assert_eq!(flight_span(&typed_flight_span(span)), Ok(span));
        }
        for wrong in ["", "30", "calls", "0calls", "-1calls", "1ms", "3 cats"] {
            assert!(flight_span(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn windows_come_again_and_again() {
        let windows = When::Windows { length: Duration::from_millis(200), every: Duration::from_secs(10) };
        assert_eq!("200ms@every:10s".parse(), Ok(windows));
        assert_eq!(windows.to_string(), "200ms@every:10s");
        let odd = When::Windows { length: Duration::from_millis(1200), every: Duration::from_secs(61) };
        assert_eq!(odd.to_string().parse(), Ok(odd));
        for wrong in ["200ms", "10s@every:10s", "0s@every:1s", "1@every:5", "200ms@every:"] {
            assert!(wrong.parse::<When>().is_err(), "{wrong}");
        }
    }
}
