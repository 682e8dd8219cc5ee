//! What BPF programs, wrapper and observer share: the layout of the tables and the pure logic on them.
//!
//! Every type here is plain old data with a fixed layout (`repr(C)`, no padding that matters, valid when zeroed), because
//! the same bytes are written by BPF programs in the kernel, or by the wrapper in a shared file, and read by the observer.
//! Times are nanoseconds of `CLOCK_MONOTONIC` unless said otherwise.
#![no_std]

pub mod cache_key;
pub mod call_cache;
pub mod config;
pub mod cookie;
pub mod descriptor;
pub mod earlier;
pub mod ended_thread;
pub mod event;
pub mod file;
pub mod flow;
pub mod histogram;
pub mod layer;
pub mod layout;
pub mod loss;
pub mod peer;
pub mod phase;
pub mod process;
pub mod recent;
pub mod request;
pub mod rules;
pub mod stacks;
pub mod stats;
pub mod tables;
pub mod thread;
pub mod tool;
pub mod trace;
pub mod trampoline;

pub use cache_key::CacheKey;
pub use call_cache::{CachedCall, CallCache};
pub use config::{Config, EnvironmentFields, Namespace, OpenCalls};
pub use cookie::Cookie;
pub use descriptor::Descriptor;
pub use earlier::EarlierCall;
pub use ended_thread::{EndedThread, EndedThreadKey};
pub use event::{EndedInCall, Event, ExecNotice};
pub use flow::{Communicator, CommunicatorKey, CommunicatorName, Flow, FlowKey};
pub use layer::{LayerFrame, ProcessLayers};
pub use layout::Layout;
pub use loss::Loss;
pub use phase::{Phase, PhaseKey};
pub use process::{ProcessCounters, Target};
pub use recent::RecentCall;
pub use request::{
    Amount, Following, FoundOperation, FoundPeer, FoundProgress, FoundRequest, FoundTag, Handles, ManyHandles, Request,
    RequestKey,
};
pub use stats::{FunctionStats, InnerKey, InnerStats, Volume};
pub use thread::{OpenCall, ThreadState};
pub use tool::{ToolCallKey, ToolCallStats, ToolCookie, ToolFrame, ToolFrames, ToolKey, ToolStats};

/// Rows of the function dimension: more than MPI has functions, a power of two so that an index is checked by a mask.
pub const FUNCTION_SLOTS: u32 = 1024;

/// Function id of the calibration target, which is no MPI function.
pub const CALIBRATION_FUNCTION: u32 = FUNCTION_SLOTS - 1;

/// Process slot of mpiprobe itself, used for calibration only.
pub const CALIBRATION_SLOT: u32 = 0;

/// Default number of process slots: one per process image observed (an exec takes a new one), the calibration's included.
pub const PROCESS_SLOTS: u32 = 1024;

/// Processes that a job may have started, those that have ended included unless their numbers are used again.
pub const JOB_MEMBERS: u32 = 65_536;

/// Default number of (process, function) statistics.
pub const STATS_ENTRIES: u32 = 8192;

/// Number of phases that are told apart, all processes together: each has rows of its own in the index of statistics.
pub const PHASE_SLOTS: u32 = 1024;

/// Default number of live threads that have entered MPI.
pub const THREAD_SLOTS: u32 = 16384;

/// Threads that have ended and are remembered one by one, all processes together.
pub const ENDED_THREAD_RECORDS: u32 = 65_536;

/// Entries of the cache from a thread's id to its slot; a power of two.
pub const THREAD_CACHE: u32 = 4096;

/// Default number of flows.
pub const FLOW_SLOTS: u32 = 32768;

/// Default number of requests that are followed: those outstanding at once, all processes together.
pub const REQUEST_SLOTS: u32 = 65536;

/// Default number of threads that complete several requests by one call.
pub const HANDLE_STORES: u32 = 1024;

/// Default number of threads that complete very many by one call.
pub const MANY_HANDLE_STORES: u32 = 64;

/// Default number of threads whose latest calls are remembered.
pub const CALL_CACHE_SLOTS: u32 = 1024;

/// MPI libraries of which it is known how they lay out their objects.
pub const LIBRARIES: u32 = 64;

/// Probes in such libraries, all together.
pub const LIBRARY_PROBES: u32 = 32_768;

/// Communicators with a topology of which it is known who the neighbours are, all processes together.
pub const TOPOLOGIES: u32 = 2048;

/// Default number of communicators that are told apart, all processes together.
pub const COMMUNICATOR_SLOTS: u32 = 8192;
