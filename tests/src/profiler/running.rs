//! A running `mpiprobe`, and what is left when it has ended.

use std::ffi::OsStr;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

use super::lines::{Lines, Wait};
use super::{Profile, ProfilerError, binary};

/// Far more than anything takes, on a machine that has much else to do.
const PATIENCE: Duration = Duration::from_mins(5);

/// Killed when dropped.
#[derive(Debug)]
pub struct Profiler {
    child: Child,
    stdout: Lines,
    stderr: Lines,
    /// Lines of standard error that were waited for already.
    seen: usize,
}

/// An `mpiprobe` that has ended.
#[derive(Debug, Clone)]
pub struct Ended {
    pub status: ExitStatus,
    pub stdout: Vec<String>,
    pub stderr: Vec<String>,
}

impl Profiler {
    /// Starts `mpiprobe ARGUMENTS`.
    pub fn start<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Result<Self, ProfilerError> {
        let mut command = Command::new(binary()?);
        command.args(arguments);
        Self::spawn(command)
    }

    /// Starts `mpiprobe --wait ARGUMENTS` and waits until that waits for somebody.
    pub fn waiting<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Result<Self, ProfilerError> {
        let mut command = Command::new(binary()?);
        command.arg("--wait").args(arguments);
        let mut profiler = Self::spawn(command)?;
        profiler.wait_for("waiting for an MPI process")?;
        Ok(profiler)
    }

    /// Starts `mpiprobe --json ARGUMENTS` and waits until it observes.
    pub fn observe<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Result<Self, ProfilerError> {
        Self::observe_with(&[], arguments)
    }

    /// The same with these variables of the environment.
    pub fn observe_with<A: AsRef<OsStr>>(
        variables: &[(&str, &str)],
        arguments: impl IntoIterator<Item = A>,
    ) -> Result<Self, ProfilerError> {
        let mut command = Command::new(binary()?);
        command.envs(variables.iter().copied());
        // One profile, at the end: reading intervals is not what most tests are about.
        command.args(["--json", "--interval", "1h"]).args(arguments);
        let mut profiler = Self::spawn(command)?;
        profiler.wait_for("mpiprobe: observing ")?;
        Ok(profiler)
    }

    /// Starts a command made from [`binary`], which may set up another user or standard output before.
    pub fn spawn(mut command: Command) -> Result<Self, ProfilerError> {
        command.stdin(Stdio::null());
        Self::with_output(command)
    }

    /// The same with an input, which is open as long as what is given back.
    pub(crate) fn spawn_with_input(mut command: Command) -> Result<(Self, ChildStdin), ProfilerError> {
        command.stdin(Stdio::piped());
        let mut profiler = Self::with_output(command)?;
        let input = profiler.child.stdin.take().ok_or_else(|| std::io::Error::other("no pipe"));
        Ok((profiler, input.map_err(ProfilerError::system("standard input"))?))
    }

    fn with_output(mut command: Command) -> Result<Self, ProfilerError> {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        // Not the signals of the test's terminal, and no log settings from outside.
        command.process_group(0).env_remove("RUST_LOG");
        let mut child = command.spawn().map_err(ProfilerError::system(format!("{command:?}")))?;
        let missing = || std::io::Error::other("no pipe");
        let stdout = child.stdout.take().ok_or_else(missing).map_err(ProfilerError::system("standard output"))?;
        let stderr = child.stderr.take().ok_or_else(missing).map_err(ProfilerError::system("standard error"))?;
        Ok(Self { child, stdout: Lines::of(stdout), stderr: Lines::of(stderr), seen: 0 })
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the next line on standard error that contains `text`.
    pub fn wait_for(&mut self, text: &str) -> Result<String, ProfilerError> {
        let what = || format!("{text:?} on standard error");
        match self.stderr.wait_for(text, &mut self.seen, PATIENCE) {
            Wait::Line(line) => Ok(line),
            Wait::Timeout => Err(ProfilerError::Timeout { what: what(), waited: PATIENCE, output: self.printed() }),
            Wait::Closed => {
                let status = self.child.wait().ok();
                Err(ProfilerError::Ended { what: what(), status, output: self.printed() })
            }
        }
    }

    /// Waits until so many processes are observed: those of the first look, and those that join.
    pub fn wait_for_processes(&mut self, number: usize) -> Result<(), ProfilerError> {
        let mut observed = 0;
        while observed < number {
            let line = self.wait_for("mpiprobe: ")?;
            let first_look =
                line.split_once("observing ").and_then(|(_, rest)| rest.split_whitespace().next()?.parse().ok());
            observed += if line.contains("mpiprobe: joined: ") { 1 } else { first_look.unwrap_or(0) };
        }
        Ok(())
    }

    /// Waits until it is known of so many processes how their MPI keeps its objects, so that no call's meaning is missed that comes
    /// now. Needs `-v`.
    pub fn wait_for_meaning(&mut self, number: usize) -> Result<(), ProfilerError> {
        (0..number).try_for_each(|_| self.wait_for("has initialised MPI").map(drop))
    }

    /// Waits for the next line of standard output (`nth` from 0).
    pub fn wait_for_output(&mut self, nth: usize) -> Result<String, ProfilerError> {
        let what = || format!("line {nth} on standard output");
        match self.stdout.wait_for("", &mut nth.clone(), PATIENCE) {
            Wait::Line(line) => Ok(line),
            Wait::Timeout => Err(ProfilerError::Timeout { what: what(), waited: PATIENCE, output: self.printed() }),
            Wait::Closed => {
                Err(ProfilerError::Ended { what: what(), status: self.child.wait().ok(), output: self.printed() })
            }
        }
    }

    /// Waits for a line of standard output that contains `text`.
    pub fn wait_for_output_with(&mut self, text: &str) -> Result<String, ProfilerError> {
        let what = || format!("{text:?} on standard output");
        match self.stdout.wait_for(text, &mut 0, PATIENCE) {
            Wait::Line(line) => Ok(line),
            Wait::Timeout => Err(ProfilerError::Timeout { what: what(), waited: PATIENCE, output: self.printed() }),
            Wait::Closed => {
                Err(ProfilerError::Ended { what: what(), status: self.child.wait().ok(), output: self.printed() })
            }
        }
    }

    pub fn signal(&self, signal: Signal) -> Result<(), ProfilerError> {
        kill_process(self.process()?, signal).map_err(|error| ProfilerError::System {
            what: format!("sending a signal to mpiprobe ({})", self.pid()),
            source: error.into(),
        })
    }

    /// Waits for its end.
    pub fn wait(mut self) -> Result<Ended, ProfilerError> {
        let system = |error: rustix::io::Errno| ProfilerError::System {
            what: "waiting for mpiprobe".into(),
            source: error.into(),
        };
        let pidfd = pidfd_open(self.process()?, PidfdFlags::empty()).map_err(system)?;
        let timeout = Timespec { tv_sec: i64::try_from(PATIENCE.as_secs()).unwrap_or(i64::MAX), tv_nsec: 0 };
        let ready = poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&timeout)).map_err(system)?;
        if ready == 0 {
            let output = self.printed();
            return Err(ProfilerError::Timeout { what: "its end".into(), waited: PATIENCE, output });
        }
        let status = self.child.wait().map_err(ProfilerError::system("waiting for mpiprobe"))?;
        Ok(Ended { status, stdout: self.stdout.all(PATIENCE), stderr: self.stderr.all(PATIENCE) })
    }

    /// Asks it to end as Ctrl-C does, and waits for that.
    pub fn interrupt(self) -> Result<Ended, ProfilerError> {
        self.signal(Signal::INT)?;
        self.wait()
    }

    fn process(&self) -> Result<Pid, ProfilerError> {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        pid.ok_or_else(|| ProfilerError::system("the pid of mpiprobe")(std::io::Error::other("out of range")))
    }

    fn printed(&self) -> String {
        printed(&self.stdout.now(), &self.stderr.now())
    }
}

impl Drop for Profiler {
    fn drop(&mut self) {
        // Both fail if it has ended, which is all that is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Ended {
    /// The last line of standard output, which `--json` makes the final profile.
    pub fn profile(&self) -> Result<Profile, ProfilerError> {
        let parse = |line: &String| serde_json::from_str(line).map_err(|error| error.to_string());
        let profile = self.stdout.last().ok_or_else(|| "there is none".to_owned()).and_then(parse);
        profile.map_err(|reason| ProfilerError::NoProfile { reason, output: self.printed() })
    }

    /// All that was printed, for messages.
    pub fn printed(&self) -> String {
        format!("mpiprobe: {}\n{}", self.status, printed(&self.stdout, &self.stderr))
    }
}

fn printed(stdout: &[String], stderr: &[String]) -> String {
    format!(
        "--- mpiprobe's standard output\n{}\n--- mpiprobe's standard error\n{}",
        stdout.join("\n"),
        stderr.join("\n")
    )
}
