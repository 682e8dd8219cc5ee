//! Open MPI's special values: the same in all releases, as programs are compiled with them (ompi/include/mpi.h).

use mpiprobe_common::Layout;
use mpiprobe_common::layout::{Constants, Memory, StatusLayout, byte_count};

use super::{DATATYPES, PointerArray, Target};

/// `struct ompi_status_public_t`
const STATUS: StatusLayout = StatusLayout {
    size: 24,
    source: 0,
    tag: 4,
    error: 8,
    bytes: 16,
    byte_count: byte_count::WORD,
    cancelled: 12,
    reserved: 0,
};

/// Matched messages by their Fortran numbers.
pub(super) const MESSAGES: &str = "ompi_message_f_to_c_table";

pub(super) fn fill(layout: &mut Layout, target: &Target<'_>) {
    // An object that is not there is null, which is no handle.
    let follow = |name| target.address(name).ok().and_then(|at| target.memory.word(at)).unwrap_or(0);
    let first = |table, index| PointerArray::of(target, table).and_then(|table| table.get(index)).unwrap_or(0);
    // Nothing outside the library names this object, so that there is no copy.
    let empty = target.address("ompi_request_empty").ok();
    layout.status = STATUS;
    layout.constants = Constants {
        any_source: -1,
        any_tag: -1,
        proc_null: -2,
        root: -4,
        undefined: -32766,
        thread_multiple: 3,
        thread_serialized: 2,
        thread_funneled: 1,
        comm_world: 0,
        comm_self: 0,
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
        in_place: 1,
        bottom: 0,
        status_ignore: 0,
        statuses_ignore: 0,
        unweighted: 2,
        weights_empty: 3,
    };
}
