//! The slots of threads: found, taken and given back.

use mpiprobe_common::{Loss, THREAD_CACHE, ThreadState, tables::Word};

use crate::{
    call::target,
    maps::{FREE_SLOTS, RECENT_SLOT, THREAD_SLOT, THREADS, configured},
    statistics::{count_loss, take_number},
};

/// The state of a thread, made on its first entry; `None` if its process is no target or there is no room, which is counted as
/// `loss`.
#[inline(always)]
pub fn state(id: u64, loss: Loss) -> Option<*mut ThreadState> {
    // Only threads of targets have a state, so in the common case this one look-up is also the check of the allow-list.
    if let Some(known) = known(id) {
        return Some(known);
    }
    let process = target(id)?.process;
    let made = make(id, process);
    if made.is_none() {
        count_loss(process, loss);
    }
    made
}

/// The state of a thread that has entered before.
#[inline(always)]
pub fn known(id: u64) -> Option<*mut ThreadState> {
    match recent(id) {
        Some(known) => Some(known),
        None => find(id),
    }
}

/// Gives a thread's slot back.
#[inline(always)]
pub fn forget(id: u64) {
    let Some(&slot) = (unsafe { THREAD_SLOT.get(id) }) else { return };
    let Some(thread) = THREADS.get_ptr_mut(slot) else { return };
    // SAFETY: map value pointer; its thread makes no calls any more.
    unsafe { (*thread).id = 0 };
    if THREAD_SLOT.remove(id).is_ok() {
        // There is room: no slot is free twice.
        let _ = FREE_SLOTS.push(slot, 0);
    }
}

/// The state of a thread, if it is found at once.
#[inline(always)]
pub fn recent(id: u64) -> Option<*mut ThreadState> {
    let slot = RECENT_SLOT.get(id as u32 & (THREAD_CACHE - 1))?;
    let thread = THREADS.get_ptr_mut(*slot)?;
    // SAFETY: map value pointer.
    if unsafe { (*thread).id } == id { Some(thread) } else { None }
}

/// The state of a thread, wherever it is.
#[inline(never)]
pub fn find(id: u64) -> Option<*mut ThreadState> {
    // SAFETY: the value is copied at once; only this thread writes it.
    let slot = *unsafe { THREAD_SLOT.get(id) }?;
    remember(id, slot);
    THREADS.get_ptr_mut(slot)
}

#[inline(always)]
fn remember(id: u64, slot: u32) {
    if let Some(recent) = RECENT_SLOT.get_ptr_mut(id as u32 & (THREAD_CACHE - 1)) {
        // SAFETY: map value pointer; a 32-bit store is not torn.
        unsafe { *recent = slot };
    }
}

#[inline(never)]
fn make(id: u64, process: u32) -> Option<*mut ThreadState> {
    let used = FREE_SLOTS.pop().ok().flatten();
    let slot = used.or_else(|| take_number(Word::NextThread, configured::thread_slots()));
    let slot = slot?;
    let thread = THREADS.get_ptr_mut(slot)?;
    // SAFETY: map value pointer to a slot that nobody else has.
    unsafe {
        let (store_plus_1, many_plus_1) = ((*thread).following.store_plus_1, (*thread).following.many_plus_1);
        let call_cache_plus_1 = (*thread).call_cache_plus_1;
        *thread = ThreadState::ZERO;
        (*thread).following.store_plus_1 = store_plus_1;
        (*thread).following.many_plus_1 = many_plus_1;
        (*thread).call_cache_plus_1 = call_cache_plus_1;
        (*thread).process = process;
    }
    if THREAD_SLOT.insert(id, slot, 0).is_err() {
        let _ = FREE_SLOTS.push(slot, 0);
        return None;
    }
    // SAFETY: as above. Last: from now on the slot counts as taken.
    unsafe { (*thread).id = id };
    remember(id, slot);
    Some(thread)
}
