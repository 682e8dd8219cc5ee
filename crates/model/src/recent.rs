//! The last calls of a rank, as they were executed.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::{
    CommunicatorArgument,
    names::{self, Name},
};

/// What has been seen of them since somebody looks. Not in the JSON of profiles, nor in recordings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecentCalls {
    /// In the order of their returns.
    pub calls: Vec<RecentCallInfo>,
    /// Why there cannot be any.
    pub why_not: Option<String>,
}

/// A call that has returned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecentCallInfo {
    /// Counted from the moment on when calls were written down first. Where numbers are missing, calls were not seen.
    pub number: u64,
    #[serde(deserialize_with = "names::name")]
    pub function: Name,
    pub tid: u32,
    /// How long before the profile was taken it was entered, ns.
    pub entered_ago_ns: u64,
    /// Duration, ns.
    pub ns: u64,
    /// The place in the source that it was called at, or as near to that as the program's files allow; `None`: not known.
    pub site: Option<String>,
    /// As many as the function has, in its order.
    pub arguments: Vec<NamedArgument>,
    /// The error code that it has returned; `None`: it was successful, or returns something else.
    pub error: Option<i32>,
}

/// An argument as it was passed to the C function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedArgument {
    /// As the standard calls it.
    pub name: Cow<'static, str>,
    pub value: ArgumentValue,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ArgumentValue {
    Integer(i64),
    /// A value that the standard gives a name: `MPI_ANY_SOURCE`.
    Constant(Cow<'static, str>),
    /// Of something in the program's memory, at which nobody has looked.
    Address(u64),
    /// Of an object of the library.
    Handle(u64),
    Communicator(CommunicatorArgument),
    /// It was not read.
    Unknown,
}

impl RecentCalls {
    /// How many calls are missing between the first one and the last one.
    pub fn missed(&self) -> u64 {
        let (Some(first), Some(last)) = (self.calls.first(), self.calls.last()) else { return 0 };
        // Whoever tells of them may be on another node: numbers may be any.
        let numbered = last.number.saturating_sub(first.number).saturating_add(1);
        numbered.saturating_sub(self.calls.len() as u64)
    }
}
