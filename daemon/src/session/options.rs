//! What was asked for, and what came out.

use std::{fmt, ops::RangeInclusive, path::PathBuf, str::FromStr, time::Duration};

use clap::ValueEnum;
use mpiprobe_attach::AttachMethod;
use mpiprobe_discover::{JobChoice, Target};
use mpiprobe_functions::FunctionSet;
use mpiprobe_model::filter::Filter;
use mpiprobe_report::present::{TextOptions, recording::RecordTo};
use mpiprobe_view::{ViewOptions, ViewStart};

use super::trace::{Listener, TraceOptions, TraceTo};
use crate::nodes::Nodes;

/// Who counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum EngineChoice {
    /// The processes themselves if they do already, else the kernel.
    #[default]
    Auto,
    /// The kernel, by probes on the MPI library.
    Ebpf,
    /// The processes themselves: those that run with the wrapper.
    Wrapper,
    /// The kernel, asked by the service of this node.
    Service,
}

/// The service of this node, and what it is asked for, in the words of the command line.
#[derive(Clone, Debug)]
pub struct ByService {
    pub socket: PathBuf,
    /// It was named: it is asked, whoever could do without.
    pub is_named: bool,
    pub query: String,
}

/// Whether it is seen when calls return, by return probes, which change the stacks of programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Returns {
    /// Unless that may harm a program: one that throws exceptions through MPI calls, ends threads within
    /// them, or moves its threads.
    #[default]
    Auto,
    /// In every case.
    On,
    /// Never: calls are counted at their entry, and how long they take and what they move is not known.
    Off,
}

/// What observing may cost a rank at most: a share of its time, over any time of a length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OverheadLimit {
    pub percent: f64,
    pub period: Duration,
}

impl OverheadLimit {
    /// What is spent is counted in parts of these.
    const PERIODS: RangeInclusive<Duration> = Duration::from_mins(1)..=Duration::from_hours(24);
    /// Long enough for most programs to be counted to their last call, and those that poll are not slowed down for long.
    const USUAL_PERIOD: Duration = Duration::from_mins(10);
}

/// What observing may cost a rank, as it is typed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MaxOverhead {
    /// Whatever it takes.
    Off,
    Limit(OverheadLimit),
}

impl MaxOverhead {
    /// `None`: whatever it takes.
    pub fn limit(self) -> Option<OverheadLimit> {
        match self {
            Self::Off => None,
            Self::Limit(limit) => Some(limit),
        }
    }

    pub fn of(limit: Option<OverheadLimit>) -> Self {
        limit.map_or(Self::Off, Self::Limit)
    }
}

impl Default for MaxOverhead {
    fn default() -> Self {
        Self::Limit(OverheadLimit { percent: 2.0, period: OverheadLimit::USUAL_PERIOD })
    }
}

impl fmt::Display for MaxOverhead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::Limit(OverheadLimit { percent, period }) => {
                let period = humantime::format_duration(*period).to_string().replace(' ', "");
                write!(f, "{percent}/{period}")
            }
        }
    }
}

impl FromStr for MaxOverhead {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const WANTED: &str = "per cent of a rank's time from 0.01 to 100, such as 2 or 0.5%, which may be followed by the time that is meant, \
             from 1m to 1day, such as 2/1m; or off";
        if text == "off" {
            return Ok(Self::Off);
        }
        let (percent, period) = text.split_once('/').map_or((text, None), |(percent, period)| (percent, Some(period)));
        let percent = percent.trim_end();
        let percent = percent.strip_suffix('%').unwrap_or(percent).trim_end().parse();
        let percent = percent.ok().filter(|percent| (0.01..=100.0).contains(percent)).ok_or(WANTED)?;
        let period = period.map_or(Ok(OverheadLimit::USUAL_PERIOD), |period| humantime::parse_duration(period.trim()));
        let period = period.ok().filter(|period| OverheadLimit::PERIODS.contains(period)).ok_or(WANTED)?;
        Ok(Self::Limit(OverheadLimit { percent, period }))
    }
}

/// One observation.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own on the command line")]
pub struct Options {
    pub target: Target,
    pub jobs: JobChoice,
    pub engine: EngineChoice,
    /// Wait for targets instead of failing without any.
    pub wait: bool,
    /// Those that the user has chosen. Others are probed where these cannot be understood without them, and not counted.
    pub functions: FunctionSet,
    /// Time calls that MPI makes inside MPI.
    pub nested: bool,
    pub returns: Returns,
    /// `MPI_Pcontrol` changes nothing.
    pub ignore_pcontrol: bool,
    /// End after so long.
    pub duration: Option<Duration>,
    pub interval: Duration,
    /// One table at the end, instead of one at each interval and the profile.
    pub once: bool,
    /// Rows that are shown.
    pub filter: Option<Filter>,
    /// How tables are laid out.
    pub text: TextOptions,
    /// JSON instead of tables.
    pub json: bool,
    /// A full-screen view instead of tables, and with what it begins.
    pub view: Option<(ViewOptions, ViewStart)>,
    /// Somebody looks at it in such a view, here or elsewhere.
    pub is_viewed: bool,
    /// Where everything is recorded besides.
    pub record: Option<RecordTo>,
    /// Where the course of events is recorded besides; needs `traffic`.
    pub trace: Option<TraceOptions>,
    /// What observing may cost each rank; `None`: whatever it takes.
    pub max_overhead: Option<OverheadLimit>,
    /// Attach in this way only.
    pub method: Option<AttachMethod>,
    pub max_processes: u32,
    pub max_threads: u32,
    /// Find out what completed calls have moved.
    pub traffic: bool,
    /// Patterns of names of communicators that the profile shows; empty: all.
    pub communicators: Vec<String>,
    /// Flows: different combinations of process, function, call site, communicator and partner.
    pub max_flows: u32,
    /// Communicators, all processes together.
    pub max_communicators: u32,
    /// Requests outstanding at once, all processes together.
    pub max_requests: u32,
    pub max_stats: u32,
    /// Have the BPF programs say what they see of processes.
    pub trace_bpf: bool,
    /// Tables that are as small as may be: there are others on the node besides.
    pub is_thrifty: bool,
    /// The service that may be asked.
    pub service: Option<ByService>,
    /// The nodes, where it is not this one alone.
    pub nodes: Option<Nodes>,
}

impl Options {
    /// Whether the course of events is kept.
    pub fn writes_trace(&self) -> bool {
        self.trace.as_ref().is_some_and(|trace| !matches!(trace.to, TraceTo::Nobody))
    }

    /// What observing may cost each rank, where calls inside calls can be told without the open call, and each call need not be seen; `None`:
    /// whatever it takes.
    pub fn overhead_limit(&self) -> Option<OverheadLimit> {
        self.max_overhead.filter(|_| !self.nested && self.trace.is_none())
    }

    /// The trace, if there is one, goes to somebody elsewhere.
    #[must_use]
    pub fn giving_trace(self, to: impl Fn(&[u8]) -> bool + Send + Sync + 'static) -> Self {
        let to = TraceTo::Listener(Listener::new(to));
        Self { trace: self.trace.map(|trace| TraceOptions { to, ..trace }), ..self }
    }

    /// By the kernel, with what calls have moved, and tables of the usual size: as it is where nothing else is asked for.
    pub fn by_kernel(target: Target, jobs: JobChoice, functions: FunctionSet) -> Self {
        Self {
            target,
            jobs,
            engine: EngineChoice::Ebpf,
            wait: false,
            functions,
            nested: false,
            returns: Returns::default(),
            ignore_pcontrol: false,
            duration: None,
            interval: Duration::from_secs(1),
            once: false,
            filter: None,
            text: TextOptions::default(),
            json: false,
            view: None,
            is_viewed: false,
            record: None,
            trace: None,
            max_overhead: None,
            method: None,
            max_processes: mpiprobe_common::PROCESS_SLOTS,
            max_threads: mpiprobe_common::THREAD_SLOTS,
            traffic: true,
            communicators: Vec::new(),
            max_flows: mpiprobe_common::FLOW_SLOTS,
            max_communicators: mpiprobe_common::COMMUNICATOR_SLOTS,
            max_requests: mpiprobe_common::REQUEST_SLOTS,
            max_stats: mpiprobe_common::STATS_ENTRIES,
            trace_bpf: false,
            is_thrifty: false,
            service: None,
            nodes: None,
        }
    }
}

/// How an observation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A profile with nothing missing.
    Complete,
    /// A profile, which says what is missing.
    Incomplete,
    /// The reader of the output went away.
    OutputClosed,
}
