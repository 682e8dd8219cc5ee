//! Statistics per function and phase: each thread slot has entries of its own, so that nothing need be atomic.

use core::{ptr, sync::atomic::Ordering};

use mpiprobe_common::{
    FUNCTION_SLOTS, FunctionStats, Loss,
    file::{OWNERS_REGION, STATS, STATS_REGION, StatsOwner},
    histogram::bucket_of,
};

use crate::{file, header, phases, process, thread::Local};

/// Where the statistics of a function are in the thread's slot, made on first use; null if there is no room.
#[inline]
pub(crate) unsafe fn of(local: *mut Local, function: u32) -> *mut FunctionStats {
    // SAFETY: the thread's own; the index is below the array's length.
    unsafe {
        if (*local).phase_plus_1 != phases::current() {
            change_phase(local);
        }
        let place =
            (&raw mut (*local).stats).cast::<*mut FunctionStats>().add((function & (FUNCTION_SLOTS - 1)) as usize);
        if (*place).is_null() {
            *place = find_or_make(local, function);
        }
        *place
    }
}

/// The process has entered or left a phase: what the thread knows are the entries of another one.
#[cold]
unsafe fn change_phase(local: *mut Local) {
    // SAFETY: the thread's own.
    unsafe {
        (*local).phase_plus_1 = phases::current();
        (*local).stats = [ptr::null_mut(); FUNCTION_SLOTS as usize];
    }
}

#[cold]
unsafe fn find_or_make(local: *mut Local, function: u32) -> *mut FunctionStats {
    // SAFETY: the thread's own.
    let (phase_plus_1, thread) = unsafe { ((*local).phase_plus_1, (*local).number) };
    let owner = StatsOwner { function_plus_1: function + 1, phase_plus_1, thread, reserved: 0 };
    let found = find(&owner).or_else(|| make(&owner));
    if found.is_none() {
        process::count_loss(Loss::StatsTableFull);
    }
    found.unwrap_or(ptr::null_mut())
}

/// The slot had the entry before: in an earlier opening of the phase, or for an earlier thread.
fn find(owner: &StatsOwner) -> Option<*mut FunctionStats> {
    let used = header::stats().map_or(0, |used| used.load(Ordering::Relaxed));
    let used = if used < u64::from(STATS) { used as u32 } else { STATS };
    let owned = |index: &u32| {
        // SAFETY: entries of the file; those of this thread only are compared as equal, and it has written them itself.
        file::place(OWNERS_REGION, *index).is_some_and(|known| unsafe { known.as_ptr().read_volatile() } == *owner)
    };
    let index = (0..used).find(owned)?;
    Some(file::place(STATS_REGION, index)?.as_ptr())
}

fn make(owner: &StatsOwner) -> Option<*mut FunctionStats> {
    process::settle();
    let index = process::take_number(header::stats(), STATS)?;
    let entry = file::place(STATS_REGION, index)?;
    let place = file::place(OWNERS_REGION, index)?;
    // SAFETY: an entry that nobody else has.
    unsafe { place.as_ptr().write_volatile(*owner) };
    Some(entry.as_ptr())
}

/// Counts one completed call of `ns` nanoseconds.
#[inline]
pub(crate) unsafe fn record(stats: *mut FunctionStats, ns: u64) {
    // SAFETY: by contract an entry of the calling thread. Bucket numbers are below the array's length.
    unsafe {
        (*stats).time_ns += ns;
        if u64::MAX - ns > (*stats).min_complement {
            (*stats).min_complement = u64::MAX - ns;
        }
        if ns > (*stats).max_ns {
            (*stats).max_ns = ns;
        }
        let bucket = (&raw mut (*stats).histogram).cast::<u64>().add(bucket_of(ns) as usize);
        *bucket += 1;
    }
}
