//! Calls on files that wait for others of their communicator at the moment, and not for the file.

use std::time::Instant;

use mpiprobe_functions::{Function, Group, Operation};

use crate::{callsites::Naming, unwind::Frame};

/// What functions of Open MPI's own begin with that wait for messages. MPICH's I/O calls MPI's.
const OF_OPEN_MPI: [&str; 5] =
    ["ompi_coll_", "ompi_comm_nextcid", "ompi_request_default_wait", "mca_pml_", "opal_progress"];

/// Whether one of the functions inside a call on a file, which are given from the inside out, waits for messages.
pub(crate) fn exchanges(inside: &[Frame], (naming, until): (&mut Naming, Instant)) -> bool {
    inside.iter().any(|frame| {
        let address = frame.at.offset.checked_sub(1);
        let of_mpi = address.and_then(|address| frame.at.module.mpi_function(address));
        of_mpi.is_some_and(|function| waits(function.function()))
            || naming.resolve(&frame.at, until).at.function.as_deref().is_some_and(is_of_open_mpi)
    })
}

fn waits(function: &Function) -> bool {
    let is_message =
        matches!(function.group, Group::PointToPoint | Group::Collective | Group::Completion | Group::Synchronisation);
    is_message && function.operation == Operation::Blocking && !function.polling
}

fn is_of_open_mpi(name: &str) -> bool {
    OF_OPEN_MPI.iter().any(|start| name.starts_with(start))
}

#[cfg(test)]
mod tests {
    use mpiprobe_functions::by_name;

    use super::*;

    #[test]
    fn functions_that_wait_for_messages_are_known() {
        let waits = |name: &str| waits(by_name(name).unwrap().function());
        assert!(["MPI_Allreduce", "MPI_Barrier", "MPI_Waitall", "MPI_Recv"].into_iter().all(waits));
        assert!(!["MPI_File_write_at", "MPI_Test", "MPI_Isend", "MPI_Comm_rank"].into_iter().any(waits));
        assert!(
            is_of_open_mpi("ompi_coll_base_allreduce_intra_recursivedoubling") && is_of_open_mpi("mca_pml_ob1_recv")
        );
        assert!(!is_of_open_mpi("mca_fbtl_posix_pwritev") && !is_of_open_mpi("write"));
    }
}
