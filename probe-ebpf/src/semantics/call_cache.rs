//! Calls that are the same as one before: what they mean is known without finding out.

use mpiprobe_common::{
    Amount, CacheKey, Descriptor, FUNCTION_SLOTS, CachedCall, Layout, ThreadState,
    tables::Word,
    cache_key::read,
    descriptor::{NONE, Side, amount as kind, completion},
    flow::{Completed, RECENT_FLOWS, RecentFlow, peer},
    layout::is_predefined,
    call_cache::flags,
    request::{certainty, receiving},
    rules::counting,
};

use super::{
    Returned, add_calls, add_received, add_sent,
    arguments::word,
    can_follow, flow, parent,
    recording::{self, After},
};
use crate::{
    apart::given,
    call::Outcome,
    layers::may_be_in_layer,
    maps::{CACHE_KEYS, CALL_CACHES, configured},
    statistics::{process_counters, take_number},
};

/// Accounts for a call that was successful, if it is known: gives what is left to be done, else [`Outcome::Completed`]. `IS_USUAL`: most calls
/// come this way, which is to be quick; on others there is not as much room on the stack.
#[inline(always)]
pub fn look_up<const TRACED: bool, const IS_USUAL: bool>(thread: &mut ThreadState, call: Returned) -> Outcome {
    let Some(key) = key(call.function) else { return Outcome::Completed };
    let given = argument(thread, key.positions[0]);
    let place = RecentFlow::place(call.function, given as i32, call.call_site);
    let Some(known) = at(thread, place as u32) else { return Outcome::Completed };
    // SAFETY: map value pointer to what only this thread writes.
    let known = unsafe { &*known };
    if known.call_site != call.call_site
        || known.function_plus_1 != call.function + 1
        || known.process != thread.process
        || known.epoch != epoch(thread.process)
        || thread.tools_open != 0
        || thread.has_stack == 0
    {
        return Outcome::Completed;
    }
    let mut differs = 0;
    for (&position, &word) in key.positions.iter().zip(&known.words) {
        if position == NONE {
            break;
        }
        differs |= argument(thread, position) ^ word;
    }
    if differs != 0
        || in_place(thread, key, known.in_place) != known.flags & flags::IN_PLACE
        || may_be_in_layer(thread.process, call.call_site)
    {
        return Outcome::Completed;
    }
    if key.status != NONE {
        let is_ignored = argument(thread, key.status) == known.status_ignore;
        if is_ignored != (known.flags & flags::TO_BE_MEASURED == 0) {
            return Outcome::Completed;
        }
        if !is_ignored {
            keep(thread, &call, known);
            return Outcome::Measures;
        }
    }
    add_calls(known.flow_plus_1, known.second_flow_plus_1, call.ns);
    if known.flags & flags::SENDS_NOW != 0 {
        add_sent(call.stats_plus_1, known.flow_plus_1, known.sent);
    }
    if known.flags & flags::RECEIVES_NOW != 0 {
        add_received(call.stats_plus_1, receiving(known.flow_plus_1, known.second_flow_plus_1), known.received);
    }
    if known.flags & flags::POSTS != 0 {
        keep(thread, &call, known);
        return Outcome::Posts;
    }
    if known.flags & flags::ENDS != 0 || (known.flags & flags::SETTLES != 0 && thread.following.handles != 0) {
        keep(thread, &call, known);
        return Outcome::Settles;
    }
    if TRACED && thread.is_traced != 0 {
        let is_written = if IS_USUAL {
            recording::write_same_call(thread, known, known.received, After::NOTHING)
        } else {
            recording::write_known_call(thread, known) != 0
        };
        if is_written {
            return Outcome::Return;
        }
        keep(thread, &call, known);
        return Outcome::Told;
    }
    Outcome::Return
}

/// Keeps the call as if it had been found out about, for the programs that go on with it.
#[inline(always)]
fn keep(thread: &mut ThreadState, call: &Returned, known: &CachedCall) {
    thread.completed = Completed {
        communicator_handle: known.communicator_handle,
        call_site: call.call_site,
        ns: call.ns,
        function: call.function,
        succeeded: 1,
        destination: known.destination,
        source: known.source,
        flow_plus_1: known.flow_plus_1,
        second_flow_plus_1: known.second_flow_plus_1,
        communicator: known.communicator,
        stats_plus_1: call.stats_plus_1,
        is_recalled: known.place_plus_1,
        sent: known.sent,
        received: known.received,
        ..Completed::NONE
    };
}

/// The thread's completed call has been found out about, by all that its arguments say: the next one that is the same need not be.
/// `return_address`: its own, which may be in a layer.
/// Answers where it is known from now on, plus one; 0: it is not.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn learn(thread: *mut ThreadState, descriptor: *const Descriptor, layout: *const Layout, return_address: u64) -> u32 {
    given!(thread, descriptor, layout);
    let call = &thread.completed;
    let Some(key) = key(call.function) else { return 0 };
    if call.is_recalled | call.looked_at | call.made != 0
        || call.succeeded == 0
        || thread.tools_open != 0
        || thread.has_stack == 0
        || call.call_site != return_address
        || !can_follow(layout)
        || parent::is_concerned(descriptor)
        || !flow::is_certain(call.flow_plus_1, descriptor)
        || (call.second_flow_plus_1 != 0 && !flow::is_certain(call.second_flow_plus_1, descriptor))
        || !is_fixed(thread, layout, descriptor.send_side())
        || !is_fixed(thread, layout, descriptor.receive_side())
    {
        return 0;
    }
    let ignore = layout.constants.status_ignore;
    let is_told = key.status != NONE && argument(thread, key.status) != ignore;
    // Whom a receive from anybody was from is another question each time.
    if is_told && layout.partner(argument(thread, descriptor.source) as i32) == peer::ANY {
        return 0;
    }
    let (sent, mut received) = (call.sent, call.received);
    if is_told {
        received = Amount::NOTHING;
    }
    if sent.certainty == certainty::UNKNOWN || received.certainty == certainty::UNKNOWN {
        return 0;
    }
    let begins = descriptor.begins_operation();
    let (sends_now, receives_now) = counting::on_return(descriptor, begins);
    let mut all = in_place(thread, key, layout.constants.in_place);
    all |= flag(flags::TO_BE_MEASURED, is_told);
    all |= flag(flags::SENDS_NOW, sends_now && sent.certainty != certainty::NOTHING);
    all |= flag(flags::RECEIVES_NOW, receives_now && received.certainty != certainty::NOTHING);
    all |= flag(flags::POSTS, begins);
    all |= flag(flags::SETTLES, descriptor.settles_requests());
    all |= flag(flags::ENDS, descriptor.completion == completion::ENDS);
    if thread.call_cache_plus_1 == 0 {
        let Some(number) = take_number(Word::NextCallCache, configured::call_cache_slots()) else { return 0 };
        thread.call_cache_plus_1 = number as u64 + 1;
    }
    let call = &thread.completed;
    let place = RecentFlow::place(call.function, argument(thread, key.positions[0]) as i32, return_address);
    let Some(known) = at(thread, place as u32) else { return 0 };
    // SAFETY: map value pointer to what only this thread writes.
    let known = unsafe { &mut *known };
    for (index, word) in known.words.iter_mut().enumerate() {
        *word = argument(thread, key.positions[index]);
    }
    known.call_site = return_address;
    known.process = thread.process;
    known.function_plus_1 = call.function + 1;
    known.epoch = call.epoch;
    known.flags = all;
    known.in_place = layout.constants.in_place;
    known.status_ignore = ignore;
    known.communicator_handle = call.communicator_handle;
    known.sent = sent;
    known.received = received;
    known.destination = call.destination;
    known.source = call.source;
    known.flow_plus_1 = call.flow_plus_1;
    known.second_flow_plus_1 = call.second_flow_plus_1;
    known.communicator = call.communicator;
    known.place_plus_1 = place as u32 + 1;
    known.place_plus_1
}

/// Which arguments decide what a call of a function is, if that is all that decides. Which window or file a handle means is another
/// question each time.
#[inline(always)]
fn key(function: u32) -> Option<&'static CacheKey> {
    let key = CACHE_KEYS.get_ptr(function & (FUNCTION_SLOTS - 1))?;
    // SAFETY: map value pointer, written before anything is attached.
    let key = unsafe { &*key };
    if key.is_all != 0 && key.scope == NONE { Some(key) } else { None }
}

/// What is known at a place.
#[inline(always)]
pub fn at(thread: &ThreadState, place: u32) -> Option<*mut CachedCall> {
    let store = CALL_CACHES.get_ptr_mut((thread.call_cache_plus_1 as u32).wrapping_sub(1))?;
    let index = place as usize & (RECENT_FLOWS - 1);
    // SAFETY: map value pointer; the index is below the array's length.
    Some(unsafe { store.cast::<CachedCall>().add(index) })
}

/// The argument at a position of [`CacheKey::positions`]; anything for [`NONE`].
#[inline(always)]
pub fn argument(thread: &ThreadState, position: u8) -> u64 {
    let word = word(thread.arguments.as_ptr(), position);
    if position & read::INT != 0 { word as u32 as u64 } else { word }
}

/// Which of the buffers are `MPI_IN_PLACE`: [`flags`].
#[inline(always)]
fn in_place(thread: &ThreadState, key: &CacheKey, in_place: u64) -> u32 {
    let is = |position: u8| position != NONE && argument(thread, position) == in_place;
    flag(flags::SEND_IN_PLACE, is(key.buffers[0])) | flag(flags::RECEIVE_IN_PLACE, is(key.buffers[1]))
}

#[inline(always)]
fn flag(flag: u32, is_set: bool) -> u32 {
    if is_set { flag } else { 0 }
}

/// Whether the handle of a datatype, if the function has one for this direction, never means another one.
#[inline(always)]
fn is_fixed(thread: &ThreadState, layout: &Layout, side: Side) -> bool {
    side.amount & kind::KIND == kind::NOTHING
        || side.datatype == NONE
        || is_predefined(layout, argument(thread, side.datatype))
}

/// How many communicators the process has freed.
#[inline(always)]
pub fn epoch(process: u32) -> u32 {
    // SAFETY: map value pointer; one word, read once.
    process_counters(process).map_or(0, |counters| unsafe { (*counters).communicators_freed }) as u32
}
