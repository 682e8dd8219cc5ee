//! A copy of `mpiprobe` that other users may execute: the build directory need not be open to them.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use super::{ProfilerError, binary};
use crate::executable::copy_executable;

/// Gone when dropped.
#[derive(Debug)]
pub struct Copy {
    path: PathBuf,
    _directory: TempDir,
}

impl Copy {
    pub fn new() -> Result<Self, ProfilerError> {
        let failed = || ProfilerError::system("copying mpiprobe");
        let directory = tempfile::tempdir().map_err(failed())?;
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).map_err(failed())?;
        let path = directory.path().join("mpiprobe");
        copy_executable(binary()?, &path).map_err(failed())?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).map_err(failed())?;
        Ok(Self { path, _directory: directory })
    }

    /// As `setcap cap_bpf,cap_perfmon,cap_sys_ptrace=ep` does (needs root).
    pub fn with_capabilities() -> Result<Self, ProfilerError> {
        const SYS_PTRACE: u32 = 1 << 19;
        // CAP_PERFMON (38) and CAP_BPF (39) are in the upper word.
        const PERFMON_AND_BPF: u32 = 1 << 6 | 1 << 7;
        /// `struct vfs_cap_data`, revision 2, effective (include/uapi/linux/capability.h): permitted and inheritable, twice.
        const WORDS: [u32; 5] = [0x0200_0001, SYS_PTRACE, 0, PERFMON_AND_BPF, 0];
        let copy = Self::new()?;
        let value: Vec<u8> = WORDS.into_iter().flat_map(u32::to_le_bytes).collect();
        rustix::fs::setxattr(copy.path(), "security.capability", &value, rustix::fs::XattrFlags::empty())
            .map_err(|error| ProfilerError::system("giving mpiprobe capabilities")(error.into()))?;
        Ok(copy)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// `mpiprobe ARGUMENTS` as this user and group (needs root).
    pub fn command<A: AsRef<OsStr>>(&self, user: u32, arguments: impl IntoIterator<Item = A>) -> Command {
        let mut command = Command::new(&self.path);
        command.args(arguments).uid(user).gid(user).current_dir(Path::new("/"));
        command
    }
}
