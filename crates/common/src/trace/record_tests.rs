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
    }
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
