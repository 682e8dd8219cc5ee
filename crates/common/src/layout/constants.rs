//! The special values of arguments, as the C functions get them.

use bytemuck::{Pod, Zeroable};

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
