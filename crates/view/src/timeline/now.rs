//! What happens now: moments of a job that runs, of which there is what is in memory, and files of them.

use std::{
    fmt, io,
    sync::Arc,
    thread::{Builder, JoinHandle},
    time::{Duration, Instant},
};

use mpiprobe_discover::{
    files::{NewFile, PRIVATE},
    printable,
};
use mpiprobe_replay::{Clocks, estimate};
use mpiprobe_report::present::units::{count, ns};
use mpiprobe_trace::{
    NodeId, ReadError, Span, Trace,
    store::{TraceFiles, WindowMoment, WriteError},
};

use crate::{export, source::KeptCalls};

/// How often nodes' clocks are compared anew, at least, and what of the time that may take: one part of so many.
const COMPARING: Duration = Duration::from_secs(10);
const SHARE: u32 = 10;
/// Of a node that is behind all others by so much, ns, nobody waits for what it does not tell.
const LATE_NS: u64 = 3_000_000_000;

/// What is kept of a job's calls on one node at one moment.
#[derive(Debug)]
pub struct KeptMoment {
    node: Option<String>,
    moment: WindowMoment,
}

impl KeptMoment {
    /// What there is now.
    pub fn of(kept: &[KeptCalls]) -> Result<Vec<Self>, WriteError> {
        kept.iter().map(|one| Ok(Self { node: one.node.clone(), moment: one.window.moment()? })).collect()
    }
}

impl From<WindowMoment> for KeptMoment {
    fn from(moment: WindowMoment) -> Self {
        Self { node: None, moment }
    }
}

/// See [`Moment::version`].
pub(super) fn version(kept: &[KeptCalls]) -> u64 {
    kept.iter().map(|one| one.window.version()).fold(0, u64::saturating_add)
}

/// What there was of a job at one moment.
#[derive(Clone)]
pub struct Moment {
    pub(super) trace: Arc<dyn Trace + Send + Sync>,
    pub(super) clocks: Arc<Clocks>,
    /// On the common clock.
    pub(super) span: Span,
    /// What had happened by then is known, ns on the common clock; 0: as much as there is.
    pub(super) known_until_ns: u64,
    /// What was before is gone.
    pub(super) is_short: bool,
    /// Raised with whatever is new.
    pub(super) version: u64,
}

impl fmt::Debug for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Moment").field("version", &self.version).finish_non_exhaustive()
    }
}

impl Moment {
    /// Of what was kept, which is shared.
    pub fn of(kept: &[KeptMoment], known: &mut KnownClocks) -> Result<Self, ReadError> {
        let name = |one: &KeptMoment| one.node.clone().unwrap_or_else(|| "what is kept".to_owned());
        let dumps: Vec<_> = kept.iter().map(|one| (name(one), &one.moment.dump)).collect();
        let trace: Arc<dyn Trace + Send + Sync> = Arc::new(TraceFiles::of_dumps(&dumps));
        let clocks = known.of(&trace)?;
        let mut node = 0_u32;
        let mut until_ns = Vec::new();
        for KeptMoment { moment, .. } in kept {
            // One that has told nothing has no processes yet.
            if moment.dump.node_count() > 0 && moment.known_until_ns > 0 {
                until_ns.push(clocks.correction(NodeId(node)).to_common(moment.known_until_ns));
            }
            node = node.saturating_add(moment.dump.node_count());
        }
        let newest_ns = until_ns.iter().copied().max().unwrap_or(0);
        let in_time = until_ns.into_iter().filter(|ns| newest_ns - ns <= LATE_NS);
        Ok(Self {
            span: clocks.span(trace.as_ref()),
            trace,
            clocks,
            known_until_ns: in_time.min().unwrap_or(0),
            is_short: kept.iter().any(|one| one.moment.is_short),
            version: kept.iter().map(|one| one.moment.version).fold(0, u64::saturating_add),
        })
    }
}

impl Moment {
    pub fn trace(&self) -> &dyn Trace {
        self.trace.as_ref()
    }

    pub fn clocks(&self) -> &Clocks {
        &self.clocks
    }

    /// On the common clock, ns.
    pub const fn span(&self) -> Span {
        self.span
    }

    /// What had happened by then is known, ns on the common clock; 0: as much as there is.
    pub const fn known_until_ns(&self) -> u64 {
        self.known_until_ns
    }

    /// Whether what was before is gone.
    pub const fn is_short(&self) -> bool {
        self.is_short
    }
}

/// What is added to the times of each node, while moments come.
#[derive(Debug, Default)]
pub struct KnownClocks {
    clocks: Arc<Clocks>,
    /// Of so many nodes.
    nodes: usize,
    /// When they are compared anew.
    next: Option<Instant>,
    comparing: Option<JoinHandle<(Result<Clocks, ReadError>, Duration)>>,
}

impl KnownClocks {
    /// Those of a moment's nodes. Waits for them only if there are nodes that there were not before.
    fn of(&mut self, trace: &Arc<dyn Trace + Send + Sync>) -> Result<Arc<Clocks>, ReadError> {
        let nodes = trace.definitions().nodes.len();
        if nodes < 2 {
            return Ok(Arc::default());
        }
        if self.nodes != nodes {
            // What is found of fewer does not fit.
            self.comparing = None;
            self.nodes = nodes;
            let (found, took) = compared(trace.as_ref());
            self.take(found?, took);
        } else if let Some(comparing) = self.comparing.take_if(|comparing| comparing.is_finished()) {
            // A panic has been told: they stay as they are.
            if let Ok((found, took)) = comparing.join() {
                self.take(found?, took);
            }
        } else if self.comparing.is_none() && self.next.is_some_and(|next| next <= Instant::now()) {
            let trace = Arc::clone(trace);
            self.comparing = Builder::new().name("clocks".into()).spawn(move || compared(trace.as_ref())).ok();
            self.next = None;
        }
        Ok(Arc::clone(&self.clocks))
    }

    fn take(&mut self, found: Clocks, took: Duration) {
        self.clocks = Arc::new(found);
        self.next = Some(Instant::now() + COMPARING.max(took * SHARE));
    }
}

fn compared(trace: &dyn Trace) -> (Result<Clocks, ReadError>, Duration) {
    let began = Instant::now();
    let found = estimate(trace, 1, |_| {});
    (found, began.elapsed())
}

/// Writes a trace to a new file in the working directory, as profiles are written, or one of each node; tells what has come of it.
pub(super) fn write(kept: &[KeptMoment], name: &str) -> Result<String, String> {
    let with_events: Vec<&KeptMoment> = kept.iter().filter(|one| one.moment.dump.event_count() > 0).collect();
    if with_events.is_empty() {
        return Err("no call has been recorded yet".into());
    }
    let create = |name: &str| NewFile::create(name.as_ref(), PRIVATE);
    let mut written = Vec::new();
    for KeptMoment { node, moment } in with_events {
        // Names of hosts are letters, digits and hyphens; others' are what they are.
        let plain = |node: &String| printable(node.as_bytes()).replace(['/', ' '], "_");
        let begins = node.as_ref().map_or_else(|| name.to_owned(), |node| format!("{name}.{}", plain(node)));
        let (name, file) = export::new_file(&begins, "trace", create).map_err(|error| format!("{error}"))?;
        let dump = &moment.dump;
        let result = file.write_with(|to| dump.write(to).map(drop).map_err(io::Error::other));
        result.map_err(|error| format!("{name}: {error}"))?;
        let calls = count(dump.call_count());
        written.push(format!("{name}: {calls} calls of the last {}", ns(dump.span_ns().unwrap_or(0))));
    }
    Ok(format!("written to {}", written.join(", ")))
}
