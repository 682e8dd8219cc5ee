//! A window has the last chunks, whole, within its memory, and reads like a file of them.
//!
//! Invariant WINDOW-TAIL.
#![allow(clippy::cast_possible_truncation, reason = "nothing here is so long")]

use std::{io::Write as _, sync::Arc};

use proptest::prelude::*;
use tempfile::NamedTempFile;

use super::*;
use crate::{
    Definitions, HandMade, Numbers, Span, Trace, call, in_order,
    store::{FlightSpan, Replica, TraceFiles, TraceWriter, copy},
};

/// Writes a trace beside which there is a window, in portions of so many events.
fn written(made: &HandMade, limit: u64, portion: usize) -> (Arc<Window>, Vec<u8>) {
    let window = Arc::new(Window::new(limit));
    let mut writer = TraceWriter::with_window(Vec::new(), Arc::clone(&window)).unwrap();
    copy::define(&made.definitions, |definition| writer.define(definition));
    for (number, event) in (1..).zip(in_order(made, made.definitions.location_ids(), Span::ALL)) {
        let (location, event) = event.unwrap();
        writer.push(location, &event).unwrap();
        if number % portion == 0 {
            writer.flush().unwrap();
        }
    }
    let bytes = writer.finish().unwrap();
    assert!(window.bytes() <= limit, "{} of {limit}", window.bytes());
    (window, bytes)
}

fn events(trace: &dyn Trace, location: u32) -> Vec<Event> {
    trace.events(LocationId(location), Span::ALL).map(Result::unwrap).collect()
}

fn opened(bytes: &[u8]) -> TraceFiles {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    let trace = TraceFiles::open(&[file.path()]).unwrap();
    assert!(trace.notes().is_empty(), "{:?}", trace.notes());
    trace
}

fn read(window: &Window) -> TraceFiles {
    TraceFiles::of_dump(&window.moment().unwrap().dump, "now")
}

/// All that can be asked of two traces is the same.
fn expect_same(one: &TraceFiles, other: &TraceFiles, portion: Span) {
    assert_eq!(one.definitions(), other.definitions());
    assert_eq!((one.span(), one.event_count()), (other.span(), other.event_count()));
    for location in one.definitions().location_ids() {
        assert_eq!(one.span_of(location), other.span_of(location));
        assert_eq!(events(one, location.0), events(other, location.0));
        let part = |trace: &TraceFiles| trace.events(location, portion).map(Result::unwrap).collect::<Vec<_>>();
        assert_eq!(part(one), part(other));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn what_is_large_enough_is_the_trace_of_the_same_chunks_in_a_file(
        seed in any::<u64>(), ranks in 1u32..5, portion in 1usize..400,
    ) {
        let mut numbers = Numbers(seed | 1);
        let mut made = HandMade::halo(ranks, 1 + numbers.below(60));
        let until_ns = made.span().until_ns;
        made.push(0, Event::Phase(PhaseChange { at_ns: until_ns + 5, phase: Some("solve".into()), is_on: true }));
        let (window, bytes) = written(&made, 64 << 20, portion);
        let part = Span { from_ns: until_ns / 3, until_ns: until_ns / 2 };
        let moment = window.moment().unwrap();
        prop_assert!(!moment.is_short);
        let in_memory = read(&window);
        expect_same(&in_memory, &opened(&bytes), part);
        expect_same(&in_memory, &opened(&moment.dump.write(Vec::new()).unwrap()), part);
    }
}

#[test]
fn the_oldest_chunks_are_dropped_whole_and_what_they_referred_to_is_known_still() {
    let made = HandMade::halo(4, 8000);
    let (window, bytes) = written(&made, 100_000, 500);
    let moment = window.moment().unwrap();
    assert!(moment.is_short);
    let (all, trace) = (opened(&bytes), read(&window));
    let Definitions { processes, locations, call_sites, communicators, .. } = trace.definitions();
    assert_eq!((call_sites, communicators), (&all.definitions().call_sites, &all.definitions().communicators));
    for location in 0..4 {
        let (before, kept) = (events(&all, location), events(&trace, location));
        assert!(!kept.is_empty() && kept.len() < before.len());
        assert_eq!(kept, before[before.len() - kept.len()..], "location {location}");
        let losses = locations[location as usize].losses;
        assert_eq!((losses.left_out.by_time, losses.missing()), ((before.len() - kept.len()) as u64, 0));
        // From when on all is known that was called: the end of what was dropped.
        let process = &processes[location as usize];
        let last_ns = before[before.len() - kept.len() - 1].end_ns();
        assert_eq!((process.recorded_from_ns, process.began_before), (last_ns, true));
    }
    let written = opened(&moment.dump.write(Vec::new()).unwrap());
    expect_same(&trace, &written, Span { from_ns: trace.span().from_ns, until_ns: trace.span().until_ns / 2 });
}

#[test]
fn a_rank_that_calls_seldom_loses_nothing_before_its_time_comes() {
    let mut made = HandMade::of_ranks(2);
    made.add(1, call("MPI_Barrier", 5, 9));
    for number in 0..40_000 {
        let mut one = call("MPI_Barrier", 1000 + number * 1000, 1500 + number * 1000 + number % 77);
        one.number = number;
        made.push(0, Event::Call(one));
    }
    let (window, _) = written(&made, 20_000, 100);
    let trace = read(&window);
    assert!(events(&trace, 1).is_empty(), "it is older than what is kept of the other");
    assert!(!events(&trace, 0).is_empty());
    assert_eq!(trace.definitions().locations[1].losses.left_out.by_time, 1);
}

#[test]
fn a_moment_stays_as_it_was_and_open_calls_are_of_that_moment() {
    let made = HandMade::halo(2, 50);
    let window = Arc::new(Window::new(1 << 20));
    let mut writer = TraceWriter::with_window(Vec::new(), Arc::clone(&window)).unwrap();
    copy::define(&made.definitions, |definition| writer.define(definition));
    for event in in_order(&made, made.definitions.location_ids(), Span::ALL) {
        let (location, event) = event.unwrap();
        writer.push(location, &event).unwrap();
    }
    let before = window.moment().unwrap();
    assert_eq!(before.dump.event_count(), 0, "chunks that are not whole are not there");
    writer.flush().unwrap();
    let until_ns = made.span().until_ns;
    let mut open = call("MPI_Barrier", until_ns, until_ns + 5);
    (open.has_returned, open.number) = (false, events(&made, 1).len() as u64);
    window.note(until_ns, vec![(LocationId(1), Event::Call(open.clone()))]);
    let moment = window.moment().unwrap();
    assert!(moment.version > before.version && moment.known_until_ns == until_ns);
    assert_eq!((before.dump.event_count(), moment.dump.event_count()), (0, made.event_count() + 1));
    assert_eq!(moment.dump.call_count(), moment.dump.event_count());
    assert_eq!(events(&read(&window), 1).last(), Some(&Event::Call(open)));
    window.note(until_ns + 7, Vec::new());
    assert_eq!(events(&read(&window), 1), events(&made, 1));
    assert_eq!(moment.dump.event_count(), made.event_count() + 1);
}

#[test]
fn a_call_that_has_returned_since_is_not_open() {
    let made = HandMade::of_ranks(2);
    let window = Arc::new(Window::new(1 << 20));
    let mut writer = TraceWriter::with_window(Vec::new(), Arc::clone(&window)).unwrap();
    copy::define(&made.definitions, |definition| writer.define(definition));
    let open = |location: u32| {
        let mut open = call("MPI_Barrier", 10, 15);
        open.has_returned = false;
        (LocationId(location), Event::Call(open))
    };
    window.note(12, vec![open(0), open(1)]);
    let returned = Event::Call(call("MPI_Barrier", 10, 20));
    writer.push(LocationId(1), &returned).unwrap();
    writer.flush().unwrap();
    // Of the one thread it is there as it was, of the other as it has become: before anybody has looked again.
    let trace = read(&window);
    assert_eq!((events(&trace, 0), events(&trace, 1)), (vec![open(0).1], vec![returned]));
}

/// Somebody elsewhere keeps the last part only, and is told when that is wanted.
#[test]
fn no_more_is_kept_elsewhere_than_a_span() {
    let made = HandMade::halo(3, 400);
    let until_ns = made.span().until_ns;
    for span in [FlightSpan::Time(until_ns / 4), FlightSpan::Calls(900)] {
        let window = Arc::new(Window::new(1 << 20));
        let replica = Arc::new(Mutex::new(Replica::new(Window::of_span(span, 1 << 20))));
        let wanted = Arc::<Mutex<Vec<(String, u64)>>>::default();
        let (of_relay, told) = (Arc::clone(&replica), Arc::clone(&wanted));
        let take = move |message: &[u8]| {
            let mut replica = of_relay.lock().unwrap();
            if let Some(why) = replica.take(message).unwrap() {
                let events = replica.window().moment().unwrap().dump.event_count();
                told.lock().unwrap().push((why, events));
            }
            true
        };
        window.relay(take).unwrap();
        let mut writer = TraceWriter::with_window(Vec::new(), Arc::clone(&window)).unwrap();
        copy::define(&made.definitions, |definition| writer.define(definition));
        for (number, event) in (1..).zip(in_order(&made, made.definitions.location_ids(), Span::ALL)) {
            let (location, event) = event.unwrap();
            writer.push(location, &event).unwrap();
            if number % 60 == 0 {
                writer.flush().unwrap();
            }
        }
        writer.finish().unwrap();
        window.want("rank 1 has died");
        let kept = replica.lock().unwrap().window();
        assert_eq!(
            *wanted.lock().unwrap(),
            [("rank 1 has died".to_owned(), kept.moment().unwrap().dump.event_count())]
        );
        let trace = read(&kept);
        for location in 0..3 {
            let (all, last) = (events(&made, location), events(&trace, location));
            assert_eq!(last, all[all.len() - last.len()..], "{span:?}");
            let is_enough = match span {
                FlightSpan::Time(ns) => {
                    let (before, from_ns) = (&all[all.len() - last.len() - 1], until_ns - ns);
                    before.end_ns() < from_ns && last[0].time_ns() > from_ns - until_ns / 20
                }
                // A chunk more, at most.
                FlightSpan::Calls(calls) => (calls..calls + 60).contains(&(last.len() as u64)),
            };
            assert!(is_enough, "{span:?}: {} events of {}", last.len(), all.len());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whenever it begins, whatever has been dropped by then.
    #[test]
    fn who_keeps_the_same_elsewhere_sees_the_same(
        seed in any::<u64>(), limit in 2_000u64..60_000, portion in 1usize..200, from in 0usize..600,
    ) {
        let mut numbers = Numbers(seed | 1);
        let mut made = HandMade::halo(3, 20 + numbers.below(200));
        let until_ns = made.span().until_ns;
        made.push(0, Event::Phase(PhaseChange { at_ns: until_ns + 5, phase: Some("solve".into()), is_on: true }));
        let window = Arc::new(Window::new(limit));
        let replica = Arc::new(Mutex::new(Replica::new(Window::new(limit))));
        let mut writer = TraceWriter::with_window(Vec::new(), Arc::clone(&window)).unwrap();
        copy::define(&made.definitions, |definition| writer.define(definition));
        for (number, event) in in_order(&made, made.definitions.location_ids(), Span::ALL).enumerate() {
            if number == from {
                let replica = Arc::clone(&replica);
                window.relay(move |message| replica.lock().unwrap().take(message).is_ok()).unwrap();
                prop_assert!(window.is_watched());
            }
            let (location, event) = event.unwrap();
            writer.push(location, &event).unwrap();
            if number % portion == 0 {
                writer.flush().unwrap();
                let mut open = call("MPI_Barrier", event.end_ns(), event.end_ns() + 1);
                (open.has_returned, open.number) = (false, u64::MAX / 2);
                window.note(event.end_ns(), vec![(location, Event::Call(open))]);
            }
        }
        prop_assume!(window.is_watched());
        writer.finish().unwrap();
        let copied = replica.lock().unwrap().window();
        let (one, other) = (window.moment().unwrap(), copied.moment().unwrap());
        prop_assert_eq!((one.known_until_ns, one.is_short), (other.known_until_ns, other.is_short));
        let part = Span { from_ns: until_ns / 2, until_ns };
        expect_same(&read(&window), &read(&copied), part);
    }

    #[test]
    fn whatever_is_told_to_a_replica_is_no_panic(messages: Vec<Vec<u8>>, kind in 0u8..5) {
        let mut replica = Replica::new(Window::new(1 << 20));
        for message in messages {
            let _ = replica.take(&message);
            let _ = replica.take(&[&[kind], message.as_slice()].concat());
        }
    }
}
