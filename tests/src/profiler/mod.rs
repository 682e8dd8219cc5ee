//! The `mpiprobe` binary under test, driven as a user drives it: by its command line, signals and output.
//!
//! Nothing of the profiler is linked in: what these helpers know of it is what its documentation promises.

mod binary;
mod copy;
mod error;
mod kernel_objects;
mod lines;
mod profile;
mod running;
mod text;

pub use binary::binary;
pub use copy::Copy;
pub use error::ProfilerError;
pub use kernel_objects::KernelObjects;
pub use profile::{
    AllTraffic, Amounts, Budget, Communicator, Estimate, Flow, FunctionLayers, FunctionRow, Losses, OpenCall,
    OtherThreads, Profile, Rank, Reduction, Thread, ToolLayer, Traffic, WholeCommunicator, is_failure_kept,
};
pub use running::{Ended, Profiler};
pub use text::{changed_bytes, changed_bytes_from, wait_until_changed};
