//! What the binary interfaces of MPI libraries fix for all programs: special values, and the form of a status.

use bytemuck::{Pod, Zeroable};

use super::{StatusLayout, byte_count, handle_kind};

/// A binary interface.
#[derive(Clone, Copy, Debug)]
pub struct Interface {
    /// One of [`handle_kind`].
    pub handles: u32,
    pub constants: Constants,
    pub status: StatusLayout,
}

/// Values that programs are compiled with, or addresses that they pass. Handles of 32 bits are zero-extended, pointers are
/// compared as numbers.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Constants {
    pub any_source: i32,
    pub any_tag: i32,
    pub proc_null: i32,
    pub root: i32,
    pub undefined: i32,
    /// `MPI_THREAD_MULTIPLE`; the levels below are [`Self::thread_serialized`] and so on.
    pub thread_multiple: i32,
    pub thread_serialized: i32,
    pub thread_funneled: i32,
    /// The classes of errors `MPI_ERR_IN_STATUS` and `MPI_ERR_PENDING`.
    pub error_in_status: i32,
    pub error_pending: i32,
    pub lock_exclusive: i32,
    pub lock_shared: i32,
    pub comm_world: u64,
    pub comm_self: u64,
    pub comm_null: u64,
    pub datatype_null: u64,
    pub request_null: u64,
    /// Handles from the first to the last (inclusive) belong to requests that are complete from the start and shared among
    /// any number of operations: they identify none. First above last: there are none.
    pub request_complete_first: u64,
    pub request_complete_last: u64,
    pub message_null: u64,
    pub message_no_proc: u64,
    pub win_null: u64,
    pub file_null: u64,
    /// `MPI_NO_OP`.
    pub no_op: u64,
    pub in_place: u64,
    pub bottom: u64,
    pub status_ignore: u64,
    pub statuses_ignore: u64,
    pub unweighted: u64,
    pub weights_empty: u64,
}

/// MPICH, in all releases and descendants (the ABI compatibility initiative's). Addresses that differ from process to process are 0 here.
pub const MPICH: Interface = Interface {
    handles: handle_kind::INTEGER,
    constants: Constants {
        any_source: -2,
        any_tag: -1,
        proc_null: -1,
        root: -3,
        undefined: -32766,
        thread_multiple: 3,
        thread_serialized: 2,
        thread_funneled: 1,
        error_in_status: 17,
        error_pending: 18,
        lock_exclusive: 234,
        lock_shared: 235,
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
        unweighted: 0,
        weights_empty: 0,
    },
    status: StatusLayout {
        size: 20,
        source: 8,
        tag: 12,
        error: 16,
        bytes: 0,
        byte_count: byte_count::SPLIT,
        cancelled: 0,
        reserved: 0,
    },
};

/// Open MPI, in all releases, as programs are compiled with them (ompi/include/mpi.h). What are addresses of objects is 0 here.
pub const OPEN_MPI: Interface = Interface {
    handles: handle_kind::POINTER,
    constants: Constants {
        any_source: -1,
        any_tag: -1,
        proc_null: -2,
        root: -4,
        undefined: -32766,
        thread_multiple: 3,
        thread_serialized: 2,
        thread_funneled: 1,
        error_in_status: 18,
        error_pending: 19,
        lock_exclusive: 1,
        lock_shared: 2,
        comm_world: 0,
        comm_self: 0,
        comm_null: 0,
        datatype_null: 0,
        request_null: 0,
        request_complete_first: u64::MAX,
        request_complete_last: 0,
        message_null: 0,
        message_no_proc: 0,
        win_null: 0,
        file_null: 0,
        no_op: 0,
        in_place: 1,
        bottom: 0,
        status_ignore: 0,
        statuses_ignore: 0,
        unweighted: 2,
        weights_empty: 3,
    },
    status: StatusLayout {
        size: 24,
        source: 0,
        tag: 4,
        error: 8,
        bytes: 16,
        byte_count: byte_count::WORD,
        cancelled: 12,
        reserved: 0,
    },
};

/// The MPI 5.0 standard ABI (appendix A). Where the number of bytes is in a status, the standard does not say: MPICH and Intel MPI keep
/// it here.
pub const STANDARD_ABI: Interface = Interface {
    handles: handle_kind::STANDARD_ABI,
    constants: Constants {
        any_source: -1,
        any_tag: -2,
        proc_null: -3,
        root: -4,
        undefined: -32766,
        thread_multiple: 4096,
        thread_serialized: 2048,
        thread_funneled: 1024,
        error_in_status: 19,
        error_pending: 18,
        lock_exclusive: 301,
        lock_shared: 302,
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
    },
    status: StatusLayout {
        size: 32,
        source: 0,
        tag: 4,
        error: 8,
        bytes: 12,
        byte_count: byte_count::SPLIT,
        cancelled: 0,
        reserved: 0,
    },
};
