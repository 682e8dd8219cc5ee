//! Why somebody was late: delay costs (Böhme, Geimer, Wolf et al., "Identifying the Root Causes of Wait States in Large-Scale Parallel
//! Applications", ICPP 2010), as Scalasca's analyser computes them.
//!
//! Whoever waits compares what it has done since the last common point with what the one has done that it has waited for. What that one
//! has done more is the delay; while that one has waited itself, others are to blame.

use super::{
    cells::Cell,
    log::{Log, TimeByCell},
    rules::Stay,
};

/// A wait whose cause is looked for: spans of the two since their last common point.
#[derive(Clone, Copy, Debug)]
pub(super) struct Search {
    /// Index of the wait.
    pub(super) wait: u32,
    pub(super) waiter: u32,
    pub(super) cause: u32,
    /// What each has done before is of no account.
    pub(super) waiter_span: (u64, u64),
    pub(super) cause_span: (u64, u64),
}

/// Spans of the two between a common point and another one, at which one has waited for the other. Time in the call of the common
/// point counts only after the other one has left it.
pub(super) fn spans(common: (Stay, Stay), waiter_entry_ns: u64, cause_entry_ns: u64) -> ((u64, u64), (u64, u64)) {
    let (waiter, cause) = common;
    let after = |own: Stay, other: Stay| own.return_ns.min(other.return_ns.max(own.entry_ns));
    ((after(waiter, cause), waiter_entry_ns), (after(cause, waiter), cause_entry_ns))
}

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Delay {
    pub(super) wait: u32,
    /// What the one that was late has done more, by cell, ns.
    pub(super) cells: Vec<(u32, u64)>,
    /// Waits of its own meanwhile, by index, ns.
    pub(super) waits: Vec<(u32, u64)>,
    /// The sums.
    pub(super) excess_ns: u64,
    pub(super) waiting_ns: u64,
}

/// A wait in a thread's time.
#[derive(Clone, Copy, Debug)]
pub(super) struct WaitAt {
    pub(super) from_ns: u64,
    pub(super) until_ns: u64,
    pub(super) wait: u32,
    /// The cell of the call.
    pub(super) cell: u32,
}

/// Waits of each thread in the order of time, by location.
pub(super) type WaitsOf = [Vec<WaitAt>];

/// Room for one search after the other.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    waiter: TimeByCell,
    cause: TimeByCell,
    excess: Vec<Computed>,
    own: Vec<Computed>,
}

/// Time between two calls.
#[derive(Clone, Copy, Debug)]
struct Computed {
    cell: u32,
    after: u32,
    before: u32,
    ns: u64,
    /// Where it is, which tells it from others that took as long.
    order: (u32, u32),
}

/// All activities by their numbers, and an order of places that is the same whoever has come first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Activities<'a> {
    pub(super) cells: &'a [Cell],
    /// By number of the place.
    pub(super) order: &'a [u32],
}

impl Activities<'_> {
    fn computed(&self, cell: u32, ns: u64) -> Option<Computed> {
        let Some(&Cell::Computing { after, before }) = self.cells.get(cell as usize) else { return None };
        let order = |place: u32| self.order.get(place as usize).copied().unwrap_or(u32::MAX);
        (ns > 0).then_some(Computed { cell, after, before, ns, order: (order(after), order(before)) })
    }
}

/// Looks for the cause of a wait.
pub(super) fn search(
    search: &Search,
    logs: &[Log],
    waits: &WaitsOf,
    activities: Activities<'_>,
    room: &mut Scratch,
) -> Delay {
    let mut delay = Delay { wait: search.wait, ..Delay::default() };
    let (from_ns, until_ns) = search.waiter_span;
    if let Some(log) = logs.get(search.waiter as usize) {
        log.add_span(from_ns, until_ns, &mut room.waiter);
    }
    for (one, ns) in waits_in(waits, search.waiter, from_ns, until_ns) {
        room.waiter.subtract(one.cell, ns);
    }
    let (from_ns, until_ns) = search.cause_span;
    if let Some(log) = logs.get(search.cause as usize) {
        log.add_span(from_ns, until_ns, &mut room.cause);
    }
    for (one, ns) in waits_in(waits, search.cause, from_ns, until_ns) {
        room.cause.subtract(one.cell, ns);
        delay.waits.push((one.wait, ns));
        delay.waiting_ns += ns;
    }
    room.excess(activities, &mut delay);
    delay.excess_ns = delay.cells.iter().map(|&(_, ns)| ns).sum();
    delay
}

/// Waits of a thread that are in a span, with what of them is.
fn waits_in(waits: &WaitsOf, location: u32, from_ns: u64, until_ns: u64) -> impl Iterator<Item = (WaitAt, u64)> + '_ {
    let of_location = waits.get(location as usize).map(Vec::as_slice).unwrap_or_default();
    let first = of_location.partition_point(|one| one.until_ns <= from_ns);
    let inside = of_location.get(first..).unwrap_or_default().iter();
    inside.take_while(move |one| one.from_ns < until_ns).map(move |&one| {
        let ns = one.until_ns.min(until_ns).saturating_sub(one.from_ns.max(from_ns));
        (one, ns)
    })
}

impl Scratch {
    /// What the cause has done more than the waiter. Calls are compared by function and place. Computing is compared with computing
    /// between the same two calls first, then with what began behind the same call, and then with what ended before the same one: ranks
    /// that go different ways in a program come from, or get to, the same place.
    fn excess(&mut self, activities: Activities<'_>, delay: &mut Delay) {
        let Self { waiter, cause, excess, own } = self;
        excess.clear();
        own.clear();
        cause.drain(|cell, ns| {
            let more = ns.saturating_sub(waiter.get(cell));
            waiter.subtract(cell, ns);
            match activities.cells.get(cell as usize) {
                Some(Cell::Computing { .. }) => excess.extend(activities.computed(cell, more)),
                Some(Cell::Calling(_) | Cell::NotRecorded { .. }) if more > 0 => delay.cells.push((cell, more)),
                _ => {}
            }
        });
        if !excess.is_empty() {
            own.extend(waiter.touched().iter().filter_map(|&cell| activities.computed(cell, waiter.get(cell))));
            cancel(excess, own, |computed| computed.after);
            cancel(excess, own, |computed| computed.before);
            delay.cells.extend(excess.iter().filter(|one| one.ns > 0).map(|one| (one.cell, one.ns)));
        }
        waiter.drain(|_, _| {});
        delay.cells.sort_unstable();
    }
}

/// Takes away from one side what the other has of the same key: of what has taken most first, whatever was known first.
fn cancel(excess: &mut [Computed], own: &mut [Computed], key: impl Fn(&Computed) -> u32) {
    if own.is_empty() {
        return;
    }
    excess.sort_unstable_by_key(|one| (key(one), u64::MAX - one.ns, one.order));
    own.sort_unstable_by_key(|one| (key(one), u64::MAX - one.ns, one.order));
    let mut others = own.iter_mut().peekable();
    for one in excess {
        while others.next_if(|other| key(other) < key(one) || other.ns == 0).is_some() {}
        while one.ns > 0
            && let Some(other) = others.peek_mut().filter(|other| key(other) == key(one))
        {
            let both = one.ns.min(other.ns);
            one.ns -= both;
            other.ns -= both;
            if other.ns == 0 {
                others.next();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_that_go_different_ways_are_compared_by_where_they_come_from_or_get_to() {
        let computed = |cell, after, before, ns| Computed { cell, after, before, ns, order: (after, before) };
        let mut excess = [computed(0, 7, 1, 100), computed(1, 8, 2, 50), computed(2, 9, 3, 30)];
        let mut own = [computed(3, 7, 4, 60), computed(4, 6, 2, 20), computed(5, 5, 5, 500)];
        cancel(&mut excess, &mut own, |one| one.after);
        cancel(&mut excess, &mut own, |one| one.before);
        excess.sort_by_key(|one| one.cell);
        assert_eq!(excess.map(|one| one.ns), [40, 30, 30]);
        own.sort_by_key(|one| one.cell);
        assert_eq!(own.map(|one| one.ns), [0, 0, 500]);
    }

    #[test]
    fn time_in_a_common_call_counts_when_the_other_has_left() {
        let stay = |entry_ns, return_ns| Stay { entry_ns, return_ns };
        let spans = |waiter, cause| spans((waiter, cause), 1000, 2000);
        assert_eq!(spans(stay(10, 20), stay(12, 30)), ((20, 1000), (20, 2000)));
        assert_eq!(spans(stay(10, 40), stay(12, 30)), ((30, 1000), (30, 2000)));
        // The one has left before the other has come: a message that was sent, and received later.
        assert_eq!(spans(stay(10, 20), stay(50, 60)), ((20, 1000), (50, 2000)));
    }
}
