//! Open MPI's special values: the same in all releases, as programs are compiled with them (ompi/include/mpi.h).

use mpiprobe_common::{
    Layout,
    layout::{Constants, Memory, OPEN_MPI},
};

use super::{DATATYPES, PointerArray, Target};

/// Matched messages by their Fortran numbers.
pub(super) const MESSAGES: &str = "ompi_message_f_to_c_table";

pub(super) fn fill(layout: &mut Layout, target: &Target<'_>) {
    // An object that is not there is null, which is no handle.
    let follow = |name| target.address(name).ok().and_then(|at| target.memory.word(at)).unwrap_or(0);
    let first = |table, index| PointerArray::of(target, table).and_then(|table| table.get(index)).unwrap_or(0);
    // Nothing outside the library names this object, so that there is no copy.
    let empty = target.address("ompi_request_empty").ok();
    layout.status = OPEN_MPI.status;
    layout.constants = Constants {
        comm_null: follow("ompi_mpi_comm_null_addr"),
        // Fortran's numbers begin with those of the null handles.
        datatype_null: first(DATATYPES, 0),
        request_null: follow("ompi_request_null_addr"),
        request_complete_first: empty.unwrap_or(u64::MAX),
        request_complete_last: empty.unwrap_or(0),
        message_null: first(MESSAGES, 0),
        message_no_proc: first(MESSAGES, 1),
        win_null: follow("ompi_mpi_win_null_addr"),
        file_null: follow("ompi_mpi_file_null_addr"),
        no_op: follow("ompi_mpi_op_no_op_addr"),
        ..OPEN_MPI.constants
    };
}
