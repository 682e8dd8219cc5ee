//! One clock for all nodes: what is added to times of each, and how well that is known.

use hashbrown::HashMap;
use mpiprobe_model::NodeClock;
use mpiprobe_trace::{Definitions, LocationId, NodeId, Row, Span, Trace};

/// Less than this is not off: times are whole nanoseconds, and lines are not.
pub(crate) const ROUNDING_NS: f64 = 2.0;

/// From the clock of each node to a common one, which is that of the first node.
#[derive(Clone, Debug, Default)]
pub struct Clocks {
    /// By node; those that are not there are not corrected, and have the first one's clock.
    nodes: Vec<OfNode>,
    /// By machine: how far the true offset may be from the correction.
    machines: Vec<Doubt>,
    /// The same of two machines together, the one of the lower number first, where more is known than of each.
    pairs: HashMap<(u32, u32), Doubt>,
}

#[derive(Clone, Copy, Debug, Default)]
struct OfNode {
    correction: Correction,
    /// Nodes of one machine have the same clock.
    machine: u32,
    /// Clocks of different groups cannot be compared.
    group: u32,
    /// What tells all this.
    evidence: u64,
}

/// How far a time may be off.
#[derive(Clone, Copy, Debug, Default)]
struct Doubt {
    within_ns: u64,
    /// The same without what is due to times that cannot be true.
    honest_ns: u64,
}

impl Doubt {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    fn new(within_ns: f64, lies_ns: f64) -> Self {
        let whole = |ns: f64| (ns + ROUNDING_NS).ceil() as u64;
        Self { within_ns: whole(within_ns), honest_ns: whole((within_ns - lies_ns).max(0.0)) }
    }
}

/// The clock of a machine, in the end.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Placed {
    pub(crate) correction: Correction,
    /// Of the same number: the same clock can be told.
    pub(crate) group: u32,
    /// The true offset is so far from the correction at most, and what of that is due to times that cannot be true.
    pub(crate) within_ns: f64,
    pub(crate) lies_ns: f64,
    pub(crate) evidence: u64,
}

/// What is known of all machines.
#[derive(Debug, Default)]
pub(crate) struct Together {
    pub(crate) machines: Vec<Placed>,
    /// What two machines' clocks are known to differ from each other at most after correction, and what of that is due to lies.
    pub(crate) pairs: HashMap<(u32, u32), (f64, f64)>,
}

/// A line: what is added to times of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Correction {
    /// At `at_ns` on the node's clock.
    pub offset_ns: i64,
    pub at_ns: u64,
    /// How much the offset grows in a nanosecond.
    pub drift: f64,
}

impl Correction {
    pub fn is_none(&self) -> bool {
        self.offset_ns == 0 && self.drift == 0.0
    }

    /// Of a time on the node's clock, what is added to it.
    #[expect(clippy::cast_possible_truncation, reason = "saturates")]
    pub fn offset_at(&self, ns: u64) -> i64 {
        let since = ns.cast_signed().saturating_sub(self.at_ns.cast_signed());
        self.offset_ns.saturating_add((self.drift * since as f64).round() as i64)
    }

    /// A time of the node on the common clock.
    pub fn to_common(&self, ns: u64) -> u64 {
        ns.saturating_add_signed(self.offset_at(ns))
    }

    /// A time on the common clock on the node's, to within the square of the drift.
    fn to_own(self, ns: u64) -> u64 {
        let near = ns.saturating_sub_signed(self.offset_ns);
        let nearer = ns.saturating_sub_signed(self.offset_at(near));
        ns.saturating_sub_signed(self.offset_at(nearer))
    }
}

impl Clocks {
    /// All nodes' clocks are the same.
    pub fn same() -> Self {
        Self::default()
    }

    /// As messages tell, by the machine of each node.
    pub(crate) fn found(machine_of: &[u32], together: &Together) -> Self {
        let node = |&machine: &u32| {
            let placed = together.machines.get(machine as usize).copied().unwrap_or_default();
            OfNode { correction: placed.correction, machine, group: placed.group, evidence: placed.evidence }
        };
        Self {
            nodes: machine_of.iter().map(node).collect(),
            machines: together.machines.iter().map(|one| Doubt::new(one.within_ns, one.lies_ns)).collect(),
            pairs: together.pairs.iter().map(|(&pair, &(within, lies))| (pair, Doubt::new(within, lies))).collect(),
        }
    }

    /// As clocks of the world tell, where they know how wrong they may be; otherwise nothing can be compared. By the machine of each node.
    pub(crate) fn guessed(machine_of: &[u32], shifts: &[i64], errors: &[Option<u64>]) -> Self {
        let node = |&machine: &u32| {
            let offset_ns = shifts.get(machine as usize).copied().unwrap_or(0);
            let is_known = errors.get(machine as usize).is_some_and(Option::is_some);
            let group = if is_known { u32::MAX } else { machine };
            OfNode { correction: Correction { offset_ns, ..Correction::default() }, machine, group, evidence: 0 }
        };
        let doubt = |error: &Option<u64>| {
            let within_ns = error.unwrap_or(u64::MAX / 4);
            Doubt { within_ns, honest_ns: within_ns }
        };
        Self {
            nodes: machine_of.iter().map(node).collect(),
            machines: errors.iter().map(doubt).collect(),
            pairs: HashMap::new(),
        }
    }

    pub fn correction(&self, node: NodeId) -> Correction {
        self.of(node.index()).correction
    }

    fn of(&self, node: usize) -> OfNode {
        self.nodes.get(node).copied().unwrap_or_default()
    }

    /// How much times of two nodes may be off against each other; `None`: nothing bounds it.
    pub fn within_ns(&self, one: NodeId, other: NodeId) -> Option<u64> {
        self.doubt(one, other).map(|doubt| doubt.within_ns)
    }

    /// The same of two threads.
    pub fn between_ns(&self, definitions: &Definitions, one: LocationId, other: LocationId) -> Option<u64> {
        if one == other || !self.are_several() {
            return Some(0);
        }
        let node = |id: LocationId| Some(definitions.process(definitions.location(id)?.process)?.node);
        self.within_ns(node(one)?, node(other)?)
    }

    /// The same, if all times are true: what is off by more cannot be.
    pub(crate) fn honest_ns(&self, one: NodeId, other: NodeId) -> Option<u64> {
        self.doubt(one, other).map(|doubt| doubt.honest_ns)
    }

    fn doubt(&self, one: NodeId, other: NodeId) -> Option<Doubt> {
        let (one, other) = (self.of(one.index()), self.of(other.index()));
        if one.machine == other.machine {
            return Some(Doubt::default());
        }
        if one.group != other.group {
            return None;
        }
        let pair = (one.machine.min(other.machine), one.machine.max(other.machine));
        if let Some(&doubt) = self.pairs.get(&pair) {
            return Some(doubt);
        }
        let of = |machine: u32| self.machines.get(machine as usize).copied().unwrap_or_default();
        let (one, other) = (of(one.machine), of(other.machine));
        Some(Doubt { within_ns: one.within_ns + other.within_ns, honest_ns: one.honest_ns + other.honest_ns })
    }

    /// How much times of any two of these nodes may be off against each other; `None`: nothing bounds it.
    pub(crate) fn among_ns(&self, nodes: impl Iterator<Item = NodeId>) -> Option<u64> {
        let mut all: Vec<(u32, u32)> =
            nodes.map(|node| self.of(node.index())).map(|node| (node.group, node.machine)).collect();
        all.sort_unstable();
        all.dedup();
        let (Some((first, _)), Some((last, _))) = (all.first(), all.last()) else { return Some(0) };
        if all.len() < 2 {
            return Some(0);
        }
        if first != last {
            return None;
        }
        let mut of_machines: Vec<u64> = all
            .iter()
            .map(|&(_, machine)| self.machines.get(machine as usize).map_or(0, |doubt| doubt.within_ns))
            .collect();
        of_machines.sort_unstable();
        Some(of_machines.iter().rev().take(2).sum())
    }

    /// Whether there is more than one clock.
    pub fn are_several(&self) -> bool {
        self.nodes.iter().any(|node| node.machine > 0)
    }

    /// How much times of any two nodes may be off against each other that can be compared at all; `None`: there is one clock.
    pub fn worst_within_ns(&self) -> Option<u64> {
        let of = |node: &OfNode| self.machines.get(node.machine as usize).map_or(0, |doubt| doubt.within_ns);
        let mut by_group: HashMap<u32, Vec<(u64, u32)>> = HashMap::new();
        for node in &self.nodes {
            by_group.entry(node.group).or_default().push((of(node), node.machine));
        }
        let worst = by_group.into_values().filter_map(|mut machines| {
            machines.sort_unstable();
            machines.dedup();
            (machines.len() > 1).then(|| machines.iter().rev().take(2).map(|(ns, _)| ns).sum())
        });
        worst.max()
    }

    /// Nodes whose clocks cannot be compared with that of the first one.
    pub fn not_compared(&self) -> u64 {
        let first = self.of(0).group;
        self.nodes.iter().filter(|node| node.group != first).count() as u64
    }

    /// What is known of each, for a span that begins then; empty: there is one clock.
    pub(crate) fn quality(&self, definitions: &Definitions, from_ns: u64) -> Vec<NodeClock> {
        if !self.are_several() {
            return Vec::new();
        }
        let first = self.of(0);
        let nodes = definitions.nodes.iter().zip(&self.nodes).zip(0..).map(|((node, own), number)| NodeClock {
            host: node.host.clone(),
            offset_ns: own.correction.offset_at(own.correction.to_own(from_ns)),
            drift_ns_per_s: own.correction.drift * 1e9,
            within_ns: if own.machine == first.machine { Some(0) } else { self.within_ns(NodeId(0), NodeId(number)) },
            evidence: own.evidence,
        });
        nodes.collect()
    }

    pub(crate) fn correct(&self, node: usize, rows: &mut [Row]) {
        let correction = self.of(node).correction;
        if correction.is_none() {
            return;
        }
        for row in rows {
            row.begin_ns = correction.to_common(row.begin_ns);
            row.end_ns = correction.to_common(row.end_ns);
        }
    }

    /// A span on the common clock, as a node calls it.
    pub fn own_span(&self, node: usize, span: Span) -> Span {
        let correction = self.of(node).correction;
        if correction.is_none() {
            return span;
        }
        // What has no end has none on any clock.
        let until_ns = if span.until_ns == u64::MAX { u64::MAX } else { correction.to_own(span.until_ns) };
        Span { from_ns: if span.from_ns == 0 { 0 } else { correction.to_own(span.from_ns) }, until_ns }
    }

    /// From the first event of a trace to the end of the last one, on the common clock.
    pub fn span(&self, trace: &dyn Trace) -> Span {
        if self.nodes.iter().all(|node| node.correction.is_none()) {
            return trace.span();
        }
        let definitions = trace.definitions();
        let node = |location: LocationId| {
            let process = definitions.location(location).and_then(|location| definitions.process(location.process));
            process.map_or(0, |process| process.node.index())
        };
        let spans = definitions.location_ids().filter_map(|location| Some((node(location), trace.span_of(location)?)));
        let whole = spans.fold(None, |whole: Option<Span>, (node, own)| {
            let correction = self.of(node).correction;
            let (from_ns, until_ns) = (correction.to_common(own.from_ns), correction.to_common(own.until_ns));
            Some(whole.map_or(Span { from_ns, until_ns }, |whole| Span {
                from_ns: whole.from_ns.min(from_ns),
                until_ns: whole.until_ns.max(until_ns),
            }))
        });
        whole.unwrap_or(Span { from_ns: 0, until_ns: 0 })
    }
}
