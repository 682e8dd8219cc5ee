//! What is written down of calls, and of what they do to requests, while somebody records.

use std::{cell::RefCell, rc::Rc};

use mpiprobe_common::{
    Layout,
    flow::peer,
    rules::{
        call::Call,
        partner::Partners,
        recording::{Found, found_nothing, record},
    },
    trace::{CallRecord, ChangeRecord, NO_TAG, change, root},
};
use mpiprobe_functions::by_name;

use crate::{
    requests::{World, each, id, receive, send},
    setting::{Process, Shared, layouts},
};

const HANDLE: u64 = 0x9800_0001;
const OTHER: u64 = 0x9800_0002;

/// What has become of requests, by kind and handle, since the last time.
fn changes(world: &mut World) -> Vec<ChangeRecord> {
    std::mem::take(&mut world.engine.changes)
}

#[test]
fn a_completion_says_what_has_come_from_whom() {
    each(|mut world| {
        let any_tag = world.layout().constants.any_tag;
        world.tag = any_tag;
        world.posts("MPI_Irecv", HANDLE, peer::ANY, receive(12));
        world.posts("MPI_Isend", OTHER, 1, send(20));
        let after = |world: &World| {
            world.set_status(0, 8, 2, false);
            world.set_tag(0, 77);
        };
        world.settles("MPI_Waitall", &[HANDLE, OTHER], after, 0);
        let [received, sent] = changes(&mut world)[..] else { panic!("two requests") };
        assert_eq!((received.kind, received.handle, received.function), (change::COMPLETED, HANDLE, id("MPI_Irecv")));
        assert_eq!((received.source, received.tag, received.received.bytes), (2, 77, 8));
        assert!(received.any_source && received.any_tag);
        assert_eq!((sent.kind, sent.handle, sent.destination, sent.sent.bytes), (change::COMPLETED, OTHER, 1, 20));
        assert!(!sent.any_source && received.epoch != sent.epoch);
        assert_eq!((sent.tid, sent.number), (received.tid, received.number), "one call has done both");
    });
}

#[test]
fn who_ignores_a_status_is_not_told_from_whom() {
    each(|mut world| {
        world.posts("MPI_Irecv", HANDLE, peer::ANY, receive(12));
        world.statuses = world.layout().constants.status_ignore;
        world.settles("MPI_Wait", &[HANDLE], |_| {}, 0);
        let [change] = changes(&mut world)[..] else { panic!("one request") };
        assert_eq!((change.kind, change.source, change.any_source), (change::COMPLETED, peer::ANY, true));
    });
}

#[test]
fn what_was_cancelled_is_said() {
    each(|mut world| {
        world.posts("MPI_Irecv", HANDLE, 1, receive(12));
        world.settles("MPI_Wait", &[HANDLE], |world| world.set_status(0, 0, 1, true), 0);
        assert_eq!(changes(&mut world)[0].kind, change::CANCELLED);
    });
}

#[test]
fn each_start_of_a_persistent_request_is_an_operation_of_its_own() {
    each(|mut world| {
        world.posts("MPI_Send_init", HANDLE, 1, send(4));
        let mut epoch = world.epoch(HANDLE);
        for _ in 0..2 {
            world.settles("MPI_Start", &[HANDLE], |_| {}, 0);
            world.settles("MPI_Wait", &[HANDLE], |_| {}, 0);
            let [started, completed] = changes(&mut world)[..] else { panic!("started and completed") };
            assert_eq!((started.kind, started.epoch), (change::STARTED, epoch));
            assert_eq!((completed.kind, completed.epoch), (change::COMPLETED, started.next_epoch));
            assert_ne!(completed.epoch, epoch);
            epoch = completed.epoch;
        }
        world.settles("MPI_Request_free", &[HANDLE], |_| {}, 0);
        let [released] = changes(&mut world)[..] else { panic!("given up") };
        assert_eq!((released.kind, released.epoch), (change::RELEASED, epoch));
    });
}

/// What is written down of a call that was given these arguments.
fn recorded(layout: &Layout, name: &str, given: &[(&str, u64)], found: Found) -> CallRecord {
    let function = by_name(name).unwrap().function();
    let mut process = Process::default();
    for &(argument, value) in given {
        let position = function.arguments.iter().position(|known| known.name == argument).unwrap();
        process.give(position as u8, value, true);
    }
    let process = Rc::new(RefCell::new(process));
    let descriptor = function.descriptor();
    record(&Call { descriptor: &descriptor, layout, arguments: Shared(&process) }, &found)
}

fn rank(rank: i32) -> u64 {
    u64::from(rank.cast_unsigned())
}

#[test]
fn roots_are_as_they_were_given() {
    for layout in layouts() {
        let constants = layout.constants;
        for (given, told) in [(3, 3), (constants.root, root::OWN), (constants.proc_null, peer::NULL)] {
            let call = recorded(&layout, "MPI_Bcast", &[("root", rank(given)), ("comm", 1)], Found::NOTHING);
            assert_eq!((call.destination, call.source), (told, peer::NONE));
        }
    }
}

#[test]
fn tags_and_partners_are_those_of_the_arguments() {
    for layout in layouts() {
        let partners = Partners { destination: 4, source: peer::NONE };
        let call = recorded(&layout, "MPI_Send", &[("tag", 9), ("dest", 4)], Found { partners, ..Found::NOTHING });
        assert_eq!((call.destination, call.send_tag, call.receive_tag), (4, 9, NO_TAG));
        assert!(!call.needs_more() || call.flow_plus_1 == 0);
        let partners = Partners { destination: 4, source: 5 };
        let given = [("sendtag", 9), ("dest", 4), ("recvtag", 8), ("source", 5)];
        let call = recorded(&layout, "MPI_Sendrecv", &given, Found { partners, ..Found::NOTHING });
        assert_eq!((call.destination, call.source, call.send_tag, call.receive_tag), (4, 5, 9, 8));
    }
}

#[test]
fn a_call_that_has_failed_begins_nothing() {
    for layout in layouts() {
        let mut process = Process::default();
        let at = process.put(&[HANDLE], layout.handle_width());
        let function = by_name("MPI_Isend").unwrap().function();
        let position = function.arguments.iter().position(|argument| argument.name == "request").unwrap();
        process.give(position as u8, at, true);
        let process = Rc::new(RefCell::new(process));
        let descriptor = function.descriptor();
        let call = Call { descriptor: &descriptor, layout: &layout, arguments: Shared(&process) };
        let found = Found::NOTHING;
        assert_eq!(record(&call, &found).request, HANDLE);
        assert_eq!(record(&call, &Found { result: 13, ..found }).request, 0);
    }
}

#[test]
fn who_asks_in_vain_is_known() {
    for layout in layouts() {
        for (name, answer, flag) in
            [("MPI_Test", "flag", 0), ("MPI_Iprobe", "flag", 0), ("MPI_Testsome", "outcount", 0)]
        {
            let mut process = Process::default();
            let at = process.put(&[flag], 4);
            let function = by_name(name).unwrap().function();
            let position = function.arguments.iter().position(|argument| argument.name == answer).unwrap();
            process.give(position as u8, at, true);
            let process = Rc::new(RefCell::new(process));
            let descriptor = function.descriptor();
            let call = Call { descriptor: &descriptor, layout: &layout, arguments: Shared(&process) };
            assert!(found_nothing(&call, 0), "{name}");
            assert!(!found_nothing(&call, 5), "{name} that has failed");
            process.borrow_mut().write(at, 1, 4);
            assert!(!found_nothing(&call, 0), "{name} that has found something");
        }
    }
}
