//! The arguments of a call, as they were at its entry.

use core::{ffi::c_void, mem::MaybeUninit};

use aya_ebpf::helpers::generated::bpf_probe_read_user;
use mpiprobe_common::{
    Cookie, Descriptor, Layout, Loss, ThreadState,
    layout::Memory,
    rules::{self, call::Arguments},
    thread::{ARGUMENT_WORDS, REGISTER_ARGUMENTS},
};

use super::user::User;
use crate::{registers::RETURN_ADDRESS_BYTES, statistics::count_loss};

/// Most arguments that a function of MPI has on the stack.
const STACK_ARGUMENTS: usize = 7;

/// Reads the arguments that are not in registers; whether they are known now.
#[inline(always)]
pub fn read_stack(thread: &mut ThreadState, cookie: Cookie, stack_pointer: u64) -> bool {
    let count = cookie.stack_arguments();
    if count == 0 {
        return true;
    }
    let from = (stack_pointer + RETURN_ADDRESS_BYTES) as *const _;
    // Most have one only. Not straight into the thread's state, see `call::read_return_address`.
    let is_read = if count == 1 {
        let mut word = 0u64;
        // SAFETY: reads user memory by the helper made for that, into a local of the size given.
        let result = unsafe { bpf_probe_read_user((&raw mut word).cast(), 8, from) };
        thread.arguments[REGISTER_ARGUMENTS] = word;
        result == 0
    } else {
        read_words(thread, from)
    };
    if !is_read {
        count_loss(thread.process, Loss::StackUnreadable);
    }
    is_read
}

/// As many as any function has. Further words than this one has arguments are there too: the frame of the caller.
#[inline(always)]
fn read_words(thread: &mut ThreadState, from: *const c_void) -> bool {
    // Not zeroed: the compiler would do that by a loop over bytes.
    let mut words = MaybeUninit::<[u64; STACK_ARGUMENTS]>::uninit();
    // SAFETY: as above. The helper fills all of it, with zeros if it cannot read.
    let (result, words) = unsafe {
        let size = size_of::<[u64; STACK_ARGUMENTS]>() as u32;
        (bpf_probe_read_user(words.as_mut_ptr().cast(), size, from), words.assume_init())
    };
    for (to, from) in thread.arguments.iter_mut().skip(REGISTER_ARGUMENTS).zip(words) {
        *to = from;
    }
    result == 0
}

/// A thread's arguments, and the memory of the process that it is of.
#[derive(Clone, Copy)]
pub struct Words(*const u64);

impl Memory for Words {
    #[inline(always)]
    fn word(&self, address: u64) -> Option<u64> {
        User.word(address)
    }

    #[inline(always)]
    fn integer(&self, address: u64, width: u32) -> Option<u64> {
        User.integer(address, width)
    }
}

impl Arguments for Words {
    #[inline(always)]
    fn argument(&self, position: u8) -> u64 {
        word(self.0, position)
    }
}

/// A call as the rules see it.
pub type Call<'a> = rules::call::Call<'a, Words>;

/// The thread's call.
#[inline(always)]
pub fn call<'a>(thread: &ThreadState, descriptor: &'a Descriptor, layout: &'a Layout) -> Call<'a> {
    Call { descriptor, layout, arguments: Words(thread.arguments.as_ptr()) }
}

/// The argument at a position, of `words`, a thread's.
#[inline(always)]
pub fn word(words: *const u64, position: u8) -> u64 {
    let index = position as usize & (ARGUMENT_WORDS - 1);
    // SAFETY: the mask keeps the index within the array, whose length is a power of two.
    unsafe { *words.add(index) }
}
