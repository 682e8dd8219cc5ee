//! One clock for all nodes.

use mpiprobe_trace::{Definitions, NodeId, Row, Span};

/// From the clock of each node to a common one, which is that of the first node.
#[derive(Clone, Debug, Default)]
pub struct Clocks {
    /// By node; those that are not there are not corrected.
    nodes: Vec<Correction>,
    /// By node; those that are not there are all the same.
    groups: Vec<u32>,
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
        self.offset_ns.saturating_add((self.drift * since as f64) as i64)
    }

    /// A time of the node on the common clock.
    pub fn to_common(&self, ns: u64) -> u64 {
        ns.saturating_add_signed(self.offset_at(ns))
    }

    /// A time on the common clock on the node's, to within the drift of the offset.
    fn to_own(self, ns: u64) -> u64 {
        let near = ns.saturating_sub_signed(self.offset_ns);
        ns.saturating_sub_signed(self.offset_at(near))
    }
}

impl Clocks {
    /// All nodes' clocks are the same.
    pub fn same() -> Self {
        Self::default()
    }

    /// By node: what is added to its times, and a number that nodes have in common whose clocks can be compared then.
    pub fn new(nodes: Vec<Correction>, groups: Vec<u32>) -> Self {
        Self { nodes, groups }
    }

    pub fn correction(&self, node: NodeId) -> Correction {
        self.nodes.get(node.index()).copied().unwrap_or_default()
    }

    /// Nodes of the same number have clocks that can be compared.
    pub(crate) fn group(&self, node: usize) -> u32 {
        self.groups.get(node).copied().unwrap_or(0)
    }

    pub(crate) fn correct(&self, node: usize, rows: &mut [Row]) {
        let Some(correction) = self.nodes.get(node).filter(|correction| !correction.is_none()) else { return };
        for row in rows {
            row.begin_ns = correction.to_common(row.begin_ns);
            row.end_ns = correction.to_common(row.end_ns);
        }
    }

    /// A span on the common clock, as a node calls it.
    pub fn own_span(&self, node: usize, span: Span) -> Span {
        match self.nodes.get(node).filter(|correction| !correction.is_none()) {
            Some(correction) if span != Span::ALL => {
                Span { from_ns: correction.to_own(span.from_ns), until_ns: correction.to_own(span.until_ns) }
            }
            _ => span,
        }
    }

    /// A span that is on each node's own clock, so that all of it is in there.
    pub fn span(&self, definitions: &Definitions, span: Span) -> Span {
        let nodes = 0..definitions.nodes.len().max(1);
        let ends = nodes.map(|node| {
            let correction = self.nodes.get(node).copied().unwrap_or_default();
            (correction.to_common(span.from_ns), correction.to_common(span.until_ns))
        });
        ends.fold(Span { from_ns: u64::MAX, until_ns: 0 }, |span, (from, until)| Span {
            from_ns: span.from_ns.min(from),
            until_ns: span.until_ns.max(until),
        })
    }
}
