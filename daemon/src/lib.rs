//! mpiprobe: an out-of-process profiler for MPI on Linux.

pub mod discover;
