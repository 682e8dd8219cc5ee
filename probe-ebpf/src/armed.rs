//! Return probes that are armed in the current thread, whoever has asked for them: other observers of the same call or of one around it,
//! or of functions of the program that have nothing to do with MPI.
//!
//! The kernel keeps them in the order of the stack. Arming one drops those armed below it, because it takes what is below for left; if
//! that was another stack, whoever returns there is killed.

use aya_ebpf::helpers::generated::{bpf_get_current_task, bpf_get_current_task_btf};

use crate::{call::may_return_to_kernel, maps::configured, open_calls::word};

/// Return probes on other stacks that are looked at: more are taken for one that lives.
const MOST_LOOKED_AT: usize = 8;

/// Whether a return probe armed at a stack pointer would drop one whose function may still return.
#[inline(always)]
pub fn is_in_the_way(stack_pointer: u64) -> bool {
    let offsets = configured::open_calls();
    // Where the kernel's types do not tell, kernels do not ask before they arm.
    if offsets.task_utask == 0 {
        return false;
    }
    // Without a helper but for the thread itself, because this is asked at each call: the verifier knows the types, and whatever
    // cannot be read is 0.
    // SAFETY: fields of the kernel's structures, at the offsets that its own types tell.
    let latest = unsafe {
        let task = bpf_get_current_task_btf().cast::<u8>().cast_const();
        let utask = task.add(offsets.task_utask as usize).cast::<*const u8>().read_volatile();
        utask.add(offsets.utask_return_instances as usize).cast::<u64>().read_volatile()
    };
    latest != 0 && would_drop(stack_pointer) != 0
}

/// The same if there are any: 1, else 0.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn would_drop(stack_pointer: u64) -> u32 {
    let offsets = configured::open_calls();
    // SAFETY: takes no arguments.
    let task = unsafe { bpf_get_current_task() };
    let mut instance = word(word(task, offsets.task_utask), offsets.utask_return_instances);
    for _ in 0..MOST_LOOKED_AT {
        if instance == 0 {
            return 0;
        }
        let at = word(instance, offsets.instance_stack);
        // That of the call around this one, or of one that has jumped here; and so are all that come after.
        if at >= stack_pointer {
            return 0;
        }
        // If what was there has been overwritten, the function was left by other ways than a return.
        if may_return_to_kernel(at) {
            return 1;
        }
        instance = word(instance, offsets.instance_next);
    }
    1
}
