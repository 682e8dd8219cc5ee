//! Counters that several threads or CPUs write: atomic, and never lost without being counted.

use mpiprobe_common::{
    FUNCTION_SLOTS, Loss, ProcessCounters,
    tables::Word,
    histogram::{BUCKETS, bucket_of},
};

use crate::{
    atomic::{add, compare_exchange, fetch_add, from_here_on, load, raise},
    maps::{CONTROL, DESCRIPTORS, PROCESSES, STATS, STATS_INDEX, configured},
    phases, semantics,
};

/// Whether calls of a function are counted, because the user has chosen it: all bits are set, or none. As a number and not as a branch:
/// the verifier would go through all that follows once for each.
#[inline(always)]
pub fn chosen(function: u32) -> Option<u64> {
    if configured::has_unchosen() == 0 {
        return Some(u64::MAX);
    }
    let descriptor = DESCRIPTORS.get_ptr(function & (FUNCTION_SLOTS - 1))?;
    // SAFETY: map value pointer, written before anything is attached.
    Some(u64::from(unsafe { (*descriptor).unchosen }).wrapping_sub(1))
}

/// The same as a branch.
#[inline(always)]
pub fn is_chosen(function: u32) -> bool {
    // SAFETY: as above.
    DESCRIPTORS.get_ptr(function & (FUNCTION_SLOTS - 1)).is_some_and(|descriptor| unsafe { (*descriptor).unchosen == 0 })
}

/// Counts one completed call of `ns` nanoseconds; gives its entry in the statistics plus one, 0 if there is no room.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn record(process: u32, function: u32, ns: u64) -> u32 {
    let plus_1 = entry(process, function);
    let Some(stats) = STATS.get_ptr_mut(plus_1.wrapping_sub(1)) else {
        count_loss(process, Loss::StatsTableFull);
        return 0;
    };
    // SAFETY: `stats` points to a map value that lives as long as the program runs. Its words are only ever accessed
    // atomically here; the observer reads a consistent word each.
    unsafe {
        add(&raw mut (*stats).time_ns, ns);
        raise(&raw mut (*stats).min_complement, u64::MAX - ns);
        raise(&raw mut (*stats).max_ns, ns);
        // Such that the compiler compares the very register that becomes the index.
        let bucket = from_here_on(bucket_of(from_here_on(ns)) as u64) as usize;
        if bucket < BUCKETS {
            add((&raw mut (*stats).histogram).cast::<u64>().add(bucket), 1);
        }
    }
    plus_1
}

/// Counts calls of which only the entry is seen.
#[inline(always)]
pub fn record_untimed(process: u32, function: u32, calls: u64) {
    let plus_1 = entry(process, function);
    let Some(stats) = STATS.get_ptr_mut(plus_1.wrapping_sub(1)) else {
        return count_losses(process, Loss::StatsTableFull, calls);
    };
    // SAFETY: as in `record`.
    unsafe {
        add(&raw mut (*stats).untimed, calls);
        if configured::traffic() != 0 && semantics::moves_data(function) {
            add(&raw mut (*stats).unknown, calls);
        }
    }
}

/// Where the statistics of a function in the current phase of a process are, plus one, made on first use; 0 if there is no room.
#[inline(always)]
pub fn entry(process: u32, function: u32) -> u32 {
    let Some(index) = STATS_INDEX.get_ptr_mut(phases::row(process) * FUNCTION_SLOTS + (function & (FUNCTION_SLOTS - 1))) else {
        return 0;
    };
    // SAFETY: map value pointer.
    let known = unsafe { load(index) };
    if known == 0 { allocate(index).unwrap_or(0) as u32 } else { known as u32 }
}

/// Takes the next free entry. Two threads may come here at once for the same function: one wins, the other's number is
/// used up for nothing.
#[inline(always)]
fn allocate(index: *mut u64) -> Option<u64> {
    let plus_1 = u64::from(take_number(Word::NextStats, configured::stats_entries())?) + 1;
    // SAFETY: map value pointer.
    let winner = unsafe { compare_exchange(index, 0, plus_1) };
    Some(if winner == 0 { plus_1 } else { winner })
}

/// Takes the next number below `end` from a word of the control array.
#[inline(always)]
pub fn take_number(word: Word, end: u32) -> Option<u32> {
    let next = CONTROL.get_ptr_mut(word as u32)?;
    let end = u64::from(end);
    // Looked at before it is taken, so that the counter cannot wrap round however often a full table is asked.
    // SAFETY: map value pointers.
    let number = unsafe {
        if load(next) >= end {
            return None;
        }
        fetch_add(next, 1)
    };
    if number < end { Some(number as u32) } else { None }
}

/// Counts a loss in a process.
#[inline(always)]
pub fn count_loss(process: u32, loss: Loss) {
    count_losses(process, loss, 1);
}

/// Counts several at once.
#[inline(always)]
pub fn count_losses(process: u32, loss: Loss, number: u64) {
    if let Some(counters) = process_counters(process) {
        // SAFETY: map value pointer; the index is a constant below the array's length.
        unsafe { add((&raw mut (*counters).losses).cast::<u64>().add(loss as usize), number) };
    }
}

#[inline(always)]
pub fn process_counters(process: u32) -> Option<*mut ProcessCounters> {
    PROCESSES.get_ptr_mut(process)
}
