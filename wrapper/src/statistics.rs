//! Statistics per function: each thread slot has entries of its own, so that nothing need be atomic.

use core::ptr;

use mpiprobe_common::{
    FUNCTION_SLOTS, FunctionStats, Loss,
    file::{FUNCTIONS_REGION, STATS, STATS_REGION},
    histogram::bucket_of,
};

use crate::{file, header, process, thread::Local};

/// Where the statistics of a function are in the thread's slot, made on first use; null if there is no room.
#[inline]
pub(crate) unsafe fn of(local: *mut Local, function: u32) -> *mut FunctionStats {
    // SAFETY: the thread's own; the index is below the array's length.
    unsafe {
        let place =
            (&raw mut (*local).stats).cast::<*mut FunctionStats>().add((function & (FUNCTION_SLOTS - 1)) as usize);
        if (*place).is_null() { make(place, function) } else { *place }
    }
}

#[cold]
unsafe fn make(place: *mut *mut FunctionStats, function: u32) -> *mut FunctionStats {
    let entry = process::take_number(header::stats(), STATS).and_then(|index| {
        let entry = file::place::<FunctionStats>(STATS_REGION, index)?;
        let owner = file::place::<u32>(FUNCTIONS_REGION, index)?;
        // SAFETY: an entry that nobody else has.
        unsafe { owner.as_ptr().write_volatile(function + 1) };
        Some(entry)
    });
    let Some(entry) = entry else {
        process::count_loss(Loss::StatsTableFull);
        return ptr::null_mut();
    };
    // SAFETY: the caller's place.
    unsafe { *place = entry.as_ptr() };
    entry.as_ptr()
}

/// Counts one completed call of `ns` nanoseconds.
#[inline]
pub(crate) unsafe fn record(stats: *mut FunctionStats, ns: u64) {
    // SAFETY: by contract an entry of the calling thread. Bucket numbers are below the array's length.
    unsafe {
        (*stats).calls += 1;
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
