//! MPICH's special values, the same in all releases and descendants (the ABI compatibility initiative's).

use mpiprobe_common::Layout;
use mpiprobe_common::layout::{Constants, Memory, StatusLayout, byte_count};

use super::{Target, UNWEIGHTED, WEIGHTS_EMPTY};

const STATUS: StatusLayout = StatusLayout {
    size: 20,
    source: 8,
    tag: 12,
    error: 16,
    bytes: 0,
    byte_count: byte_count::SPLIT,
    cancelled: 0,
    reserved: 0,
};

pub(super) fn fill(layout: &mut Layout, target: &Target<'_>) {
    // Pointer variables, whose value programs pass.
    let value = |name| target.address(name).ok().and_then(|at| target.memory.word(at)).unwrap_or(0);
    layout.status = STATUS;
    layout.constants = Constants {
        any_source: -2,
        any_tag: -1,
        proc_null: -1,
        root: -3,
        undefined: -32766,
        thread_multiple: 3,
        thread_serialized: 2,
        thread_funneled: 1,
        comm_world: 0x4400_0000,
        comm_self: 0x4400_0001,
        comm_null: 0x0400_0000,
        datatype_null: 0x0c00_0000,
        request_null: 0x2c00_0000,
        // Predefined requests: one for each kind of operation.
        request_complete_first: 0x6c00_0000,
        request_complete_last: 0x6fff_ffff,
        message_null: 0x2c00_0000,
        message_no_proc: 0x6c00_0000,
        win_null: 0x2000_0000,
        file_null: 0,
        no_op: 0x5800_000e,
        // A pointer of value -1, in all 64 bits.
        in_place: u64::MAX,
        bottom: 0,
        status_ignore: 1,
        statuses_ignore: 1,
        unweighted: value(UNWEIGHTED),
        weights_empty: value(WEIGHTS_EMPTY),
    };
}
