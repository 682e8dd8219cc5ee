//! What happens in a thread.

use mpiprobe_functions::FunctionId;
use serde::{Deserialize, Serialize};

use super::definitions::{CommunicatorId, FileId, SiteId, WindowId};

/// What happens in a thread, in the order of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    Call(Call),
    Phase(PhaseChange),
}

/// A call of MPI, from its entry to its return.
///
/// A thread's calls come in the order of their entries; one inside another comes after that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Counts the calls of the thread that were to be recorded. Where it goes up by more than 1, calls are missing between: lost, or left
    /// out on request; how many of each [`Losses`](super::Losses) says.
    pub number: u64,
    /// On the clock of the thread's node, ns, as all times.
    pub entry_ns: u64,
    pub return_ns: u64,
    /// It had been entered when recording began: `entry_ns` is then as early as it is known.
    pub began_before: bool,
    /// False: it had not returned when recording ended, or the process did. `return_ns` is then that time, and what the call did is not known.
    pub has_returned: bool,
    /// Calls around it that MPI or a tool has made it in; 0: made by the program.
    pub depth: u8,
    /// `None`: not known.
    pub call_site: Option<SiteId>,
    /// What it was asked to do, and, of what is complete at its return, what it has done.
    pub operation: Operation,
    /// The request that it gives back: its operation goes on after the return, or is started later (a persistent one). Of a probe that has
    /// found a message for whoever has its handle (`MPI_Mprobe`), the message, which the call that receives it completes.
    pub request: Option<RequestId>,
    /// What has become of requests by the call, in the order in which it was given them.
    pub requests: Vec<RequestChange>,
    /// What it has returned; 0 is `MPI_SUCCESS`. A call that has failed has moved nothing.
    pub result: i32,
}

/// What a call, or a request, is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Operation {
    pub function: FunctionId,
    /// Over which communicator; of windows and files, the one that they were made with. `None`: none, or not known.
    pub communicator: Option<CommunicatorId>,
    pub object: Option<Object>,
    /// What leaves the process; `None`: nothing can. Of one-sided calls, what goes to the target.
    pub send: Option<Transfer>,
    /// What arrives; `None`: nothing can.
    pub receive: Option<Transfer>,
    /// Of a collective that has one.
    pub root: Option<Root>,
    /// Of a one-sided call that moves nothing itself (`MPI_Win_lock`, `MPI_Win_flush`): whose part of the window it is about.
    pub target: Option<Target>,
}

/// Whose part of a window a call is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    pub partner: Partner,
    /// Of a call that locks it; `None`: it does not, or it is not known how.
    pub lock: Option<Lock>,
}

/// Who may have a lock of a window besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lock {
    /// Nobody: `MPI_LOCK_EXCLUSIVE`.
    Exclusive,
    /// Others with such a lock: `MPI_LOCK_SHARED`.
    Shared,
}

impl Lock {
    pub fn name(self) -> &'static str {
        match self {
            Self::Exclusive => "exclusive",
            Self::Shared => "shared",
        }
    }
}

/// A window or a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Object {
    Window(WindowId),
    File(FileId),
}

/// One direction of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Transfer {
    /// Of a complete receive from anybody: from whom it came.
    pub partner: Partner,
    /// Of a complete receive of any tag: the message's. `None`: it has none, or it is not known.
    pub tag: Option<i32>,
    /// Of a complete receive: what has come.
    pub bytes: Bytes,
    /// It was to come from anybody: `MPI_ANY_SOURCE`.
    pub any_source: bool,
    /// `MPI_ANY_TAG`.
    pub any_tag: bool,
}

/// The other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Partner {
    /// A rank in the communicator; of an inter-communicator, in the other group. [`Definitions::process_at`](super::Definitions::process_at)
    /// tells which process it is.
    Rank(u32),
    /// All of the communicator, or the root.
    Group,
    /// Nobody: `MPI_PROC_NULL`.
    Null,
    /// `MPI_ANY_SOURCE`, and it is not known who it was: not complete, cancelled, or the status was ignored.
    Any,
    /// A rank that is not known.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bytes {
    Known(u64),
    /// Of a receive whose status nobody asked for.
    AtMost(u64),
    Unknown,
}

/// The root of a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Root {
    /// Rank in the communicator; in an inter-communicator, in the other group.
    Rank(u32),
    /// The process itself, of an inter-communicator: `MPI_ROOT`.
    Own,
    /// Another process of its group, which the process leaves it to: `MPI_PROC_NULL`.
    Null,
}

/// A request: unique in its process as long as it exists, and the same for all starts of a persistent one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId(pub u64);

/// What has become of a request by a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RequestChange {
    pub request: RequestId,
    pub change: Change,
    /// Its own operation, by the function that has posted it. If it is complete: from whom, with which tag and how much.
    pub operation: Operation,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    /// A persistent or partitioned one was started.
    Started,
    Completed,
    Cancelled,
    /// Its operation ended with an error.
    Failed,
    /// The program has given it up (`MPI_Request_free`): when it is complete, nobody will know.
    Released,
    /// Partitions of a partitioned send that was started may go (`MPI_Pready`).
    Ready,
}

/// `MPI_Pcontrol`: from now on the process is in another phase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseChange {
    pub at_ns: u64,
    /// The innermost phase; `None`: none.
    pub phase: Option<String>,
    /// False: the program has switched counting off.
    pub is_on: bool,
}

impl Event {
    /// When it begins.
    pub fn time_ns(&self) -> u64 {
        match self {
            Self::Call(call) => call.entry_ns,
            Self::Phase(change) => change.at_ns,
        }
    }

    /// When it is over.
    pub fn end_ns(&self) -> u64 {
        match self {
            Self::Call(call) => call.return_ns,
            Self::Phase(change) => change.at_ns,
        }
    }

    pub fn call(&self) -> Option<&Call> {
        match self {
            Self::Call(call) => Some(call),
            Self::Phase(_) => None,
        }
    }
}

impl Call {
    /// One that has done nothing yet.
    pub fn new(function: FunctionId, entry_ns: u64, return_ns: u64) -> Self {
        Self {
            number: 0,
            entry_ns,
            return_ns,
            began_before: false,
            has_returned: true,
            depth: 0,
            call_site: None,
            operation: Operation::new(function),
            request: None,
            requests: Vec::new(),
            result: 0,
        }
    }

    pub fn function(&self) -> FunctionId {
        self.operation.function
    }

    pub fn duration_ns(&self) -> u64 {
        self.return_ns.saturating_sub(self.entry_ns)
    }
}

impl Operation {
    /// One that moves nothing.
    pub const fn new(function: FunctionId) -> Self {
        Self { function, communicator: None, object: None, send: None, receive: None, root: None, target: None }
    }

    /// Whom it is with: of what leaves, else of what arrives, else whose part of a window it is about.
    pub fn partner(&self) -> Option<Partner> {
        let of_transfer = self.send.or(self.receive).map(|transfer| transfer.partner);
        of_transfer.or(self.target.map(|target| target.partner))
    }
}

impl Transfer {
    /// Of a collective.
    pub const fn of_group(bytes: Bytes) -> Self {
        Self { partner: Partner::Group, tag: None, bytes, any_source: false, any_tag: false }
    }

    /// Of a message.
    pub const fn with(rank: u32, tag: i32, bytes: u64) -> Self {
        Self {
            partner: Partner::Rank(rank),
            tag: Some(tag),
            bytes: Bytes::Known(bytes),
            any_source: false,
            any_tag: false,
        }
    }
}

impl Bytes {
    /// As far as anything is known.
    pub const fn at_most(self) -> Option<u64> {
        match self {
            Self::Known(bytes) | Self::AtMost(bytes) => Some(bytes),
            Self::Unknown => None,
        }
    }
}
