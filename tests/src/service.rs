//! A node service of a test's own, and its clients. In its `/proc` nobody's processes are shown to anybody else: what it can do it can
//! do by its capabilities.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;
use tempfile::TempDir;

use crate::proc::children;
use crate::profiler::Copy;
use crate::{Ended, Profiler, ProfilerError};

/// Ended when dropped.
#[derive(Debug)]
pub struct NodeService {
    profiler: Profiler,
    folder: TempDir,
    /// For clients of other users.
    copy: Copy,
}

impl NodeService {
    /// Starts one with these settings and waits until it serves (needs root).
    pub fn start(settings: &str) -> Result<Self, ProfilerError> {
        let failed = || ProfilerError::system("making a place for a service");
        let folder = tempfile::tempdir().map_err(failed())?;
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).map_err(failed())?;
        let configuration = folder.path().join("service.toml");
        fs::write(&configuration, settings).map_err(failed())?;
        fs::set_permissions(&configuration, Permissions::from_mode(0o644)).map_err(failed())?;
        let copy = Copy::new()?;
        // Where /proc shows nobody's processes to anybody else.
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", "mount -t proc -o hidepid=2 proc /proc && exec \"$@\"", "sh"]);
        command.arg(copy.path()).args(["-v", "service", "--configuration"]).arg(&configuration);
        command.arg("--socket").arg(folder.path().join("socket"));
        let mut profiler = Profiler::spawn(command)?;
        profiler.wait_for("the service is ready")?;
        Ok(Self { profiler, folder, copy })
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    /// The file with its settings.
    pub fn configuration(&self) -> PathBuf {
        self.folder.path().join("service.toml")
    }

    /// The process that has the rights.
    pub fn profiler(&mut self) -> &mut Profiler {
        &mut self.profiler
    }

    /// Ends it as service managers do, and waits for its end.
    pub fn stop(self) -> Result<Ended, ProfilerError> {
        let Self { profiler, folder: _folder, copy: _copy } = self;
        profiler.signal(Signal::TERM)?;
        profiler.wait()
    }

    /// The process that has none.
    pub fn worker(&self) -> Result<u32, ProfilerError> {
        let is_worker = |pid: &u32| {
            fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "mpiprobe-worker")
        };
        let worker = children(self.profiler.pid()).into_iter().find(is_worker);
        worker.ok_or_else(|| ProfilerError::system("the worker of the service")(std::io::ErrorKind::NotFound.into()))
    }

    /// `mpiprobe ARGUMENTS` as this user, who has no rights and asks this service.
    pub fn client<A: AsRef<OsStr>>(&self, user: u32, arguments: impl IntoIterator<Item = A>) -> Command {
        let mut command = Command::new(self.copy.path());
        command.arg("--socket").arg(self.socket()).args(arguments);
        command.uid(user).gid(user).current_dir(Path::new("/")).env("HOME", "/nonexistent");
        command
    }

    /// The same by way of a command that executes what follows, such as `unshare`.
    pub fn client_by<A: AsRef<OsStr>>(&self, by: &[&str], arguments: impl IntoIterator<Item = A>) -> Command {
        let (first, rest) = by.split_first().unwrap_or((&"env", &[]));
        let mut command = Command::new(first);
        command.args(rest).arg(self.copy.path()).arg("--socket").arg(self.socket()).args(arguments);
        command.current_dir(Path::new("/")).env("HOME", "/nonexistent");
        command
    }

    /// Sends bytes, as this process's user, and gives what comes back until the service closes the connection. `is_all`: nothing more is
    /// going to be sent.
    pub fn send(&self, bytes: &[u8], is_all: bool) -> std::io::Result<Vec<u8>> {
        let mut stream = UnixStream::connect(self.socket())?;
        // The service may have closed it already.
        let _ = stream.write_all(bytes);
        if is_all {
            let _ = stream.shutdown(std::net::Shutdown::Write);
        }
        let mut answer = Vec::new();
        match stream.read_to_end(&mut answer) {
            Err(error) if answer.is_empty() && error.kind() != std::io::ErrorKind::ConnectionReset => Err(error),
            _ => Ok(answer),
        }
    }
}
