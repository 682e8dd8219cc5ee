//! mpiprobe: an out-of-process profiler for MPI on Linux.

pub mod attach;
pub mod observe;
pub mod plan;
