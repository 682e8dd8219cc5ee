//! How many neighbours a process has in a new communicator: the number of buffers that neighbourhood collectives send and receive.

use mpiprobe_common::{
    Communicator, Descriptor, Layout, ThreadState,
    descriptor::topology,
    flow::{Degrees, communicator_kind},
    rules::topology::{Grid, MOST_DIMENSIONS, Part},
};

use super::{arguments, communicator, user::int_at};
use crate::maps::{COMMUNICATORS, ORIGINS};

/// In the communicator that the thread's completed call has made, by what the call was given, as far as that tells it without the process's
/// rank in it. The communicator itself may not be looked at yet.
#[inline(always)]
pub fn degrees(thread: &ThreadState, descriptor: &Descriptor, layout: &Layout) -> Degrees {
    let call = arguments::call(thread, descriptor, layout);
    match descriptor.topology {
        topology::ADJACENT => {
            let (sources, destinations) = (call.int(descriptor.topology_first), call.int(descriptor.topology_second));
            if sources < 0 || destinations < 0 {
                return Degrees::UNKNOWN;
            }
            Degrees::new(sources as u32, destinations as u32, 0)
        }
        topology::SAME | topology::PART => {
            let Some(parent) = communicator::facts(thread.completed.communicator) else { return Degrees::UNKNOWN };
            let of_parent = of_parent(parent);
            if descriptor.topology == topology::SAME {
                return of_parent;
            }
            part(call.word(descriptor.topology_first), of_parent)
        }
        _ => Degrees::UNKNOWN,
    }
}

#[inline(always)]
fn of_parent(parent: &Communicator) -> Degrees {
    if parent.kind == communicator_kind::NOT_YET {
        // Its first use is that another one is made of it.
        // SAFETY: the value is copied at once.
        if let Some(origin) = unsafe { ORIGINS.get(&parent.key) } {
            return origin.degrees;
        }
    }
    parent.degrees
}

/// Of the dimensions of a grid that the flags say.
#[inline(always)]
fn part(flags: u64, whole: Degrees) -> Degrees {
    let dimensions = whole.indegree / 2;
    if dimensions > MOST_DIMENSIONS {
        return Degrees::UNKNOWN;
    }
    let mut part = Part::of(whole);
    for dimension in 0..MOST_DIMENSIONS {
        if dimension >= dimensions {
            break;
        }
        let Some(flag) = int_at(flags + u64::from(dimension) * 4) else { return Degrees::UNKNOWN };
        part.next(flag != 0);
    }
    part.degrees()
}

/// Notes the neighbours in a new communicator of which the process's rank in it tells them.
#[inline(always)]
pub fn note(thread: &ThreadState, descriptor: &Descriptor, layout: &Layout) {
    if descriptor.topology != topology::GRAPH && descriptor.topology != topology::CARTESIAN {
        return;
    }
    let Some(entry) = COMMUNICATORS.get_ptr_mut(thread.completed.made) else { return };
    let call = arguments::call(thread, descriptor, layout);
    // SAFETY: map value pointer.
    let rank = unsafe { (*entry).rank };
    let first = call.word(descriptor.topology_first);
    let degrees = if descriptor.topology == topology::GRAPH {
        in_graph(first, rank)
    } else {
        let lengths = descriptor.topology_second;
        in_grid(first as i32, call.word(lengths), call.word(lengths + 1), rank)
    };
    // SAFETY: map value pointer; only the call that made the communicator is here.
    unsafe { (*entry).degrees = degrees };
}

/// By the cumulated numbers of the neighbours of all processes.
#[inline(always)]
fn in_graph(cumulated: u64, rank: u32) -> Degrees {
    let place = cumulated + rank as u64 * 4;
    let up_to = |address| int_at(address).unwrap_or(-1);
    let degree = up_to(place) - if rank == 0 { 0 } else { up_to(place - 4) };
    if degree < 0 { Degrees::UNKNOWN } else { Degrees::new(degree as u32, degree as u32, 0) }
}

#[inline(always)]
fn in_grid(dimensions: i32, lengths: u64, periodic: u64, rank: u32) -> Degrees {
    if dimensions < 0 || dimensions > MOST_DIMENSIONS as i32 {
        return Degrees::UNKNOWN;
    }
    let mut grid = Grid::of(rank);
    for behind in 0..MOST_DIMENSIONS as i32 {
        let dimension = dimensions - 1 - behind;
        if dimension < 0 {
            break;
        }
        let place = dimension as u64 * 4;
        let (Some(length), Some(periodic)) = (int_at(lengths + place), int_at(periodic + place)) else {
            return Degrees::UNKNOWN;
        };
        if !grid.has(dimension as u32, length, periodic != 0) {
            return Degrees::UNKNOWN;
        }
    }
    grid.degrees(dimensions as u32)
}
