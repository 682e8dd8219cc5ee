//! When an operation is complete.

/// When the operation that a call is about is complete, in the terms of the standard (MPI-4.0, section 2.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// On return, or there is no operation to speak of.
    Blocking,
    /// Later; the call has given back a request.
    Nonblocking,
    /// Later, after the request that the call has given back was started, as often as it is.
    Persistent,
}

impl Operation {
    pub const ALL: [Self; 3] = [Self::Blocking, Self::Nonblocking, Self::Persistent];

    /// The operation's name in the table, and for people.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Blocking => "blocking",
            Self::Nonblocking => "nonblocking",
            Self::Persistent => "persistent",
        }
    }

    /// The operation of that key, exactly as [`Self::key`] gives it.
    pub fn from_key(key: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|operation| operation.key() == key)
    }
}
