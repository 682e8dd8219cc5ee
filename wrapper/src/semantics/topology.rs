//! How many neighbours a process has in a communicator: the number of buffers that neighbourhood collectives send and receive.

use core::ffi::c_int;

use mpiprobe_common::layout::handle_kind;

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

/// Those that data comes from and those that it goes to; `None`: there are none, or the library does not tell.
pub(super) fn neighbours(library: &Library, handle: u64, rank: u32) -> Option<(u32, u32)> {
    let (kinds, kind) = (kinds(library), Library::ask(library.topo_test, handle)?);
    let (mut sources, mut destinations, mut weighted) = (0, 0, 0);
    if kind == kinds.cartesian {
        sources = Library::ask(library.cart_dimensions, handle)?.checked_mul(2)?;
        destinations = sources;
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
    Some((u32::try_from(sources).ok()?, u32::try_from(destinations).ok()?))
}
