//! How many neighbours a process has in a new communicator, which is the number of buffers that neighbourhood collectives send and
//! receive; and who they are, while there are rings to write the course of events to.

use aya_ebpf::helpers::generated::bpf_probe_read_user;
use mpiprobe_common::{
    Communicator, Descriptor, Layout, ThreadState,
    descriptor::topology,
    flow::{Degrees, MOST_NEIGHBOURS, Topology, communicator_kind, topology_kind},
    rules::topology::{Grid, MOST_DIMENSIONS, Part},
    tables::Word,
};

use super::{arguments, communicator, user::int_at};
use crate::{
    maps::{COMMUNICATORS, ORIGINS, TOPOLOGIES, configured},
    statistics::take_number,
};

/// Index plus one of who the neighbours are, while that is being noted; 0: nobody wants to know, or there is no room.
#[derive(Clone, Copy)]
struct Told(u32);

impl Told {
    #[inline(always)]
    fn new() -> Self {
        if configured::rings() == 0 {
            return Self(0);
        }
        Self(take_number(Word::NextTopology, mpiprobe_common::TOPOLOGIES).map_or(0, |index| index + 1))
    }

    /// An entry that nobody else has.
    #[inline(always)]
    fn entry(self) -> Option<&'static mut Topology> {
        let entry = TOPOLOGIES.get_ptr_mut(self.0.checked_sub(1)?)?;
        // SAFETY: map value pointer.
        Some(unsafe { &mut *entry })
    }

    /// The lists are of that kind, as those of the process with a rank have it.
    #[inline(always)]
    fn is(self, kind: u32, rank: u32) {
        let Some(entry) = self.entry() else { return };
        (entry.kind, entry.rank) = (kind, rank);
    }

    #[inline(always)]
    fn first(self, address: u64, length: u32) -> bool {
        let Some(entry) = self.entry() else { return false };
        entry.first_length = length;
        list(&mut entry.first, address, length)
    }

    #[inline(always)]
    fn second(self, address: u64, length: u32) -> bool {
        let Some(entry) = self.entry() else { return false };
        entry.second_length = length;
        list(&mut entry.second, address, length)
    }

    #[inline(always)]
    fn number_if(self, is_read: bool) -> u32 {
        if is_read { self.0 } else { 0 }
    }
}

/// Reads so many numbers.
#[inline(always)]
fn list(to: &mut [i32; MOST_NEIGHBOURS], address: u64, length: u32) -> bool {
    const MOST: u32 = MOST_NEIGHBOURS as u32 - 1;
    if length > MOST {
        return false;
    }
    // SAFETY: reads user memory by the helper made for that; there is room for the most that the mask lets through.
    unsafe { bpf_probe_read_user(to.as_mut_ptr().cast(), (length & MOST) * 4, address as *const _) == 0 }
}

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
            let degrees = Degrees::new(sources as u32, destinations as u32, 0);
            let Some(parent) = communicator::facts(thread.completed.communicator) else { return degrees };
            let told = Told::new();
            told.is(topology_kind::GRAPH, parent.rank);
            let is_read = told.first(call.word(descriptor.topology_first + 1), degrees.indegree)
                && told.second(call.word(descriptor.topology_second + 1), degrees.outdegree);
            degrees.told_by(told.number_if(is_read))
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
    let told = if whole.topology_plus_1 == 0 { Told(0) } else { Told::new() };
    let mut kept = 0;
    for dimension in 0..MOST_DIMENSIONS {
        if dimension >= dimensions {
            break;
        }
        let Some(flag) = int_at(flags + u64::from(dimension) * 4) else { return Degrees::UNKNOWN };
        part.next(flag != 0);
        if flag != 0 {
            keep(told, kept, Told(whole.topology_plus_1), dimension);
            kept += 1;
        }
    }
    told.is(topology_kind::GRID, 0);
    if let Some(entry) = told.entry() {
        (entry.first_length, entry.second_length) = (kept, kept);
    }
    part.degrees().told_by(told.0)
}

/// A dimension of a grid is one of a part of it.
#[inline(always)]
fn keep(part: Told, to: u32, whole: Told, from: u32) {
    let (Some(part), Some(whole)) = (part.entry(), whole.entry()) else { return };
    let (from, to) = (from as usize % MOST_NEIGHBOURS, to as usize % MOST_NEIGHBOURS);
    (part.first[to], part.second[to]) = (whole.first[from], whole.second[from]);
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
        in_graph(first, call.word(descriptor.topology_first + 1), rank)
    } else {
        let lengths = descriptor.topology_second;
        let (lengths, periodic) = (call.word(lengths), call.word(lengths + 1));
        let degrees = in_grid(first as i32, lengths, periodic, rank);
        degrees.told_by(grid_told(degrees.indegree / 2, lengths, periodic))
    };
    // SAFETY: map value pointer; only the call that made the communicator is here.
    unsafe { (*entry).degrees = degrees };
}

/// By the cumulated numbers of the neighbours of all processes, and all these neighbours in one list.
#[inline(always)]
fn in_graph(cumulated: u64, edges: u64, rank: u32) -> Degrees {
    let place = cumulated + rank as u64 * 4;
    let up_to = |address| int_at(address).unwrap_or(-1);
    let before = if rank == 0 { 0 } else { up_to(place - 4) };
    let degree = up_to(place) - before;
    if degree < 0 {
        return Degrees::UNKNOWN;
    }
    let degrees = Degrees::new(degree as u32, degree as u32, 0);
    let told = Told::new();
    told.is(topology_kind::BOTH_WAYS, rank);
    let is_read = told.first(edges + before as u32 as u64 * 4, degree as u32);
    degrees.told_by(told.number_if(is_read))
}

#[inline(always)]
fn grid_told(dimensions: u32, lengths: u64, periodic: u64) -> u32 {
    if dimensions > MOST_DIMENSIONS {
        return 0;
    }
    let told = Told::new();
    told.is(topology_kind::GRID, 0);
    let is_read = told.first(lengths, dimensions) && told.second(periodic, dimensions);
    told.number_if(is_read)
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
