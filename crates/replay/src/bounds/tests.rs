//! Clocks that are known, and what is found out of them.

use mpiprobe_model::WaitStates;
use mpiprobe_trace::{Definitions, HandMade, LocationId, NodeId, Numbers, Span, Trace as _, call};

use super::{
    band::{Below, MOST_DRIFT, Point, between},
    estimate,
};
use crate::{Clocks, End, Matcher, Slices, analyse};

fn points(all: &[(i64, i64)]) -> Vec<Point> {
    all.iter().map(|&(at_ns, ahead_ns)| Point { at_ns, ahead_ns }).collect()
}

/// To the nanosecond.
#[expect(clippy::cast_possible_truncation, reason = "small numbers")]
fn whole(ns: [f64; 2]) -> [i64; 2] {
    ns.map(|ns| ns.round() as i64)
}

#[test]
fn the_middle_between_points_is_taken_and_the_last_line_that_fits_is_as_far() {
    let (least, most) = (points(&[(0, 10), (1_000_000, 10)]), points(&[(0, 20), (1_000_000, 20)]));
    let band = between(&least, &most, (0, 1_000_000)).unwrap();
    assert_eq!((band.middle.base_ns, whole(band.middle.at_ends)), (10, [5, 5]));
    assert_eq!(whole(band.half_ns), [5, 5]);
    assert!(band.lies_ns < 0.5);
}

#[test]
fn a_line_that_rises_is_followed() {
    // One part in ten thousand, and a day ahead.
    let day = 86_400_000_000_000;
    let rising = |at: i64, more: i64| (at, day + at / 10_000 + more);
    let least: Vec<_> = (0..5).map(|at| rising(at * 1_000_000_000, -700)).collect();
    let most: Vec<_> = (0..5).map(|at| rising(at * 1_000_000_000, 900)).collect();
    let band = between(&points(&least), &points(&most), (0, 4_000_000_000)).unwrap();
    assert_eq!(band.middle.base_ns, day - 700);
    assert_eq!(whole(band.middle.at_ends), [800, 400_800]);
    assert_eq!(whole(band.half_ns), [800, 800]);
    assert!(band.lies_ns < 0.5);
}

/// With one moment only, nothing but what clocks can drift at all says how they were at another time.
#[test]
fn few_points_leave_much_room() {
    let band = between(&points(&[(500_000, -3)]), &points(&[(500_000, 7)]), (0, 1_000_000)).unwrap();
    let drifted = 5.0 + MOST_DRIFT * 500_000.0;
    assert_eq!(whole(band.middle.at_ends), [5, 5]);
    assert_eq!(whole(band.half_ns), whole([drifted; 2]));
    assert_eq!(between(&points(&[(500_000, -3)]), &[], (0, 1_000_000)), None);
    assert_eq!(between(&[], &points(&[(500_000, -3)]), (0, 1_000_000)), None);
}

#[test]
fn points_that_contradict_each_other_give_way_by_the_same() {
    let band = between(&points(&[(0, 1000), (1000, 0)]), &points(&[(0, 0), (1000, 1000)]), (0, 1000)).unwrap();
    assert!((band.lies_ns - 500.0).abs() <= 1.0, "{band:?}");
    assert_eq!(whole(band.middle.at_ends).map(|ns| ns + band.middle.base_ns), [500, 500]);
}

/// Whatever somebody has written down.
#[test]
fn no_times_are_too_large() {
    assert_eq!(Point::new(u64::MAX, 3), None);
    let far = (1u64 << 62) - 1;
    let ends = [(0, far), (far, 0), (far, far), (0, 0), (far / 2, far / 3)];
    let mut below = Below::default();
    for (own, other) in ends.into_iter().cycle().take(5000) {
        below.add(Point::new(own, other).unwrap());
    }
    let hull = below.hull();
    let turned: Vec<_> = hull.iter().map(|one| Point { ahead_ns: -one.ahead_ns, ..*one }).collect();
    for span in [(0, far.cast_signed()), (0, 0), (far.cast_signed(), far.cast_signed())] {
        let band = between(&hull, &turned, span);
        assert!(band.is_none_or(|band| band.half_ns.into_iter().all(f64::is_finite)));
    }
}

/// Of many points those are kept that matter.
#[test]
fn a_hull_says_the_same_as_all_its_points() {
    let mut numbers = Numbers(7);
    let all: Vec<Point> =
        (0..5000).map(|at| Point { at_ns: at * 10_000, ahead_ns: at + numbers.below(5000).cast_signed() }).collect();
    let mut kept = Below::default();
    let mut turned = Below::default();
    for &Point { at_ns, ahead_ns } in &all {
        kept.add(Point { at_ns, ahead_ns });
        turned.add(Point { at_ns, ahead_ns: -ahead_ns - 12_000 });
    }
    let upper: Vec<_> = all.iter().map(|one| Point { ahead_ns: one.ahead_ns + 12_000, ..*one }).collect();
    let span = (0, 50_000_000);
    let of_all = between(&all, &upper, span).unwrap();
    let hull: Vec<_> = turned.hull().iter().map(|one| Point { ahead_ns: -one.ahead_ns, ..*one }).collect();
    let of_hull = between(&kept.hull(), &hull, span).unwrap();
    assert!(kept.hull().len() < 100);
    for end in 0..2 {
        let value = |band: &super::band::Band| band.middle.at_ends[end] + band.middle.base_ns as f64;
        assert!((value(&of_all) - value(&of_hull)).abs() < 0.1);
        assert!((of_all.half_ns[end] - of_hull.half_ns[end]).abs() < 0.1);
    }
}

/// What a node's clock shows, given an offset and how many parts in a thousand million it runs too fast.
fn shown(offset_ns: i64, ppb: i64, ns: u64) -> u64 {
    let more = i128::from(ns) * i128::from(ppb) / 1_000_000_000;
    u64::try_from(i128::from(ns) + i128::from(offset_ns) + more).unwrap()
}

/// Clocks that are up to 20 days apart and drift by up to 100 ppm; that of the first node is the true one.
fn clocks(nodes: u32, numbers: &mut Numbers) -> Vec<(i64, i64)> {
    let day = 86_400_000_000_000;
    let other =
        |numbers: &mut Numbers| (numbers.below(20 * day).cast_signed(), numbers.below(200_000).cast_signed() - 100_000);
    (0..nodes).map(|node| if node == 0 { (10 * day.cast_signed(), 0) } else { other(numbers) }).collect()
}

/// Who has messages with whom.
#[derive(Clone, Copy, Debug)]
enum Job {
    /// All, and reductions of all.
    Halo,
    /// Each rank with the next one, without anything in common.
    Chain,
    /// Two halves of the ranks that have nothing to do with each other.
    Halves,
}

fn job(kind: Job, ranks: u32, steps: u64, numbers: &mut Numbers) -> HandMade {
    if matches!(kind, Job::Halo) {
        return HandMade::halo(ranks, steps);
    }
    let mut made = HandMade::of_ranks(ranks);
    let mut now: Vec<u64> = (0..ranks).map(|_| 1_000_000 + numbers.below(1_000_000)).collect();
    for step in 0..steps {
        for one in 0..ranks - 1 {
            if matches!(kind, Job::Halves) && one + 1 == ranks / 2 {
                continue;
            }
            // There and back.
            for (from, to) in [(one, one + 1), (one + 1, one)] {
                let tag = i32::try_from(step % 7).unwrap();
                let entry = now[from as usize] + numbers.below(500_000);
                let back = entry + 300 + numbers.below(500);
                now[from as usize] = back;
                made.add(from, call("MPI_Send", entry, back).to(to, tag, 64));
                let posted = now[to as usize] + numbers.below(400_000);
                let arrived = posted.max(entry + 1200 + numbers.below(3000)) + 100;
                now[to as usize] = arrived;
                made.add(to, call("MPI_Recv", posted, arrived).from(from, tag, 64));
            }
        }
    }
    made
}

fn pairs(made: &HandMade, clocks: &Clocks) -> Vec<(LocationId, u64, LocationId, u64)> {
    let mut slices = Slices::new(made, clocks, made.definitions.location_ids(), Span::ALL, 1);
    let mut matcher = Matcher::new(&made.definitions, clocks, false, 1);
    let mut found = Vec::new();
    let mut add = |met: crate::Matched<'_>| {
        found.extend(met.done().filter_map(|done| match done.end {
            End::Received { send, .. } => Some((send.location, send.number, done.call.location, done.call.number)),
            _ => None,
        }));
    };
    while let Some(slice) = slices.next_slice().unwrap() {
        add(matcher.take(&slice));
    }
    add(matcher.finish());
    found.sort_unstable();
    found
}

/// The times of a node are so far from the true ones after correction, at most.
fn worst_error(found: &Clocks, node: u32, clock: (i64, i64), first: (i64, i64), span: Span) -> u64 {
    let parts = (0..=20).map(|part| span.from_ns + (span.until_ns - span.from_ns) * part / 20);
    let error = |ns: u64| {
        let corrected = found.correction(NodeId(node)).to_common(shown(clock.0, clock.1, ns));
        corrected.abs_diff(shown(first.0, first.1, ns))
    };
    parts.map(error).max().unwrap()
}

/// By kind, thread and site: how often, and how long.
fn rows(states: &WaitStates) -> Vec<(String, u32, u32, u64, u64)> {
    let mut rows: Vec<_> =
        states.waits.iter().map(|row| (format!("{:?}", row.kind), row.thread, row.site, row.count, row.ns)).collect();
    rows.sort();
    rows
}

fn sum(states: &WaitStates) -> (u64, u64) {
    (states.waits.iter().map(|row| row.count).sum(), states.waits.iter().map(|row| row.ns).sum())
}

/// Invariant CLOCKS-BOUNDED.
#[test]
fn the_true_offset_is_in_the_band_and_the_course_of_things_the_same() {
    for seed in 1..=40 {
        let mut numbers = Numbers(seed * 7919);
        let kind = [Job::Halo, Job::Chain, Job::Halves][(seed % 3) as usize];
        let nodes = 2 + u32::try_from(seed).unwrap() % 7;
        let ranks = if matches!(kind, Job::Halo) { nodes * 2 } else { nodes.max(4) };
        let steps = 3 + numbers.below(80);
        let made = job(kind, ranks, steps, &mut numbers);
        let node_of = |rank: u32| rank * nodes / ranks;
        let clocks = clocks(nodes, &mut numbers);
        let clock = |node: u32, ns: u64| {
            let (offset, ppb) = clocks[node as usize];
            shown(offset, ppb, ns)
        };
        let apart = made.over_nodes(node_of, clock);
        let found = estimate(&apart, 1, |_| {}).unwrap();
        let what = format!("seed {seed}: {kind:?} of {nodes} nodes, {steps} steps");
        let first_of_other_half = node_of(ranks / 2);
        let mut worst = 0;
        for node in 0..nodes {
            let is_connected = !matches!(kind, Job::Halves)
                || node < first_of_other_half
                || (0..ranks / 2).any(|rank| node_of(rank) == node);
            let within = found.within_ns(NodeId(0), NodeId(node));
            assert_eq!(within.is_some(), is_connected, "{what}: node {node}");
            let Some(within) = within else { continue };
            let of_node = made.definitions.location_ids().filter(|location| node_of(location.0) == node);
            let spans: Vec<Span> = of_node.filter_map(|location| made.span_of(location)).collect();
            let (from, until) =
                (spans.iter().map(|span| span.from_ns).min(), spans.iter().map(|span| span.until_ns).max());
            let span = Span { from_ns: from.unwrap(), until_ns: until.unwrap() };
            let error = worst_error(&found, node, clocks[node as usize], clocks[0], span);
            assert!(error <= within, "{what}: node {node} is off by {error} ns, said to be {within}");
            worst = worst.max(within);
        }
        assert_eq!(pairs(&made, &Clocks::same()), pairs(&apart, &found), "{what}");
        let one = analyse(&made, &Clocks::same(), Span::ALL, 1, |_| {}).unwrap();
        let several = analyse(&apart, &found, Span::ALL, 2, |_| {}).unwrap();
        assert_eq!(one.unmatched.matched_messages, several.unmatched.matched_messages, "{what}");
        assert_eq!(one.unmatched.matched_collective_calls, several.unmatched.matched_collective_calls, "{what}");
        assert_eq!((several.clocks.violations, several.clocks.nodes.len()), (0, nodes as usize), "{what}");
        // Clocks that nothing compares drift as they do.
        if found.not_compared() == 0 {
            let ((count, ns), (others_count, others_ns)) = (sum(&one), sum(&several));
            let most = (count + several.clocks.unsure_waits) * 2 * found.worst_within_ns().unwrap_or(0);
            assert!(ns.abs_diff(others_ns) <= most, "{what}: {ns} and {others_ns}");
            assert!(others_count <= count + several.clocks.unsure_waits, "{what}");
        }
    }
}

/// What is told across nodes follows whatever the true offset within the band is.
///
/// Invariant CLOCKS-BOUNDED.
#[test]
fn waits_that_are_told_are_waits_by_every_clock_in_the_band() {
    let made = HandMade::halo(6, 40).over_nodes(|rank| rank / 2, |node, ns| shown(i64::from(node) * 5_000_000, 0, ns));
    let found = estimate(&made, 1, |_| {}).unwrap();
    let told = analyse(&made, &found, Span::ALL, 1, |_| {}).unwrap();
    let one = analyse(&HandMade::halo(6, 40), &Clocks::same(), Span::ALL, 1, |_| {}).unwrap();
    let truly: Vec<_> = rows(&one);
    for (kind, thread, site, count, _) in rows(&told) {
        let same = truly.iter().find(|row| (&row.0, row.1, row.2) == (&kind, thread, site));
        assert!(same.is_some_and(|row| row.3 >= count), "{kind} of {thread}: {count}, truly {same:?}");
    }
    assert!(told.clocks.unsure_waits > 0);
}

#[test]
fn one_machine_has_one_clock() {
    let mut made = HandMade::halo(4, 3).over_nodes(|rank| rank / 2, |_, ns| ns);
    for node in &mut made.definitions.nodes {
        node.boot = "the same".into();
    }
    let found = estimate(&made, 1, |_| panic!("nothing needs to be read")).unwrap();
    assert_eq!(found.within_ns(NodeId(0), NodeId(1)), Some(0));
    let states = analyse(&made, &found, Span::ALL, 1, |_| {}).unwrap();
    assert_eq!((states.clocks.nodes.len(), states.clocks.unsure_waits), (0, 0));
}

#[test]
fn a_node_on_which_nothing_happens_changes_nothing() {
    let mut made =
        HandMade::halo(4, 10).over_nodes(|rank| 1 + rank / 2, |node, ns| ns + u64::from(node) * 1_000_000_000);
    let found = estimate(&made, 1, |_| {}).unwrap();
    assert_eq!((found.not_compared(), made.definitions.nodes.len()), (0, 3));
    assert!(found.correction(NodeId(1)).is_none());
    let states = analyse(&made, &found, Span::ALL, 1, |_| {}).unwrap();
    assert!(states.complete && states.critical_path.is_some());
    made.definitions.nodes.clear();
    assert_eq!(estimate(&made, 1, |_| panic!("nothing needs to be read")).unwrap().not_compared(), 0);
}

/// A clock that is set while the job runs is on no line.
#[test]
fn times_that_cannot_be_true_are_counted() {
    let half = HandMade::halo(4, 40).span().until_ns / 2;
    let steps = |node: u32, ns: u64| if node == 1 && ns > half { ns + 4_000_000 } else { ns };
    let made = HandMade::halo(4, 40).over_nodes(|rank| rank / 2, steps);
    let found = estimate(&made, 1, |_| {}).unwrap();
    let states = analyse(&made, &found, Span::ALL, 1, |_| {}).unwrap();
    assert!(states.clocks.violations > 0);
    assert!(states.clocks.worst_violation_ns > 100_000, "{:?}", states.clocks);
}

#[test]
fn what_nothing_compares_is_neither_an_arrow_nor_a_wait() {
    // One way only: nothing says how long it has taken.
    let mut made = HandMade::of_ranks(2);
    for step in 0..10 {
        let now = 1000 + step * 100_000;
        made.add(0, call("MPI_Send", now + 5000, now + 5100).to(1, 0, 8));
        made.add(1, call("MPI_Recv", now, now + 9000).from(0, 0, 8));
    }
    let apart = made.over_nodes(|rank| rank, |node, ns| ns + u64::from(node) * 1_000_000_000_000);
    let found = estimate(&apart, 1, |_| {}).unwrap();
    assert_eq!(found.within_ns(NodeId(0), NodeId(1)), None);
    assert_eq!(found.not_compared(), 1);
    let states = analyse(&apart, &found, Span::ALL, 1, |_| {}).unwrap();
    assert_eq!((states.unmatched.matched_messages, states.unmatched.between_clocks), (10, 10));
    assert!(states.waits.is_empty() && !states.complete && states.critical_path.is_none());
    assert_eq!(states.clocks.nodes[1].within_ns, None);
}

/// Messages one way only, of which each has to wait until it is received, and what is found before that is received.
#[test]
fn synchronous_sends_and_probes_say_as_much_as_messages_back() {
    let mut made = HandMade::of_ranks(2);
    for step in 0..10 {
        let now = 1000 + step * 100_000;
        made.add(0, call("MPI_Ssend", now, now + 9000).to(1, 0, 8));
        made.add(1, call("MPI_Probe", now + 100, now + 5000).from(0, 0, 8));
        made.add(1, call("MPI_Recv", now + 8000, now + 50_000).from(0, 0, 8));
    }
    let day = 86_400_000_000_000;
    let apart = made.over_nodes(|rank| rank, |node, ns| ns + u64::from(node) * day);
    let found = estimate(&apart, 1, |_| {}).unwrap();
    let within = found.within_ns(NodeId(0), NodeId(1)).unwrap();
    // From the entry of the send to where it was found, and from the entry of the receive to where the send was complete.
    assert!((2900..=3100).contains(&within), "{within}");
    assert!(worst_error(&found, 1, (day.cast_signed(), 0), (0, 0), made.span()) <= within);
}

/// Clocks of the world say which times belong together, however long ago a machine was started.
#[test]
fn clocks_of_the_world_are_a_beginning() {
    let day: u64 = 86_400_000_000_000;
    let mut made = HandMade::halo(4, 20).over_nodes(|rank| rank / 2, |node, ns| ns + u64::from(node) * 3 * day);
    let pair = |monotonic_ns: u64, realtime_ns: u64| mpiprobe_trace::ClockPair {
        monotonic_ns,
        realtime_ns,
        within_ns: 40,
        max_error_ns: Some(2_000_000),
    };
    let definitions: &mut Definitions = &mut made.definitions;
    definitions.nodes[0].clock.push(pair(0, 1_700_000_000_000_000_000));
    // Wrong by a millisecond, which it knows it may be.
    definitions.nodes[1].clock.push(pair(3 * day, 1_700_000_000_001_000_000));
    let found = estimate(&made, 1, |_| {}).unwrap();
    let within = found.within_ns(NodeId(0), NodeId(1)).unwrap();
    let error = worst_error(&found, 1, ((3 * day).cast_signed(), 0), (0, 0), HandMade::halo(4, 20).span());
    assert!(error <= within && within < 20_000, "{error}, {within}");
}

/// Who is attached to while the job runs has had messages on their way before. What clocks of the world say is enough to tell one collective
/// from the next one, and that is enough for all the rest.
#[test]
fn what_was_under_way_before_is_told_from_what_comes_later() {
    let shift = |node: u32, ns: u64| ns + u64::from(node) * 50_000_000_000_000;
    let mut made = HandMade::halo(4, 30).over_nodes(|rank| rank / 2, shift);
    for process in &mut made.definitions.processes {
        process.began_before = true;
    }
    assert_eq!(estimate(&made, 1, |_| {}).unwrap().within_ns(NodeId(0), NodeId(1)), None);
    for (node, wrong_ns) in [(0, 0), (1, 90_000)] {
        let pair = mpiprobe_trace::ClockPair {
            monotonic_ns: shift(node, 0),
            realtime_ns: 1_700_000_000_000_000_000 + wrong_ns,
            within_ns: 40,
            max_error_ns: Some(100_000),
        };
        made.definitions.nodes[node as usize].clock.push(pair);
    }
    let found = estimate(&made, 1, |_| {}).unwrap();
    let within = found.within_ns(NodeId(0), NodeId(1)).unwrap();
    let offset = shift(1, 0).cast_signed();
    let error = worst_error(&found, 1, (offset, 0), (0, 0), HandMade::halo(4, 30).span());
    assert!(error <= within && within < 50_000, "{error}, {within}");
    let states = analyse(&made, &found, Span::ALL, 1, |_| {}).unwrap();
    // All but what comes before the first common call that is sure.
    assert!(states.unmatched.matched_messages > 4 * 6 * 27, "{:?}", states.unmatched);
    assert_eq!((states.clocks.violations, states.unmatched.contradictions), (0, 0));
    let truly = pairs(&HandMade::halo(4, 30), &Clocks::same());
    assert!(pairs(&made, &found).iter().all(|pair| truly.contains(pair)));
}
