//! The `mpiprobe` binary on a pseudo-terminal, as a user sits before it: keys, a screen of some size, and what is left when it has
//! ended.

mod error;
mod screen;

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcgetattr, tcsetwinsize};

use self::screen::Screen;
use crate::profiler::binary;

pub use error::TerminalError;

/// Far more than anything takes, on a machine that has much else to do.
const PATIENCE: Duration = Duration::from_mins(5);
/// What gives a program a terminal of its own, so that it hears of new sizes: a program, since doing it oneself needs unsafe code.
pub const STARTER: &str = "setsid";
/// Options for a display that is renewed often: no test has to wait long for what it looks for.
pub const FAST: &[&str] = &["--interval", "250ms"];
const LEAVE_ALTERNATE_SCREEN: &str = "\u{1b}[?1049l";

/// Killed when dropped.
#[derive(Debug)]
pub struct Terminal {
    child: Child,
    /// Ours: what it prints comes out, what is typed goes in.
    controller: File,
    /// Its own. Open until the end, so that its settings can be asked for.
    device: Option<OwnedFd>,
    /// How the terminal was set before.
    settings: String,
    screen: Screen,
}

/// What is left when `mpiprobe` has ended.
#[derive(Debug, Clone)]
pub struct Left {
    pub status: ExitStatus,
    /// What was printed after the screen was given back.
    pub printed: String,
    /// What of the terminal is not as it was, in words.
    pub not_restored: Vec<String>,
}

impl Terminal {
    /// Starts `mpiprobe ARGUMENTS` on a terminal of so many columns and rows.
    pub fn start<A: AsRef<OsStr>>(
        size: (u16, u16),
        arguments: impl IntoIterator<Item = A>,
    ) -> Result<Self, TerminalError> {
        Self::start_in(Path::new("."), size, arguments)
    }

    /// The same in a directory.
    pub fn start_in<A: AsRef<OsStr>>(
        directory: &Path,
        (columns, rows): (u16, u16),
        arguments: impl IntoIterator<Item = A>,
    ) -> Result<Self, TerminalError> {
        let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)
            .map_err(TerminalError::system("a pseudo-terminal"))?;
        grantpt(&controller).and_then(|()| unlockpt(&controller)).map_err(TerminalError::system("its device"))?;
        let device = ioctl_tiocgptpeer(&controller, OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)
            .map_err(TerminalError::system("its device"))?;
        tcsetwinsize(&controller, size(columns, rows)).map_err(TerminalError::system("its size"))?;
        let settings = settings(&device)?;
        let mut command = Command::new(STARTER);
        command.arg("--ctty").arg(binary()?).args(arguments).current_dir(directory);
        let device_again = || device.try_clone().map_err(TerminalError::system("its device"));
        command.stdin(device_again()?).stdout(device_again()?).stderr(device_again()?);
        command.env("TERM", "xterm-256color").env("LC_ALL", "C.UTF-8");
        command.env_remove("NO_COLOR").env_remove("COLORFGBG").env_remove("RUST_LOG");
        let child = command.spawn().map_err(TerminalError::system(format!("{command:?}")))?;
        let controller = File::from(controller);
        let output = controller.try_clone().map_err(TerminalError::system("its output"))?;
        Ok(Self { child, controller, device: Some(device), settings, screen: Screen::of(output, columns, rows) })
    }

    /// Waits until the screen shows all these texts, and gives the whole screen.
    pub fn wait_for(&self, texts: &[&str]) -> Result<String, TerminalError> {
        self.wait_until(&format!("{texts:?}"), |shown| texts.iter().all(|text| shown.contains(text)))
    }

    /// Waits until the screen, given as its lines, is as wanted.
    pub fn wait_until(&self, what: &str, is_it: impl Fn(&str) -> bool) -> Result<String, TerminalError> {
        self.screen.wait_until(PATIENCE, is_it).map_err(|screen| TerminalError::Timeout {
            what: what.to_owned(),
            waited: PATIENCE,
            screen,
        })
    }

    /// Presses keys, each a letter, or what a terminal sends for others.
    pub fn press(&mut self, keys: &str) -> Result<(), TerminalError> {
        self.controller.write_all(keys.as_bytes()).map_err(TerminalError::system("a key"))
    }

    /// Makes the window larger or smaller.
    pub fn resize(&self, columns: u16, rows: u16) -> Result<(), TerminalError> {
        self.screen.resize(columns, rows);
        tcsetwinsize(&self.controller, size(columns, rows)).map_err(TerminalError::system("a new size"))
    }

    pub fn signal(&self, signal: Signal) -> Result<(), TerminalError> {
        kill_process(self.process()?, signal).map_err(TerminalError::system("a signal"))
    }

    /// Waits for its end.
    pub fn left(mut self) -> Result<Left, TerminalError> {
        let pidfd =
            pidfd_open(self.process()?, PidfdFlags::empty()).map_err(TerminalError::system("mpiprobe's end"))?;
        let timeout = Timespec { tv_sec: i64::try_from(PATIENCE.as_secs()).unwrap_or(i64::MAX), tv_nsec: 0 };
        let ready = poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&timeout))
            .map_err(TerminalError::system("its end"))?;
        if ready == 0 {
            let (what, screen) = ("its end".to_owned(), self.screen.now());
            return Err(TerminalError::Timeout { what, waited: PATIENCE, screen });
        }
        let status = self.child.wait().map_err(TerminalError::system("its end"))?;
        let mut not_restored = Vec::new();
        // Closed then: while somebody may still write, reading does not end.
        if let Some(device) = self.device.take() {
            let settings = settings(&device)?;
            if settings != self.settings {
                not_restored.push(format!("settings: {} before, {settings} now", self.settings));
            }
        }
        let all = self.screen.end(PATIENCE).ok_or_else(|| TerminalError::Timeout {
            what: "the end of its output".to_owned(),
            waited: PATIENCE,
            screen: String::new(),
        })?;
        not_restored.extend(all.not_restored.into_iter().map(ToOwned::to_owned));
        let printed = all.output.rsplit_once(LEAVE_ALTERNATE_SCREEN).map_or(all.output.as_str(), |(_, after)| after);
        Ok(Left { status, printed: printed.to_owned(), not_restored })
    }

    fn process(&self) -> Result<Pid, TerminalError> {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        pid.ok_or_else(|| TerminalError::system("the pid of mpiprobe")(std::io::Error::other("out of range")))
    }
}

/// The process is killed with it, which is nothing to one that has ended.
impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn size(columns: u16, rows: u16) -> Winsize {
    Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}

/// Echo, lines, signals and all else that a program can change, as text to be compared.
fn settings(device: &OwnedFd) -> Result<String, TerminalError> {
    tcgetattr(device).map(|settings| format!("{settings:?}")).map_err(TerminalError::system("the terminal's settings"))
}
