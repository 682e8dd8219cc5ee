//! A command that is there, with its process id, and does not run yet: whoever wants to see all of it has time to get ready.
#![expect(unsafe_code, reason = "what a child does between fork and exec may be system calls only")]

use std::{
    fs::File,
    io::{self, Read as _},
    os::{
        fd::{AsRawFd as _, OwnedFd},
        unix::process::CommandExt as _,
    },
    process::{Child, Command},
    thread::{self, JoinHandle},
};

use mpiprobe_discover::files::with_callers_rights;
use rustix::{
    io::{read, retry_on_intr, write},
    pipe::{PipeFlags, pipe_with},
};

/// A child before its exec. Dropped, it ends without having run anything.
#[derive(Debug)]
pub(super) struct Held {
    pid: u32,
    go: OwnedFd,
    /// Ends when the command runs, or cannot.
    spawning: JoinHandle<io::Result<Child>>,
}

impl Held {
    pub(super) fn new(mut command: Command) -> io::Result<Self> {
        let (wait, go) = pipe_with(PipeFlags::CLOEXEC)?;
        let (told, tell) = pipe_with(PipeFlags::CLOEXEC)?;
        let go_number = go.as_raw_fd();
        let hold = move || {
            // Of the child only: so that it sees the end of mpiprobe, whatever ends that.
            // SAFETY: a descriptor that nothing in the child uses.
            unsafe { libc::close(go_number) };
            write(&tell, &std::process::id().to_ne_bytes())?;
            let mut word = [0];
            match retry_on_intr(|| read(&wait, &mut word))? {
                0 => Err(io::ErrorKind::BrokenPipe.into()),
                _ => Ok(()),
            }
        };
        // SAFETY: makes system calls only, on descriptors that it owns.
        unsafe { command.pre_exec(hold) };
        let spawning = thread::Builder::new().spawn(move || with_callers_rights(|| command.spawn()))?;
        let mut pid = [0; 4];
        match File::from(told).read_exact(&mut pid) {
            Ok(()) => Ok(Self { pid: u32::from_ne_bytes(pid), go, spawning }),
            // There is no child.
            Err(error) => match spawning.join() {
                Ok(Err(error)) => Err(error),
                _ => Err(error),
            },
        }
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    /// Lets it run; an error if there is no such program.
    pub(super) fn run(self) -> io::Result<Child> {
        retry_on_intr(|| write(&self.go, &[1]))?;
        self.spawning.join().map_err(|_| io::Error::from(io::ErrorKind::Other))?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_runs_before_it_is_let_go() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("made");
        let mut command = Command::new("touch");
        command.arg(&path);
        let held = Held::new(command).unwrap();
        let executable = std::fs::read_link(format!("/proc/{}/exe", held.pid())).unwrap();
        assert_eq!(executable, std::env::current_exe().unwrap());
        assert!(!path.exists());
        let pid = held.pid();
        let mut child = held.run().unwrap();
        assert_eq!(child.id(), pid);
        assert!(child.wait().unwrap().success() && path.exists());
    }

    #[test]
    fn what_cannot_be_run_is_told_when_it_is_let_go() {
        let held = Held::new(Command::new("/no/such/program")).unwrap();
        assert_eq!(held.run().unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn dropped_it_ends() {
        let held = Held::new(Command::new("true")).unwrap();
        let Held { go, spawning, .. } = held;
        drop(go);
        assert!(spawning.join().unwrap().is_err());
    }
}
