//! Sums over wait states and their causes.

use hashbrown::HashMap;
use mpiprobe_model::WaitKind;

use super::{delays::Delay, found::PartKind};

/// Pairs of waits and causes that are told apart.
const MOST_LINKS: usize = 1 << 20;

/// Waits of one kind in one thread at one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct RowKey {
    pub(super) kind: WaitKind,
    pub(super) location: u32,
    pub(super) place: u32,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RowSum {
    pub(super) count: u64,
    pub(super) ns: u64,
    pub(super) longest_ns: u64,
    pub(super) longest_at_ns: u64,
    pub(super) wrong_order_same_ns: u64,
    pub(super) wrong_order_other_ns: u64,
    pub(super) early_fence_ns: u64,
    pub(super) late_complete_ns: u64,
}

/// Time that was handed on in parts, in 2^-20 ns: the sum is the same in whatever order they came, which depends on how many threads work.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Parts(u128);

impl Parts {
    const UNIT: f64 = (1u64 << 20) as f64;

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "times are positive and saturate")]
    fn add(&mut self, ns: f64) {
        let parts = ns * Self::UNIT;
        // Up to hours the conversion is an instruction, and not a function.
        let parts = if parts < u64::MAX as f64 { u128::from(parts as u64) } else { parts as u128 };
        self.0 = self.0.saturating_add(parts);
    }

    pub(super) fn ns(self) -> f64 {
        self.0 as f64 / Self::UNIT
    }
}

/// What a wait is due to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum CauseKey {
    /// What a thread was doing, by location and cell.
    Doing(u32, u32),
    /// What a thread was waiting for itself, by location and place.
    Waiting(u32, u32),
    Others,
}

/// What else is counted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) calls: u64,
    pub(super) open_calls: u64,
    pub(super) from_ns: Option<u64>,
    pub(super) until_ns: u64,
    pub(super) violations: u64,
    pub(super) worst_violation_ns: u64,
    pub(super) between_clocks: u64,
    /// Waits that are shorter than what is known of the clocks.
    pub(super) unsure: u64,
    pub(super) unsure_ns: u64,
    pub(super) unknown_neighbours: u64,
    pub(super) cut_off: u64,
}

/// What waits of a row are due to in one thread, ns, each in the order of the numbers. A wait adds to many that are beside each other.
#[derive(Clone, Debug, Default)]
struct OfThread {
    /// By cell.
    doing: Vec<(u32, Parts)>,
    /// By place.
    waiting: Vec<(u32, Parts)>,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Totals {
    pub(super) rows: HashMap<RowKey, RowSum>,
    links: HashMap<(RowKey, u32), OfThread>,
    /// Of what there was no room for in `links`.
    others: HashMap<RowKey, Parts>,
    /// Entries of all in `links`.
    link_count: usize,
    /// By location and cell, the direct and the indirect costs, ns.
    pub(super) delays: HashMap<(u32, u32), (Parts, Parts)>,
}

/// A wait as its costs are handed on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    pub(super) key: RowKey,
    pub(super) cause: u32,
    pub(super) ns: u64,
    pub(super) end_ns: u64,
    /// Costs of waits that this one has led to.
    pub(super) inherited: f64,
}

impl Totals {
    pub(super) fn wait(&mut self, key: RowKey, begin_ns: u64, ns: u64) {
        let row = self.rows.entry(key).or_default();
        row.count += 1;
        row.ns = row.ns.saturating_add(ns);
        // Whoever is told of first, the earlier of two is the longest.
        if ns > row.longest_ns || ns == row.longest_ns && begin_ns < row.longest_at_ns {
            (row.longest_ns, row.longest_at_ns) = (ns, begin_ns);
        }
    }

    pub(super) fn part(&mut self, key: RowKey, what: PartKind, ns: u64) {
        let row = self.rows.entry(key).or_default();
        let sum = match what {
            PartKind::WrongOrder { is_same_source: true } => &mut row.wrong_order_same_ns,
            PartKind::WrongOrder { is_same_source: false } => &mut row.wrong_order_other_ns,
            PartKind::EarlyFence => &mut row.early_fence_ns,
            PartKind::LateComplete => &mut row.late_complete_ns,
        };
        *sum = sum.saturating_add(ns);
    }

    /// All that waits are due to, ns.
    pub(super) fn links(&self) -> impl Iterator<Item = (RowKey, CauseKey, f64)> + '_ {
        let of_threads = self.links.iter().flat_map(|(&(row, thread), of)| {
            let doing = of.doing.iter().map(move |&(cell, ns)| (row, CauseKey::Doing(thread, cell), ns.ns()));
            doing.chain(of.waiting.iter().map(move |&(place, ns)| (row, CauseKey::Waiting(thread, place), ns.ns())))
        });
        of_threads.chain(self.others.iter().map(|(&row, &ns)| (row, CauseKey::Others, ns.ns())))
    }

    /// Charges what a wait has cost to what it is due to, and hands on what is due to waits of the one that was late. `places` are those of
    /// the waits by index.
    pub(super) fn charge(&mut self, delay: &Delay, nodes: &mut [Node]) {
        let Some(&node) = nodes.get(delay.wait as usize) else { return };
        let both = (delay.excess_ns + delay.waiting_ns) as f64;
        if both <= 0.0 {
            return;
        }
        let waited = node.ns as f64;
        let (direct, indirect) = ((waited / both).min(1.0), node.inherited / both);
        // Scalasca has no costs of waits for the end of the run.
        let has_costs = node.key.kind != WaitKind::Finalize;
        let Self { delays, links, others, link_count, .. } = self;
        let links = links.entry((node.key, node.cause)).or_default();
        let mut add =
            |to: &mut Vec<(u32, Parts)>, number: u32, ns: f64| match to.binary_search_by_key(&number, |one| one.0) {
                Ok(place) => {
                    if let Some((_, sum)) = to.get_mut(place) {
                        sum.add(ns);
                    }
                }
                Err(place) if *link_count < MOST_LINKS => {
                    *link_count += 1;
                    let mut sum = Parts::default();
                    sum.add(ns);
                    to.insert(place, (number, sum));
                }
                Err(_) => others.entry(node.key).or_default().add(ns),
            };
        for &(cell, ns) in &delay.cells {
            let ns = ns as f64;
            if has_costs {
                let cost = delays.entry((node.cause, cell)).or_default();
                cost.0.add(ns * direct);
                cost.1.add(ns * indirect);
            }
            add(&mut links.doing, cell, ns * direct);
        }
        for &(wait, ns) in &delay.waits {
            let ns = ns as f64;
            let Some(other) = nodes.get_mut(wait as usize) else { continue };
            if has_costs {
                other.inherited += ns * (direct + indirect);
            }
            let place = other.key.place;
            add(&mut links.waiting, place, ns * direct);
        }
    }
}
