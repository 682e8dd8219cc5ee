//! From lines, as engines write them, to events.

use std::collections::HashMap;

use mpiprobe_common::{
    Amount, Communicator, EndedThread, FlowKey, Layout, OpenCall, PhaseKey, ThreadState,
    flow::{Topology, communicator_kind, peer},
    phase::current,
    thread::ARGUMENT_WORDS,
    trace::{LINE_WORDS, change},
};
use mpiprobe_functions::by_name;
use mpiprobe_observe::{After, ArgumentWords, CommunicatorSnapshot, ThreadSnapshot};
use mpiprobe_trace::{Bytes, Call, Change, Partner, RequestId, Transfer};

use super::*;

/// All events, by location, and all definitions.
#[derive(Debug, Default)]
struct Kept {
    events: Vec<(u32, Event)>,
    definitions: Vec<Definition>,
}

impl Output for Kept {
    fn define(&mut self, definition: Definition) {
        self.definitions.push(definition);
    }

    fn push(&mut self, location: LocationId, event: &Event) -> Result<(), WriteError> {
        self.events.push((location.0, event.clone()));
        Ok(())
    }

    fn dropped(&self, _location: LocationId) -> u64 {
        0
    }
}

/// What lines refer to, as a test sets it.
#[derive(Clone, Default)]
struct Tables {
    living: Vec<ThreadSnapshot>,
    ended: Vec<EndedThread>,
    /// Communicators that were made, with numbers from 2 on; 0: it belongs to another process.
    made_ns: Vec<u64>,
    /// Each thread has a ring of its own.
    are_in_order: bool,
}

const SITE: u64 = 0x5555_0000_1234;

impl Referred for Tables {
    fn has_threads_in_order(&self) -> bool {
        self.are_in_order
    }

    /// Flow n is over communicator 1 with rank n, and from 100 on over communicator n - 100 with rank 2.
    fn flow(&mut self, plus_1: u32) -> Option<FlowKey> {
        let partner = i32::try_from(plus_1.checked_sub(1)?).ok()?;
        let (communicator, peer) = plus_1.checked_sub(101).map_or((1, partner), |communicator| (communicator, 2));
        Some(FlowKey { communicator, peer, call_site: SITE, ..FlowKey::default() })
    }

    fn communicator(&mut self, number: u32) -> Option<CommunicatorSnapshot> {
        let snapshot = |facts| CommunicatorSnapshot { number, facts, ..CommunicatorSnapshot::default() };
        let world = Communicator { kind: communicator_kind::WORLD, size: 4, first_ns: 1, ..Communicator::default() };
        if number == 1 {
            return Some(snapshot(world));
        }
        let first_ns = *self.made_ns.get(number.checked_sub(2)? as usize)?;
        let made = Communicator { kind: communicator_kind::MADE, made_by_plus_1: 1, parent: 1, first_ns, ..world };
        (first_ns != 0).then(|| snapshot(made))
    }

    fn communicators(&mut self) -> u32 {
        u32::try_from(self.made_ns.len()).unwrap() + 1
    }

    fn topology(&mut self, _plus_1: u32) -> Option<Topology> {
        None
    }

    fn communicator_of(&mut self, handle: u64) -> Option<u32> {
        (handle == 0x4400_0000).then_some(1)
    }

    fn layout(&mut self) -> Layout {
        Layout::default()
    }

    fn phase(&mut self, plus_1: u32) -> Option<PhaseKey> {
        let mut key = PhaseKey::new(0, 3);
        key.name[..5].copy_from_slice(b"solve");
        (plus_1 == 2).then_some(key)
    }

    fn threads(&mut self) -> Option<(Vec<ThreadSnapshot>, Vec<EndedThread>)> {
        Some((self.living.clone(), self.ended.clone()))
    }
}

/// Rings that lines are written to, and the recorder that is given them.
struct Rings {
    recorder: Recorder<Kept>,
    next: HashMap<u32, u64>,
    now: u64,
}

fn process() -> Process {
    Process {
        node: NodeId(0),
        pid: 7,
        job: None,
        rank: Some(0),
        world_size: Some(4),
        executable: "/bin/program".into(),
        library: String::new(),
        recorded_from_ns: 0,
        began_before: false,
        ended_ns: None,
    }
}

impl Rings {
    fn new(tables: Tables, selection: Selection) -> Self {
        let mut recorder = Recorder::new(Kept::default(), Node::default(), selection, 0);
        recorder.add(3, process(), (true, false), Box::new(tables), &[]);
        Self { recorder, next: HashMap::new(), now: 1000 }
    }

    fn line(&mut self, ring: u32, kind: u8, write: impl FnOnce(&mut Words)) {
        let mut words = [0; LINE_WORDS];
        write(&mut words);
        let number = self.next.entry(ring).or_default();
        self.recorder.line(3, (ring, *number), Origin { process: 3, kind }, &words);
        *number += 1;
    }

    fn call(&mut self, ring: u32, record: &CallRecord) {
        let has_more = record.needs_more();
        if has_more {
            self.line(ring, kind::MORE, |words| record.write_more(words));
        }
        self.line(ring, kind::CALL, |words| record.write(has_more, words));
    }

    fn change(&mut self, ring: u32, record: ChangeRecord) {
        self.line(ring, kind::CHANGE, |words| record.write(words));
    }

    fn end_pass(&mut self) {
        self.now += 1000;
        self.recorder.end_pass(self.now, false);
    }

    fn numbers(&mut self) -> Vec<(u32, u64)> {
        let events = &self.recorder.output().events;
        events.iter().filter_map(|(location, event)| Some((*location, event.call()?.number))).collect()
    }

    fn finish(self) -> Kept {
        let now = self.now;
        self.recorder.finish(now).output
    }
}

fn id(name: &str) -> u16 {
    by_name(name).unwrap().number()
}

/// The n-th call of a thread, which takes 50 ns.
fn send(tid: u32, number: u32) -> CallRecord {
    CallRecord {
        tid,
        number,
        function: id("MPI_Send"),
        started_ns: 100 * u64::from(number) + 10,
        ns: 50,
        flow_plus_1: 3,
        destination: 2,
        send_tag: 7,
        sent: Amount::known(8),
        ..CallRecord::NONE
    }
}

fn completion(tid: u32, number: u32, handle: u64, posted_ns: u64) -> ChangeRecord {
    ChangeRecord {
        tid,
        number,
        kind: change::COMPLETED,
        handle,
        epoch: mpiprobe_common::request::epoch_of(posted_ns),
        next_epoch: 0,
        function: id("MPI_Irecv"),
        communicator: 1,
        destination: peer::NONE,
        source: 1,
        tag: 5,
        any_source: true,
        any_tag: false,
        sent: Amount::NOTHING,
        received: Amount::known(16),
    }
}

fn losses(kept: &Kept, location: u32) -> mpiprobe_trace::Losses {
    let found = kept.definitions.iter().rev().find_map(|definition| match definition {
        Definition::Location(id, known) if id.0 == location => Some(known.losses),
        _ => None,
    });
    found.unwrap()
}

#[test]
fn a_call_becomes_an_event() {
    let mut rings = Rings::new(Tables::default(), Selection::default());
    rings.call(0, &send(70, 0));
    let kept = rings.finish();
    let [(0, Event::Call(call))] = kept.events.as_slice() else { panic!("{:?}", kept.events) };
    let mut expected = Call::new(by_name("MPI_Send").unwrap(), 10, 60);
    expected.call_site = Some(SiteId(0));
    expected.operation.communicator = Some(mpiprobe_trace::CommunicatorId(1));
    expected.operation.send = Some(Transfer::with(2, 7, 8));
    assert_eq!(*call, expected);
    assert!(kept.definitions.iter().any(|one| matches!(one, Definition::Communicator(known) if known.number == 1)));
}

/// Invariant MADE-IN-ORDER.
#[test]
fn communicators_that_nobody_uses_are_defined_before_those_that_were_made_after_them() {
    let mut rings = Rings::new(Tables { made_ns: vec![3, 0, 5, 7], ..Tables::default() }, Selection::default());
    for (call, communicator) in (0..).zip([4, 2, 4]) {
        rings.call(0, &CallRecord { flow_plus_1: 101 + communicator, ..send(70, call) });
    }
    rings.recorder.look_at_threads();
    let defined = |rings: &mut Rings| {
        let definitions = rings.recorder.output().definitions.iter();
        let communicators = definitions.filter_map(|one| match one {
            Definition::Communicator(known) => Some((known.number, known.first_ns)),
            _ => None,
        });
        communicators.collect::<Vec<_>>()
    };
    let whole = [(2, 3), (1, 1), (4, 5)];
    assert_eq!(defined(&mut rings), whole, "each once, with what it was made from, and not what may be half written");
    rings.recorder.look_at_threads();
    assert_eq!(defined(&mut rings), [&whole[..], &[(5, 7)]].concat(), "others may use it now");
}

#[test]
fn requests_go_from_the_call_that_posts_them_to_the_one_that_completes_them() {
    let mut rings = Rings::new(Tables::default(), Selection::default());
    let posted = CallRecord {
        function: id("MPI_Irecv"),
        source: peer::ANY,
        any_source: true,
        destination: peer::NONE,
        send_tag: mpiprobe_common::trace::NO_TAG,
        receive_tag: 5,
        sent: Amount::NOTHING,
        received: Amount { bytes: 99, certainty: mpiprobe_common::request::certainty::AT_MOST },
        request: 0x77,
        ..send(70, 0)
    };
    // The other thread's ring is looked at first: it has completed the request before it is seen who has posted it.
    rings.change(1, completion(71, 0, 0x77, 60));
    rings.call(1, &CallRecord { function: id("MPI_Wait"), started_ns: 200, ..send(71, 0) });
    rings.call(0, &posted);
    let kept = rings.finish();
    let calls: Vec<&Call> = kept.events.iter().filter_map(|(_, event)| event.call()).collect();
    let [wait, post] = calls.as_slice() else { panic!("{calls:?}") };
    assert_eq!(post.request, Some(RequestId(1)));
    let received = post.operation.receive.unwrap();
    assert_eq!((received.partner, received.bytes, received.any_source), (Partner::Any, Bytes::AtMost(99), true));
    let [change] = wait.requests.as_slice() else { panic!("{wait:?}") };
    assert_eq!((change.request, change.change), (RequestId(1), Change::Completed));
    let expected = Transfer { any_source: true, ..Transfer::with(1, 5, 16) };
    assert_eq!(change.operation.receive, Some(expected));
}

#[test]
fn calls_come_in_their_order_from_however_many_rings() {
    let mut rings = Rings::new(Tables::default(), Selection::default());
    // The thread goes from one processor to another; what it has written last is seen first.
    rings.call(1, &send(70, 2));
    rings.call(0, &send(70, 0));
    rings.call(0, &send(70, 1));
    rings.call(1, &send(70, 5));
    rings.end_pass();
    assert_eq!(rings.numbers(), [(0, 0), (0, 1), (0, 2)], "others may come before the last one");
    rings.call(0, &send(70, 3));
    rings.call(0, &send(70, 4));
    rings.end_pass();
    assert_eq!(rings.numbers().len(), 6);
    let kept = rings.finish();
    assert_eq!(losses(&kept, 0).missing(), 0);
}

#[test]
fn lines_may_come_before_anybody_has_told_whose_they_are() {
    let mut recorder = Recorder::new(Kept::default(), Node::default(), Selection::default(), 0);
    let line = |recorder: &mut Recorder<Kept>, slot, number| {
        let mut words = [0; LINE_WORDS];
        send(70, number).write(false, &mut words);
        recorder.line(slot, (0, number.into()), Origin { process: 5, kind: kind::CALL }, &words);
    };
    for slot in [5, 6] {
        line(&mut recorder, slot, 0);
    }
    recorder.refuse(6);
    recorder.add(5, process(), (true, false), Box::new(Tables::default()), &[]);
    for slot in [5, 6] {
        line(&mut recorder, slot, 1);
    }
    let kept = recorder.finish(9000).output;
    let numbers: Vec<u64> = kept.events.iter().filter_map(|(_, event)| Some(event.call()?.number)).collect();
    assert_eq!(numbers, [0, 1]);
}

#[test]
fn what_calls_have_done_to_requests_is_looked_at_in_their_order() {
    let mut rings = Rings::new(Tables::default(), Selection::default());
    let start = ChangeRecord { kind: change::STARTED, next_epoch: 250, ..completion(70, 1, 0x98, 60) };
    let done = completion(70, 2, 0x98, 250);
    // The thread has gone to another processor, whose ring is looked at first.
    rings.change(0, ChangeRecord { function: id("MPI_Recv_init"), ..done });
    rings.call(0, &CallRecord { function: id("MPI_Wait"), ..send(70, 2) });
    rings.call(1, &CallRecord { function: id("MPI_Recv_init"), request: 0x98, ..send(70, 0) });
    rings.change(1, ChangeRecord { function: id("MPI_Recv_init"), ..start });
    rings.call(1, &CallRecord { function: id("MPI_Start"), ..send(70, 1) });
    rings.end_pass();
    let kept = rings.finish();
    let calls: Vec<&Call> = kept.events.iter().filter_map(|(_, event)| event.call()).collect();
    let [made, started, waited] = calls[..] else { panic!("{calls:?}") };
    let id = made.request.unwrap();
    assert_eq!((started.requests[0].request, waited.requests[0].request), (id, id));
}

#[test]
fn what_does_not_come_is_not_waited_for_for_ever_and_is_counted() {
    let tables = Tables {
        ended: vec![EndedThread { ended_ns: 5000, tid: 70, calls: 12, first_entry_ns: 10, ..EndedThread::default() }],
        ..Tables::default()
    };
    let mut rings = Rings::new(tables, Selection::default());
    for number in [1, 2, 5] {
        rings.call(0, &send(70, number));
    }
    rings.end_pass();
    assert_eq!(rings.numbers(), []);
    rings.end_pass();
    assert_eq!(rings.numbers(), [(0, 1), (0, 2), (0, 5)]);
    rings.recorder.end_process(3, 6000, &[]);
    let kept = rings.finish();
    // 0, 3 and 4, and what came after 5.
    assert_eq!((losses(&kept, 0).lost, losses(&kept, 0).left_out.calls()), (3 + 6, 0));
}

#[test]
fn what_a_thread_has_written_is_read_although_it_is_known_to_have_ended() {
    let tables = Tables {
        ended: vec![EndedThread { ended_ns: 5000, tid: 70, calls: 3, first_entry_ns: 10, ..EndedThread::default() }],
        ..Tables::default()
    };
    let mut rings = Rings::new(tables, Selection::default());
    rings.call(0, &send(70, 0));
    rings.recorder.look_at_threads();
    rings.recorder.look_at_threads();
    rings.call(0, &send(70, 1));
    rings.call(0, &send(70, 2));
    rings.end_pass();
    rings.recorder.look_at_threads();
    assert_eq!(rings.numbers(), [(0, 0), (0, 1), (0, 2)]);
    let kept = rings.finish();
    assert_eq!(losses(&kept, 0).missing(), 0);
}

#[test]
fn what_was_left_out_for_want_of_room_is_not_lost() {
    let state = ThreadState {
        id: 70,
        calls: 10,
        left: 3,
        first_entry_ns: 10,
        unwritten: Unwritten { lost: 1, idle: 4, changes: 2 },
        ..ThreadState::ZERO
    };
    let tables = Tables { living: vec![ThreadSnapshot { tid: 70, slot: 0, state }], ..Tables::default() };
    let mut rings = Rings::new(tables, Selection::default());
    rings.call(0, &send(70, 0));
    rings.call(0, &send(70, 9));
    rings.end_pass();
    let kept = rings.finish();
    let losses = losses(&kept, 0);
    assert_eq!((losses.lost, losses.left_out.by_pressure, losses.lost_changes), (1, 4, 2));
    assert_eq!((losses.left_without_return, losses.missing()), (3, 4));
}

#[test]
fn what_was_not_to_be_recorded_for_some_time_is_not_lost() {
    let mut rings = Rings::new(Tables::default(), Selection::default());
    rings.call(0, &send(70, 0));
    rings.end_pass();
    rings.recorder.pause();
    rings.recorder.resume(90_000);
    rings.call(0, &send(70, 899));
    rings.call(0, &send(70, 901));
    rings.end_pass();
    rings.end_pass();
    let kept = rings.finish();
    let began: Vec<bool> = kept.events.iter().filter_map(|(_, event)| Some(event.call()?.began_before)).collect();
    assert_eq!(began, [false, true, false]);
    assert_eq!((losses(&kept, 0).lost, losses(&kept, 0).left_out.by_time), (0, 899));
}

#[test]
fn another_thread_with_the_same_id_is_another_one() {
    let mut rings = Rings::new(Tables::default(), Selection::default());
    for number in 0..5 {
        rings.call(0, &send(70, number));
    }
    rings.call(0, &CallRecord { started_ns: 10_000, ..send(70, 0) });
    rings.call(0, &CallRecord { started_ns: 20_000, ..send(70, 1) });
    let kept = rings.finish();
    let places: Vec<u32> = kept.events.iter().map(|(location, _)| *location).collect();
    assert_eq!(places, [0, 0, 0, 0, 0, 1, 1]);
    assert_eq!((losses(&kept, 0).missing(), losses(&kept, 1).missing()), (0, 0));
}

#[test]
fn phases_have_names() {
    let mut rings = Rings::new(Tables::default(), Selection::default());
    rings.call(0, &CallRecord { function: id("MPI_Pcontrol"), ..send(70, 0) });
    let phase = |number, current| PhaseRecord { tid: 70, number, at_ns: 70, current };
    rings.line(0, kind::PHASE, |words| phase(1, 2).write(words));
    rings.call(0, &send(70, 1));
    rings.line(0, kind::PHASE, |words| phase(2, current::OFF).write(words));
    let kept = rings.finish();
    let phases = kept.events.iter().filter_map(|(_, event)| match event {
        Event::Phase(change) => Some((change.phase.as_deref(), change.is_on)),
        Event::Call(_) => None,
    });
    assert_eq!(phases.collect::<Vec<_>>(), [(Some("solve"), true), (None, false)]);
}

#[test]
fn calls_that_are_open_at_the_end_are_there_up_to_it() {
    let open =
        OpenCall { function_plus_1: u32::from(id("MPI_Recv")) + 1, to_user: 0, started_ns: 500, stack_pointer: 8 };
    let arguments: Vec<u64> = [0, 1, 2, 9, 5, 0x4400_0000].into_iter().chain([0; 10]).collect();
    let state = ThreadState {
        id: 70,
        calls: 1,
        first_entry_ns: 10,
        open,
        return_address: SITE,
        has_stack: 1,
        arguments: arguments.try_into().unwrap(),
        ..ThreadState::ZERO
    };
    let tables = Tables { living: vec![ThreadSnapshot { tid: 70, slot: 0, state }], ..Tables::default() };
    let mut rings = Rings::new(tables, Selection::default());
    rings.call(0, &send(70, 0));
    rings.recorder.end_process(3, 9000, &[]);
    let kept = rings.finish();
    let [_, (0, Event::Call(call))] = kept.events.as_slice() else { panic!("{:?}", kept.events) };
    assert_eq!((call.entry_ns, call.return_ns, call.has_returned, call.number), (500, 9000, false, 1));
    let receive = call.operation.receive.unwrap();
    assert_eq!((receive.partner, receive.tag, receive.bytes), (Partner::Rank(9), Some(5), Bytes::Unknown));
    assert_eq!(call.call_site, Some(SiteId(0)));
    assert!(
        kept.definitions.iter().any(|one| matches!(one, Definition::Process(_, known) if known.ended_ns == Some(9000)))
    );
}

/// As the kernel's programs tell it: its thread's state is another one's by then.
#[test]
fn a_call_that_its_thread_has_ended_in_is_there_up_to_that() {
    let ended = EndedThread { ended_ns: 8000, tid: 70, calls: 1, first_entry_ns: 10, ..EndedThread::default() };
    let mut rings = Rings::new(Tables { ended: vec![ended], ..Tables::default() }, Selection::default());
    rings.call(0, &send(70, 0));
    let function = u32::from(id("MPI_Barrier"));
    let arguments = ArgumentWords { words: [0x4400_0000; ARGUMENT_WORDS], has_stack: false };
    let cut_short =
        UnfinishedCall { tid: 70, function, started_ns: 500, ended_ns: Some(8000), call_site: Some(SITE), arguments };
    rings.recorder.end_process(3, 9000, &[cut_short]);
    let kept = rings.finish();
    let [_, (0, Event::Call(call))] = kept.events.as_slice() else { panic!("{:?}", kept.events) };
    assert_eq!((call.entry_ns, call.return_ns, call.has_returned, call.number), (500, 8000, false, 1));
    assert_eq!((call.function().function().name, call.call_site), ("MPI_Barrier", Some(SiteId(0))));
    assert_eq!(losses(&kept, 0).missing(), 0);
}

/// Calls after the last time in which it was recorded, and all of a thread that has called at none of these.
#[test]
fn what_was_not_to_be_recorded_until_the_end_is_counted() {
    let living = |tid: u32, calls| {
        let state = ThreadState { id: tid.into(), calls, first_entry_ns: 10, ..ThreadState::ZERO };
        ThreadSnapshot { tid, slot: 0, state }
    };
    let tables = Tables { living: vec![living(70, 50), living(71, 7)], ..Tables::default() };
    let mut rings = Rings::new(tables.clone(), Selection::default());
    rings.call(0, &send(70, 0));
    rings.end_pass();
    rings.recorder.pause();
    // Another one that came meanwhile.
    rings.recorder.add(4, process(), (true, false), Box::new(tables), &[]);
    let kept = rings.finish();
    let left_out: Vec<_> =
        (0..4).map(|location| (losses(&kept, location).lost, losses(&kept, location).left_out.by_time)).collect();
    assert_eq!(left_out, [(0, 49), (0, 7), (0, 50), (0, 7)]);
}

/// A thread that was in a receive from rank 1 when its observation began, at 5.
fn receiving(now: After) -> CallBefore {
    let words = [0x7000, 1, 0x4c00_0405, 1, 9, 0x4400_0000, 0x7100].map(Some).to_vec();
    CallBefore { tid: 70, function: id("MPI_Recv").into(), call_site: Some(SITE), words, since_ns: 5, now }
}

fn begun_in_receive(calls: &[CallBefore]) -> Rings {
    let mut recorder = Recorder::new(Kept::default(), Node::default(), Selection::default(), 0);
    recorder.add(3, process(), (true, false), Box::new(Tables::default()), calls);
    Rings { recorder, next: HashMap::new(), now: 1000 }
}

#[test]
fn what_comes_after_a_call_that_had_begun_before_waits_until_it_is_known_when_that_was_over() {
    let mut rings = begun_in_receive(&[receiving(After::Open)]);
    assert_eq!(rings.recorder.inside().collect::<Vec<_>>(), [(ProcessId(0), 5, 1)]);
    rings.call(0, &send(70, 0));
    rings.call(0, &send(70, 1));
    (0..3).for_each(|_| rings.end_pass());
    assert!(rings.numbers().is_empty() && rings.recorder.holds_back(), "nobody has said when it was over");
    rings.recorder.note_earlier(3, &[receiving(After::Returned(8))]);
    rings.end_pass();
    assert!(!rings.recorder.holds_back());
    rings.call(0, &send(70, 2));
    let kept = rings.finish();
    let calls: Vec<&Call> = kept.events.iter().filter_map(|(_, event)| event.call()).collect();
    assert_eq!(
        calls.iter().map(|call| (call.number, call.entry_ns)).collect::<Vec<_>>(),
        [(0, 5), (1, 10), (2, 110), (3, 210)]
    );
    let first = calls[0];
    assert_eq!((first.began_before, first.has_returned, first.return_ns, first.result), (true, true, 8, 0));
    assert_eq!(first.call_site, calls[1].call_site);
    let received = first.operation.receive.unwrap();
    assert_eq!((received.partner, received.tag, received.bytes), (Partner::Rank(1), Some(9), Bytes::Unknown));
    assert_eq!(first.operation.communicator, Some(mpiprobe_trace::CommunicatorId(1)));
    assert!(calls[1..].iter().all(|call| !call.began_before));
    assert_eq!(losses(&kept, 0).missing(), 0);
}

#[test]
fn a_call_that_had_begun_before_and_goes_on_is_open_at_the_end() {
    let mut rings = begun_in_receive(&[receiving(After::Open)]);
    rings.end_pass();
    assert_eq!(rings.recorder.open_calls(700).len(), 1, "whoever asks for what is open is told");
    let kept = rings.finish();
    let [(0, Event::Call(call))] = kept.events.as_slice() else { panic!("{:?}", kept.events) };
    assert_eq!((call.began_before, call.has_returned, call.entry_ns, call.return_ns), (true, false, 5, 2000));
}

#[test]
fn a_call_that_had_begun_before_may_end_unseen() {
    // All that is known is that it was over when the thread called again.
    let mut rings = begun_in_receive(&[receiving(After::Open)]);
    rings.call(0, &send(70, 0));
    let kept = rings.finish();
    let calls: Vec<&Call> = kept.events.iter().filter_map(|(_, event)| event.call()).collect();
    let ends: Vec<_> = calls.iter().map(|call| (call.entry_ns, call.return_ns, call.has_returned)).collect();
    assert_eq!(ends, [(5, 5, false), (10, 60, true)]);
    // Nobody knows what it was given.
    let unknown = CallBefore { words: vec![Some(0x7000), Some(1), None, Some(1)], ..receiving(After::ThreadEnded(8)) };
    let kept = begun_in_receive(&[unknown]).finish();
    let [(0, Event::Call(call))] = kept.events.as_slice() else { panic!("{:?}", kept.events) };
    assert_eq!((call.return_ns, call.has_returned, call.operation.receive), (8, false, None));
    assert_eq!(call.function().function().name, "MPI_Recv");
}

#[test]
fn a_call_that_had_begun_before_and_ends_while_nothing_is_recorded_is_left_out() {
    let mut rings = begun_in_receive(&[receiving(After::Open)]);
    rings.end_pass();
    rings.recorder.pause();
    rings.recorder.note_earlier(3, &[receiving(After::Returned(8))]);
    rings.recorder.resume(9);
    rings.call(0, &send(70, 0));
    let kept = rings.finish();
    let calls: Vec<&Call> = kept.events.iter().filter_map(|(_, event)| event.call()).collect();
    assert_eq!(calls.iter().map(|call| call.entry_ns).collect::<Vec<_>>(), [10]);
}

#[test]
fn half_a_call_is_none() {
    let mut rings = Rings::new(Tables::default(), Selection::default());
    rings.call(0, &send(70, 0));
    let failed = CallRecord { result: 5, ..send(70, 1) };
    rings.line(0, kind::CALL, |words| failed.write(true, words));
    rings.call(0, &CallRecord { result: 5, ..send(70, 2) });
    rings.end_pass();
    rings.end_pass();
    assert_eq!(rings.numbers(), [(0, 0), (0, 2)]);
    let kept = rings.finish();
    assert_eq!(kept.events[1].1.call().unwrap().result, 5);
    assert_eq!(losses(&kept, 0).lost, 1);
}

proptest::proptest! {
    #[test]
    fn nothing_that_somebody_may_write_there_makes_a_panic(lines: Vec<(u8, u8, [u64; LINE_WORDS])>) {
        let mut rings = Rings::new(Tables::default(), Selection::default());
        for (kind, ring, words) in lines {
            rings.line(u32::from(ring % 4), kind % 8, |to| *to = words);
            if ring % 7 == 0 {
                rings.end_pass();
            }
        }
        rings.recorder.look_at_threads();
        rings.finish();
    }
}

#[test]
fn what_a_thread_with_one_ring_has_lost_is_not_waited_for() {
    let numbers_and_losses = |are_in_order| {
        let mut rings = Rings::new(Tables { are_in_order, ..Tables::default() }, Selection::default());
        for number in [0, 1, 7] {
            rings.call(0, &send(70, number));
        }
        (rings.numbers(), losses(&rings.finish(), 0).lost)
    };
    assert_eq!(numbers_and_losses(true), (vec![(0, 0), (0, 1), (0, 7)], 5));
    assert_eq!(numbers_and_losses(false), (vec![(0, 0), (0, 1)], 5), "they may be in another ring");
}
