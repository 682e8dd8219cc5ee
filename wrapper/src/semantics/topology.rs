//! How many neighbours a process has in a communicator: the number of buffers that neighbourhood collectives send and receive.

use core::ffi::c_int;

use mpiprobe_common::{
    flow::Degrees,
    layout::handle_kind,
    rules::topology::{Grid, MOST_DIMENSIONS},
};

use super::library::Library;

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

/// `None`: there are none, or the library does not tell.
pub(super) fn degrees(library: &Library, handle: u64, rank: u32) -> Option<Degrees> {
    let (kinds, kind) = (kinds(library), Library::ask(library.topo_test, handle)?);
    let (mut sources, mut destinations, mut weighted) = (0, 0, 0);
    if kind == kinds.cartesian {
        return grid(library, handle, rank);
    } else if kind == kinds.graph {
        let rank = c_int::try_from(rank).ok()?;
        // SAFETY: as the standard defines it; the communicator exists and has a graph.
        if unsafe { library.graph_neighbours?(handle, rank, &raw mut sources) } != 0 {
            return None;
        }
        destinations = sources;
    } else if kind == kinds.distributed {
        let count = library.distributed_neighbours?;
        // SAFETY: as above.
        if unsafe { count(handle, &raw mut sources, &raw mut destinations, &raw mut weighted) } != 0 {
            return None;
        }
    } else {
        return None;
    }
    Some(Degrees::new(u32::try_from(sources).ok()?, u32::try_from(destinations).ok()?, 0))
}

fn grid(library: &Library, handle: u64, rank: u32) -> Option<Degrees> {
    const MOST: usize = MOST_DIMENSIONS as usize;
    let count = u32::try_from(Library::ask(library.cart_dimensions, handle)?).ok()?;
    if count > MOST_DIMENSIONS {
        return None;
    }
    let (mut lengths, mut periodic, mut place) = ([0; MOST], [0; MOST], [0; MOST]);
    let ask = library.cart_get?;
    // SAFETY: as the standard defines it; the communicator exists and has a grid, and there is room for that many.
    let result = unsafe {
        ask(handle, MOST_DIMENSIONS as c_int, lengths.as_mut_ptr(), periodic.as_mut_ptr(), place.as_mut_ptr())
    };
    if result != 0 {
        return None;
    }
    let mut grid = Grid::of(rank);
    for dimension in (0..count).rev() {
        let index = dimension as usize;
        if !grid.has(dimension, *lengths.get(index)?, *periodic.get(index)? != 0) {
            return None;
        }
    }
    Some(grid.degrees(count))
}
