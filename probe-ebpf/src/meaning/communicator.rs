//! Communicators: told apart by process and handle, from the first use to the call that frees them.

use aya_ebpf::helpers::bpf_ktime_get_ns;
use mpiprobe_common::{
    Communicator, CommunicatorKey, Layout, Loss,
    config::CONTROL_NEXT_COMMUNICATOR,
    layout::{self, Memory as _},
};

use super::user::User;
use crate::{
    atomic::add,
    maps::{COMMUNICATOR_OF, COMMUNICATORS, LAYOUTS, configured},
    statistics::{count_loss, process_counters, take_number},
};

/// The number of a communicator; 0 if nothing can be read of it, or there is no room for it.
#[inline(never)]
pub fn number(process: u32, layout: &Layout, handle: u64) -> u32 {
    let key = CommunicatorKey { process, reserved: 0, handle };
    // SAFETY: the value is copied at once.
    if let Some(&known) = unsafe { COMMUNICATOR_OF.get(&key) } {
        return known;
    }
    // What is not known now may be known later: nothing is kept of it.
    let Some(facts) = layout::comm(layout, handle, &User) else { return 0 };
    let Some(index) = take_number(CONTROL_NEXT_COMMUNICATOR, configured::communicator_slots() - 1) else {
        count_loss(process, Loss::CommunicatorTableFull);
        return 0;
    };
    let number = index + 1;
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
            freed_ns: 0,
        };
    }
    // Two threads may come here at once for the same communicator: one wins, the other's number is used up for nothing. Where
    // the kernel cannot take the key just now, it is this number for now.
    let _ = COMMUNICATOR_OF.insert(&key, number, 1);
    // SAFETY: as above.
    unsafe { COMMUNICATOR_OF.get(&key) }.copied().unwrap_or(number)
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

/// Whether its handle may mean another one by now.
#[inline(always)]
pub fn is_freed(number: u32) -> bool {
    facts(number).is_some_and(|known| known.freed_ns != 0)
}

/// A function is entered that frees the communicator whose handle is at the address: it will mean another one from then on.
#[inline(never)]
pub fn forget(process: u32, handle_address: u64) {
    let Some(layout) = LAYOUTS.get_ptr(process) else { return };
    // SAFETY: map value pointer, written once.
    let layout = unsafe { &*layout };
    let into = handle_address & 7;
    let Some(word) = User.word(handle_address & !7) else { return };
    // A 32-bit handle may be the upper half of the aligned word.
    let handle = layout.handle(if layout.handles == layout::handle_kind::INTEGER { word >> (into * 8) } else { word });
    let key = CommunicatorKey { process, reserved: 0, handle };
    // SAFETY: the value is copied at once.
    if let Some(&number) = unsafe { COMMUNICATOR_OF.get(&key) }
        && let Some(entry) = COMMUNICATORS.get_ptr_mut(number)
    {
        // SAFETY: map value pointer; a helper without arguments.
        unsafe { (*entry).freed_ns = bpf_ktime_get_ns() };
        let _ = COMMUNICATOR_OF.remove(&key);
    }
    if let Some(counters) = process_counters(process) {
        // SAFETY: map value pointer.
        unsafe { add(&raw mut (*counters).communicators_freed, 1) };
    }
}
