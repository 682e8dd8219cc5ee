//! What a completed call means: how much data it moved, with whom, over which communicator, called from where.
//!
//! In programs of their own, one calling the next: together they are more than the kernel's verifier goes through.

mod amount;
mod arguments;
mod communicator;
mod flow;
mod user;

use aya_ebpf::{EbpfContext, helpers::bpf_get_current_pid_tgid};
use mpiprobe_common::{
    Descriptor, FUNCTION_SLOTS, FunctionStats, Layout, ThreadState, Volume,
    config::{STAGE_ATTRIBUTE, STAGE_MEASURE},
    descriptor::NONE,
    flow::{Completed, peer},
    layout::{capability, status_source},
    stats::{SIZES, size_bucket},
};

use crate::{
    atomic::{add, raise},
    layers,
    maps::{DESCRIPTORS, LAYOUTS, STAGES, STATS},
    registers::Registers,
    thread,
};
use arguments::Arguments;
pub use arguments::read_stack;
pub use communicator::freed;
pub use user::User;

/// A call that has returned.
#[derive(Clone, Copy)]
pub struct Call {
    pub function: u32,
    /// Return address.
    pub call_site: u64,
    /// Duration, ns.
    pub ns: u64,
    /// Whether it returned `MPI_SUCCESS`.
    pub succeeded: bool,
    /// Its entry in the statistics plus one; 0: there was no room.
    pub stats_plus_1: u32,
}

/// What is known of the bytes that went one way.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Bytes {
    /// There is nothing that could go this way.
    None,
    Known(u64),
    /// No more than that.
    AtMost(u64),
    Unknown,
}

/// Keeps a completed call for the programs that find out what it meant.
#[inline(always)]
pub fn keep(thread: &mut ThreadState, call: Call) {
    thread.completed = Completed {
        call_site: call.call_site,
        ns: call.ns,
        function: call.function,
        succeeded: call.succeeded as u32,
        destination: peer::NONE,
        source: peer::NONE,
        flow_plus_1: 0,
        second_flow_plus_1: 0,
        communicator: 0,
        stats_plus_1: call.stats_plus_1,
    };
}

/// Hands the thread's completed call over to those programs. To be called by the program itself, not by a function that is not
/// inlined: the kernel allows that with type information only.
#[inline(always)]
pub fn begin(context: &impl EbpfContext) {
    next(context, STAGE_ATTRIBUTE);
}

/// Does not come back, unless there is no such program.
#[inline(always)]
fn next(context: &impl EbpfContext, stage: u32) {
    // SAFETY: the program called is of the same kind, and uses nothing of this one.
    unsafe { STAGES.tail_call(context, stage) };
}

/// Finds the flows of the thread's completed call.
#[inline(always)]
pub fn attribute(context: &impl EbpfContext) {
    let Some((thread, descriptor, layout)) = completed() else { return };
    thread.completed.call_site = layers::user_site(thread.process, &Registers::of(context.as_ptr()));
    let arguments = Arguments::of(thread, layout);
    let destination = partner(&arguments, layout, descriptor.destination);
    let mut source = partner(&arguments, layout, descriptor.source);
    if source == peer::ANY && thread.completed.succeeded != 0 && descriptor.status != NONE {
        source = true_source(&arguments, layout, descriptor);
    }
    thread.completed.destination = destination;
    thread.completed.source = source;
    let handle = if descriptor.communicator == NONE { 0 } else { arguments.handle(descriptor.communicator) };
    let has_communicator = descriptor.communicator != NONE;
    let first = if destination == peer::NONE { source } else { destination };
    thread.completed.flow_plus_1 = flow::find(thread, layout, has_communicator, handle, first);
    // With one partner for both it is one flow.
    if destination != peer::NONE && source != peer::NONE && source != destination {
        thread.completed.second_flow_plus_1 = flow::find(thread, layout, has_communicator, handle, source);
    }
    thread.completed.communicator = flow::communicator(thread.completed.flow_plus_1);
    next(context, STAGE_MEASURE);
}

/// Adds what the thread's completed call has moved to the statistics of its function and to its flows.
#[inline(always)]
pub fn measure() {
    let Some((thread, descriptor, layout)) = completed() else { return };
    let call = thread.completed;
    let (mut sent, mut received) = (Bytes::None, Bytes::None);
    let moves = descriptor.send_amount | descriptor.receive_amount != 0;
    if moves && call.succeeded != 0 {
        if layout.known & capability::CONSTANTS == 0 {
            (sent, received) = (Bytes::Unknown, Bytes::Unknown);
        } else {
            let arguments = Arguments::of(thread, layout);
            let known = communicator::facts(call.communicator);
            (sent, received) = amount::of(layout, &arguments, descriptor, known);
            if call.destination == peer::NULL {
                sent = Bytes::None;
            }
            if call.source == peer::NULL || (descriptor.source == NONE && call.destination == peer::NULL) {
                received = Bytes::None;
            }
        }
    }
    if let Some(stats) = STATS.get_ptr_mut(call.stats_plus_1.wrapping_sub(1)) {
        // SAFETY: map value pointer.
        unsafe { add_to_function(stats, sent, received) };
    }
    let is_exchange = call.second_flow_plus_1 != 0;
    flow::add(call.flow_plus_1, call.ns, sent, if is_exchange { Bytes::None } else { received });
    if is_exchange {
        flow::add(call.second_flow_plus_1, 0, Bytes::None, received);
    }
}

/// The current thread, and what its completed call is to be understood by.
#[inline(always)]
fn completed() -> Option<(&'static mut ThreadState, &'static Descriptor, &'static Layout)> {
    let thread = thread::known(bpf_get_current_pid_tgid())?;
    // SAFETY: map value pointers. Only the thread itself writes its state while it runs; the daemon writes descriptors before
    // anything is attached, and a layout as a whole.
    unsafe {
        let descriptor = &*DESCRIPTORS.get_ptr((*thread).completed.function & (FUNCTION_SLOTS - 1))?;
        let layout = &*LAYOUTS.get_ptr((*thread).process)?;
        Some((&mut *thread, descriptor, layout))
    }
}

/// The rank at `position`: as given, or one of [`peer`].
#[inline(always)]
fn partner(arguments: &Arguments<'_>, layout: &Layout, position: u8) -> i32 {
    if position == NONE {
        return peer::NONE;
    }
    let rank = arguments.int(position);
    if layout.known & capability::CONSTANTS == 0 {
        return if rank >= 0 { rank } else { peer::UNKNOWN };
    }
    if rank == layout.constants.proc_null {
        peer::NULL
    } else if rank == layout.constants.any_source {
        peer::ANY
    } else if rank >= 0 {
        rank
    } else {
        peer::UNKNOWN
    }
}

/// Of a completed receive from anybody: who it was, if the status tells.
#[inline(always)]
fn true_source(arguments: &Arguments<'_>, layout: &Layout, descriptor: &Descriptor) -> i32 {
    let status = arguments.word(descriptor.status);
    if status == layout.constants.status_ignore {
        return peer::ANY;
    }
    match status_source(layout, status, &User) {
        Some(rank) if rank >= 0 => rank,
        _ => peer::UNKNOWN,
    }
}

/// # Safety
/// `stats` must point to a live map value.
#[inline(always)]
unsafe fn add_to_function(stats: *mut FunctionStats, sent: Bytes, received: Bytes) {
    // SAFETY: by contract.
    unsafe {
        if let Bytes::Known(bytes) | Bytes::AtMost(bytes) = sent {
            add_to_volume(&raw mut (*stats).sent, bytes);
        }
        if let Bytes::Known(bytes) | Bytes::AtMost(bytes) = received {
            add_to_volume(&raw mut (*stats).received, bytes);
        }
        if let Bytes::AtMost(bytes) = received {
            add(&raw mut (*stats).received_at_most, bytes);
        }
        if sent == Bytes::Unknown || received == Bytes::Unknown {
            add(&raw mut (*stats).unknown, 1);
        }
    }
}

/// # Safety
/// As [`add_to_function`].
#[inline(always)]
unsafe fn add_to_volume(volume: *mut Volume, bytes: u64) {
    let bucket = size_bucket(bytes) as usize;
    // SAFETY: by contract.
    unsafe {
        add(&raw mut (*volume).messages, 1);
        add(&raw mut (*volume).bytes, bytes);
        raise(&raw mut (*volume).min_complement, u64::MAX - bytes);
        raise(&raw mut (*volume).max, bytes);
        if bucket < SIZES {
            add((&raw mut (*volume).sizes).cast::<u64>().add(bucket), 1);
        }
    }
}
