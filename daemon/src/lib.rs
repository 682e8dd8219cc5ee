//! mpiprobe: an out-of-process profiler for MPI on Linux.
//!
//! Data flows one way through these modules; none knows those after it:
//! `discover` → `plan` → `attach` → `observe` → `model` → `analyse` → `present`.

pub mod analyse;
pub mod attach;
pub mod discover;
pub mod model;
pub mod observe;
pub mod plan;
