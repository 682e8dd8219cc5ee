//! How many neighbours a process has in a new communicator: the number of buffers that neighbourhood collectives send and receive.

use mpiprobe_common::{
    Communicator, Descriptor, Layout, ThreadState,
    descriptor::topology,
    flow::{UNKNOWN_NEIGHBOURS, communicator_kind},
};

use super::{arguments, communicator, user::int_at};
use crate::maps::{COMMUNICATORS, ORIGINS};

/// Dimensions of a Cartesian topology of which it is asked whether they are kept.
const MOST_DIMENSIONS: u32 = 16;

/// Of the communicator that the thread's completed call has made, by what the call was given; [`UNKNOWN_NEIGHBOURS`] if that does not
/// tell. The communicator itself may not be looked at yet.
#[inline(always)]
pub fn neighbours(thread: &ThreadState, descriptor: &Descriptor, layout: &Layout) -> (u32, u32) {
    const UNKNOWN: (u32, u32) = (UNKNOWN_NEIGHBOURS, UNKNOWN_NEIGHBOURS);
    let call = arguments::call(thread, descriptor, layout);
    let first = call.int(descriptor.topology_first);
    let (sources, destinations) = match descriptor.topology {
        topology::CARTESIAN => (first * 2, first * 2),
        topology::ADJACENT => (first, call.int(descriptor.topology_second)),
        topology::SAME | topology::PART => {
            let Some(parent) = communicator::facts(thread.completed.communicator) else { return UNKNOWN };
            let (sources, destinations) = of_parent(parent);
            if descriptor.topology == topology::SAME {
                return (sources, destinations);
            }
            let kept = kept_dimensions(call.word(descriptor.topology_first), sources);
            (kept * 2, kept * 2)
        }
        _ => return UNKNOWN,
    };
    if sources < 0 || destinations < 0 { UNKNOWN } else { (sources as u32, destinations as u32) }
}

#[inline(always)]
fn of_parent(parent: &Communicator) -> (u32, u32) {
    if parent.kind == communicator_kind::NOT_YET {
        // Its first use is that another one is made of it.
        // SAFETY: the value is copied at once.
        if let Some(origin) = unsafe { ORIGINS.get(&parent.key) } {
            return (origin.in_neighbours, origin.out_neighbours);
        }
    }
    (parent.in_neighbours, parent.out_neighbours)
}

/// How many of the dimensions are kept that a communicator with so many neighbours has; below 0: not known.
#[inline(always)]
fn kept_dimensions(flags: u64, neighbours: u32) -> i32 {
    let dimensions = neighbours / 2;
    if dimensions > MOST_DIMENSIONS {
        return -1;
    }
    let mut kept = 0;
    for dimension in 0..MOST_DIMENSIONS {
        if dimension >= dimensions {
            break;
        }
        let Some(flag) = int_at(flags + u64::from(dimension) * 4) else { return -1 };
        kept += i32::from(flag != 0);
    }
    kept
}

/// Notes the neighbours in a new communicator whose call was given those of all processes: which are this one's tells its rank in it.
#[inline(always)]
pub fn note(thread: &ThreadState, descriptor: &Descriptor, layout: &Layout) {
    if descriptor.topology != topology::GRAPH {
        return;
    }
    let Some(entry) = COMMUNICATORS.get_ptr_mut(thread.completed.made) else { return };
    let call = arguments::call(thread, descriptor, layout);
    // SAFETY: map value pointer.
    let rank = unsafe { (*entry).rank } as u64;
    let place = call.word(descriptor.topology_first) + rank * 4;
    let up_to = |address| int_at(address).unwrap_or(-1);
    let degree = up_to(place) - if rank == 0 { 0 } else { up_to(place - 4) };
    if degree >= 0 {
        // SAFETY: map value pointer; only the call that made the communicator is here.
        unsafe { ((*entry).in_neighbours, (*entry).out_neighbours) = (degree as u32, degree as u32) };
    }
}
