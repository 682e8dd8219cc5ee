//! Where a function's arguments stand, as BPF programs and wrapper need it.

/// Argument positions of one MPI function, 0-based in the order of its C binding; [`NONE`] where it has no such argument.
///
/// "Send" is the side whose data leaves the caller (or the only data argument, such as `MPI_Bcast`'s buffer or the
/// origin of a one-sided call), "receive" the side whose data arrives.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// How many arguments the C binding has (0–13).
    pub arguments: u8,
    /// Index into `mpiprobe_functions::Group::ALL`.
    pub group: u8,
    /// [`flags`], ORed.
    pub flags: u8,
    pub send_buffer: u8,
    pub send_count: u8,
    pub send_datatype: u8,
    /// Destination rank, or the target rank of a one-sided call.
    pub destination: u8,
    pub send_tag: u8,
    pub receive_buffer: u8,
    pub receive_count: u8,
    pub receive_datatype: u8,
    pub source: u8,
    pub receive_tag: u8,
    pub root: u8,
    pub communicator: u8,
    pub window: u8,
    pub file: u8,
    /// The request, or the array of requests.
    pub request: u8,
    /// Length of the array of requests.
    pub request_count: u8,
    /// The status, or the array of statuses.
    pub status: u8,
}

/// "This function has no such argument."
pub const NONE: u8 = u8::MAX;

/// Bits of [`Descriptor::flags`].
pub mod flags {
    /// Counts are `MPI_Count` (64 bits), not `int`: the `_c` variants.
    pub const LARGE_COUNT: u8 = 1 << 0;
    /// Send-side counts are an array over the communicator (v/w variants).
    pub const SEND_COUNTS_ARE_ARRAY: u8 = 1 << 1;
    /// Receive-side counts are an array over the communicator (v/w variants).
    pub const RECEIVE_COUNTS_ARE_ARRAY: u8 = 1 << 2;
    /// Called in loops until something happens: Test*, Iprobe, Improbe, Request_get_status.
    pub const POLLING: u8 = 1 << 3;
    /// Datatypes are arrays over the communicator (w variants).
    pub const DATATYPES_ARE_ARRAY: u8 = 1 << 4;
    /// Returns before the operation is complete and gives back a request.
    pub const NONBLOCKING: u8 = 1 << 5;
    /// Creates a persistent or partitioned request that a later start sets off.
    pub const PERSISTENT: u8 = 1 << 6;
}
