//! Operations from the call that posts them to the one that completes them.

use std::{cell::RefCell, rc::Rc};

use mpiprobe_common::{
    Amount, Layout, Loss, Request, RequestKey,
    descriptor::completion,
    flow::{Flow, Sought, peer},
    layout::handle_kind,
    request::{certainty, key_kind, state},
    rules::{
        call::Call,
        handles::{completed, completes_all},
        operation::{self, Times, is_followed},
        settling::{self, Sharers},
        tables::Counts,
    },
};
use mpiprobe_functions::{Function, FunctionId, Operation, Role, by_name};

use crate::{
    engine::{Counted, Engine},
    setting::{Process, Shared, layouts},
};

const COMMUNICATOR: (u32, u64) = (7, 0x4400_0000);
const FIRST: u64 = 0x9800_0001;
const SECOND: u64 = 0x9800_0002;
const THIRD: u64 = 0x9800_0003;
/// Of every call.
const NS: u64 = 60;
const FILE: u64 = 0x5555_0000_1000;

/// A process that makes calls one after the other.
pub(crate) struct World {
    pub(crate) engine: Engine,
    process: Rc<RefCell<Process>>,
    now: u64,
    /// The requests that the program has, one behind the other, and statuses for as many.
    requests: u64,
    pub(crate) statuses: u64,
    flag: u64,
    numbers: u64,
    /// What messages are posted with.
    pub(crate) tag: i32,
}

pub(crate) fn id(name: &str) -> u16 {
    by_name(name).unwrap().number()
}

impl World {
    fn new(layout: &Layout) -> Self {
        let mut process = Process::default();
        let [requests, statuses, flag, numbers] = [(); 4].map(|()| process.put(&[], 4));
        let process = Rc::new(RefCell::new(process));
        let memory = Rc::clone(&process);
        let engine = Engine { layout: *layout, alive: vec![COMMUNICATOR], memory, ..Engine::default() };
        Self { engine, process, now: 1000, requests, statuses, flag, numbers, tag: 5 }
    }

    pub(crate) fn layout(&self) -> Layout {
        self.engine.layout
    }

    fn null(&self) -> u64 {
        self.layout().constants.request_null
    }

    fn handle_address(&self, index: usize) -> u64 {
        self.requests + index as u64 * u64::from(self.layout().handle_width())
    }

    fn set_requests(&self, handles: &[u64]) {
        for (index, handle) in handles.iter().enumerate() {
            self.process.borrow_mut().write(self.handle_address(index), *handle, self.layout().handle_width());
        }
    }

    fn set_numbers(&self, numbers: &[u64]) {
        for (index, number) in numbers.iter().enumerate() {
            self.process.borrow_mut().write(self.numbers + 4 * index as u64, *number, 4);
        }
    }

    fn status(&self, index: usize) -> u64 {
        self.statuses + index as u64 * u64::from(self.layout().status.size)
    }

    /// The tag that a status says.
    pub(crate) fn set_tag(&self, index: usize, tag: u64) {
        let address = self.status(index) + u64::from(self.layout().status.tag);
        self.process.borrow_mut().write(address, tag, 4);
    }

    /// What tells the operation of a handle from others.
    pub(crate) fn epoch(&self, handle: u64) -> u64 {
        let mut known = self.engine.operations.iter();
        known.find(|(key, _)| key.handle == handle).map_or(0, |(_, request)| request.epoch())
    }

    pub(crate) fn set_status(&self, index: usize, bytes: u64, source: i32, is_cancelled: bool) {
        self.process.borrow_mut().set_status(&self.layout(), self.status(index), bytes, source, is_cancelled);
    }

    fn set_flag(&self, flag: u64) {
        self.process.borrow_mut().write(self.flag, flag, 4);
    }

    /// Where an argument is, by the names that the standard has for it.
    fn give(&self, function: &Function, names: &[&str], value: u64) {
        let found = function.arguments.iter().position(|argument| names.contains(&argument.name));
        if let Some(position) = found {
            self.process.borrow_mut().give(position as u8, value, true);
        }
    }

    /// A call gives back the request `handle`, of an operation with a partner that moves so much.
    pub(crate) fn posts(&mut self, name: &str, handle: u64, partner: i32, moves: (Amount, Amount)) {
        self.set_requests(&[handle]);
        let function = by_name(name).unwrap().function();
        self.give(function, &["request"], self.requests);
        self.give(function, &["fh"], handle);
        self.give(function, &["sendtag"], 6);
        self.give(function, &["tag", "recvtag"], u64::from(self.tag.cast_unsigned()));
        self.now += 100;
        let (sent, received) = moves;
        let is_send = sent.certainty != certainty::NOTHING;
        let none = if name.contains("File") { peer::NONE } else { partner };
        let mut request = Request {
            posted_ns: self.now,
            posting_ns: NS,
            call_site: 0x400,
            communicator: COMMUNICATOR.1,
            communicator_number: COMMUNICATOR.0,
            sent,
            received,
            destination: if is_send { none } else { peer::NONE },
            source: if is_send { peer::NONE } else { none },
            function: id(name),
            ..Request::default()
        };
        let sought = Sought::of(&request, none);
        request.flow_plus_1 = self.engine.find_flow(&sought);
        self.engine.add_calls(request.flow_plus_1, 1, NS);
        let (descriptor, layout) = (function.descriptor(), self.layout());
        let call = Call { descriptor: &descriptor, layout: &layout, arguments: Shared(&self.process) };
        operation::post(&call, &mut self.engine, 1, &mut request);
    }

    /// A call settles requests, which it was given as `handles`, and leaves as MPI does in `after`.
    pub(crate) fn settles(&mut self, name: &str, handles: &[u64], after: impl FnOnce(&Self), result: i32) {
        self.set_requests(handles);
        let function = by_name(name).unwrap().function();
        self.give(function, &["request", "array_of_requests"], self.requests);
        self.give(function, &["count", "incount"], handles.len() as u64);
        self.give(function, &["status", "array_of_statuses"], self.statuses);
        self.give(function, &["flag"], self.flag);
        self.give(function, &["index", "indx", "array_of_indices"], self.numbers);
        self.give(function, &["outcount"], self.flag);
        self.now += 100;
        after(self);
        let (descriptor, layout) = (function.descriptor(), self.layout());
        let call = Call { descriptor: &descriptor, layout: &layout, arguments: Shared(&self.process) };
        let Some(concerned) = settling::concerned(&call, result, handles.len() as u32) else { return };
        let sharers = match concerned.sharers {
            Sharers::Number(number) => u64::from(number),
            Sharers::AllRequests => handles.iter().filter(|&&handle| handle != self.null()).count() as u64,
        };
        let returned_ns = self.now;
        let times = || Times { started_ns: returned_ns - NS, returned_ns, share_ns: NS / sharers };
        for position in 0..concerned.end {
            let index = settling::index_at(&call, result, concerned.only, position);
            let Some(&handle) = handles.get(index as usize) else { continue };
            if !is_followed(&layout, handle) {
                continue;
            }
            let key = RequestKey { process: 1, kind: key_kind::REQUEST, handle };
            let engine = &mut self.engine;
            match descriptor.completion {
                completion::STARTS => operation::start(engine, &key, id(name), returned_ns, (id(name), 0)),
                completion::FREES => operation::give_up(engine, &key, returned_ns - NS),
                _ => {
                    let mut status = call.status(position);
                    if result != 0 {
                        let is_persistent =
                            engine.operations.iter().any(|(known, request)| *known == key && request.can_be_started());
                        let how = settling::status_after_error(&call, result, is_persistent, handle, index, position);
                        match how {
                            Some(how) => status = how,
                            None => continue,
                        }
                    }
                    operation::complete(&layout, &Shared(&self.process), engine, &key, times, status);
                }
            }
        }
    }

    fn counted(&self, name: &str) -> Counted {
        self.engine.functions.get(&id(name)).copied().unwrap_or_default()
    }

    fn flow(&self, name: &str, partner: i32) -> Flow {
        self.engine.flow(id(name), None, partner)
    }

    fn is_empty(&self) -> bool {
        self.engine.operations.is_empty() && self.engine.losses.is_empty()
    }
}

/// A receive of at most so many bytes; a send of so many.
pub(crate) const fn receive(most: u64) -> (Amount, Amount) {
    (Amount::NOTHING, Amount { bytes: most, certainty: certainty::AT_MOST })
}

pub(crate) const fn send(bytes: u64) -> (Amount, Amount) {
    (Amount::known(bytes), Amount::NOTHING)
}

pub(crate) fn each(test: impl Fn(World)) {
    for layout in layouts() {
        test(World::new(&layout));
    }
}

#[test]
fn what_a_wait_completes_has_arrived_as_its_status_says() {
    each(|mut world| {
        world.posts("MPI_Irecv", FIRST, 1, receive(12));
        world.settles("MPI_Wait", &[FIRST], |world| world.set_status(0, 8, 1, false), 0);
        assert_eq!(world.counted("MPI_Irecv"), Counted { received: 8, ..Counted::default() });
        let flow = world.flow("MPI_Irecv", 1);
        assert_eq!((flow.received, flow.completed, flow.pending_ns, flow.waited_ns), (8, 1, 100, NS));
        assert!(world.is_empty());
    });
}

#[test]
fn without_a_status_the_most_is_known() {
    each(|mut world| {
        world.posts("MPI_Irecv", FIRST, 1, receive(12));
        world.statuses = world.layout().constants.status_ignore;
        world.settles("MPI_Wait", &[FIRST], |_| {}, 0);
        assert_eq!(world.counted("MPI_Irecv"), Counted { received: 12, at_most: 12, ..Counted::default() });
    });
}

/// MPICH and its descendants leave that of an `MPI_Isendrecv` as it was.
#[test]
fn the_status_of_an_exchange_may_be_another_ones() {
    each(|mut world| {
        world.posts("MPI_Isendrecv", FIRST, 1, (Amount::known(20), receive(12).1));
        world.settles("MPI_Wait", &[FIRST], |world| world.set_status(0, 8, 1, false), 0);
        let is_own = world.layout().handles == handle_kind::POINTER;
        let (received, at_most) = if is_own { (8, 0) } else { (12, 12) };
        assert_eq!(world.counted("MPI_Isendrecv"), Counted { received, at_most, ..Counted::default() });
    });
}

/// Those with a flag, an index or indices say only when they return whether anything is complete.
#[test]
fn what_is_given_to_a_wait_is_complete_whether_its_return_is_seen_or_not() {
    let all = FunctionId::all().map(FunctionId::function);
    let names: Vec<&str> =
        all.filter(|function| completes_all(&function.descriptor())).map(|function| function.name).collect();
    assert_eq!(names, ["MPI_Wait", "MPI_Waitall"]);
    let requests = |name: &str| completed(&by_name(name).unwrap().function().descriptor(), 3, 0x1000);
    assert_eq!((requests("MPI_Wait"), requests("MPI_Waitall")), ((3, 1), (0x1000, 3)));
}

#[test]
fn what_was_cancelled_or_comes_from_nobody_has_not_arrived() {
    each(|mut world| {
        world.posts("MPI_Irecv", FIRST, 1, receive(12));
        world.posts("MPI_Irecv", SECOND, peer::NULL, receive(12));
        let after = |world: &World| {
            world.set_status(0, 12, 1, true);
            world.set_status(1, 12, 1, true);
        };
        world.settles("MPI_Waitall", &[FIRST, SECOND], after, 0);
        assert_eq!(world.counted("MPI_Irecv"), Counted::default());
        assert_eq!((world.flow("MPI_Irecv", 1).completed, world.flow("MPI_Irecv", peer::NULL).completed), (1, 1));
    });
}

#[test]
fn receives_from_anybody_are_moved_to_who_it_was() {
    each(|mut world| {
        world.posts("MPI_Irecv", FIRST, peer::ANY, receive(12));
        world.settles("MPI_Wait", &[FIRST], |world| world.set_status(0, 8, 2, false), 0);
        let (before, now) = (world.flow("MPI_Irecv", peer::ANY), world.flow("MPI_Irecv", 2));
        assert_eq!((before.calls, before.time_ns, before.completed, before.received), (0, 0, 0, 0));
        assert_eq!((now.calls, now.time_ns, now.completed, now.received), (1, NS, 1, 8));
        // Of a communicator that is no more, nobody can say who it was.
        world.posts("MPI_Irecv", FIRST, peer::ANY, receive(12));
        world.engine.alive.clear();
        world.settles("MPI_Wait", &[FIRST], |world| world.set_status(0, 8, 2, false), 0);
        assert_eq!(world.flow("MPI_Irecv", peer::UNKNOWN).received, 8);
    });
}

#[test]
fn a_calls_time_is_shared_out_among_requests_that_are_some() {
    each(|mut world| {
        world.posts("MPI_Isend", FIRST, 1, send(4));
        world.posts("MPI_Isend", SECOND, 2, send(4));
        let null = world.null();
        world.settles("MPI_Waitall", &[FIRST, null, SECOND], |_| {}, 0);
        let waited = [1, 2].map(|partner| world.flow("MPI_Isend", partner).waited_ns);
        assert_eq!(waited, [NS / 2; 2]);
        assert!(world.is_empty());
    });
}

#[test]
fn a_test_says_itself_whether_it_has_completed_anything() {
    for name in ["MPI_Test", "MPI_Testall"] {
        each(|mut world| {
            world.posts("MPI_Isend", FIRST, 1, send(4));
            world.settles(name, &[FIRST], |world| world.set_flag(0), 0);
            assert_eq!(world.flow("MPI_Isend", 1).completed, 0, "{name}");
            world.settles(name, &[FIRST], |world| world.set_flag(1), 0);
            assert_eq!(world.flow("MPI_Isend", 1).completed, 1, "{name}");
        });
    }
}

#[test]
fn one_of_many_is_the_one_at_the_index() {
    for name in ["MPI_Waitany", "MPI_Testany"] {
        each(|mut world| {
            let undefined = world.layout().constants.undefined;
            world.posts("MPI_Isend", FIRST, 1, send(4));
            world.posts("MPI_Isend", SECOND, 2, send(4));
            world.set_flag(1);
            // None is active; an index of something that was not given.
            for index in [undefined, 2] {
                world.settles(name, &[FIRST, SECOND], |world| world.set_numbers(&[index as u64]), 0);
            }
            assert_eq!(world.engine.operations.len(), 2, "{name}");
            world.settles(name, &[FIRST, SECOND], |world| world.set_numbers(&[1]), 0);
            let completed = [1, 2].map(|partner| world.flow("MPI_Isend", partner).completed);
            assert_eq!(completed, [0, 1], "{name}");
            assert_eq!(world.flow("MPI_Isend", 2).waited_ns, NS);
        });
    }
}

#[test]
fn some_are_those_at_the_indices_with_statuses_in_their_order() {
    for name in ["MPI_Waitsome", "MPI_Testsome"] {
        each(|mut world| {
            for (handle, source) in [(FIRST, 1), (SECOND, 2), (THIRD, 3)] {
                world.posts("MPI_Irecv", handle, source, receive(12));
            }
            let after = |world: &World| {
                world.set_flag(2);
                world.set_numbers(&[2, 0]);
                world.set_status(0, 5, 3, false);
                world.set_status(1, 7, 1, false);
            };
            world.settles(name, &[FIRST, SECOND, THIRD], after, 0);
            let received = [1, 2, 3].map(|partner| world.flow("MPI_Irecv", partner).received);
            assert_eq!(received, [7, 0, 5], "{name}");
            world.settles(name, &[FIRST, SECOND, THIRD], |world| world.set_flag(0), 0);
            assert_eq!(world.engine.operations.len(), 1, "{name}");
        });
    }
}

#[test]
fn a_persistent_operation_moves_each_time_that_it_is_started() {
    for name in ["MPI_Start", "MPI_Startall"] {
        each(|mut world| {
            world.posts("MPI_Send_init", FIRST, 1, send(4));
            assert_eq!(world.counted("MPI_Send_init").sent, 0);
            for _ in 0..3 {
                world.settles(name, &[FIRST], |_| {}, 0);
                world.settles("MPI_Wait", &[FIRST], |_| {}, 0);
            }
            assert_eq!(world.counted("MPI_Send_init").sent, 12, "{name}");
            let flow = world.engine.flow(id("MPI_Send_init"), Some(id(name)), 1);
            assert_eq!((flow.calls, flow.sent, flow.completed, flow.pending_ns), (3, 12, 3, 300), "{name}");
            // A second wait completes nothing.
            world.settles("MPI_Wait", &[FIRST], |_| {}, 0);
            assert_eq!(world.engine.flow(id("MPI_Send_init"), Some(id(name)), 1).completed, 3);
        });
    }
}

/// Only what is complete can be started.
#[test]
fn what_is_started_again_is_complete_whoever_has_seen_that() {
    each(|mut world| {
        world.posts("MPI_Recv_init", FIRST, 1, receive(12));
        for _ in 0..3 {
            world.settles("MPI_Start", &[FIRST], |_| {}, 0);
        }
        world.settles("MPI_Wait", &[FIRST], |world| world.set_status(0, 8, 1, false), 0);
        assert_eq!(world.counted("MPI_Recv_init"), Counted { received: 8, unknown: 2, ..Counted::default() });
        let flow = world.engine.flow(id("MPI_Recv_init"), Some(id("MPI_Start")), 1);
        assert_eq!((flow.calls, flow.received, flow.completed, flow.unknown), (3, 8, 3, 2));
        assert_eq!(world.engine.operations.len(), 1);
    });
}

#[test]
fn of_what_nobody_has_seen_made_the_bytes_are_unknown() {
    each(|mut world| {
        world.settles("MPI_Start", &[FIRST], |_| {}, 0);
        assert_eq!(world.counted("MPI_Start").unknown, 1);
        // Made, and given up: the handle may mean another one.
        world.posts("MPI_Send_init", FIRST, 1, send(4));
        world.settles("MPI_Request_free", &[FIRST], |_| {}, 0);
        world.settles("MPI_Start", &[FIRST], |_| {}, 0);
        assert_eq!((world.counted("MPI_Start").unknown, world.counted("MPI_Send_init").sent), (2, 0));
    });
}

#[test]
fn what_a_receive_moves_that_was_given_up_remains_unknown() {
    each(|mut world| {
        world.posts("MPI_Irecv", FIRST, 1, receive(12));
        world.posts("MPI_Isend", SECOND, 1, send(4));
        for handle in [FIRST, SECOND] {
            world.settles("MPI_Request_free", &[handle], |_| {}, 0);
        }
        assert_eq!((world.counted("MPI_Irecv").unknown, world.counted("MPI_Isend").unknown), (1, 0));
        assert!(world.is_empty());
    });
}

/// Open MPI and MPICH give one request to all operations that were complete at once.
#[test]
fn requests_that_are_complete_from_the_start_are_no_handles() {
    each(|mut world| {
        let constants = &mut world.engine.layout.constants;
        (constants.request_complete_first, constants.request_complete_last) = (THIRD, THIRD);
        world.posts("MPI_Isend", THIRD, 1, send(4));
        world.posts("MPI_Irecv", THIRD, 1, receive(12));
        assert_eq!((world.flow("MPI_Isend", 1).completed, world.flow("MPI_Irecv", 1).completed), (1, 1));
        // The status comes with a call of which it is not known which operation it is about.
        assert_eq!(world.counted("MPI_Irecv").unknown, 1);
        world.settles("MPI_Waitall", &[THIRD, THIRD], |_| {}, 0);
        assert_eq!(world.flow("MPI_Irecv", 1).completed, 1);
        world.posts("MPI_Send_init", THIRD, 1, send(4));
        assert_eq!(world.engine.losses.len(), 1);
        assert!(matches!(world.engine.losses[..], [Loss::RequestsNotFollowed]));
    });
}

#[test]
fn of_calls_with_errors_those_are_complete_whose_handles_and_statuses_say_so() {
    each(|mut world| {
        for (handle, source) in [(FIRST, 1), (SECOND, 2)] {
            world.posts("MPI_Irecv", handle, source, receive(12));
        }
        // A call that refuses to do anything leaves the handles as they are.
        world.settles("MPI_Waitall", &[FIRST, SECOND], |_| {}, 15);
        assert_eq!(world.engine.operations.len(), 2);
        let error = world.layout().constants.error_in_status;
        let after = |world: &World| {
            world.set_requests(&[world.null(), SECOND]);
            world.set_status(0, 8, 1, false);
            let pending = world.layout().constants.error_pending as u64;
            world.set_status(1, 0, 2, false);
            let place = world.status(1) + u64::from(world.layout().status.error);
            world.process.borrow_mut().write(place, pending, 4);
        };
        world.settles("MPI_Waitall", &[FIRST, SECOND], after, error);
        assert_eq!((world.counted("MPI_Irecv").received, world.engine.operations.len()), (8, 1));
    });
}

#[test]
fn a_file_is_the_request_of_an_access_that_is_begun_and_ended() {
    each(|mut world| {
        world.posts("MPI_File_read_all_begin", FILE, peer::NONE, receive(12));
        assert_eq!(world.engine.operations[0].0.kind, key_kind::ACCESS);
        world.set_status(0, 8, 0, true);
        let layout = world.layout();
        let descriptor = by_name("MPI_File_read_all_end").unwrap().function().descriptor();
        world.process.borrow_mut().give(descriptor.status, world.statuses, true);
        let call = Call { descriptor: &descriptor, layout: &layout, arguments: Shared(&world.process) };
        assert_eq!(settling::concerned(&call, 0, 1).map(|concerned| concerned.end), Some(1));
        let key = RequestKey { process: 1, kind: key_kind::ACCESS, handle: FILE };
        let times = || Times { started_ns: 2000, returned_ns: 2060, share_ns: NS };
        let status = settling::status_of_access(&call, 0);
        operation::complete(&layout, &Shared(&world.process), &mut world.engine, &key, times, status);
        // Nobody can cancel it, whatever the status has in that place.
        assert_eq!(world.counted("MPI_File_read_all_begin").received, 8);
    });
}

/// Every function that gives back a request, by what the standard says of it.
#[test]
fn every_function_that_begins_an_operation_is_followed() {
    let mut functions = 0;
    for function in FunctionId::all().map(FunctionId::function) {
        let gives_back = function.arguments.iter().any(|argument| argument.role == Role::Request)
            && function.operation != Operation::Blocking;
        let begins = function.name.ends_with("_begin") || function.name.ends_with("_begin_c");
        if !gives_back && !begins {
            continue;
        }
        functions += 1;
        let mut world = World::new(&layouts()[0]);
        world.posts(function.name, FIRST, 1, receive(12));
        let [(key, request)] = &world.engine.operations[..] else { panic!("{} is not followed", function.name) };
        let kind = if begins { key_kind::ACCESS } else { key_kind::REQUEST };
        assert_eq!((key.kind, key.handle), (kind, FIRST), "{}", function.name);
        let is_persistent = function.operation == Operation::Persistent;
        let expected = if is_persistent { state::PERSISTENT } else { state::ACTIVE };
        assert_eq!(request.state & (state::PERSISTENT | state::ACTIVE), expected, "{}", function.name);
        let has_tag = function.position(Role::Tag).is_some();
        assert_eq!(request.state & state::TAGGED != 0, has_tag, "{}", function.name);
        assert_eq!(request.tag, if has_tag { 5 } else { 0 }, "{}", function.name);
    }
    assert!(functions > 100, "{functions}");
}

/// A function that settles requests in a way that is not tested here would have to be added.
#[test]
fn every_function_that_settles_requests_is_among_those_tested() {
    let settles =
        FunctionId::all().map(FunctionId::function).filter(|function| function.descriptor().settles_requests());
    let names: Vec<&str> = settles.map(|function| function.name).collect();
    assert_eq!(
        names,
        [
            "MPI_Request_free",
            "MPI_Start",
            "MPI_Startall",
            "MPI_Test",
            "MPI_Testall",
            "MPI_Testany",
            "MPI_Testsome",
            "MPI_Wait",
            "MPI_Waitall",
            "MPI_Waitany",
            "MPI_Waitsome",
        ]
    );
}
