//! Arrays of counts, a part at a time: in memory that all parts share, so that the verifier has little to keep in mind.

use aya_ebpf::{EbpfContext, helpers::generated::bpf_probe_read_user};
use mpiprobe_common::{
    Descriptor, Layout, ThreadState,
    config::STAGE_SUM,
    descriptor::flags,
    flow::{Sum, Summing},
};

use super::{
    Bytes, account,
    amount::{UNKNOWN_SIZE, size},
    amount_of, completed, next,
    user::handle_at,
};

/// Counts that are read at once.
const AT_ONCE: u32 = 16;
/// Parts that one run of the program adds up; the kernel allows 33 runs in a row.
const PARTS: u32 = 32;

/// Adds up the counts of the thread's completed call.
#[inline(always)]
pub fn sum(context: &impl EbpfContext) {
    let Some((thread, descriptor, layout)) = completed() else { return };
    for _ in 0..PARTS {
        let summing = &mut thread.summing;
        if summing.sent.next < summing.sent.length {
            part(layout, descriptor, &mut summing.sent);
        } else if summing.received.next < summing.received.length {
            part(layout, descriptor, &mut summing.received);
        } else {
            break;
        }
    }
    if is_left(&thread.summing) {
        next(context, STAGE_SUM);
        // A larger group than that.
        (thread.summing.sent.unknown, thread.summing.received.unknown) = (1, 1);
    }
    keep(thread);
    account(context, thread, descriptor, layout);
}

#[inline(never)]
fn keep(thread: &mut ThreadState) {
    if let Some(received) = result(&thread.summing.received) {
        thread.completed.received = amount_of(received);
    }
    if thread.summing.sent_is_received != 0 {
        thread.completed.sent = thread.completed.received;
    } else if let Some(sent) = result(&thread.summing.sent) {
        thread.completed.sent = amount_of(sent);
    }
}

/// Whether there is anything to be added up.
#[inline(always)]
pub fn is_left(summing: &Summing) -> bool {
    summing.sent.next < summing.sent.length || summing.received.next < summing.received.length
}

/// `None`: there was nothing to be added up.
#[inline(always)]
fn result(sum: &Sum) -> Option<Bytes> {
    match sum.length {
        0 => None,
        _ if sum.unknown != 0 => Some(Bytes::Unknown),
        _ => Some(Bytes::Known(sum.bytes)),
    }
}

/// Adds up the next counts.
#[inline(never)]
fn part(layout: &Layout, descriptor: &Descriptor, sum: &mut Sum) {
    let wide = descriptor.flags & flags::LARGE_COUNT != 0;
    let rest = sum.length - sum.next;
    if sum.datatypes == 0 && rest >= AT_ONCE {
        several(sum, wide);
        sum.next += AT_ONCE;
        return;
    }
    let count = match one(sum.counts, sum.next, wide) {
        Some(count) => count,
        None => {
            sum.unknown = 1;
            0
        }
    };
    if count != 0 {
        let size = if sum.datatypes == 0 { sum.element } else { size_of_its_own(layout, sum) };
        add(sum, count, size);
    }
    sum.next += 1;
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
    } else if elements != 0 {
        add(sum, elements, sum.element);
    }
}

#[inline(always)]
fn add(sum: &mut Sum, elements: u64, size: u64) {
    if size == UNKNOWN_SIZE {
        sum.unknown = 1;
    } else {
        sum.bytes += elements * size;
    }
}

/// Size of the datatype of the next count, or [`UNKNOWN_SIZE`].
#[inline(always)]
fn size_of_its_own(layout: &Layout, sum: &Sum) -> u64 {
    match handle_at(layout, sum.datatypes + sum.next as u64 * layout.handle_width() as u64) {
        Some(datatype) => size(layout, datatype),
        None => UNKNOWN_SIZE,
    }
}

/// Element `index` of an array of counts.
#[inline(always)]
pub fn one(array: u64, index: u32, wide: bool) -> Option<u64> {
    let mut count = 0u64;
    let width = if wide { 8 } else { 4 };
    let address = array + index as u64 * width;
    // SAFETY: reads user memory by the helper made for that, into a local of at least the size given.
    let result = unsafe {
        if wide {
            bpf_probe_read_user((&raw mut count).cast(), 8, address as *const _)
        } else {
            bpf_probe_read_user((&raw mut count).cast(), 4, address as *const _)
        }
    };
    if result == 0 { Some(count) } else { None }
}
