//! What is to be seen is what is in the trace.
#![allow(clippy::cast_possible_truncation, reason = "nothing here is so long")]

use mpiprobe_functions::Group;
use mpiprobe_model::WaitKind;
use mpiprobe_trace::{Call, Event, HandMade, LocationId, Numbers, Span, Trace, call, in_order};

use super::*;
use crate::{Clocks, End, Matcher, Slices};

fn whole(painter: &mut Painter<'_>) -> Picture {
    while painter.step().unwrap() {}
    painter.picture().clone()
}

/// Every cell, from all calls one by one.
fn expected(trace: &HandMade, frame: &Frame, lane: usize, column: usize) -> Cell {
    let mut sums = Cell::default();
    let (from, until) = (frame.edge(column), frame.edge(column + 1));
    for &location in &frame.lanes[lane] {
        for event in trace.events(location, Span::ALL) {
            let Event::Call(call) = event.unwrap() else { continue };
            let ns = call.return_ns.min(until).saturating_sub(call.entry_ns.max(from));
            let is_moment = call.entry_ns == call.return_ns && (from..until).contains(&call.entry_ns);
            if call.depth == 0 && (ns > 0 || is_moment) {
                sums.busy_ns[usize::from(call.function().function().group.index())] += ns;
                sums.calls += 1;
            }
        }
    }
    sums
}

/// Invariant LANES-ADD-UP.
#[test]
fn cells_have_the_time_of_all_calls_however_they_are_read() {
    let mut made = HandMade::halo(5, 40);
    let end = made.span().until_ns;
    let inner = Call { depth: 1, ..call("MPI_Send", end + 10, end + 20) };
    for one in [call("MPI_Barrier", end, end + 5000), inner, call("MPI_Wtime", end + 6000, end + 6000)] {
        made.add(0, one);
    }
    let clocks = Clocks::same();
    let mut numbers = Numbers(5);
    for _ in 0..40 {
        let until = made.span().until_ns;
        let from_ns = numbers.below(until);
        let span = Span { from_ns, until_ns: from_ns + 1000 + numbers.below(until) };
        let columns = 1 + numbers.below(90) as usize;
        let lanes = if numbers.below(2) == 0 {
            (0..5).map(|rank| vec![LocationId(rank)]).collect()
        } else {
            vec![vec![LocationId(0), LocationId(1), LocationId(4)], vec![], vec![LocationId(2), LocationId(3)]]
        };
        let frame = Frame { span, columns, lanes };
        let parts = 1 + numbers.below(9) as usize;
        let picture = whole(&mut Painter::in_parts(&made, &clocks, &frame, parts));
        assert!(picture.is_whole());
        for lane in 0..frame.lanes.len() {
            for column in 0..columns {
                let cell = picture.cell(lane, column).unwrap();
                assert_eq!(*cell, expected(&made, &frame, lane, column), "{frame:?}, {lane}, {column}");
            }
        }
        let mut all: Vec<(u64, u64, LocationId)> = Vec::new();
        for &location in frame.lanes.iter().flatten() {
            for event in made.events(location, span) {
                let event = event.unwrap();
                let call = event.call().unwrap();
                all.extend((call.depth == 0).then(|| (call.duration_ns(), call.entry_ns, location)));
            }
        }
        all.sort_unstable_by(|one, other| other.cmp(one));
        let longest: Vec<_> = picture.longest.iter().map(|call| (call.ns, call.begin_ns, call.location)).collect();
        assert_eq!(longest, all[..all.len().min(64)]);
    }
}

#[test]
fn columns_cover_the_span_without_gaps() {
    for (from_ns, length, columns) in
        [(0, 1, 1), (7, 10, 3), (1 << 40, 1_000_003, 97), (0, 3, 10), (5, u64::MAX - 5, 80)]
    {
        let frame = Frame { span: Span { from_ns, until_ns: from_ns + length }, columns, lanes: Vec::new() };
        assert_eq!((frame.edge(0), frame.edge(columns)), (from_ns, from_ns + length));
        for column in 0..columns {
            assert!(frame.edge(column) <= frame.edge(column + 1));
            if length >= columns as u64 {
                assert_eq!(frame.column(frame.edge(column)), column);
                assert_eq!(frame.column(frame.edge(column + 1) - 1), column);
            }
        }
    }
}

#[test]
fn a_search_goes_through_all_calls_in_the_order_of_time() {
    let made = HandMade::halo(4, 12);
    let clocks = Clocks::same();
    let ids: Vec<LocationId> = (0..4).map(LocationId).collect();
    let is_it = |call: &Call| call.function().function().group == Group::Collective;
    let all: Vec<(u64, LocationId)> = in_order(&made, ids.clone(), Span::ALL)
        .map(Result::unwrap)
        .filter(|(_, event)| is_it(event.call().unwrap()))
        .map(|(location, event)| (event.time_ns(), location))
        .collect();
    assert_eq!(all.len(), 48);
    for (direction, wanted) in
        [(Direction::Forward, all.clone()), (Direction::Back, all.iter().rev().copied().collect::<Vec<_>>())]
    {
        let mut from = match direction {
            Direction::Forward => (0, LocationId(0)),
            Direction::Back => (u64::MAX, LocationId(0)),
        };
        let mut seen = Vec::new();
        loop {
            let mut search = Search::new(&made, &clocks, &ids, from, (direction, 1000), is_it);
            let answer = loop {
                if let Some(answer) = search.step().unwrap() {
                    break answer;
                }
            };
            let Some(found) = answer else { break };
            assert!(is_it(&found.call));
            from = (found.call.entry_ns, found.location);
            seen.push(from);
        }
        assert_eq!(seen, wanted);
    }
}

#[test]
fn a_look_tells_the_call_that_takes_most() {
    let mut made = HandMade::of_ranks(1);
    let posted = call("MPI_Irecv", 100, 110).from(0, 3, 8).posts(7);
    made.add(0, posted.clone());
    made.add(0, call("MPI_Barrier", 120, 180));
    made.add(0, call("MPI_Wait", 185, 300).completes(&posted));
    let clocks = Clocks::same();
    let look = |from_ns, until_ns, wanted| {
        let mut look = Look::new(&made, &clocks, &[LocationId(0)], Span { from_ns, until_ns }, wanted);
        while look.step().unwrap() {}
        (look.seen.calls, look.seen.most.map(|found| found.call))
    };
    assert_eq!(look(111, 119, None), (0, None));
    assert_eq!(look(100, 150, None).1.unwrap().function().function().name, "MPI_Barrier");
    let (calls, wait) = look(170, 250, None);
    let wait = wait.unwrap();
    assert_eq!((calls, wait.number, wait.requests.len(), wait.entry_ns), (2, 2, 1, 185));
    assert_eq!(look(100, 250, Some((LocationId(0), 0))).1.unwrap().number, 0);
}

#[test]
fn messages_of_a_span_are_those_of_the_whole_trace_that_are_in_it() {
    let made = HandMade::halo(6, 30);
    let clocks = Clocks::same();
    let mut slices = Slices::new(&made, &clocks, made.definitions().location_ids(), Span::ALL, 1);
    let mut matcher = Matcher::new(made.definitions(), &clocks, false, 1);
    let mut all = Vec::new();
    let mut keep = |done: &crate::Done| {
        if let End::Received { send, .. } = done.end {
            all.push((send, done.call));
        }
    };
    while let Some(slice) = slices.next_slice().unwrap() {
        matcher.take(&slice).done().for_each(&mut keep);
    }
    matcher.finish().done().for_each(&mut keep);
    assert_eq!(all.len(), 6 * 6 * 30);
    let whole = made.span();
    let length = whole.until_ns - whole.from_ns;
    for part in 0..7 {
        let from_ns = whole.from_ns + length * part / 8;
        let span = Span { from_ns, until_ns: from_ns + length / 5 };
        let mut matching = Matching::new(&made, &clocks, span).unwrap();
        let found = loop {
            if let Some(found) = matching.step().unwrap() {
                break found;
            }
        };
        let is_in = |send: u64, end: u64| end >= span.from_ns && send <= span.until_ns;
        let mut wanted: Vec<(u64, u64)> = all
            .iter()
            .map(|(send, done)| (send.entry_ns, done.return_ns))
            .filter(|&(send, end)| is_in(send, end))
            .collect();
        let mut seen: Vec<(u64, u64)> =
            found.messages.iter().map(|message| (message.send.entry_ns, message.done.return_ns)).collect();
        wanted.sort_unstable();
        seen.sort_unstable();
        assert_eq!(seen, wanted);
        assert!(!found.from_middle && found.more == 0);
        assert!(found.waits.is_sorted_by(|one, next| one.ns >= next.ns) && !found.waits.is_empty());
    }
}

#[test]
fn the_longest_waits_are_told_with_who_is_late() {
    let mut made = HandMade::of_ranks(3);
    made.add(0, call("MPI_Recv", 1000, 5000).from(1, 1, 8));
    made.add(1, call("MPI_Send", 4000, 4100).to(0, 1, 8));
    for (rank, entry) in [(0, 6000), (1, 6100), (2, 9000)] {
        made.add(rank, call("MPI_Barrier", entry, 9100).over(HandMade::WORLD));
    }
    let clocks = Clocks::same();
    let mut matching = Matching::new(&made, &clocks, made.span()).unwrap();
    let found = loop {
        if let Some(found) = matching.step().unwrap() {
            break found;
        }
    };
    let waits: Vec<_> =
        found.waits.iter().map(|wait| (wait.ns, wait.kind, wait.call.location.0, wait.cause.location.0)).collect();
    assert_eq!(
        waits,
        [(3000, WaitKind::LateSender, 0, 1), (3000, WaitKind::Barrier, 0, 2), (2900, WaitKind::Barrier, 1, 2)]
    );
}
