//! Atomic operations on words of map values.
//!
//! `core::sync::atomic` has none for this target: its baseline is the first BPF instruction set, which cannot compare and
//! swap. The programs are built for the third (kernel 5.12), so the instructions are there and are written out here.

use core::arch::asm;

/// How often a maximum is tried to be raised against other threads of the process that raise it at the same time.
const RAISE_ATTEMPTS: u32 = 8;

/// Adds.
///
/// # Safety
/// `word` must point into a live map value and be aligned.
#[inline(always)]
pub unsafe fn add(word: *mut u64, value: u64) {
    // SAFETY: by contract; the instruction touches nothing but the word.
    unsafe { asm!("lock *(u64 *)({word} + 0) += {value}", word = in(reg) word, value = in(reg) value) };
}

/// Adds and gives the value before.
///
/// # Safety
/// As [`add`].
#[inline(always)]
pub unsafe fn fetch_add(word: *mut u64, value: u64) -> u64 {
    let mut before = value;
    // SAFETY: as in `add`.
    unsafe { asm!("{before} = atomic_fetch_add((u64 *)({word} + 0), {before})", word = in(reg) word, before = inout(reg) before) };
    before
}

/// Replaces `expected` by `new`; gives the value before, which is `expected` if and only if it was replaced.
///
/// # Safety
/// As [`add`].
#[inline(always)]
pub unsafe fn compare_exchange(word: *mut u64, expected: u64, new: u64) -> u64 {
    let mut before = expected;
    // SAFETY: as in `add`; the instruction compares with and answers in register 0.
    unsafe { asm!("r0 = cmpxchg_64({word} + 0, r0, {new})", word = in(reg) word, new = in(reg) new, inout("r0") before) };
    before
}

/// What is written before is written before what is written after: to the compiler; the processor keeps the order anyway.
#[inline(always)]
pub fn barrier() {
    // SAFETY: no instruction at all.
    unsafe { asm!("", options(nostack, preserves_flags)) };
}

/// The same value, of which the compiler does not know that: what is made of it is computed from here on, not before.
#[inline(always)]
pub fn from_here_on(value: u64) -> u64 {
    let mut value = value;
    // SAFETY: no instruction at all.
    unsafe { asm!("/* {0} */", inout(reg) value, options(nostack, preserves_flags)) };
    value
}

/// Reads once.
///
/// # Safety
/// As [`add`].
#[inline(always)]
pub unsafe fn load(word: *const u64) -> u64 {
    // SAFETY: by contract.
    unsafe { core::ptr::read_volatile(word) }
}

/// Raises a maximum.
///
/// # Safety
/// `word` must point into a live map value.
#[inline(always)]
pub unsafe fn raise(word: *mut u64, value: u64) {
    // SAFETY: by contract.
    let mut known = unsafe { load(word) };
    for _ in 0..RAISE_ATTEMPTS {
        if known >= value {
            return;
        }
        // SAFETY: by contract.
        let before = unsafe { compare_exchange(word, known, value) };
        if before == known {
            return;
        }
        known = before;
    }
}
