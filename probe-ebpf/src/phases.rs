//! What the program asks for by `MPI_Pcontrol`: counting on and off, results written out, phases.

use aya_ebpf::{EbpfContext as _, programs::ProbeContext};
use aya_ebpf::helpers::{
    bpf_ktime_get_ns,
    generated::{bpf_copy_from_user, bpf_probe_read_user_str},
};
use mpiprobe_common::{
    Loss, Phase, PhaseKey, ProcessCounters,
    tables::Word,
    event::EventKind,
    phase::{self, NAME_LENGTH, Phases, current, level},
};

use crate::{
    apart::given,
    atomic::{add, from_here_on, load},
    call::target,
    lifecycle::{event, notify},
    maps::{PHASE_OF, PHASES, configured},
    registers::Registers,
    statistics::{count_loss, process_counters, take_number},
};

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

/// Which calls of a process are counted at their entry alone: bits of [`mpiprobe_common::process::entries_only`].
#[inline(always)]
pub fn entries_only(process: u32) -> u64 {
    // SAFETY: map value pointer.
    process_counters(process).map_or(0, |counters| unsafe { load(&raw const (*counters).entries_only) })
}

/// The row in the index of statistics that calls of a process are counted in now.
#[inline(always)]
pub fn row(process: u32) -> u32 {
    match (now(process) & current::PHASE_PLUS_1) as u32 {
        0 => process,
        phase_plus_1 => configured::process_slots() + phase_plus_1 - 1,
    }
}

/// What calls of a process are counted as now: bits of [`current`].
#[inline(always)]
pub fn now(process: u32) -> u64 {
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

/// The phases of a process, as a call that was given `text` as its second argument sees them.
struct OfProcess {
    process: u32,
    text: u64,
}

impl Phases for OfProcess {
    #[inline(always)]
    fn find_or_make(&mut self, level: i32) -> u64 {
        find_or_make_phase(self.process, level, self.text)
    }

    #[inline(always)]
    fn find_open(&mut self, counters: &mut ProcessCounters, level: i32) -> u64 {
        find_open_phase(counters, level)
    }

    #[inline(always)]
    fn get(&mut self, phase_plus_1: u64) -> Option<&mut Phase> {
        // SAFETY: map value pointer.
        PHASES.get_ptr_mut((phase_plus_1 as u32).wrapping_sub(1)).map(|phase| unsafe { &mut *phase })
    }

    #[inline(always)]
    fn count_loss(&mut self) {
        count_loss(self.process, Loss::PhaseTableFull);
    }

    #[inline(always)]
    fn notify(&mut self) {
        notify(&event(EventKind::Flush, crate::current::id(), self.process));
    }

    #[inline(always)]
    fn settled(number: u64) -> u64 {
        from_here_on(number)
    }
}

/// Does what a call with these arguments asks for. Answers 0.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn control_phases(process: u32, asked: u32, text: u64) -> u32 {
    let Some(counters) = process_counters(process) else { return 0 };
    // SAFETY: map value pointer.
    let counters = unsafe { &mut *counters };
    // SAFETY: takes no arguments.
    let time_ns = unsafe { bpf_ktime_get_ns() };
    phase::control(&mut OfProcess { process, text }, counters, asked as i32, time_ns);
    0
}

/// At which depth the innermost open phase of this level is; `u64::MAX`: there is none.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn find_open_phase(counters: *mut ProcessCounters, level: i32) -> u64 {
    given!(counters);
    phase::find_open(&mut OfProcess { process: 0, text: 0 }, counters, level)
}

/// A phase is about to be opened: has what its name is on brought into memory, where it can be read when the call returns. Of a text
/// that nobody has looked at yet, as that of a literal, the page is still in its file. Only in a program that may sleep.
#[inline(always)]
pub fn make_resident(context: &ProbeContext) {
    let arguments = Registers::of(context.as_ptr()).arguments();
    if arguments[0] as i32 <= level::FLUSH || target(crate::current::id()).is_none() {
        return;
    }
    let mut byte = 0u8;
    for place in [arguments[1], arguments[1].wrapping_add(NAME_LENGTH as u64 - 1)] {
        // SAFETY: reads user memory by the helper made for that, into a local of the size given. What there is does not matter.
        unsafe { bpf_copy_from_user((&raw mut byte).cast(), 1, place as *const _) };
    }
}

/// Gives the phase's number plus one; 0: there is no room.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn find_or_make_phase(process: u32, level: i32, text: u64) -> u64 {
    let mut key = PhaseKey::new(process, level);
    read_name(&mut key.name, text);
    // SAFETY: the value is copied at once.
    if let Some(&number) = unsafe { PHASE_OF.get(&key) } {
        return number as u64 + 1;
    }
    let Some(number) = take_number(Word::NextPhase, configured::phase_slots()) else { return 0 };
    let Some(phase) = PHASES.get_ptr_mut(number) else { return 0 };
    // SAFETY: map value pointer to an entry that nobody else has.
    unsafe { *phase = Phase { key, opened: 0, open: 0, since_ns: 0, time_ns: 0 } };
    if PHASE_OF.insert(&key, number, 0).is_err() {
        return 0;
    }
    number as u64 + 1
}

/// Not 0: a byte that is not in any text, nor at its end.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn is_no_text(byte: u32) -> u32 {
    (byte != 0 && byte < 0x20 || byte == 0x7f) as u32
}

/// The program need not have given a second argument: then it is whatever the register held. So it is a name only if it can be read as
/// text.
#[inline(always)]
fn read_name(name: &mut [u8; NAME_LENGTH], text: u64) {
    // SAFETY: reads user memory by the helper made for that, into an array of the size given.
    let length = unsafe { bpf_probe_read_user_str(name.as_mut_ptr().cast(), NAME_LENGTH as u32, text as *const _) };
    let mut others = (length <= 1) as u32;
    for &byte in name.iter() {
        others += is_no_text(byte.into());
    }
    if others != 0 {
        *name = [0; NAME_LENGTH];
    }
}
