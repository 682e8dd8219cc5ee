//! How many neighbours a process has in a new communicator: the number of buffers that neighbourhood collectives send and receive.

use mpiprobe_common::{Descriptor, Layout, ThreadState, descriptor::topology};

use super::{arguments, communicator, user::int_at};
use crate::maps::COMMUNICATORS;

/// Notes the neighbours in the communicator that the thread's completed call has made.
#[inline(always)]
pub fn note(thread: &ThreadState, descriptor: &Descriptor, layout: &Layout) {
    let Some(entry) = COMMUNICATORS.get_ptr_mut(thread.completed.made) else { return };
    let call = arguments::call(thread, descriptor, layout);
    let first = call.int(descriptor.topology_first);
    let (sources, destinations) = match descriptor.topology {
        topology::CARTESIAN => (first * 2, first * 2),
        topology::ADJACENT => (first, call.int(descriptor.topology_second)),
        topology::GRAPH => {
            // SAFETY: map value pointer.
            let rank = unsafe { (*entry).rank } as u64;
            let place = call.word(descriptor.topology_first) + rank * 4;
            let up_to = |address| int_at(address).unwrap_or(-1);
            let degree = up_to(place) - if rank == 0 { 0 } else { up_to(place - 4) };
            (degree, degree)
        }
        topology::SAME => match communicator::facts(thread.completed.communicator) {
            Some(parent) => (parent.in_neighbours as i32, parent.out_neighbours as i32),
            None => (-1, -1),
        },
        _ => return,
    };
    if sources < 0 || destinations < 0 {
        return;
    }
    // SAFETY: map value pointer; only the call that made the communicator is here.
    unsafe { ((*entry).in_neighbours, (*entry).out_neighbours) = (sources as u32, destinations as u32) };
}
