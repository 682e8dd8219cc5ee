//! Arrays of counts, a part at a time: in memory that all parts share, so that the verifier has little to keep in mind.

use aya_ebpf::{EbpfContext, helpers::generated::bpf_probe_read_user};
use mpiprobe_common::{
    Descriptor, Layout, ThreadState,
    tables::Stage,
    flow::{Sum, Summing},
    rules::amount,
};

use crate::apart::given;

use super::{account, amount::InMemory, completed, next, user::User};

/// Counts that are read at once.
const AT_ONCE: u32 = 16;
/// Parts that one run of the program adds up; the kernel allows 33 runs in a row.
const PARTS: u32 = 32;

/// Adds up the counts of the thread's completed call.
#[inline(always)]
pub fn sum<const TRACED: bool>(context: &impl EbpfContext) {
    let Some((thread, descriptor, layout)) = completed() else { return };
    for _ in 0..PARTS {
        let summing = &mut thread.summing;
        if summing.sent.next < summing.sent.length {
            add_up_part(layout, descriptor, &mut summing.sent);
        } else if summing.received.next < summing.received.length {
            add_up_part(layout, descriptor, &mut summing.received);
        } else {
            break;
        }
    }
    if is_left(&thread.summing) {
        next(context, Stage::Sum);
        // A larger group than that.
        (thread.summing.sent.unknown, thread.summing.received.unknown) = (1, 1);
    }
    keep_sums(thread, layout);
    account::<TRACED>(context, thread, descriptor, layout);
}

/// Answers 0.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn keep_sums(thread: *mut ThreadState, layout: *const Layout) -> u32 {
    given!(thread, layout);
    let datatypes = InMemory(layout);
    let summing = &thread.summing;
    if summing.received.length != 0 {
        thread.completed.received = amount::summed(&datatypes, &summing.received);
    }
    if summing.sent.length != 0 {
        thread.completed.sent = amount::summed(&datatypes, &summing.sent);
    }
    if summing.sent_is_received != 0 {
        thread.completed.sent = thread.completed.received;
    }
    0
}

/// Whether there is anything to be added up.
#[inline(always)]
pub fn is_left(summing: &Summing) -> bool {
    summing.sent.next < summing.sent.length || summing.received.next < summing.received.length
}

/// Adds up the next counts. Answers 0.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn add_up_part(layout: *const Layout, descriptor: *const Descriptor, sum: *mut Sum) -> u32 {
    given!(layout, descriptor, sum);
    let wide = amount::is_wide(descriptor);
    if sum.datatypes == 0 && sum.absent == 0 && sum.length - sum.next >= AT_ONCE {
        several(sum, wide);
        sum.next += AT_ONCE;
        return 0;
    }
    amount::add_next(&User, layout, wide, &InMemory(layout), sum);
    0
}

/// Adds up as many counts as are read at once, all of elements of one datatype.
#[inline(always)]
fn several(sum: &mut Sum, wide: bool) {
    let width = if wide { 8 } else { 4 };
    let address = (sum.counts + sum.next as u64 * width) as *const _;
    let mut elements = 0u64;
    // SAFETY: reads user memory by the helper made for that, into locals of the sizes given.
    let result = unsafe {
        if wide {
            let mut counts = [0u64; AT_ONCE as usize];
            let result = bpf_probe_read_user(counts.as_mut_ptr().cast(), AT_ONCE * 8, address);
            for count in counts {
                elements += count;
            }
            result
        } else {
            let mut counts = [0u32; AT_ONCE as usize];
            let result = bpf_probe_read_user(counts.as_mut_ptr().cast(), AT_ONCE * 4, address);
            for count in counts {
                elements += count as u64;
            }
            result
        }
    };
    if result != 0 {
        sum.unknown = 1;
    } else {
        sum.total += elements;
    }
}
