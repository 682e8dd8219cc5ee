//! A job in the background that never outlives its guard.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal};

use crate::command;

/// Every process of a job inherits this; its value is the job's own.
const MARK: &str = "MPIPROBE_XTASK_JOB";

const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(20);

/// A launcher, such as mpirun, and all that it started. Dropping it stops them.
#[derive(Debug)]
pub(crate) struct Job {
    launcher: Child,
    mark: String,
}

impl Job {
    /// Starts `program` in a process group of its own, so that Ctrl-C does not reach it; its output goes to `log`.
    ///
    /// If we are killed without a chance to clean up, the kernel terminates the launcher (`PR_SET_PDEATHSIG`).
    pub(crate) fn start(program: &str, arguments: &[impl AsRef<OsStr>], log: &Path) -> Result<Self> {
        let output = File::create(log).with_context(|| format!("{} cannot be written", log.display()))?;
        let errors = output.try_clone().context("the log file cannot be shared")?;
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mark = format!("{MARK}={}-{}", std::process::id(), since_epoch.as_nanos());
        eprintln!("$ {} &", command::shown(Command::new(program).args(arguments)));
        let (name, value) = mark.split_once('=').unwrap_or((MARK, ""));
        let launcher = Command::new("setpriv")
            .args(["--pdeathsig", "TERM", program])
            .args(arguments)
            .env(name, value)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .spawn()
            .context("setpriv (util-linux) cannot be started")?;
        Ok(Self { launcher, mark })
    }

    /// Waits until the job has written `line` to its output.
    pub(crate) fn wait_for(
        &mut self,
        output: &Path,
        line: &str,
        patience: Duration,
        interrupted: &AtomicBool,
    ) -> Result<()> {
        let end = Instant::now() + patience;
        loop {
            if interrupted.load(Ordering::Relaxed) {
                bail!("interrupted");
            }
            if let Some(status) = self.launcher.try_wait().context("the job cannot be waited for")? {
                bail!("the job ended before it had begun ({status})");
            }
            if fs::read_to_string(output).is_ok_and(|text| text.contains(line)) {
                return Ok(());
            }
            if Instant::now() > end {
                bail!("it has not said `{line}` within {} s", patience.as_secs());
            }
            thread::sleep(PAUSE);
        }
    }

    /// Terminates the launcher, which takes its ranks along; whatever is left after some patience is killed.
    pub(crate) fn stop(&mut self) {
        if let Some(group) = i32::try_from(self.launcher.id()).ok().and_then(Pid::from_raw) {
            // As long as we have not waited for the launcher, its id and so that of its group is not given to others.
            if self.is_running() {
                let _ = kill_process_group(group, Signal::TERM);
                if self.wait(PATIENCE).is_none() {
                    let _ = kill_process_group(group, Signal::KILL);
                }
            }
        }
        let _ = self.launcher.wait();
        let end = Instant::now() + PATIENCE;
        // Launchers put ranks into groups of their own, and a process may fork while we look: until none is left.
        loop {
            let left = self.processes();
            if left.is_empty() || Instant::now() > end {
                return;
            }
            for (_, process) in left {
                let _ = pidfd_send_signal(process, Signal::KILL);
            }
            thread::sleep(PAUSE);
        }
    }

    fn is_running(&mut self) -> bool {
        matches!(self.launcher.try_wait(), Ok(None))
    }

    fn wait(&mut self, patience: Duration) -> Option<ExitStatus> {
        let end = Instant::now() + patience;
        while Instant::now() < end {
            if let Ok(Some(status)) = self.launcher.try_wait() {
                return Some(status);
            }
            thread::sleep(PAUSE);
        }
        None
    }

    /// All processes with the job's mark. The descriptor is opened before the mark is read: it stays with the process
    /// that had the mark even if the id is given to another one.
    fn processes(&self) -> Vec<(Pid, OwnedFd)> {
        let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
        let ids = entries.flatten().filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?));
        let opened = ids.filter_map(|pid| Some((pid, pidfd_open(pid, PidfdFlags::empty()).ok()?)));
        opened.filter(|(pid, _)| self.is_marked(*pid)).collect()
    }

    fn is_marked(&self, pid: Pid) -> bool {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == self.mark.as_bytes())
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.stop();
    }
}
