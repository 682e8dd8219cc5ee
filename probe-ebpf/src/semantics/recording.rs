//! Calls as they return, written to rings while an observer wants the course of events. Only the programs do that which are called traced:
//! where no trace was asked for, others are loaded, which know nothing of it.

use core::ptr::write_volatile;

use aya_ebpf::helpers::generated::bpf_get_smp_processor_id;
use mpiprobe_common::{
    Amount, CachedCall, Descriptor, Layout, Request, RequestKey, ThreadState,
    call_cache::flags,
    descriptor::{NONE, completion, frees},
    flow::peer,
    layout::Memory as _,
    request::{epoch_of, key_kind},
    rules::{
        partner::Partners,
        recording::{self, Arrived, Found, Told},
        tables::What,
    },
    tables::Word,
    trace::{CallRecord, Line, NO_TAG, Origin, OwnLine, PhaseRecord, RingHead, Room, Words, kind, room},
};

use crate::{
    apart::given,
    atomic::{barrier, fetch_add, from_here_on, load},
    maps::{CONTROL, LAYOUTS, LINES, REQUESTS, RINGS, configured},
    phases,
};

use super::{
    arguments, call_cache, completed, message,
    user::{User, handle_at, int_at},
};

/// The thread's call has returned, and is counted or not: whether it is written down is decided once, here.
#[inline(always)]
pub fn decide(thread: &mut ThreadState, is_counted: bool) {
    // SAFETY: map value pointer.
    let is_on = CONTROL.get_ptr(Word::Record as u32).is_some_and(|word| unsafe { load(word) } != 0);
    thread.is_traced = (is_on && is_counted) as u32;
    thread.unwritten_before = thread.unwritten.changes;
}

/// A function is entered: if it frees a window or a file, its handle is not there any more when it returns.
#[inline(always)]
pub fn note_freed(thread: &mut ThreadState, descriptor: &Descriptor) {
    if recording::frees_object(descriptor) {
        remember_freed(thread, (descriptor.frees == frees::FILE) as u32);
    }
}

/// Answers 0.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn remember_freed(thread: *mut ThreadState, is_file: u32) -> u32 {
    given!(thread);
    let Some(layout) = LAYOUTS.get_ptr(thread.process) else { return 0 };
    // SAFETY: map value pointer, written once.
    let layout = unsafe { &*layout };
    let address = thread.arguments[0];
    let handle = if is_file != 0 { User.word(address) } else { handle_at(layout, address) };
    thread.freed = handle.unwrap_or(0);
    0
}

/// Writes down the thread's completed call.
#[inline(always)]
pub fn write_down() {
    let Some((thread, descriptor, layout)) = completed() else { return };
    if descriptor.completion == completion::READIES && thread.completed.succeeded != 0 {
        write_readied(thread, descriptor, layout);
    }
    write_call(thread, descriptor, layout);
    if phases::is_control(thread.completed.function) {
        write_phase(thread);
    }
}

/// Answers 0.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn write_call(thread: *mut ThreadState, descriptor: *const Descriptor, layout: *const Layout) -> u32 {
    given!(thread, descriptor, layout);
    let completed = &thread.completed;
    let ring = Ring::here();
    let room = ring.map_or(Room::None, Ring::room);
    if room == Room::None {
        thread.unwritten.lost += 1;
        // It is missing with all that it has done.
        thread.unwritten.changes = thread.unwritten_before;
        return 0;
    }
    if room == Room::Little && has_found_nothing(thread, descriptor, layout) != 0 {
        thread.unwritten.idle += 1;
        return 0;
    }
    // Most calls have none of these, and each is a call of its own.
    let call = arguments::call(thread, descriptor, layout);
    let (mut tells, mut source, mut receive_tag) = (0, completed.source, recording::given_receive_tag(&call));
    if from_here_on(recording::has_more_to_tell(&call, source) as u64) != 0 {
        tells = told_at_all(thread, descriptor, layout);
        source = told_source(thread, descriptor, layout, tells);
        receive_tag = told_tag(thread, descriptor, layout, source, tells);
    }
    let told = Told {
        destination: if descriptor.root == NONE {
            completed.destination
        } else {
            told_destination(thread, descriptor, layout)
        },
        source,
        receive_tag,
        request: if recording::may_give_back(descriptor) { told_request(thread, descriptor, layout, tells) } else { 0 },
        object: if recording::concerns_object(descriptor) { told_object(thread, descriptor, layout) } else { 0 },
    };
    let found = Found {
        flow_plus_1: completed.flow_plus_1,
        call_site: completed.call_site,
        communicator: completed.communicator,
        sent: completed.sent,
        received: completed.received,
        result: completed.result,
        freed: thread.freed,
        ..found(thread, completed.function, completed.ns)
    };
    let Some(ring) = ring else { return 0 };
    write(ring, thread, recording::record_of(&call, &found, &told));
    0
}

/// What is to be written down of calls that are the same as the thread's completed one, which is known at a place, is kept there. Answers 0.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn learn_line(thread: *mut ThreadState, descriptor: *const Descriptor, layout: *const Layout, place: u32) -> u32 {
    given!(thread, descriptor, layout);
    let Some(known) = call_cache::at(thread, place) else { return 0 };
    // SAFETY: map value pointer to what only this thread writes.
    let known = unsafe { &mut *known };
    if phases::is_control(thread.completed.function) {
        return 0;
    }
    let call = arguments::call(thread, descriptor, layout);
    let found = Found {
        function: thread.completed.function,
        flow_plus_1: known.flow_plus_1,
        call_site: known.call_site,
        communicator: known.communicator,
        partners: Partners { destination: known.destination, source: known.source },
        sent: known.sent,
        received: known.received,
        ..Found::NOTHING
    };
    if let Some(line) = recording::common_line(&call, &found, known.flags & flags::POSTS != 0) {
        known.line = line;
        known.any_tag = layout.constants.any_tag;
        (known.send_tag, known.receive_tag) = (descriptor.send_tag, descriptor.receive_tag);
        (known.is_complete, known.status) = (descriptor.is_complete, descriptor.status);
        known.flags |= flags::PLAIN;
        if recording::may_tell(descriptor) || known.flags & flags::TO_BE_MEASURED != 0 {
            known.flags |= flags::TELLS;
        }
    }
    0
}

/// What has come of requests by a call.
#[derive(Clone, Copy)]
pub struct After {
    /// Handle of the one that it has given back; 0: none.
    request: u64,
    lacks_changes: bool,
}

impl After {
    pub const NOTHING: Self = Self { request: 0, lacks_changes: false };
}

#[inline(always)]
fn lacks_changes(thread: &ThreadState) -> bool {
    thread.unwritten.changes != thread.unwritten_before
}

/// Writes down the thread's call, which has succeeded and is the same as one that is known, without what [`write_call`] asks for each time.
/// Whether that is all; if not, the other has to ask, or there is not room for everything.
#[inline(always)]
pub fn write_same_call(thread: &ThreadState, known: &CachedCall, received: Amount, after: After) -> bool {
    if known.flags & flags::PLAIN == 0 || !known.line.has_room(received) {
        return false;
    }
    if known.flags & flags::TELLS != 0
        && (known.source == peer::ANY || has_any_tag(thread, known))
        && tells(thread, known)
    {
        return false;
    }
    let Some(ring) = Ring::here().filter(|ring| ring.room() == Room::Enough) else { return false };
    ring.write(ring.take(1), thread.process, kind::CALL, |words| {
        // Read here, and not before: there is not much room on the stack for what calls leave alone.
        let tag = |position: u8| if position == NONE { NO_TAG } else { call_cache::argument(thread, position) as i32 };
        let any_tag = has_any_tag(thread, known);
        let own = OwnLine {
            tid: thread.id as u32,
            // It is among them.
            number: (thread.numbered_calls() as u32).wrapping_sub(1),
            started_ns: thread.open.started_ns,
            ns: thread.last_return_ns - thread.open.started_ns,
            send_tag: tag(known.send_tag),
            receive_tag: if any_tag { NO_TAG } else { tag(known.receive_tag) },
            received,
            request: after.request,
            any_tag,
            lacks_changes: after.lacks_changes,
        };
        known.line.write(&own, words);
    });
    true
}

#[inline(always)]
fn has_any_tag(thread: &ThreadState, known: &CachedCall) -> bool {
    known.receive_tag != NONE && call_cache::argument(thread, known.receive_tag) as i32 == known.any_tag
}

/// Whether a call that may tell what it has found has found anything, and whoever has called it wants to know.
#[inline(always)]
fn tells(thread: &ThreadState, known: &CachedCall) -> bool {
    call_cache::argument(thread, known.status) != known.status_ignore
        && (known.is_complete == NONE || int_at(call_cache::argument(thread, known.is_complete)) != Some(0))
}

/// The same where there is not much room on the stack. Answers 0 if that is not all.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn write_known_call(thread: *const ThreadState, known: *const CachedCall) -> u32 {
    given!(thread, known);
    write_same_call(thread, known, known.received, After::NOTHING) as u32
}

/// The same of the thread's completed call, which is the same as the one that is known at a place. Answers 0 if that is not all.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn write_recalled_call(thread: *const ThreadState, place: u32) -> u32 {
    given!(thread);
    let Some(known) = call_cache::at(thread, place) else { return 0 };
    // SAFETY: map value pointer to what only this thread writes.
    let known = unsafe { &*known };
    let after = After {
        request: if known.flags & flags::POSTS != 0 { thread.posted } else { 0 },
        lacks_changes: lacks_changes(thread),
    };
    write_same_call(thread, known, thread.completed.received, after) as u32
}

/// What is known of the thread's call without looking anything up.
#[inline(always)]
fn found(thread: &ThreadState, function: u32, ns: u64) -> Found {
    Found {
        tid: thread.id as u32,
        // It is among them.
        number: (thread.numbered_calls() as u32).wrapping_sub(1),
        function,
        started_ns: thread.open.started_ns,
        ns,
        ..Found::NOTHING
    }
}

#[inline(always)]
fn write(ring: Ring, thread: &ThreadState, mut record: CallRecord) {
    record.lacks_changes = lacks_changes(thread);
    // The verifier need not know for which reasons.
    let has_more = from_here_on(record.needs_more() as u64) != 0;
    let first = ring.take(1 + has_more as u64);
    if has_more {
        ring.write(first, thread.process, kind::MORE, |words| record.write_more(words));
    }
    ring.write(first.wrapping_add(has_more as u64), thread.process, kind::CALL, |words| record.write(has_more, words));
}

macro_rules! told {
    ($($(#[$doc:meta])* $name:ident: $answer:ty = |$call:ident, $thread:ident $(, $more:ident: $type:ty)*| $told:expr;)*) => {$(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        #[inline(never)]
        extern "C" fn $name(
            thread: *const ThreadState,
            descriptor: *const Descriptor,
            layout: *const Layout,
            $($more: $type,)*
        ) -> $answer {
            given!(thread, descriptor, layout);
            let ($call, $thread) = (arguments::call(thread, descriptor, layout), thread);
            $told
        }
    )*};
}

told! {
    /// Not 0: the thread's completed call has only asked, in vain, whether something has happened.
    has_found_nothing: u32 = |call, thread| recording::found_nothing(&call, thread.completed.result) as u32;
    /// Not 0: it says what it has received, or found.
    told_at_all: u32 = |call, thread| recording::tells(&call, thread.completed.result) as u32;
    told_source: i32 = |call, thread, tells: u32| recording::source(&call, thread.completed.source, tells != 0);
    told_tag: i32 = |call, _thread, source: i32, tells: u32| recording::receive_tag(&call, source, tells != 0);
    told_destination: i32 = |call, thread| recording::destination(&call, thread.completed.destination);
    told_request: u64 = |call, thread, tells: u32| recording::given_back(&call, thread.completed.result, tells != 0);
    told_object: u64 = |call, thread| recording::object(&call, thread.freed, thread.completed.result);
}

/// The process is in another phase. Where there is no room, it is seen by the next one.
#[inline(always)]
fn write_phase(thread: &ThreadState) {
    let current = phases::now(thread.process);
    let record = PhaseRecord { tid: thread.id as u32, number: thread.numbered_calls() as u32, at_ns: thread.last_return_ns, current };
    if let Some(ring) = Ring::here().filter(|ring| ring.room() != Room::None) {
        ring.write(ring.take(1), thread.process, kind::PHASE, |words| record.write(words));
    }
}

/// Where a change of a request is written to; `None`: nobody wants it, or there is no room, which is counted.
#[inline(always)]
fn ring_for_change(thread: &mut ThreadState) -> Option<Ring> {
    if thread.is_traced == 0 {
        return None;
    }
    let ring = Ring::here().filter(|ring| ring.room() != Room::None);
    if ring.is_none() {
        thread.unwritten.changes += 1;
    }
    ring
}

/// The thread's completed call has started a request: told apart from what else is done to one, because where that is told there is not much
/// room left on the stack. Answers 0.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn write_start(thread: *mut ThreadState, layout: *const Layout, request: *const Request, handle: u64) -> u32 {
    given!(thread, layout, request);
    let Some(ring) = ring_for_change(thread) else { return 0 };
    let number = ring.take(1);
    ring.write(number, thread.process, kind::CHANGE, |words| {
        let who = (thread.id as u32, (thread.numbered_calls() as u32).wrapping_sub(1));
        let what = What::Starts { next_epoch: epoch_of(thread.last_return_ns) };
        recording::changed(layout, &User, who, handle, request, what).write(words);
    });
    0
}

/// In place of the address of a status: the program does not want to know.
const NO_STATUS: u64 = 0;

/// What is done to a request, in place of the address of a status.
pub mod how {
    pub const RELEASES: u64 = u64::MAX - 2;
    pub const READIES: u64 = u64::MAX - 3;
}

/// The thread's completed call has done something to a request: completed it, if `how` is the address of a status, or one of [`how`].
/// Answers 0.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn write_change(
    thread: *mut ThreadState,
    layout: *const Layout,
    request: *const Request,
    handle: u64,
    how: u64,
) -> u32 {
    given!(thread, layout, request);
    let Some(ring) = ring_for_change(thread) else { return 0 };
    let what = what(how);
    let (kind, arrived) = if how == NO_STATUS {
        let completes = recording::kind_of(layout, &User, request, What::Completes { status: NO_STATUS });
        (completes, recording::arrived(layout, &User, request, NO_STATUS))
    } else {
        let kind = change_kind(layout, request, how) as u8;
        let status = recording::status_to_ask(kind, what);
        let arrived = Arrived {
            bytes: change_bytes(layout, request, status),
            source: change_source(layout, request, status),
            tag: change_tag(layout, request, status),
        };
        (kind, arrived)
    };
    let number = ring.take(1);
    ring.write(number, thread.process, kind::CHANGE, |words| {
        let who = (thread.id as u32, (thread.numbered_calls() as u32).wrapping_sub(1));
        recording::change_of(layout, who, handle, request, (kind, what), &arrived).write(words);
    });
    0
}

#[inline(always)]
fn what(how: u64) -> What {
    match how {
        how::RELEASES => What::Releases,
        how::READIES => What::Readies,
        status => What::Completes { status },
    }
}

macro_rules! arrived {
    ($($(#[$doc:meta])* $name:ident: $answer:ty = |$layout:ident, $request:ident, $status:ident| $arrived:expr;)*) => {$(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        #[inline(never)]
        extern "C" fn $name(layout: *const Layout, request: *const Request, status: u64) -> $answer {
            given!(layout, request);
            let ($layout, $request, $status) = (layout, request, status);
            $arrived
        }
    )*};
}

arrived! {
    /// One of [`mpiprobe_common::trace::change`], by what is done to a request.
    change_kind: u32 = |layout, request, how| recording::kind_of(layout, &User, request, what(how)) as u32;
    change_bytes: u64 = |layout, request, status| recording::arrived_bytes(layout, &User, request, status);
    change_source: i32 = |layout, request, status| recording::arrived_from(layout, &User, request, status);
    change_tag: i32 = |layout, request, status| recording::arrived_tag(layout, &User, request, status);
}

/// The thread's completed call is about to take a message that was matched before. Answers 0.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn write_taken_message(thread: *mut ThreadState, layout: *const Layout) -> u32 {
    given!(thread, layout);
    let Some(handle) = message::given_handle(thread) else { return 0 };
    write_known(thread, layout, key_kind::MESSAGE, handle, 0);
    0
}

/// The call lets partitions of a request go. Answers 0.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn write_readied(thread: *mut ThreadState, descriptor: *const Descriptor, layout: *const Layout) -> u32 {
    given!(thread, descriptor, layout);
    let handle = arguments::call(thread, descriptor, layout).handle(descriptor.request);
    write_known(thread, layout, key_kind::REQUEST, handle, how::READIES);
    0
}

#[inline(always)]
fn write_known(thread: &mut ThreadState, layout: &Layout, kind: u32, handle: u64, how: u64) {
    let key = RequestKey { process: thread.process, kind, handle };
    let Some(known) = REQUESTS.get_ptr(&key) else { return };
    write_change(thread, layout, known, handle, how);
}

/// The ring of the processor. Programs stay on it for as long as one hit takes them, but others may come between.
#[derive(Clone, Copy)]
struct Ring {
    head: *mut RingHead,
    /// The number of its first line among those of all rings.
    first: u32,
}

impl Ring {
    #[inline(always)]
    fn here() -> Option<Self> {
        // SAFETY: takes no arguments.
        let index = unsafe { bpf_get_smp_processor_id() } & configured::rings().wrapping_sub(1);
        let head = RINGS.get_ptr_mut(index)?;
        Some(Self { head, first: index * configured::ring_lines() })
    }

    #[inline(always)]
    fn room(self) -> Room {
        // SAFETY: map value pointers to aligned words.
        let (tail, head) = unsafe { (load(&raw const (*self.head).tail), load(&raw const (*self.head).head)) };
        room(configured::ring_lines().into(), head, tail)
    }

    /// Takes numbers of lines that are to be written.
    #[inline(always)]
    fn take(self, lines: u64) -> u64 {
        // SAFETY: map value pointer to an aligned word.
        unsafe { fetch_add(&raw mut (*self.head).head, lines) }
    }

    /// The number of a line of the ring among those of all rings.
    #[inline(always)]
    fn index(self, number: u64) -> u32 {
        self.first + (number as u32 & configured::ring_lines().wrapping_sub(1))
    }

    #[inline(always)]
    fn write(self, number: u64, process: u32, kind: u8, words: impl FnOnce(&mut Words)) {
        let Some(line): Option<*mut Line> = LINES.get_ptr_mut(self.index(number)) else { return };
        let origin = Origin { process: process as u16, kind };
        // SAFETY: map value pointer to a line that is ours while it says so.
        unsafe {
            write_volatile(&raw mut (*line).state, Origin::WRITING);
            barrier();
            words(&mut (*line).words);
            barrier();
            write_volatile(&raw mut (*line).state, origin.state(number));
        }
    }
}
