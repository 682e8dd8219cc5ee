//! Three nodes (`n1`, `n2`, `n3`) on this machine that reach each other by ssh, each with the node service.

use std::ffi::{OsStr, OsString};
use std::process::Command;

use crate::ProfilerError;
use crate::bed::{self, Bed, entering, entering_as};
use crate::profiler::binary;
use crate::second_user::nobody_else;

/// Ended when dropped.
#[derive(Debug)]
pub struct SshNodes {
    bed: Bed,
    user: u32,
}

impl SshNodes {
    /// Starts them and waits until all can be reached. Jobs and clients are those of this user, alice or root.
    pub fn start(user: u32) -> Result<Self, ProfilerError> {
        let alice = if user == 0 { nobody_else() } else { user };
        let arguments: [OsString; 3] = [bed::unpacked("sshd")?.into(), binary()?.into(), alice.to_string().into()];
        Ok(Self { bed: Bed::make("ssh.sh", arguments)?, user })
    }

    /// The words that execute what follows on a node as the user.
    pub fn as_user(&self, node: &str) -> Result<Vec<String>, ProfilerError> {
        let first = self.bed.node(node)?;
        Ok(if self.user == 0 { entering(first) } else { entering_as(first, self.user) })
    }

    /// `mpiprobe ARGUMENTS` on a node as the user.
    pub fn client<A: AsRef<OsStr>>(
        &self,
        node: &str,
        arguments: impl IntoIterator<Item = A>,
    ) -> Result<Command, ProfilerError> {
        Ok(bed::client(&self.as_user(node)?, arguments))
    }

    /// Ends everything on a node at once.
    pub fn kill(&self, node: &str) -> Result<(), ProfilerError> {
        self.bed.kill(node)
    }
}
