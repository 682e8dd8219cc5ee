//! Which ends belong together: the sends and receives of messages, the calls of collectives, and epochs of one-sided communication.
//!
//! Whatever is read slice by slice is matched by MPI's own rules of order. Where calls are missing, or may have been under way before
//! anything is known, nothing is matched until it is known how many there were before; what could not be matched is counted.

mod call;
mod epochs;
mod groups;
mod inbound;
mod locks;
mod matcher;
mod meaning;
mod order;
pub(crate) mod pairs;
mod process;
mod slab;

pub use call::{CallAt, Done, End, Pending, Unmatched};
pub(crate) use epochs::{EpochNeed, EpochWait};
pub use groups::{Instance, InstanceDone, InstanceKind, Member};
pub(crate) use locks::{LockWait, PassiveCall};
pub(crate) use matcher::Ends;
pub use matcher::{Matched, Matcher};
