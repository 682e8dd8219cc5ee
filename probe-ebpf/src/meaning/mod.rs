//! What a completed call means: how much data it moved, with whom, over which communicator, called from where.

mod amount;
mod arguments;
mod communicator;
mod flow;
mod user;

use mpiprobe_common::{
    CALIBRATION_FUNCTION, Descriptor, FUNCTION_SLOTS, FunctionStats, Layout, ThreadState, Volume,
    descriptor::NONE,
    flow::peer,
    layout::capability,
    stats::SIZES,
};

use crate::{
    atomic::{add, raise},
    maps::{DESCRIPTORS, LAYOUTS},
};
use arguments::Arguments;
pub use arguments::read_stack;
pub use communicator::freed;
use user::User;

/// A call that has returned.
#[derive(Clone, Copy)]
pub struct Call {
    pub function: u32,
    /// Return address.
    pub call_site: u64,
    /// Duration, ns.
    pub ns: u64,
    /// Whether it returned `MPI_SUCCESS`: one that failed has moved nothing.
    pub succeeded: bool,
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

/// Adds what the call has moved to the statistics of its function and to its flows.
#[inline(always)]
pub fn account(thread: &mut ThreadState, stats: *mut FunctionStats, call: Call) {
    if call.function == CALIBRATION_FUNCTION {
        return;
    }
    let Some(descriptor) = DESCRIPTORS.get_ptr(call.function & (FUNCTION_SLOTS - 1)) else { return };
    let Some(layout) = LAYOUTS.get_ptr(thread.process) else { return };
    // SAFETY: map value pointers; the daemon writes descriptors before anything is attached, and a layout once.
    let (descriptor, layout) = unsafe { (&*descriptor, &*layout) };
    let arguments = Arguments::of(thread, layout);
    let moves = descriptor.send_amount | descriptor.receive_amount != 0;
    let destination = partner(&arguments, layout, descriptor.destination);
    let source = partner(&arguments, layout, descriptor.source);

    let (mut sent, mut received) = (Bytes::None, Bytes::None);
    let first = if destination == peer::NONE { source } else { destination };
    let flow = flow::find(thread, layout, &arguments, descriptor, call, first);
    if moves && call.succeeded {
        if layout.known & capability::CONSTANTS == 0 {
            (sent, received) = (Bytes::Unknown, Bytes::Unknown);
        } else {
            (sent, received) = amount::of(layout, &arguments, descriptor, flow::communicator(flow));
            if destination == peer::NULL {
                sent = Bytes::None;
            }
            if source == peer::NULL || (descriptor.source == NONE && destination == peer::NULL) {
                received = Bytes::None;
            }
        }
    }
    // SAFETY: map value pointer, by contract of the caller.
    unsafe { add_to_function(stats, sent, received) };
    flow::add(flow, call, sent, if source == peer::NONE || destination == peer::NONE { received } else { Bytes::None });
    if destination != peer::NONE && source != peer::NONE {
        let second = flow::find(thread, layout, &arguments, descriptor, call, source);
        flow::add(second, Call { ns: 0, ..call }, Bytes::None, received);
    }
}

/// The rank at `position` as [`flow::find`] wants it: as given, or [`peer::NULL`] and [`peer::NONE`].
///
/// Of a completed receive from anybody, the true source.
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
    let bits = mpiprobe_common::stats::size_bucket(bytes) as usize;
    // SAFETY: by contract.
    unsafe {
        add(&raw mut (*volume).messages, 1);
        add(&raw mut (*volume).bytes, bytes);
        raise(&raw mut (*volume).min_complement, u64::MAX - bytes);
        raise(&raw mut (*volume).max, bytes);
        if bits < SIZES {
            add((&raw mut (*volume).sizes).cast::<u64>().add(bits), 1);
        }
    }
}
