//! A cluster of Slurm's on this machine: a controller (`n0`) and two nodes (`n1`, `n2`) with the node service.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::bed::{self, Bed, entering, entering_as, sources, wait_until};
use crate::profiler::binary;
use crate::{Ended, Profiler, ProfilerError};

/// Ended when dropped.
#[derive(Debug)]
pub struct Slurm {
    bed: Bed,
    user: u32,
}

impl Slurm {
    /// Starts it and waits until both nodes take jobs. Its one ordinary user, alice, has this number.
    pub fn start(user: u32) -> Result<Self, ProfilerError> {
        let user_number = user.to_string();
        let arguments =
            [bed::unpacked("Slurm")?.into(), sources().into_os_string(), binary()?.into(), user_number.into()];
        let slurm = Self { bed: Bed::make("slurm.sh", arguments)?, user };
        wait_until("both nodes take jobs", || {
            Ok(slurm.asked("n0", ["sinfo", "--noheader", "--states=idle", "--format=%D"])?.stdout == ["2"])
        })?;
        Ok(slurm)
    }

    /// What executes what follows on a node, as root.
    pub fn on<A: AsRef<OsStr>>(
        &self,
        node: &str,
        words: impl IntoIterator<Item = A>,
    ) -> Result<Command, ProfilerError> {
        let mut command = bed::command(&entering(self.bed.node(node)?));
        command.args(words);
        Ok(command)
    }

    /// The same to its end.
    pub fn asked<A: AsRef<OsStr>>(
        &self,
        node: &str,
        words: impl IntoIterator<Item = A>,
    ) -> Result<Ended, ProfilerError> {
        Profiler::spawn(self.on(node, words)?)?.wait()
    }

    /// The words that execute what follows on a node as alice, who has no rights.
    pub fn as_user(&self, node: &str) -> Result<Vec<String>, ProfilerError> {
        Ok(entering_as(self.bed.node(node)?, self.user))
    }

    /// `mpiprobe ARGUMENTS` on a node as alice.
    pub fn client<A: AsRef<OsStr>>(
        &self,
        node: &str,
        arguments: impl IntoIterator<Item = A>,
    ) -> Result<Command, ProfilerError> {
        Ok(bed::client(&self.as_user(node)?, arguments))
    }

    /// The node's own view of a path.
    pub fn path(&self, node: &str, path: &str) -> Result<PathBuf, ProfilerError> {
        Ok(Path::new("/proc").join(self.bed.node(node)?.to_string()).join("root").join(path))
    }

    /// What a file on a node holds; empty: it is not there.
    pub fn read(&self, node: &str, path: &str) -> Result<String, ProfilerError> {
        Ok(fs::read_to_string(self.path(node, path)?).unwrap_or_default())
    }

    /// Ends everything on a node at once.
    pub fn kill(&self, node: &str) -> Result<(), ProfilerError> {
        self.bed.kill(node)
    }
}
