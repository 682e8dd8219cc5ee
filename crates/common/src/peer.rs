//! Values of [`FlowKey::peer`](crate::flow::FlowKey::peer) that are no ranks.

/// Nobody in particular: collectives, files.
pub const NONE: i32 = -1;
/// `MPI_PROC_NULL`.
pub const NULL: i32 = -2;
/// `MPI_ANY_SOURCE`, of a receive that is not complete or whose status was ignored.
pub const ANY: i32 = -3;
/// Somebody whose rank in `MPI_COMM_WORLD` could not be found out.
pub const UNKNOWN: i32 = -4;
