//! Bands of pairs, put together: what is added to the times of each machine, so that all are on the clock of the first one.

use hashbrown::HashMap;

use super::{
    band::{Band, Line, Point, between},
    evidence::Pair,
};
use crate::clock::{Correction, Placed, ROUNDING_NS, Together};

/// How often lines are moved at most, so that those fit together that were not used to find them.
const ROUNDS: usize = 16;

struct Edge {
    pair: (u32, u32),
    band: Band,
    count: u64,
}

impl Edge {
    fn width(&self) -> f64 {
        let [first, last] = self.band.half_ns;
        first.max(last) + self.band.lies_ns
    }
}

/// `spans` are those of the machines' own events; `guesses` what is added to times of those that nothing compares.
pub(super) fn together(pairs: &HashMap<(u32, u32), Pair>, spans: &[(i64, i64)], guesses: &[i64]) -> Together {
    let mut edges: Vec<Edge> = pairs.iter().filter_map(|(&pair, known)| edge(pair, known, spans)).collect();
    edges.sort_by_key(|edge| edge.pair);
    let mut of_machine: Vec<Vec<usize>> = vec![Vec::new(); spans.len()];
    for (place, edge) in edges.iter().enumerate() {
        for machine in [edge.pair.0, edge.pair.1] {
            if let Some(of_machine) = of_machine.get_mut(machine as usize) {
                of_machine.push(place);
            }
        }
    }
    let mut machines: Vec<Option<Placed>> = vec![None; spans.len()];
    for first in 0..spans.len() {
        if machines.get(first).is_none_or(Option::is_some) {
            continue;
        }
        let group = u32::try_from(first).unwrap_or(u32::MAX);
        let offset_ns = guesses.get(first).copied().unwrap_or(0);
        let correction = Correction { offset_ns, ..Correction::default() };
        let members =
            spread(first, Placed { correction, group, ..Placed::default() }, &edges, &of_machine, &mut machines);
        settle(&members, pairs, spans, &mut machines);
    }
    let machines: Vec<Placed> = machines.into_iter().map(Option::unwrap_or_default).collect();
    let pairs = edges.iter().filter_map(|edge| Some((edge.pair, apart(edge, &machines)?))).collect();
    Together { machines, pairs }
}

fn edge(pair: (u32, u32), known: &Pair, spans: &[(i64, i64)]) -> Option<Edge> {
    let (least, most) = known.hulls();
    let (first, second) = (*spans.get(pair.0 as usize)?, *spans.get(pair.1 as usize)?);
    let band = between(&least, &most, second)?;
    // What the other one has done before and later is to be in it as well.
    let back = |ns: i64| backward(Correction::default(), &band.middle).offset_at(ns.cast_unsigned()).saturating_add(ns);
    let whole = (second.0.min(back(first.0)).max(0), second.1.max(back(first.1)));
    let band = if whole == second { band } else { between(&least, &most, whole)? };
    Some(Edge { pair, band, count: known.count() })
}

/// The clock of the second one of a pair, as that of the first one is known.
fn forward(first: Correction, line: &Line) -> Correction {
    let (whole, rest) = at_begin(line);
    let then = line.from_ns.saturating_add(whole);
    joined(first, (whole, rest, line.drift()), then, line.from_ns)
}

/// The clock of the first one, as that of the second one is known.
fn backward(second: Correction, line: &Line) -> Correction {
    let (whole, rest) = at_begin(line);
    let drift = line.drift();
    let then = line.from_ns.saturating_add(whole);
    joined(second, (whole.saturating_neg(), -rest, -drift / (1.0 + drift)), line.from_ns, then)
}

/// How far ahead the first one is at the beginning, whole nanoseconds and what is left.
#[expect(clippy::cast_possible_truncation, reason = "saturates")]
fn at_begin(line: &Line) -> (i64, f64) {
    let [first, _] = line.at_ends;
    (line.base_ns.saturating_add(first.round() as i64), first - first.round())
}

/// One correction after another one: `then` on the clock between the two is `at` on that of the machine.
#[expect(clippy::cast_possible_truncation, reason = "saturates")]
fn joined(known: Correction, (whole, rest, drift): (i64, f64, f64), then: i64, at: i64) -> Correction {
    let since = then.saturating_sub(known.at_ns.cast_signed());
    let more = known.drift.mul_add(since as f64, rest).round() as i64;
    Correction {
        offset_ns: whole.saturating_add(known.offset_ns).saturating_add(more),
        at_ns: at.max(0).cast_unsigned(),
        drift: known.drift.mul_add(1.0 + drift, drift),
    }
}

/// From one machine to all that can be compared with it, by the narrowest bands; gives them in that order.
fn spread(
    first: usize,
    placed: Placed,
    edges: &[Edge],
    of_machine: &[Vec<usize>],
    machines: &mut [Option<Placed>],
) -> Vec<usize> {
    let mut known: HashMap<usize, Placed> = HashMap::from([(first, placed)]);
    let mut members = Vec::new();
    while let Some((&machine, &placed)) =
        known.iter().min_by(|(one, by), (other, than)| by.within_ns.total_cmp(&than.within_ns).then(one.cmp(other)))
    {
        known.remove(&machine);
        if let Some(place) = machines.get_mut(machine) {
            *place = Some(placed);
        }
        members.push(machine);
        for edge in of_machine.get(machine).into_iter().flatten().filter_map(|&edge| edges.get(edge)) {
            let is_first = edge.pair.0 as usize == machine;
            let other = if is_first { edge.pair.1 } else { edge.pair.0 } as usize;
            let within_ns = placed.within_ns + edge.width();
            let is_settled = machines.get(other).is_none_or(Option::is_some);
            if is_settled || known.get(&other).is_some_and(|known| known.within_ns <= within_ns) {
                continue;
            }
            let line = &edge.band.middle;
            let correction =
                if is_first { forward(placed.correction, line) } else { backward(placed.correction, line) };
            let lies_ns = placed.lies_ns + edge.band.lies_ns;
            let group = placed.group;
            known.insert(other, Placed { correction, group, within_ns, lies_ns, evidence: edge.count });
        }
    }
    members
}

/// A time by a machine's own clock, on the common one.
fn common(placed: &Placed, ns: i64) -> i64 {
    ns.saturating_add(placed.correction.offset_at(ns.max(0).cast_unsigned()))
}

/// Moves lines so that nothing is before what it needs in pairs either that were not used to find them. What they have been moved by is not
/// known as well as it was.
fn settle(members: &[usize], pairs: &HashMap<(u32, u32), Pair>, spans: &[(i64, i64)], machines: &mut [Option<Placed>]) {
    let mut conditions: HashMap<usize, Vec<(usize, bool, &Pair)>> = HashMap::new();
    let is_member = |machine: u32| members.contains(&(machine as usize));
    for (&(first, second), pair) in pairs.iter().filter(|((first, second), _)| is_member(*first) && is_member(*second))
    {
        conditions.entry(second as usize).or_default().push((first as usize, false, pair));
        conditions.entry(first as usize).or_default().push((second as usize, true, pair));
    }
    if conditions.values().map(Vec::len).sum::<usize>() <= 2 * members.len().saturating_sub(1) {
        return;
    }
    let hulls: HashMap<usize, Vec<_>> = conditions
        .into_iter()
        .map(|(machine, all)| {
            (machine, all.into_iter().map(|(other, is_first, pair)| (other, is_first, pair.hulls())).collect())
        })
        .collect();
    let before = machines.to_vec();
    for _ in 0..ROUNDS {
        let mut has_moved = false;
        for &machine in members.iter().skip(1) {
            let (Some(&Some(own)), Some(&span)) = (machines.get(machine), spans.get(machine)) else { continue };
            let (mut above, mut below) = (Vec::new(), Vec::new());
            for (other, is_first, (least, most)) in hulls.get(&machine).into_iter().flatten() {
                let Some(Some(other)) = machines.get(*other) else { continue };
                // Of both, when it was by the machine's clock, and what time it was on the common one by the other's.
                let own = |point: &Point| {
                    let ahead = point.at_ns + point.ahead_ns;
                    let (at_ns, then) = if *is_first { (ahead, point.at_ns) } else { (point.at_ns, ahead) };
                    Point { at_ns, ahead_ns: common(other, then).saturating_sub(at_ns) }
                };
                let (lower, upper) = if *is_first { (most, least) } else { (least, most) };
                above.extend(lower.iter().map(own));
                below.extend(upper.iter().map(own));
            }
            let ahead = |point: &Point| own.correction.offset_at(point.at_ns.max(0).cast_unsigned());
            let off = above.iter().map(|point| point.ahead_ns.saturating_sub(ahead(point)));
            let off = off.chain(below.iter().map(|point| ahead(point).saturating_sub(point.ahead_ns)));
            if off.max().is_none_or(|off| (off as f64) < ROUNDING_NS) {
                continue;
            }
            let Some(Band { middle, .. }) = between(&above, &below, span) else { continue };
            let correction = forward(Correction::default(), &middle);
            let moved = [span.0, span.1].map(|ns| {
                let ns = ns.max(0).cast_unsigned();
                correction.offset_at(ns).abs_diff(own.correction.offset_at(ns))
            });
            if let Some(place) = machines.get_mut(machine) {
                *place = Some(Placed { correction, ..own });
            }
            has_moved = has_moved || moved.iter().any(|&ns| ns as f64 > ROUNDING_NS);
        }
        if !has_moved {
            break;
        }
    }
    for &machine in members {
        let (Some(Some(before)), Some(&(from, until))) = (before.get(machine), spans.get(machine)) else { continue };
        if let Some(Some(now)) = machines.get_mut(machine) {
            let moved = [from, until].map(|ns| common(before, ns).abs_diff(common(now, ns)));
            now.within_ns += moved.into_iter().max().unwrap_or(0) as f64;
        }
    }
}

/// By the band of a pair itself, as far as that is narrower than what is known of each.
fn apart(edge: &Edge, machines: &[Placed]) -> Option<(f64, f64)> {
    let (first, second) = (machines.get(edge.pair.0 as usize)?, machines.get(edge.pair.1 as usize)?);
    let line = &edge.band.middle;
    let by_pair = Placed { correction: forward(first.correction, line), ..Placed::default() };
    let off = [line.from_ns, line.until_ns].map(|ns| common(&by_pair, ns).abs_diff(common(second, ns)));
    let own = off.into_iter().max().unwrap_or(0) as f64 + edge.width();
    let sum = first.within_ns + second.within_ns;
    Some(if own <= sum { (own, edge.band.lies_ns) } else { (sum, first.lies_ns + second.lies_ns) })
}
