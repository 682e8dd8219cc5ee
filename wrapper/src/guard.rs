//! Tables that are cut short by somebody while they are mapped, or cannot be read back from where they are: the next look at them is a
//! SIGBUS, which would kill the program.
//!
//! A file that others can find by its name is what a killed process leaves, on whatever node, so there is one; and who may write to a file
//! may cut it short. So this one signal has a handler of the library's: if the address is in the tables, memory is put in their place, and
//! the program goes on, uncounted. Every other SIGBUS is handed on to whoever handled it before, as if nobody had been there: what
//! was set before is set again, and the instruction that caused it is executed once more.
//!
//! The handler is set when MPI has been initialised, since some MPI libraries set handlers of their own then if nobody else has.

use core::{
    arch::naked_asm,
    cell::UnsafeCell,
    ffi::{c_int, c_void},
    sync::atomic::{AtomicU32, Ordering},
};

use crate::{
    file,
    next::after_this,
    system::{self, Action},
};

/// What was set before.
struct Before(UnsafeCell<Action>);

// SAFETY: written once, before the handler is set that reads it.
unsafe impl Sync for Before {}

static BEFORE: Before = Before(UnsafeCell::new(Action::NONE));

/// How often [`start`] was called without effect; [`DONE`]: there is nothing more to do.
static STATE: AtomicU32 = AtomicU32::new(0);
const DONE: u32 = u32::MAX;
/// Programs that use sessions only never initialise MPI in the other way.
const PATIENCE: u32 = 16;

/// To be called when new functions are called, by a thread that is inside none.
pub(crate) fn start() {
    let state = STATE.load(Ordering::Acquire);
    if state == DONE || !(is_initialised() || state >= PATIENCE) {
        if state < PATIENCE {
            STATE.fetch_add(1, Ordering::Relaxed);
        }
        return;
    }
    if STATE.swap(DONE, Ordering::AcqRel) == DONE {
        return;
    }
    // SAFETY: nobody else writes or reads it yet.
    unsafe {
        let before = BEFORE.0.get();
        // Whoever ignores it could not be told of it.
        if system::action(libc::SIGBUS, None, Some(&mut *before)).is_ok() && (*before).handler != libc::SIG_IGN {
            let flags = (libc::SA_SIGINFO | libc::SA_ONSTACK | SA_RESTORER) as u64;
            let new =
                Action { handler: handle as *const () as usize, flags, restorer: back as *const () as usize, mask: 0 };
            let _ = system::action(libc::SIGBUS, Some(&new), None);
        }
    }
}

/// x86-64 has no other way back.
const SA_RESTORER: i32 = 0x0400_0000;

#[unsafe(naked)]
unsafe extern "C" fn back() {
    naked_asm!("mov eax, 15", "syscall")
}

unsafe extern "C" fn handle(signal: c_int, information: *mut libc::siginfo_t, _context: *mut c_void) {
    // SAFETY: what the kernel passes to handlers; `si_addr` means something for signals that the kernel has made.
    unsafe {
        let is_fault = (*information).si_code > 0;
        if is_fault && file::replace_by_memory((*information).si_addr() as u64) {
            system::print(
                b"mpiprobe: the tables of this process were cut short or cannot be read: it is not counted any more\n",
            );
            return;
        }
        let _ = system::action(libc::SIGBUS, Some(&*BEFORE.0.get()), None);
        if !is_fault {
            system::signal_again(signal, information);
        }
    }
}

fn is_initialised() -> bool {
    let Some(function) = after_this(c"PMPI_Initialized") else { return false };
    let mut flag = 0;
    // SAFETY: the function has this type, and may be called at any time.
    unsafe {
        let ask: unsafe extern "C" fn(*mut c_int) -> c_int = core::mem::transmute(function);
        ask(&raw mut flag) == 0 && flag != 0
    }
}
