//! What the program asks for by `MPI_Pcontrol`: counting on and off, results written out, phases.

use aya_ebpf::helpers::{
    bpf_get_current_pid_tgid, bpf_ktime_get_ns,
    generated::bpf_probe_read_user_str,
};
use mpiprobe_common::{
    Loss, Phase, PhaseKey, ProcessCounters,
    config::CONTROL_NEXT_PHASE,
    event::EventKind,
    phase::{NAME_LENGTH, PHASE_DEPTH, current, level},
};

use crate::{
    atomic::{add, from_here_on, load},
    lifecycle::{event, notify},
    maps::{PHASE_OF, PHASES, configured},
    statistics::{count_loss, process_counters, take_number},
};

/// Notices to write out results are not given more often than that, ns: a program may ask in a loop.
const FLUSH_INTERVAL_NS: u64 = 10_000_000;

/// Whether a function is the one that programs control counting by, and they may.
#[inline(always)]
pub fn is_control(function: u32) -> bool {
    configured::pcontrol_plus_1() != 0 && function + 1 == configured::pcontrol_plus_1()
}

/// Whether the program has switched counting off.
#[inline(always)]
pub fn is_off(process: u32) -> bool {
    now(process) & current::OFF != 0
}

/// The row in the index of statistics that calls of a process are counted in now.
#[inline(always)]
pub fn row(process: u32) -> u32 {
    match (now(process) & current::PHASE_PLUS_1) as u32 {
        0 => process,
        phase_plus_1 => configured::process_slots() + phase_plus_1 - 1,
    }
}

#[inline(always)]
fn now(process: u32) -> u64 {
    if configured::pcontrol_plus_1() == 0 {
        return 0;
    }
    // SAFETY: map value pointer.
    process_counters(process).map_or(0, |counters| unsafe { load(&raw const (*counters).current) })
}

/// Counts a call that is not to be observed.
#[inline(always)]
pub fn count_off(process: u32) {
    if let Some(counters) = process_counters(process) {
        // SAFETY: map value pointer.
        unsafe { add(&raw mut (*counters).calls_off, 1) };
    }
}

/// Does what a call with these arguments asks for. Answers 0; a function that is not inlined has to answer.
#[inline(never)]
pub fn control(process: u32, asked: u32, text: u64) -> u32 {
    let Some(counters) = process_counters(process) else { return 0 };
    // SAFETY: map value pointer. Threads that call this at once leave one of their wishes; every index is checked.
    let counters = unsafe { &mut *counters };
    // SAFETY: takes no arguments.
    let time_ns = unsafe { bpf_ktime_get_ns() };
    match asked as i32 {
        level::OFF => switch_off(counters, time_ns),
        level::NORMAL => switch_on(counters, time_ns),
        level::FLUSH => flush(counters, process, time_ns),
        level if level > level::FLUSH => open(counters, process, level, text, time_ns),
        level if level < -level::FLUSH => close(counters, level.wrapping_neg(), time_ns),
        _ => {}
    }
    0
}

#[inline(always)]
fn switch_off(counters: &mut ProcessCounters, time_ns: u64) {
    if counters.current & current::OFF == 0 {
        counters.off_since_ns = time_ns;
        counters.current |= current::OFF;
    }
}

#[inline(always)]
fn switch_on(counters: &mut ProcessCounters, time_ns: u64) {
    if counters.current & current::OFF != 0 {
        counters.current &= !current::OFF;
        counters.off_ns += time_ns - counters.off_since_ns;
        counters.off_since_ns = 0;
    }
}

#[inline(always)]
fn flush(counters: &mut ProcessCounters, process: u32, time_ns: u64) {
    if time_ns - counters.flushed_ns >= FLUSH_INTERVAL_NS {
        counters.flushed_ns = time_ns;
        notify(&event(EventKind::Flush, bpf_get_current_pid_tgid(), process));
    }
}

#[inline(always)]
fn open(counters: &mut ProcessCounters, process: u32, level: i32, text: u64, time_ns: u64) {
    let depth = counters.phase_depth;
    counters.phase_depth = depth + 1;
    if depth >= PHASE_DEPTH as u64 {
        count_loss(process, Loss::PhaseTableFull);
        return;
    }
    let mut key = PhaseKey { process, level, name: [0; NAME_LENGTH] };
    read_name(&mut key.name, text);
    let phase_plus_1 = find_or_make(&key);
    if let Some(remembered) = remembered(counters, depth) {
        *remembered = phase_plus_1;
    }
    let Some(phase) = PHASES.get_ptr_mut((phase_plus_1 as u32).wrapping_sub(1)) else {
        count_loss(process, Loss::PhaseTableFull);
        return;
    };
    // SAFETY: map value pointer.
    let phase = unsafe { &mut *phase };
    phase.opened += 1;
    if phase.open == 0 {
        phase.since_ns = time_ns;
    }
    phase.open += 1;
    counters.current = counters.current & current::OFF | phase_plus_1;
}

/// Closes the innermost open phase of this level, and those that were opened in it.
#[inline(always)]
fn close(counters: &mut ProcessCounters, level: i32, time_ns: u64) {
    if counters.phase_depth > PHASE_DEPTH as u64 {
        // Of those that are too deep it is not known which they are.
        counters.phase_depth -= 1;
        return;
    }
    let mut depth = counters.phase_depth;
    let mut found = u64::MAX;
    for _ in 0..PHASE_DEPTH {
        if depth == 0 {
            break;
        }
        depth -= 1;
        if level_of(phase_at(counters, depth)) == level {
            found = depth;
            break;
        }
    }
    if found == u64::MAX {
        return;
    }
    for _ in 0..PHASE_DEPTH {
        if counters.phase_depth <= found {
            break;
        }
        counters.phase_depth -= 1;
        leave(phase_at(counters, counters.phase_depth), time_ns);
    }
    let outer = phase_at(counters, found.wrapping_sub(1));
    counters.current = counters.current & current::OFF | outer & current::PHASE_PLUS_1;
}

/// Number plus one of the phase that is open at this depth; 0: none.
#[inline(always)]
fn phase_at(counters: &mut ProcessCounters, depth: u64) -> u64 {
    remembered(counters, depth).map_or(0, |phase_plus_1| *phase_plus_1)
}

#[inline(always)]
fn remembered(counters: &mut ProcessCounters, depth: u64) -> Option<&mut u64> {
    // Such that the compiler compares the very register that becomes the index.
    let depth = from_here_on(depth) as usize;
    if depth >= PHASE_DEPTH {
        return None;
    }
    // SAFETY: below the array's length.
    Some(unsafe { &mut *(&raw mut counters.open_phases).cast::<u64>().add(depth) })
}

#[inline(always)]
fn level_of(phase_plus_1: u64) -> i32 {
    // SAFETY: map value pointer.
    PHASES.get_ptr((phase_plus_1 as u32).wrapping_sub(1)).map_or(0, |phase| unsafe { (*phase).key.level })
}

#[inline(always)]
fn leave(phase_plus_1: u64, time_ns: u64) {
    let Some(phase) = PHASES.get_ptr_mut((phase_plus_1 as u32).wrapping_sub(1)) else { return };
    // SAFETY: map value pointer.
    let phase = unsafe { &mut *phase };
    if phase.open == 1 {
        phase.time_ns += time_ns - phase.since_ns;
    }
    phase.open = phase.open.saturating_sub(1);
}

/// Gives the phase's number plus one; 0: there is no room.
#[inline(always)]
fn find_or_make(key: &PhaseKey) -> u64 {
    // SAFETY: the value is copied at once.
    if let Some(&number) = unsafe { PHASE_OF.get(key) } {
        return number as u64 + 1;
    }
    let Some(number) = take_number(CONTROL_NEXT_PHASE, mpiprobe_common::PHASE_SLOTS) else { return 0 };
    let Some(phase) = PHASES.get_ptr_mut(number) else { return 0 };
    // SAFETY: map value pointer to an entry that nobody else has.
    unsafe { *phase = Phase { key: *key, opened: 0, open: 0, since_ns: 0, time_ns: 0 } };
    if PHASE_OF.insert(key, number, 0).is_err() {
        return 0;
    }
    number as u64 + 1
}

/// The program need not have given a second argument: then it is whatever the register held. So it is a name only if it can be read as
/// text.
#[inline(always)]
fn read_name(name: &mut [u8; NAME_LENGTH], text: u64) {
    // SAFETY: reads user memory by the helper made for that, into an array of the size given.
    let length = unsafe { bpf_probe_read_user_str(name.as_mut_ptr().cast(), NAME_LENGTH as u32, text as *const _) };
    let mut is_text = length > 1;
    for &byte in name.iter() {
        is_text &= byte == 0 || (byte >= b' ' && byte != 0x7f);
    }
    if !is_text {
        *name = [0; NAME_LENGTH];
    }
}
