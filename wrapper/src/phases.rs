//! What the program asks for by `MPI_Pcontrol`: counting on and off, results written out, phases.

use core::{
    ffi::{CStr, c_int, c_void},
    sync::atomic::{AtomicU32, AtomicU64, Ordering},
};

use mpiprobe_common::{
    Loss, Phase, PhaseKey,
    file::{CallsOff, OFF_REGION, PHASES, PHASES_REGION},
    phase::{self, NAME_LENGTH, Phases, current as bits},
};

use crate::{
    clock::monotonic_ns,
    entry::{CONTROL_FUNCTION, Frame},
    environment, file, imports, process, system,
    thread::Local,
};

/// Set by whoever wants everything to be counted, whatever the program says.
const IGNORE_VARIABLE: &CStr = c"MPIPROBE_IGNORE_PCONTROL";

/// What calls are counted as now: `current` of the counters, in the wrapper's own memory.
static CURRENT: AtomicU64 = AtomicU64::new(0);
/// Function id of `MPI_Pcontrol` plus one; 0: it means nothing.
static CONTROL_PLUS_1: AtomicU32 = AtomicU32::new(0);
/// Phases in the table.
static USED: AtomicU32 = AtomicU32::new(0);

/// To be called once, when the library has been loaded.
pub(crate) fn start() {
    if environment::get(IGNORE_VARIABLE).is_none_or(CStr::is_empty) {
        CONTROL_PLUS_1.store(CONTROL_FUNCTION + 1, Ordering::Release);
    }
}

/// Whether a function is the one that programs control counting by, and they may.
#[inline]
pub(crate) fn is_control(function: u32) -> bool {
    CONTROL_PLUS_1.load(Ordering::Relaxed) == function + 1
}

/// Number plus one of the innermost open phase; 0: none.
#[inline]
pub(crate) fn current() -> u32 {
    CURRENT.load(Ordering::Relaxed) as u32
}

/// What calls are counted as now: bits of [`mpiprobe_common::phase::current`].
pub(crate) fn now() -> u64 {
    CURRENT.load(Ordering::Relaxed)
}

/// Whether calls are not counted.
#[inline]
pub(crate) fn is_off() -> bool {
    CURRENT.load(Ordering::Relaxed) & bits::OFF != 0
}

/// Counts a call that is not to be observed.
#[inline]
pub(crate) unsafe fn count_off(local: *mut Local) {
    // SAFETY: the thread's own, in the file.
    unsafe {
        if !(*local).off.is_null() {
            (*(*local).off).calls += 1;
        }
    }
}

/// Where the calls of a thread slot are counted while counting is off.
pub(crate) fn place_of_off(slot: u32) -> *mut CallsOff {
    file::place(OFF_REGION, slot).map_or(core::ptr::null_mut(), core::ptr::NonNull::as_ptr)
}

/// `MPI_Pcontrol` has returned.
#[cold]
pub(crate) unsafe fn control(frame: *mut Frame) {
    let Some(counters) = process::counters() else { return };
    // SAFETY: the trampoline's frame.
    let arguments = unsafe { (*frame).arguments };
    // SAFETY: mapped counters. Threads that call this at once leave one of their wishes; every index is checked.
    let counters = unsafe { &mut *counters.as_ptr() };
    phase::control(&mut OfThisProcess { text: arguments[1] }, counters, arguments[0] as i32, monotonic_ns());
    CURRENT.store(counters.current, Ordering::Release);
}

/// Nothing that the parent has asked for holds in a forked child.
pub(crate) fn forget() {
    CURRENT.store(0, Ordering::Release);
}

/// As a call sees them that was given `text` as its second argument.
struct OfThisProcess {
    text: u64,
}

impl Phases for OfThisProcess {
    fn find_or_make(&mut self, level: i32) -> u64 {
        let mut key = PhaseKey::new(0, level);
        read_name(&mut key.name, self.text);
        let used = USED.load(Ordering::Acquire);
        let is_it = |index: &u32| entry(*index).is_some_and(|known| known.key == key);
        if let Some(index) = (0..used).find(is_it) {
            return u64::from(index) + 1;
        }
        if used >= PHASES {
            return 0;
        }
        let Some(place) = file::place(PHASES_REGION, used) else { return 0 };
        // SAFETY: an entry that nobody else has, unless threads are here at once, which then have one of their phases.
        unsafe { place.as_ptr().write(Phase { key, opened: 0, open: 0, since_ns: 0, time_ns: 0 }) };
        USED.store(used + 1, Ordering::Release);
        u64::from(used) + 1
    }

    fn get(&mut self, phase_plus_1: u64) -> Option<&mut Phase> {
        entry((phase_plus_1 as u32).checked_sub(1)?)
    }

    fn count_loss(&mut self) {
        process::count_loss(Loss::PhaseTableFull);
    }

    /// Whoever watches sees it by the time of the last wish.
    fn notify(&mut self) {}
}

fn entry<'a>(index: u32) -> Option<&'a mut Phase> {
    // SAFETY: an entry of the file; used within one call.
    file::place(PHASES_REGION, index).map(|place| unsafe { &mut *place.as_ptr() })
}

/// What is in a file that is loaded, as literals are, is read without asking anybody: the program may have confined itself. `None`: it is
/// elsewhere.
fn read_known(name: &mut [u8; NAME_LENGTH], text: u64) -> Option<usize> {
    /// Address, and then the end of the readable memory around it.
    type Search = [u64; 2];
    unsafe extern "C" fn look(object: *mut libc::dl_phdr_info, _size: usize, search: *mut c_void) -> c_int {
        // SAFETY: by contract of `dl_iterate_phdr`, and of the caller.
        unsafe {
            let search = &mut *search.cast::<Search>();
            for index in 0..usize::from((*object).dlpi_phnum) {
                let part = (*object).dlpi_phdr.add(index).read();
                let start = (*object).dlpi_addr.wrapping_add(part.p_vaddr);
                let inside = search[0].wrapping_sub(start) < part.p_memsz;
                if part.p_type == libc::PT_LOAD && part.p_flags & libc::PF_R != 0 && inside {
                    search[1] = start.wrapping_add(part.p_memsz);
                    return 1;
                }
            }
        }
        0
    }
    let mut search: Search = [text, 0];
    imports::each_object(look, (&raw mut search).cast());
    let length = usize::try_from(search[1].checked_sub(text)?).ok()?;
    let length = if length < NAME_LENGTH { length } else { NAME_LENGTH };
    for (offset, to) in name.iter_mut().take(length).enumerate() {
        // SAFETY: a readable part of a loaded file.
        *to = unsafe { (text as *const u8).add(offset).read_volatile() };
    }
    Some(length)
}

/// The program need not have given a second argument: then it is whatever the register held. So the kernel is asked to read it, which
/// refuses what is no address; and it is a name only if it is text.
fn read_name(name: &mut [u8; NAME_LENGTH], text: u64) {
    const PAGE: u64 = 4096;
    let in_page = PAGE - text % PAGE;
    let first = if in_page < NAME_LENGTH as u64 { in_page as usize } else { NAME_LENGTH };
    let from = |start: u64, length: usize| libc::iovec { iov_base: start as *mut c_void, iov_len: length };
    // The next page may not be there.
    let remote = [from(text, first), from(text.wrapping_add(first as u64), NAME_LENGTH - first)];
    let length = read_known(name, text).unwrap_or_else(|| system::read_memory(&remote, name).unwrap_or(0));
    let end = name.iter().take(length).position(|&byte| byte == 0);
    // Longer names are cut; one that could not be read to its end is none.
    let end = match end {
        Some(end) => end,
        None if length == NAME_LENGTH => NAME_LENGTH - 1,
        None => 0,
    };
    let is_text = name.iter().take(end).all(|&byte| byte >= b' ' && byte != 0x7f);
    for byte in name.iter_mut().skip(if is_text { end } else { 0 }) {
        *byte = 0;
    }
}
