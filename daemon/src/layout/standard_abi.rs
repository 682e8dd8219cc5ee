//! Libraries of the MPI 5.0 standard ABI: the standard gives constants and handles, the objects are MPICH's.

use mpiprobe_common::Layout;
use mpiprobe_common::layout::{Constants, StatusLayout, byte_count, capability, handle_kind};

use super::blueprint::{Findings, Target};
use super::mpich;

/// Where the number of bytes is, the standard does not say: MPICH and Intel MPI keep it here.
const STATUS: StatusLayout = StatusLayout {
    size: 32,
    source: 0,
    tag: 4,
    error: 8,
    bytes: 12,
    byte_count: byte_count::SPLIT,
    cancelled: 0,
    reserved: 0,
};

/// MPI 5.0, appendix A.
const CONSTANTS: Constants = Constants {
    any_source: -1,
    any_tag: -2,
    proc_null: -3,
    root: -4,
    undefined: -32766,
    thread_multiple: 4096,
    thread_serialized: 2048,
    thread_funneled: 1024,
    comm_world: 0x101,
    comm_self: 0x102,
    comm_null: 0x100,
    datatype_null: 0x200,
    request_null: 0x180,
    // Such requests are objects like any other, at addresses of the library's.
    request_complete_first: u64::MAX,
    request_complete_last: 0,
    message_null: 0x128,
    message_no_proc: 0x129,
    win_null: 0x110,
    file_null: 0x118,
    no_op: 0x3d,
    in_place: 1,
    bottom: 0,
    status_ignore: 0,
    statuses_ignore: 0,
    unweighted: 10,
    weights_empty: 11,
};

pub(super) fn find(target: &Target<'_>) -> Findings {
    let layout = Layout {
        known: capability::CONSTANTS | capability::BUILTIN_SIZES,
        handles: handle_kind::STANDARD_ABI,
        constants: CONSTANTS,
        status: STATUS,
        ..Layout::default()
    };
    mpich::find_objects(target, &layout)
}
