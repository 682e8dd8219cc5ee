//! Child processes of tests, ended with the test.

use std::ffi::OsStr;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::{proc_root::ProcRoot, process::Process};

/// A child that is killed and waited for when dropped.
pub(crate) struct TestChild(Child);

impl TestChild {
    /// Starts `cat`, or a copy of it, which then waits for an end of input that comes when the test ends.
    pub(crate) fn waiting(program: impl AsRef<OsStr>) -> Self {
        Self::cat(&mut Command::new(program))
    }

    /// Starts a command that is `cat`.
    pub(crate) fn cat(command: &mut Command) -> Self {
        let mut child = Self(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap());
        // `spawn` returns when exec(2) can no longer fail, which is before the new program is mapped. What comes back
        // was sent by the program itself.
        child.0.stdin.as_mut().unwrap().write_all(b"x").unwrap();
        let mut echo = [0];
        child.0.stdout.as_mut().unwrap().read_exact(&mut echo).unwrap();
        child
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }

    pub(crate) fn process(&self) -> Process {
        Process::open(&ProcRoot::system().unwrap(), self.pid()).unwrap()
    }

    /// Kills it and leaves it a zombie.
    pub(crate) fn kill(&mut self) {
        self.0.kill().unwrap();
        self.wait_for_end();
    }

    /// Tells it that there is no more, and leaves it a zombie.
    pub(crate) fn end(&mut self) {
        drop(self.0.stdin.take());
        self.wait_for_end();
    }

    fn wait_for_end(&self) {
        let pid = rustix::process::Pid::from_raw(self.0.id().cast_signed()).unwrap();
        let exited = rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT;
        rustix::process::waitid(rustix::process::WaitId::Pid(pid), exited).unwrap();
    }

    /// Takes note of its end, which frees its pid.
    pub(crate) fn reap(&mut self) {
        self.0.wait().unwrap();
    }
}

impl Drop for TestChild {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A copy of `cat` under another name, in a directory of its own.
pub(crate) fn copy_of_cat(folder: &Path, name: &str) -> std::path::PathBuf {
    let path = folder.join(name);
    // By a process of its own: a child that another test forks from this one would inherit the copy open for writing until its
    // exec(2), and a file that is open for writing cannot be executed.
    assert!(Command::new("cp").arg("--").arg("/bin/cat").arg(&path).status().unwrap().success());
    path
}
