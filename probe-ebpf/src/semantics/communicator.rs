//! Communicators: told apart by process and handle, from the call that makes them, or the first use, to the call that frees them.

use aya_ebpf::helpers::bpf_ktime_get_ns;
use mpiprobe_common::{
    Communicator, CommunicatorKey, Layout, Loss,
    tables::Word,
    flow::{Degrees, communicator_kind, distinct_communicators, handle_of, peer},
    layout,
};

use super::user::{User, handle_at};
use crate::{
    apart::given,
    atomic::{add, load},
    maps::{COMMUNICATOR_OF, COMMUNICATORS, CONTROL, LAYOUTS, ORIGINS, SHARED_NUMBERS, configured},
    statistics::{count_loss, process_counters, take_number},
};

/// The number of a communicator; 0 if nothing can be read of it, or there is no room for it.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn communicator_number(process: u32, layout: *const Layout, handle: u64) -> u32 {
    given!(layout);
    let key = CommunicatorKey { process, kind: handle_of::COMMUNICATOR, handle };
    // SAFETY: the value is copied at once.
    if let Some(&known) = unsafe { COMMUNICATOR_OF.get(&key) } {
        return known;
    }
    // What is not known now may be known later: nothing is kept of it.
    let Some(facts) = layout::comm(layout, handle, &User) else { return 0 };
    let Some(number) = free_number(process) else {
        count_loss(process, Loss::CommunicatorTableFull);
        return 0;
    };
    let Some(entry) = COMMUNICATORS.get_ptr_mut(number) else { return 0 };
    // SAFETY: map value pointer to an entry that nobody else has; a helper without arguments.
    unsafe {
        *entry = Communicator {
            key,
            context: facts.context,
            rank: facts.rank,
            size: facts.size,
            remote_size: facts.remote_size,
            is_inter: facts.is_inter as u32,
            first_ns: bpf_ktime_get_ns(),
            ..NOTHING
        };
    }
    // Two threads may come here at once for the same communicator: one wins, the other's number is used up for nothing. Where
    // the kernel cannot take the key just now, it is this number for now.
    let _ = COMMUNICATOR_OF.insert(&key, number, 1);
    // SAFETY: the value is copied at once.
    unsafe { COMMUNICATOR_OF.get(&key) }.copied().unwrap_or(number)
}

const NOTHING: Communicator = Communicator {
    key: CommunicatorKey { process: 0, kind: handle_of::COMMUNICATOR, handle: 0 },
    context: 0,
    rank: 0,
    size: 0,
    remote_size: 0,
    is_inter: 0,
    first_ns: 0,
    freed_ns: 0,
    kind: communicator_kind::NOT_YET,
    made_by_plus_1: 0,
    parent: 0,
    first: peer::UNKNOWN,
    middle: peer::UNKNOWN,
    last: peer::UNKNOWN,
    degrees: Degrees::UNKNOWN,
};

/// Each communicator has a number of its own as long as there are enough, and leaves room for flows; further ones share those that
/// are kept for that, one at a time.
#[inline(always)]
fn free_number(process: u32) -> Option<u32> {
    let distinct = distinct_communicators(configured::communicator_slots());
    // SAFETY: map value pointer.
    let flows = CONTROL.get_ptr(Word::NextFlow as u32).map_or(0, |word| unsafe { load(word) });
    let flow_slots = configured::flow_slots() as u64;
    if flows <= flow_slots - flow_slots / 4
        && let Some(index) = take_number(Word::NextCommunicator, distinct - 1)
    {
        return Some(index + 1);
    }
    let used = SHARED_NUMBERS.pop().ok().flatten();
    let number = match used {
        Some(number) => number,
        None => distinct + take_number(Word::NextShared, configured::communicator_slots() - distinct)?,
    };
    if let Some(counters) = process_counters(process) {
        // SAFETY: map value pointer.
        unsafe { add(&raw mut (*counters).communicators_shared, 1) };
    }
    Some(number)
}

/// What is known of a communicator by its number.
#[inline(always)]
pub fn facts(number: u32) -> Option<&'static Communicator> {
    if number == 0 {
        return None;
    }
    // SAFETY: map value pointer, written once before the number was given out.
    COMMUNICATORS.get_ptr(number).map(|entry| unsafe { &*entry })
}

/// Whether a handle still means the communicator with that number.
#[inline(always)]
pub fn is_alive(number: u32, handle: u64) -> bool {
    facts(number).is_some_and(|known| known.freed_ns == 0 && known.key.handle == handle)
}

/// A function is entered that frees the communicator whose handle is at the address: it will mean another one from then on.
/// Answers 0.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn forget_communicator(process: u32, handle_address: u64) -> u32 {
    let Some(layout) = LAYOUTS.get_ptr(process) else { return 0 };
    // SAFETY: map value pointer, written once.
    let layout = unsafe { &*layout };
    if let Some(handle) = handle_at(layout, handle_address) {
        release(CommunicatorKey { process, kind: handle_of::COMMUNICATOR, handle });
    }
    0
}

/// A handle means another communicator from now on.
#[inline(always)]
pub fn release(key: CommunicatorKey) {
    let _ = ORIGINS.remove(&key);
    // SAFETY: the value is copied at once.
    if let Some(&number) = unsafe { COMMUNICATOR_OF.get(&key) }
        && let Some(entry) = COMMUNICATORS.get_ptr_mut(number)
    {
        // SAFETY: map value pointer; a helper without arguments.
        unsafe { (*entry).freed_ns = bpf_ktime_get_ns() };
        if COMMUNICATOR_OF.remove(&key).is_ok() && number >= distinct_communicators(configured::communicator_slots()) {
            // There is room: no number is free twice.
            let _ = SHARED_NUMBERS.push(number, 0);
        }
    }
    if let Some(counters) = process_counters(key.process) {
        // SAFETY: map value pointer.
        unsafe { add(&raw mut (*counters).communicators_freed, 1) };
    }
}
