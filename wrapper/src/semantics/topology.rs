//! How many neighbours a process has in a communicator, which is the number of buffers that neighbourhood collectives send and
//! receive; and who they are.

use core::ffi::c_int;

use mpiprobe_common::{
    descriptor::topology,
    flow::{Degrees, MOST_NEIGHBOURS, Origin, Topology, topology_kind},
    layout::handle_kind,
    rules::topology::{Grid, MOST_DIMENSIONS},
};

use super::{communicator, library::Library};
use crate::entry::DESCRIPTORS;

/// What `MPI_Topo_test` answers.
struct Kinds {
    cartesian: c_int,
    graph: c_int,
    distributed: c_int,
}

fn kinds(library: &Library) -> Kinds {
    match library.layout.handles {
        handle_kind::POINTER => Kinds { cartesian: 1, graph: 2, distributed: 3 },
        handle_kind::STANDARD_ABI => Kinds { cartesian: 211, graph: 212, distributed: 213 },
        _ => Kinds { cartesian: 2, graph: 1, distributed: 3 },
    }
}

/// Neighbours that are known. Lists that there is no room for are of no kind.
pub(super) struct Neighbours {
    pub(super) degrees: Degrees,
    /// `None`: they are written down already.
    pub(super) topology: Option<Topology>,
}

impl Neighbours {
    /// `None`: there are none, or the library does not tell.
    ///
    /// What kind they are of is told by the function that has made the communicator, where that was seen: Open MPI 5.0 says of a graph out of a
    /// grid that it is a grid, and of a copy of one too, and asked for its dimensions it reads what is not there.
    pub(super) fn of(library: &Library, handle: u64, rank: u32, origin: Option<Origin>) -> Option<Self> {
        let made_by = origin.and_then(|origin| {
            Some((origin, DESCRIPTORS.get(usize::try_from(origin.made_by_plus_1.checked_sub(1)?).ok()?)?))
        });
        let (kinds, answer) = (kinds(library), || Library::ask(library.topo_test, handle));
        let kind = match made_by {
            // Only such libraries are known to answer right.
            None => answer().filter(|_| library.layout.handles != handle_kind::POINTER),
            Some((origin, descriptor)) => match descriptor.topology {
                topology::SAME => {
                    let degrees = communicator::facts(origin.parent)?.degrees;
                    return Some(Self { degrees, topology: None });
                }
                topology::GRAPH => Some(kinds.graph),
                topology::ADJACENT => Some(kinds.distributed),
                topology::CARTESIAN | topology::PART => answer().filter(|&kind| kind == kinds.cartesian),
                // Made in parts by all processes, or of no kind.
                _ => answer().filter(|&kind| kind == kinds.distributed),
            },
        }?;
        if kind == kinds.cartesian {
            Self::in_grid(library, handle, rank)
        } else if kind == kinds.graph {
            Self::in_graph(library, handle, rank)
        } else if kind == kinds.distributed {
            Self::in_distributed_graph(library, handle, rank)
        } else {
            None
        }
    }

    fn in_graph(library: &Library, handle: u64, rank: u32) -> Option<Self> {
        let own = c_int::try_from(rank).ok()?;
        let mut count = 0;
        // SAFETY: as the standard defines it; the communicator exists and has a graph.
        if unsafe { library.graph_neighbours?(handle, own, &raw mut count) } != 0 {
            return None;
        }
        let degree = u32::try_from(count).ok()?;
        let mut topology = Topology { rank, first_length: degree, ..Topology::NONE };
        if has_room_for(degree)
            && let Some(list) = library.graph_neighbour_list
            // SAFETY: as above, and there is room for that many.
            && unsafe { list(handle, own, count, topology.first.as_mut_ptr()) } == 0
        {
            topology.kind = topology_kind::BOTH_WAYS;
        }
        Some(Self { degrees: Degrees::new(degree, degree, 0), topology: Some(topology) })
    }

    fn in_distributed_graph(library: &Library, handle: u64, rank: u32) -> Option<Self> {
        let (mut sources, mut destinations, mut weighted) = (0, 0, 0);
        let count = library.distributed_neighbours?;
        // SAFETY: as the standard defines it; the communicator exists and has a distributed graph.
        if unsafe { count(handle, &raw mut sources, &raw mut destinations, &raw mut weighted) } != 0 {
            return None;
        }
        let (indegree, outdegree) = (u32::try_from(sources).ok()?, u32::try_from(destinations).ok()?);
        let mut topology = Topology { rank, first_length: indegree, second_length: outdegree, ..Topology::NONE };
        if has_room_for(indegree)
            && has_room_for(outdegree)
            && let Some(list) = library.distributed_neighbour_lists
        {
            let (first, second) = (topology.first.as_mut_ptr(), topology.second.as_mut_ptr());
            // Nobody asks for weights, but each library has another value that says so.
            let (mut of_first, mut of_second) = ([0; MOST_NEIGHBOURS], [0; MOST_NEIGHBOURS]);
            let (of_first, of_second) = (of_first.as_mut_ptr(), of_second.as_mut_ptr());
            // SAFETY: as above, and there is room for that many.
            let result = unsafe { list(handle, sources, first, of_first, destinations, second, of_second) };
            topology.kind = if result == 0 { topology_kind::GRAPH } else { 0 };
        }
        Some(Self { degrees: Degrees::new(indegree, outdegree, 0), topology: Some(topology) })
    }

    fn in_grid(library: &Library, handle: u64, rank: u32) -> Option<Self> {
        const MOST: usize = MOST_DIMENSIONS as usize;
        let count = u32::try_from(Library::ask(library.cart_dimensions, handle)?).ok()?;
        if count > MOST_DIMENSIONS {
            return None;
        }
        let kind = topology_kind::GRID;
        let mut topology = Topology { kind, first_length: count, second_length: count, ..Topology::NONE };
        let mut place = [0; MOST];
        let ask = library.cart_get?;
        let (lengths, periodic) = (topology.first.as_mut_ptr(), topology.second.as_mut_ptr());
        // SAFETY: as the standard defines it; the communicator exists and has a grid, and there is room for that many.
        if unsafe { ask(handle, MOST_DIMENSIONS as c_int, lengths, periodic, place.as_mut_ptr()) } != 0 {
            return None;
        }
        let mut grid = Grid::of(rank);
        for dimension in (0..count).rev() {
            let index = dimension as usize;
            if !grid.has(dimension, *topology.first.get(index)?, *topology.second.get(index)? != 0) {
                return None;
            }
        }
        Some(Self { degrees: grid.degrees(count), topology: Some(topology) })
    }
}

const fn has_room_for(degree: u32) -> bool {
    (degree as usize) < MOST_NEIGHBOURS
}
