//! The arguments of a call, as they were at its entry.

use core::{ffi::c_void, mem::MaybeUninit};

use aya_ebpf::helpers::generated::bpf_probe_read_user;
use mpiprobe_common::{
    Cookie, Layout, Loss, ThreadState,
    thread::{ARGUMENT_WORDS, REGISTER_ARGUMENTS},
};

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

#[derive(Clone, Copy)]
pub struct Arguments<'a> {
    pub words: *const u64,
    pub layout: &'a Layout,
}

impl<'a> Arguments<'a> {
    #[inline(always)]
    pub fn of(thread: &ThreadState, layout: &'a Layout) -> Self {
        Self { words: thread.arguments.as_ptr(), layout }
    }

    /// The argument at a position, as it was passed; for a position beyond all, any.
    #[inline(always)]
    pub fn word(&self, position: u8) -> u64 {
        word(self.words, position)
    }

    #[inline(always)]
    pub fn int(&self, position: u8) -> i32 {
        self.word(position) as i32
    }

    #[inline(always)]
    pub fn handle(&self, position: u8) -> u64 {
        self.layout.handle(self.word(position))
    }
}

/// The same of `words`, a thread's.
#[inline(always)]
pub fn word(words: *const u64, position: u8) -> u64 {
    let index = position as usize & (ARGUMENT_WORDS - 1);
    // SAFETY: the mask keeps the index within the array, whose length is a power of two.
    unsafe { *words.add(index) }
}
