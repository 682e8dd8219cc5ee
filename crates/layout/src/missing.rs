//! What could not be found out about a process's library, and why.

use std::fmt;

/// A part of what a layout can tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Capability {
    Everything,
    Datatypes,
    Communicators,
    Members,
    Requests,
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Everything => "special values, statuses and handles",
            Self::Datatypes => "sizes of derived datatypes",
            Self::Communicators => "ranks and sizes of communicators",
            Self::Members => "world ranks of the members of communicators",
            Self::Requests => "statuses of completed requests",
        })
    }
}

/// A check that failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    #[error("this MPI implementation is not known to mpiprobe")]
    UnknownImplementation,
    #[error("the place where its code is mapped does not fit its file")]
    Unplaced,
    #[error("the library does not have the variable {0}")]
    NoSymbol(&'static str),
    #[error("the table of {0} was not found in the library's data")]
    NoTable(&'static str),
    #[error("{0} cannot be read")]
    Unreadable(&'static str),
    #[error("{what} should be {expected} and is {found}")]
    Mismatch { what: String, expected: u64, found: u64 },
    #[error("this kind of library does not keep them where mpiprobe could read them")]
    NotKept,
    #[error("it rests on the {0}, which failed")]
    RestsOn(Capability),
}

impl Reason {
    pub(super) fn mismatch(what: impl Into<String>, expected: impl Into<u64>, found: impl Into<u64>) -> Self {
        Self::Mismatch { what: what.into(), expected: expected.into(), found: found.into() }
    }

    /// An error unless the two are the same.
    pub(super) fn unless(what: &str, expected: impl Into<u64>, found: impl Into<u64>) -> Result<(), Self> {
        let (expected, found) = (expected.into(), found.into());
        if expected == found { Ok(()) } else { Err(Self::mismatch(what, expected, found)) }
    }
}

/// A capability that is off for a process.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{capability} are unknown with {library}: {reason}")]
pub struct Missing {
    pub capability: Capability,
    /// Name and version of the implementation.
    pub library: String,
    pub reason: Reason,
}
