//! A trace is gone through once, and what its messages say of clocks is kept.
//!
//! Which ends belong together is known without clocks, by MPI's rules of order; that little is in memory meanwhile takes that what happens at
//! one time is read at one time. For that a guess is enough: the clocks of the world, or that all has begun at the same time.

use mpiprobe_trace::{Definitions, ReadError, Span, Trace};

use super::{evidence::Evidence, together::together};
use crate::{clock::Clocks, matching::Matcher, slices::Slices};

/// What is known of a machine before.
#[derive(Clone, Copy, Debug, Default)]
struct Machine {
    /// Of its events, on its own clock.
    span: Option<Span>,
    /// The clock of the world is ahead of its own, and may be wrong by so much, if anybody knows, ns.
    realtime: Option<(i128, Option<u64>)>,
}

/// What is added to the times of each node, so that they can be compared, and how well that is known. `progress` is told of events that were
/// dealt with; where there is one machine only, none is read.
pub fn estimate(trace: &dyn Trace, threads: usize, mut progress: impl FnMut(u64)) -> Result<Clocks, ReadError> {
    let definitions = trace.definitions();
    let (machine_of, machines) = machines(trace);
    if machines.len() < 2 {
        return Ok(Clocks::same());
    }
    let guesses = guesses(&machines);
    // So that no time is before the beginning of the clock that is used for reading.
    let first = machines
        .iter()
        .zip(&guesses)
        .filter_map(|(machine, &guess)| Some(i128::from(machine.span?.from_ns) + i128::from(guess)));
    let below = first.min().unwrap_or(0).min(0);
    let shifts: Vec<i64> = guesses.iter().map(|&guess| clamped(i128::from(guess) - below)).collect();
    let errors: Vec<Option<u64>> =
        machines.iter().map(|machine| machine.realtime.and_then(|(_, error)| error)).collect();
    let rough = Clocks::guessed(&machine_of, &shifts, &errors);
    let node = |id| definitions.process(id).map_or(0, |process| process.node.index());
    let of_locations =
        definitions.locations.iter().map(|location| machine_of.get(node(location.process)).copied().unwrap_or(0));
    let mut evidence = Evidence::new(of_locations.collect(), shifts);
    let mut slices = Slices::new(trace, &rough, definitions.location_ids(), Span::ALL, threads);
    let mut matcher = Matcher::new(definitions, &rough, false, threads);
    while let Some(slice) = slices.next_slice()? {
        evidence.take(&matcher.take(&slice));
        progress(slice.rows());
    }
    evidence.take(&matcher.finish());
    let spans = machines.iter().map(|machine| {
        let span = machine.span.unwrap_or(Span { from_ns: 0, until_ns: 0 });
        (clamped(span.from_ns.into()), clamped(span.until_ns.into()))
    });
    let mut together = together(&evidence.pairs, &spans.collect::<Vec<_>>(), &guesses);
    // Of a machine on which nothing has happened, nothing needs to be compared.
    let group = machines.iter().zip(&together.machines).find(|(machine, _)| machine.span.is_some());
    if let Some(group) = group.map(|(_, placed)| placed.group) {
        for (machine, placed) in machines.iter().zip(&mut together.machines) {
            if machine.span.is_none() {
                placed.group = group;
            }
        }
    }
    Ok(Clocks::found(&machine_of, &together))
}

/// The machine of each node, in the order of nodes, and what is known of each: what was recorded in one boot has one clock.
fn machines(trace: &dyn Trace) -> (Vec<u32>, Vec<Machine>) {
    let definitions: &Definitions = trace.definitions();
    let mut boots: Vec<Option<&str>> = Vec::new();
    let mut machine_of = Vec::new();
    let mut machines: Vec<Machine> = Vec::new();
    for node in &definitions.nodes {
        let boot = Some(node.boot.as_str()).filter(|boot| !boot.is_empty());
        let known = boots.iter().position(|&known| boot.is_some() && known == boot);
        let machine = known.unwrap_or_else(|| {
            boots.push(boot);
            machines.push(Machine::default());
            machines.len() - 1
        });
        machine_of.push(u32::try_from(machine).unwrap_or(u32::MAX));
        let pair = node.clock.iter().min_by_key(|pair| (pair.max_error_ns.is_none(), pair.monotonic_ns));
        if let (Some(machine), Some(pair)) = (machines.get_mut(machine), pair) {
            let ahead = i128::from(pair.realtime_ns) - i128::from(pair.monotonic_ns);
            let error = pair.max_error_ns.map(|error| error.saturating_add(pair.within_ns).min(u64::MAX / 4));
            machine.realtime.get_or_insert((ahead, error));
        }
    }
    for (location, known) in definitions.location_ids().zip(&definitions.locations) {
        let node = definitions.process(known.process).map_or(0, |process| process.node.index());
        let machine = machine_of.get(node).and_then(|&machine| machines.get_mut(machine as usize));
        if let (Some(machine), Some(own)) = (machine, trace.span_of(location)) {
            let known = machine.span.unwrap_or(own);
            let (from_ns, until_ns) = (known.from_ns.min(own.from_ns), known.until_ns.max(own.until_ns));
            machine.span = Some(Span { from_ns, until_ns });
        }
    }
    (machine_of, machines)
}

/// What to add to the times of each machine so that it is about the clock of the first one that has events.
fn guesses(machines: &[Machine]) -> Vec<i64> {
    let Some(first) = machines.iter().find(|machine| machine.span.is_some()) else { return vec![0; machines.len()] };
    let of_first = first.span.unwrap_or(Span { from_ns: 0, until_ns: 0 });
    let guess = |machine: &Machine| {
        let own = machine.span.unwrap_or(of_first);
        let together = i128::from(of_first.from_ns) - i128::from(own.from_ns);
        let Some(((ahead, error), (first_ahead, first_error))) = machine.realtime.zip(first.realtime) else {
            return clamped(together);
        };
        let shift = ahead - first_ahead;
        let (from, until) = (i128::from(own.from_ns) + shift, i128::from(own.until_ns) + shift);
        let is_meanwhile = from <= i128::from(of_first.until_ns) && until >= i128::from(of_first.from_ns);
        // A clock that nobody sets may be years off.
        let is_known = error.is_some() && first_error.is_some();
        clamped(if is_known || is_meanwhile { shift } else { together })
    };
    machines.iter().map(guess).collect()
}

/// Half of what there is room for, so that sums fit.
fn clamped(ns: i128) -> i64 {
    let most = i128::from(i64::MAX / 2);
    i64::try_from(ns.clamp(-most, most)).unwrap_or(0)
}
