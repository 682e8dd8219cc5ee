//! Where functions are probed, and for whom.

use serde::{Deserialize, Serialize};

/// Where one function is probed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeSite {
    /// Bytes into the file.
    pub offset: u64,
    /// What the programs are told with each hit: a [`mpiprobe_common::Cookie`], or of a tool a [`mpiprobe_common::ToolCookie`].
    pub cookie: u64,
}

/// Whose calls reach the programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Scope {
    /// Of all processes that map the file; the allow-list sorts them out. Later processes are caught from their first call.
    Inode,
    /// Of one process only: others that map the file pay nothing.
    Process(u32),
}

impl Scope {
    pub(crate) fn pid(self) -> Option<u32> {
        match self {
            Self::Inode => None,
            Self::Process(pid) => Some(pid),
        }
    }
}
