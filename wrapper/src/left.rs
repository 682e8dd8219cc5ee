//! Calls that never return: an error handler or another callback leaves them by `longjmp` or an exception, or the program goes on on
//! another stack and never comes back. What is called later is not inside them.
//!
//! Who leaves is told at once: `longjmp` is looked at before it happens, and says in its buffer where it leads to; unwinding asks every
//! frame that it passes, also the trampolines. What is left in another way is noticed at the next call, as far as that can be known: the
//! trampoline's frame is still what it was, as long as nobody has written over it.

use core::{
    arch::{asm, global_asm, naked_asm},
    ffi::{c_int, c_void},
    ptr,
    sync::atomic::{AtomicPtr, AtomicU64, Ordering},
};

use mpiprobe_common::OpenCall;

use crate::{call, entry, imports, local, system};

/// The first thread's stack ends here.
static STACK_END: AtomicU64 = AtomicU64::new(0);
/// So far below there is nothing else, whatever else the kernel has put where.
const STACK: u64 = 128 << 20;

/// To be called once, when this library has been loaded, by the first thread.
pub(crate) fn start() {
    for jump in Jump::ALL {
        next(jump);
    }
    imports::forget_error();
    let here = 0u8;
    let here = &raw const here as u64;
    // The environment is above all frames.
    let end = imports::environment() as u64;
    let is_above = end.checked_sub(here).is_some_and(|distance| distance < STACK);
    STACK_END.store(if is_above { end } else { here }, Ordering::Release);
}

fn is_on_first_stack(address: u64) -> bool {
    STACK_END.load(Ordering::Acquire).checked_sub(address).is_some_and(|distance| (1..STACK).contains(&distance))
}

/// Whether an open call has been left, as the next call sees it, whose return address is at `now`.
///
/// Where it is says nothing: a callback may run on a stack of its own, which may be anywhere, also in the frame of a caller.
pub(crate) fn is_left(open: &OpenCall, now: u64) -> bool {
    let then = open.stack_pointer;
    if now == then {
        return true;
    }
    let (place, back) = entry::back(then, open.function_plus_1.wrapping_sub(1));
    let start = entry::start(then);
    if is_on_first_stack(then) {
        // SAFETY: that stack stays as large as it was once.
        let read = |place: u64| unsafe { (place as *const u64).read_volatile() };
        return !is_open(open, [read(place), read(start)], back);
    }
    if now < then {
        return false;
    }
    // The other stack may be gone; then the call is, too.
    let from = [place, start].map(|at| libc::iovec { iov_base: at as *mut c_void, iov_len: size_of::<u64>() });
    let mut words = [0u8; 2 * size_of::<u64>()];
    if system::read_memory(&from, &mut words) != Ok(words.len()) {
        return true;
    }
    let [address, started] = words.as_chunks().0 else { return true };
    !is_open(open, [u64::from_ne_bytes(*address), u64::from_ne_bytes(*started)], back)
}

/// Whether a frame is the open call's still: its return address and the time at which it began are where they were.
///
/// Who looks at returns by the kernel's return probes beside the wrapper has put the kernel's address in the place of `back`. That is above
/// the first thread's stack, where there is no other code but the kernel's.
fn is_open(open: &OpenCall, [address, started_ns]: [u64; 2], back: u64) -> bool {
    started_ns == open.started_ns && (address == back || address > STACK_END.load(Ordering::Acquire))
}

global_asm!(
    ".section .text.mpiprobe_unwound, \"ax\", @progbits",
    ".globl mpiprobe_unwound",
    ".hidden mpiprobe_unwound",
    ".type mpiprobe_unwound, @function",
    "mpiprobe_unwound:",
    "jmp {unwound}",
    ".size mpiprobe_unwound, . - mpiprobe_unwound",
    ".text",
    unwound = sym unwound,
);

/// What unwinding calls with each frame of a trampoline: a personality routine.
unsafe extern "C" fn unwound(
    _version: c_int,
    actions: c_int,
    _class: u64,
    _exception: *mut c_void,
    _context: *mut c_void,
) -> c_int {
    /// The frame is being left, not only looked at.
    const CLEANUP: c_int = 2;
    const GO_ON: c_int = 8;
    if actions & CLEANUP != 0 {
        give_up(|_| true);
    }
    GO_ON
}

/// Gives up the thread's open call if it is such a one, given by its stack pointer.
fn give_up(is_left: impl FnOnce(u64) -> bool) {
    let local = local::get();
    // SAFETY: the thread's own.
    unsafe {
        if local.is_null() {
            return;
        }
        let open = (*(*local).state).open;
        if open.function_plus_1 != 0 && is_left(open.stack_pointer) {
            call::give_up(local);
        }
    }
}

/// The functions that leave, in the order of [`Jump`].
static NEXT: [AtomicPtr<c_void>; 4] = [const { AtomicPtr::new(ptr::null_mut()) }; 4];

#[derive(Clone, Copy)]
#[repr(u32)]
enum Jump {
    Plain,
    Underlined,
    WithSignals,
    Checked,
}

impl Jump {
    const ALL: [Self; 4] = [Self::Plain, Self::Underlined, Self::WithSignals, Self::Checked];

    fn new(number: u32) -> Self {
        match number {
            1 => Self::Underlined,
            2 => Self::WithSignals,
            3 => Self::Checked,
            _ => Self::Plain,
        }
    }
}

/// The next definition. Found when the library is loaded: later it may be a signal handler that leaves.
fn next(jump: Jump) -> *mut c_void {
    let name = match jump {
        Jump::Plain => c"longjmp",
        Jump::Underlined => c"_longjmp",
        Jump::WithSignals => c"siglongjmp",
        Jump::Checked => c"__longjmp_chk",
    };
    let Some(place) = NEXT.get(jump as usize) else { return ptr::null_mut() };
    let mut next = place.load(Ordering::Acquire);
    if next.is_null() {
        // SAFETY: a handle that stands for what comes after this library.
        next = unsafe { imports::dlsym(libc::RTLD_NEXT, name) };
        place.store(next, Ordering::Release);
    }
    next
}

/// Something is about to be left. Gives the function that does it.
unsafe extern "C" fn look(buffer: *const u64, number: u32) -> *mut c_void {
    if !local::get().is_null() {
        // SAFETY: by contract of `longjmp`, whose buffers have more words than these.
        let kept = unsafe { buffer.add(STACK_POINTER).read() };
        let here = 0u8;
        if let Some(target) = target(kept, &raw const here as u64) {
            give_up(|stack_pointer| target > stack_pointer);
        }
    }
    let found = next(Jump::new(number));
    if found.is_null() { nowhere as *const () as *mut c_void } else { found }
}

/// The stack pointer is the seventh word of a buffer in glibc and in musl.
const STACK_POINTER: usize = 6;

/// Where the stack pointer will be. glibc keeps it mangled; a C library of which nothing is known may keep something else there.
fn target(kept: u64, here: u64) -> Option<u64> {
    let guard: u64;
    // SAFETY: a word of what every thread's segment register leads to: the guard of glibc, or whatever other libraries have there.
    unsafe { asm!("mov {}, fs:[0x30]", out(reg) guard, options(nostack, readonly, preserves_flags)) };
    // It leads up the stack, but not out of it.
    let is_likely = |target: &u64| target.is_multiple_of(8) && target.checked_sub(here).is_some_and(|up| up < 1 << 32);
    [kept, kept.rotate_right(17) ^ guard].into_iter().find(is_likely)
}

/// No C library has lost a function that the program was linked with.
extern "C" fn nowhere(_buffer: *mut c_void, _value: c_int) {
    system::exit(127)
}

mod exported {
    #![allow(unreachable_pub, reason = "they are reached by the linker")]

    use super::{c_int, c_void, look, naked_asm};

    macro_rules! jumps {
        ($($name:ident $number:literal;)*) => {$(
            /// `void longjmp(jmp_buf buffer, int value)`, under this name.
            ///
            /// # Safety
            /// As the C library's.
            #[unsafe(naked)]
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name(buffer: *mut c_void, value: c_int) {
                naked_asm!(
                    ".cfi_startproc",
                    "push rdi",
                    ".cfi_adjust_cfa_offset 8",
                    "push rsi",
                    ".cfi_adjust_cfa_offset 8",
                    "sub rsp, 8",
                    ".cfi_adjust_cfa_offset 8",
                    "mov esi, {number}",
                    "call {look}",
                    "add rsp, 8",
                    ".cfi_adjust_cfa_offset -8",
                    "pop rsi",
                    ".cfi_adjust_cfa_offset -8",
                    "pop rdi",
                    ".cfi_adjust_cfa_offset -8",
                    "jmp rax",
                    ".cfi_endproc",
                    number = const $number,
                    look = sym look,
                )
            }
        )*};
    }

    jumps! {
        longjmp 0;
        _longjmp 1;
        siglongjmp 2;
        __longjmp_chk 3;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jump_leads_to_where_the_stack_was() {
        unsafe extern "C" {
            fn _setjmp(buffer: *mut u64) -> c_int;
        }
        let mut buffer = [0u64; 32];
        let here = &raw const buffer as u64;
        // SAFETY: a buffer that is large enough; nobody jumps.
        assert_eq!(unsafe { _setjmp(buffer.as_mut_ptr()) }, 0);
        let found = target(buffer[STACK_POINTER], here - 65536).unwrap();
        assert!(found.abs_diff(here) < 65536, "{found:x} {here:x}");
    }
}
