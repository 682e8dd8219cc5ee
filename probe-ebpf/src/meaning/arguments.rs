//! The arguments of a call, as they were at its entry.

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
    // Not straight into the thread's state, see `call::read_return_address`.
    let mut words = [0u64; STACK_ARGUMENTS];
    let from = (stack_pointer + RETURN_ADDRESS_BYTES) as *const _;
    // Most have one only. Further words than the function has arguments are there too: the frame of the caller.
    // SAFETY: reads user memory by the helper made for that, into a local of at least the size given.
    let result = unsafe {
        if count == 1 {
            bpf_probe_read_user(words.as_mut_ptr().cast(), 8, from)
        } else {
            bpf_probe_read_user(words.as_mut_ptr().cast(), size_of::<[u64; STACK_ARGUMENTS]>() as u32, from)
        }
    };
    if result != 0 {
        count_loss(thread.process, Loss::StackUnreadable);
    }
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
        let index = position as usize & (ARGUMENT_WORDS - 1);
        // SAFETY: the mask keeps the index within the array, whose length is a power of two.
        unsafe { *self.words.add(index) }
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
