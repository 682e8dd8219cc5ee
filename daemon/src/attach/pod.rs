//! The shared types as aya wants them: plain old data, which may be made of any bytes.
#![expect(unsafe_code, reason = "aya::Pod is an unsafe marker trait")]

use mpiprobe_common::{
    Communicator, Config, Decisive, Descriptor, EndedThread, Flow, FunctionStats, LayerFrame, Layout, Phase,
    ProcessCounters, RecentCall, Request, RequestKey, Target, ThreadState,
    file::{CallsOff, FollowedRequest, Header, StatsOwner},
    layout::Template,
};

/// A value of a table, as bytes to aya.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(crate) struct Plain<T>(pub(crate) T);

// SAFETY: repr(C), integers and arrays of integers only, no padding bytes.
unsafe impl aya::Pod for Plain<Config> {}
// SAFETY: as above.
unsafe impl aya::Pod for Plain<Descriptor> {}
// SAFETY: as above.
unsafe impl aya::Pod for Plain<Decisive> {}
// SAFETY: as above.
unsafe impl aya::Pod for Plain<LayerFrame> {}
// SAFETY: as above.
unsafe impl aya::Pod for Plain<Request> {}
// SAFETY: as above.
unsafe impl aya::Pod for Plain<RequestKey> {}
// SAFETY: as above.
unsafe impl aya::Pod for Plain<Target> {}
// SAFETY: as above.
unsafe impl aya::Pod for Plain<FunctionStats> {}
// SAFETY: as above.
unsafe impl aya::Pod for Plain<Header> {}
// SAFETY: as above.
unsafe impl aya::Pod for Plain<ProcessCounters> {}
// SAFETY: as above.
unsafe impl aya::Pod for Plain<ThreadState> {}
// SAFETY: as above.
unsafe impl aya::Pod for Plain<EndedThread> {}
// SAFETY: as above.
unsafe impl aya::Pod for Plain<Flow> {}
// SAFETY: as above.
unsafe impl aya::Pod for Plain<Communicator> {}
// SAFETY: as above.
unsafe impl aya::Pod for Plain<FollowedRequest> {}
// SAFETY: as above.
unsafe impl aya::Pod for Plain<Phase> {}
// SAFETY: as above.
unsafe impl aya::Pod for Plain<StatsOwner> {}
// SAFETY: as above.
unsafe impl aya::Pod for Plain<CallsOff> {}
// SAFETY: as above.
unsafe impl aya::Pod for Plain<RecentCall> {}
// SAFETY: as above.
unsafe impl aya::Pod for Plain<Layout> {}
// SAFETY: as above.
unsafe impl aya::Pod for Plain<Template> {}

impl<T> Plain<T>
where
    Self: aya::Pod,
{
    /// The value that these bytes are; `None` if they are of another number.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<T> {
        if bytes.len() != size_of::<T>() {
            return None;
        }
        // SAFETY: as many bytes as the value has, read without regard to alignment; any bytes are a value.
        Some(unsafe { bytes.as_ptr().cast::<Self>().read_unaligned() }.0)
    }
}
