//! What is written is read back.

extern crate std;

use std::vec::Vec;

use super::*;

const SEND: CallRecord = CallRecord {
    tid: 4711,
    number: u32::MAX,
    function: 1023,
    started_ns: u64::MAX - 5,
    ns: 1 << 40,
    flow_plus_1: 7,
    destination: 3,
    send_tag: -9,
    sent: Amount { bytes: 1 << 35, certainty: certainty::KNOWN },
    ..CallRecord::NONE
};

fn read_back(call: &CallRecord) -> CallRecord {
    let (mut own, mut more) = ([0; 7], [0; 7]);
    let has_more = call.needs_more();
    if has_more {
        call.write_more(&mut more);
    }
    call.write(has_more, &mut own);
    assert_eq!(CallRecord::has_more(&own), has_more);
    CallRecord::read(&own, has_more.then_some(&more))
}

fn amounts() -> [Amount; 4] {
    let known = |certainty| Amount { bytes: 12_345_678_901, certainty };
    [Amount::NOTHING, known(certainty::KNOWN), known(certainty::AT_MOST), Amount::UNKNOWN]
}

#[test]
fn calls_that_one_line_has_room_for() {
    let receive = CallRecord {
        destination: peer::NONE,
        source: 5,
        send_tag: NO_TAG,
        receive_tag: 77,
        sent: Amount::NOTHING,
        received: Amount { bytes: 99, certainty: certainty::AT_MOST },
        any_source: true,
        any_tag: true,
        ..SEND
    };
    let both = amounts()[1];
    let collective = CallRecord { destination: 0, send_tag: NO_TAG, sent: both, received: Amount::known(8), ..SEND };
    for call in [
        SEND,
        CallRecord { request: u64::MAX, ..SEND },
        CallRecord { destination: peer::NULL, sent: Amount::NOTHING, ..SEND },
        receive,
        CallRecord { request: 1, lacks_changes: true, ..receive },
        collective,
        CallRecord { destination: root::OWN, ..collective },
        CallRecord { received: Amount::UNKNOWN, ..collective },
        exchange(),
        CallRecord { source: peer::NULL, send_tag: i32::MAX, any_tag: true, ..exchange() },
        CallRecord { sent: Amount::NOTHING, received: Amount::UNKNOWN, any_source: true, ..exchange() },
    ] {
        assert!(!call.needs_more(), "{call:?}");
        assert_eq!(read_back(&call), call);
    }
}

/// With amounts that two have room for in a word.
fn exchange() -> CallRecord {
    let most = u32::MAX.into();
    CallRecord { source: 9, receive_tag: 8, sent: Amount::known(most), received: Amount::known(most - 1), ..SEND }
}

#[test]
fn calls_that_need_two() {
    for call in [
        CallRecord { sent: Amount::known(1 << 32), ..exchange() },
        CallRecord { received: Amount::known(1 << 32), ..exchange() },
        CallRecord { request: 5, ..exchange() },
        CallRecord { flow_plus_1: 0, call_site: 1 << 47, communicator: 6, ..SEND },
        CallRecord { result: -1, ..SEND },
        CallRecord { object: 0x7fff_0000_0000, ..SEND },
        CallRecord { received: Amount::known(7), request: 5, ..SEND },
    ] {
        assert!(call.needs_more(), "{call:?}");
        assert_eq!(read_back(&call), call);
    }
}

#[test]
fn whatever_is_known_of_amounts() {
    let partners = [(peer::NONE, peer::NONE), (1, peer::NONE), (peer::NONE, 1), (1, 2)];
    let mut all = Vec::new();
    for (sent, received) in amounts().into_iter().flat_map(|sent| amounts().map(|received| (sent, received))) {
        for (destination, source) in partners {
            all.extend([0, 9].map(|request| CallRecord {
                sent,
                received,
                destination,
                source,
                send_tag: NO_TAG,
                request,
                ..SEND
            }));
        }
    }
    assert_eq!(all.len(), 128);
    for call in all {
        assert_eq!(read_back(&call), call);
        is_written_like_others(&call);
    }
}

/// What is kept of one call makes the line of another one that differs from it only in what is its own.
fn is_written_like_others(call: &CallRecord) {
    let gives_request = call.request != 0;
    let common = CommonLine::of(call, gives_request);
    assert_eq!(common.is_none(), call.needs_more(), "{call:?}");
    let Some(common) = common else { return };
    let tags = [(NO_TAG, NO_TAG), (-1, 7), (i32::MAX, i32::MIN + 1)];
    // As much arrives by each, or another amount of which as much is known.
    let other = Amount { bytes: 7, ..call.received };
    let has_received = call.received.certainty != certainty::NOTHING;
    let received = |index| if has_received && index == 1 { other } else { call.received };
    for (index, (send_tag, receive_tag)) in (0u32..).zip(tags) {
        let received = received(index);
        for request in if gives_request { [0, 1 << 63] } else { [0; 2] } {
            let own = OwnLine {
                tid: 12 + index,
                number: 13,
                started_ns: 14,
                ns: 15,
                send_tag,
                receive_tag,
                received,
                request,
                any_tag: index == 0,
                lacks_changes: index == 1,
            };
            let OwnLine { tid, number, started_ns, ns, any_tag, lacks_changes, .. } = own;
            let other = CallRecord {
                tid,
                number,
                started_ns,
                ns,
                send_tag,
                receive_tag,
                received,
                request,
                any_tag,
                lacks_changes,
                ..*call
            };
            assert!(common.has_room(received) && !other.needs_more());
            let (mut expected, mut line) = ([0; 7], [0; 7]);
            other.write(false, &mut expected);
            common.write(&own, &mut line);
            assert_eq!(line, expected, "{other:?}");
        }
    }
}

#[test]
fn a_line_is_kept_of_calls_that_need_no_more_than_one() {
    let one = CallRecord { any_source: true, ..SEND };
    assert!(CommonLine::of(&one, true).is_some());
    assert_eq!(CommonLine::of(&CallRecord { flow_plus_1: 0, ..one }, false), None);
    assert_eq!(CommonLine::of(&CallRecord { source: 9, ..one }, true), None, "an exchange that gives a request");
    is_written_like_others(&one);
    is_written_like_others(&exchange());
    let of_exchange = CommonLine::of(&exchange(), false).unwrap();
    assert!(
        !of_exchange.has_room(Amount::known(1 << 32))
            && CommonLine::of(&one, false).unwrap().has_room(Amount::known(1 << 32))
    );
}

#[test]
fn changes_of_requests() {
    let change = ChangeRecord {
        tid: 1,
        number: 2,
        kind: change::RELEASED,
        handle: u64::MAX,
        epoch: 0xffff_fffe,
        next_epoch: 0xffff_fffd,
        function: 1023,
        communicator: u32::MAX,
        destination: peer::NONE,
        source: -4,
        tag: NO_TAG,
        any_source: true,
        any_tag: false,
        sent: Amount::NOTHING,
        received: Amount::known(u64::MAX),
    };
    let sent = ChangeRecord {
        kind: change::STARTED,
        any_source: false,
        any_tag: true,
        sent: amounts()[2],
        received: Amount::NOTHING,
        tag: 12,
        ..change
    };
    for change in [change, sent] {
        let mut words = [0; 7];
        change.write(&mut words);
        assert_eq!(ChangeRecord::read(&words), change);
    }
    let mut words = [0; 7];
    ChangeRecord { sent: Amount::known(5), ..change }.write(&mut words);
    assert_eq!(
        ChangeRecord::read(&words),
        ChangeRecord { sent: Amount::UNKNOWN, ..change },
        "there is room for one amount"
    );
}

#[test]
fn phases() {
    let phase = PhaseRecord { tid: 5, number: 6, at_ns: 7, current: 1 << 32 | 3 };
    let mut words = [0; 7];
    phase.write(&mut words);
    assert_eq!(PhaseRecord::read(&words), phase);
}
