//! Calls that had begun when the observation of their process did. No probe has seen them begin: the daemon finds them on their threads'
//! stacks, and has the place probed that each returns to. Until then all that the thread calls is inside, wherever it is called from.

use aya_ebpf::{
    EbpfContext,
    helpers::{bpf_ktime_get_ns, generated::bpf_probe_read_user},
};
use mpiprobe_common::{ThreadState, trampoline::is_return_trampoline};

use crate::{
    apart::given,
    current,
    maps::{EARLIER_CALLS, EARLIER_RETURNS},
    registers::{RETURN_ADDRESS_BYTES, Registers},
};

/// A place is reached that a call of somebody returns to: of the current thread only if its stack is as that call leaves it. Inside the
/// call the same place may be reached again and again, with more on the stack.
#[inline(always)]
pub fn note_return(context: &impl EbpfContext) {
    let (id, registers) = (current::id(), Registers::of(context.as_ptr()));
    // SAFETY: the fields are copied at once; the daemon replaces the value as a whole.
    let Some(call) = (unsafe { EARLIER_CALLS.get(id) }).copied() else { return };
    if registers.instruction_pointer() != call.return_address
        || registers.stack_pointer().wrapping_sub(RETURN_ADDRESS_BYTES) != call.return_slot
    {
        return;
    }
    let Some(returned_ns) = EARLIER_RETURNS.get_ptr_mut(id) else { return };
    // SAFETY: map value pointer that only this thread writes to, and a helper without arguments.
    unsafe {
        // The first time counts: from then on the place may be reached by calls that were seen.
        if *returned_ns == 0 {
            *returned_ns = bpf_ktime_get_ns();
        }
    }
}

/// Whether a thread that has completed no call since it is observed is inside one that had begun before: 1, else 0. To be asked with the
/// stack pointer at the entry of a function.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn is_inside_earlier_call(thread: *const ThreadState, stack_pointer: u64) -> u32 {
    given!(thread);
    let id = thread.id;
    // SAFETY: as above.
    let Some(call) = (unsafe { EARLIER_CALLS.get(id) }).copied() else { return 0 };
    // SAFETY: the word is copied at once; only this thread writes it.
    let Some(returned_ns) = (unsafe { EARLIER_RETURNS.get(id) }).copied() else { return 0 };
    // Not below it: the call was left without a return, or this is another stack, of which nothing is known.
    if call.is_confirmed == 0 || returned_ns != 0 || stack_pointer >= call.return_slot {
        return 0;
    }
    let mut address = 0u64;
    // SAFETY: reads user memory by the helper made for that, into a local of the size given.
    let failed = unsafe { bpf_probe_read_user((&raw mut address).cast(), 8, call.return_slot as *const _) } != 0;
    // A frame that was left, by `longjmp` or an exception, is overwritten sooner or later; one that lives has its return address, or in
    // its place the kernel's trampoline, if another observer has seen the call begin.
    (failed || address == call.return_address || is_return_trampoline(address)) as u32
}

/// A thread ends.
#[inline(always)]
pub fn forget(id: u64) {
    // Hardly any has an entry.
    let _ = EARLIER_CALLS.remove(id);
}
