//! The last part is what was given last, event for event, and says what was before.
//!
//! Invariant FLIGHT-TAIL.
#![allow(clippy::cast_possible_truncation, reason = "nothing here is so long")]

use std::io::Write as _;

use tempfile::NamedTempFile;

use super::*;
use crate::{
    Definitions, HandMade, PhaseChange, Span, Trace, call, in_order,
    store::{TraceFiles, copy},
};

const SECOND: u64 = 1_000_000_000;

/// Gives a trace to a buffer as it has happened, which is looked at each 10 ms.
fn fed(made: &HandMade, span: FlightSpan, limit: u64) -> FlightBuffer {
    let mut buffer = FlightBuffer::new(span, limit);
    copy::define(&made.definitions, |definition| buffer.define(definition));
    let mut looked_ns = 0;
    for event in in_order(made, made.definitions.location_ids(), Span::ALL) {
        let (location, event) = event.unwrap();
        buffer.push(location, &event).unwrap();
        if event.end_ns() > looked_ns + SECOND / 100 {
            looked_ns = event.end_ns();
            buffer.trim().unwrap();
        }
    }
    buffer
}

fn read(dump: &Dump) -> (TraceFiles, NamedTempFile) {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(&dump.write(Vec::new()).unwrap()).unwrap();
    let trace = TraceFiles::open(&[file.path()]).unwrap();
    assert!(trace.notes().is_empty(), "{:?}", trace.notes());
    assert_eq!(trace.event_count(), dump.event_count());
    (trace, file)
}

fn events(trace: &dyn Trace, location: u32) -> Vec<Event> {
    trace.events(LocationId(location), Span::ALL).map(Result::unwrap).collect()
}

/// All that was kept are the last events, whole, and the others are counted. Gives how many are kept.
fn expect_tails(made: &HandMade, trace: &TraceFiles) -> Vec<u64> {
    let locations = 0..made.definitions.locations.len() as u32;
    let kept = locations.map(|location| {
        let (all, kept) = (events(made, location), events(trace, location));
        assert_eq!(kept, all[all.len() - kept.len()..], "location {location}");
        let losses = trace.definitions().locations[location as usize].losses;
        assert_eq!((losses.left_out.by_time, losses.missing()), ((all.len() - kept.len()) as u64, 0));
        kept.len() as u64
    });
    kept.collect()
}

#[test]
fn the_last_time_is_kept_and_little_more() {
    let made = HandMade::halo(4, 3000);
    let end_ns = made.span().until_ns;
    let (trace, _file) = read(&fed(&made, FlightSpan::Time(SECOND), 64 << 20).dump(&[]).unwrap());
    expect_tails(&made, &trace);
    for location in 0..4 {
        let wanted = events(&made, location).iter().filter(|event| event.end_ns() >= end_ns - SECOND).count();
        let all = events(&made, location).iter().filter(|event| event.end_ns() >= end_ns - SECOND * 5 / 4).count();
        let kept = events(&trace, location).len();
        assert!(kept >= wanted && kept <= all, "{kept} of {wanted} to {all}");
    }
    let Definitions { processes, .. } = trace.definitions();
    let first_ns = trace.span().from_ns;
    assert!(processes.iter().all(|process| process.began_before && process.recorded_from_ns > 0), "{processes:?}");
    assert!(processes.iter().all(|process| process.recorded_from_ns <= first_ns + SECOND / 4), "{processes:?}");
}

#[test]
fn so_many_calls_of_each_process_are_kept() {
    let made = HandMade::halo(3, 3000);
    let (trace, _file) = read(&fed(&made, FlightSpan::Calls(10_000), 64 << 20).dump(&[]).unwrap());
    for kept in expect_tails(&made, &trace) {
        assert!((10_000..=12_500).contains(&kept), "{kept}");
    }
}

#[test]
fn what_has_no_room_is_dropped_from_the_beginning_on() {
    let made = HandMade::halo(4, 8000);
    let limit = 200_000;
    let mut buffer = fed(&made, FlightSpan::Time(1000 * SECOND), limit);
    assert!(buffer.is_short() && buffer.bytes() <= limit, "{}", buffer.bytes());
    let (trace, _file) = read(&buffer.dump(&[]).unwrap());
    let kept = expect_tails(&made, &trace);
    assert!(kept.iter().all(|&kept| kept > 1000), "{kept:?}");
}

#[test]
fn a_short_run_is_there_whole_and_recording_goes_on_after_a_dump() {
    let made = HandMade::halo(2, 100);
    let mut buffer = fed(&made, FlightSpan::Time(1000 * SECOND), 1 << 20);
    let (trace, _file) = read(&buffer.dump(&[]).unwrap());
    for location in 0..2 {
        assert_eq!(events(&trace, location), events(&made, location));
    }
    assert_eq!(trace.definitions(), read(&buffer.dump(&[]).unwrap()).0.definitions());
    assert_eq!(trace.definitions().processes, made.definitions.processes);
    let until_ns = made.span().until_ns;
    let mut open = call("MPI_Barrier", until_ns, until_ns + 5);
    open.has_returned = false;
    (open.number, open.call_site) = (events(&made, 1).len() as u64, None);
    let event = Event::Call(open);
    let (with_open, _file) = read(&buffer.dump(&[(LocationId(1), event.clone())]).unwrap());
    assert_eq!(events(&with_open, 1).last(), Some(&event));
    let mut later = call("MPI_Barrier", until_ns, until_ns + 9);
    later.number = events(&made, 1).len() as u64;
    buffer.push(LocationId(1), &Event::Call(later.clone())).unwrap();
    let (trace, _file) = read(&buffer.dump(&[]).unwrap());
    assert_eq!(events(&trace, 1).last(), Some(&Event::Call(later)), "what was open is not kept");
    assert_eq!(events(&trace, 1).len(), events(&made, 1).len() + 1);
}

/// A phase holds until the next one, and what was lost before is not missed in the rest.
#[test]
fn the_phase_is_known_and_earlier_losses_are_not_missed() {
    let made = HandMade::of_ranks(1);
    let mut buffer = FlightBuffer::new(FlightSpan::Time(SECOND), 1 << 20);
    copy::define(&made.definitions, |definition| buffer.define(definition));
    let mut location = made.definitions.locations[0].clone();
    location.losses.lost = 7;
    location.losses.left_out.by_pressure = 2;
    buffer.define(Definition::Location(LocationId(0), location.clone()));
    let phase = PhaseChange { at_ns: 5, phase: Some("solve".into()), is_on: true };
    buffer.push(LocationId(0), &Event::Phase(phase.clone())).unwrap();
    for number in 0..100 {
        let begin_ns = (number + 1) * SECOND / 10;
        let mut one = call("MPI_Barrier", begin_ns, begin_ns + 9);
        one.number = number + 9;
        buffer.push(LocationId(0), &Event::Call(one)).unwrap();
        buffer.trim().unwrap();
    }
    location.losses.lost = 8;
    buffer.define(Definition::Location(LocationId(0), location));
    let (trace, _file) = read(&buffer.dump(&[]).unwrap());
    let found = events(&trace, 0);
    let calls = found.len() as u64 - 1;
    assert!((10..=13).contains(&calls), "{calls}");
    assert_eq!(found[0], Event::Phase(PhaseChange { at_ns: found[1].time_ns(), ..phase }));
    let losses = trace.definitions().locations[0].losses;
    assert_eq!((losses.lost, losses.left_out.by_pressure, losses.left_out.by_time), (1, 0, 100 - calls + 9));
}

/// A job that hung before it was ended is kept as it was when it stood still.
#[test]
fn a_call_that_did_not_return_drops_nothing() {
    let made = HandMade::of_ranks(1);
    let mut buffer = FlightBuffer::new(FlightSpan::Time(SECOND), 1 << 20);
    copy::define(&made.definitions, |definition| buffer.define(definition));
    for number in 0..10 {
        let mut one = call("MPI_Barrier", (number + 1) * SECOND / 20, (number + 1) * SECOND / 20 + 9);
        one.number = number;
        buffer.push(LocationId(0), &Event::Call(one)).unwrap();
    }
    let mut last = call("MPI_Recv", SECOND, 30 * SECOND);
    (last.number, last.has_returned) = (10, false);
    buffer.push(LocationId(0), &Event::Call(last)).unwrap();
    buffer.trim().unwrap();
    assert_eq!(events(&read(&buffer.dump(&[]).unwrap()).0, 0).len(), 11);
}
