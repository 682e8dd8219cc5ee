//! With what a process has ended that has failed.
#![expect(unsafe_code, reason = "no library has the kernel's question for it yet")]

use std::fmt;
use std::os::fd::BorrowedFd;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use rustix::ioctl::{Opcode, Updater, ioctl, opcode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a process has ended that was not successful.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// By itself, with this status, which is not 0.
    ExitStatus(u8),
    /// By a signal, of this number.
    Signal(u8),
}

impl Failure {
    /// By the signal by which launchers end the others where one has failed (SIGTERM).
    pub fn is_termination(self) -> bool {
        self == Self::Signal(15)
    }

    /// By a signal that a process is mostly sent by somebody else: a user, a launcher, a batch system, or the kernel if there is no memory
    /// left (SIGHUP, SIGINT, SIGKILL, SIGTERM, SIGXCPU).
    pub fn is_from_outside(self) -> bool {
        matches!(self, Self::Signal(1 | 2 | 9 | 15 | 24))
    }

    /// Of a status as wait(2) gives it; `None`: it was successful.
    pub(crate) fn of(status: i32) -> Option<Self> {
        let status = ExitStatus::from_raw(status);
        match (status.signal(), status.code()) {
            (Some(signal), _) => u8::try_from(signal).ok().map(Self::Signal),
            (None, code) => u8::try_from(code?).ok().filter(|&code| code != 0).map(Self::ExitStatus),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::ExitStatus(status) => write!(f, "exit status {status}"),
            // The library's own words have the name of the signal.
            Self::Signal(number) => {
                let words = ExitStatus::from_raw(number.into()).to_string();
                f.write_str(&words.replacen(':', "", 1))
            }
        }
    }
}

/// `struct pidfd_info` (include/uapi/linux/pidfd.h), in words: the mask comes first, and the status of the process is the last half.
type PidfdInfo = [u64; 8];
const GET_INFO: Opcode = opcode::read_write::<PidfdInfo>(0xff, 11);
/// `PIDFD_INFO_EXIT`: since Linux 6.15, once its parent has been told.
const STATUS: u64 = 1 << 3;

/// The status as wait(2) gives it of a process whose parent has been told of its end.
pub(crate) fn status_of_reaped(pidfd: BorrowedFd<'_>) -> Option<i32> {
    let mut info: PidfdInfo = [STATUS, 0, 0, 0, 0, 0, 0, 0];
    // SAFETY: the kernel reads and writes as many bytes as the number of the request says, which are those of the type; any value of
    // them is one of the type. A kernel that does not know the request, and a descriptor that is no pidfd, refuse it.
    unsafe { ioctl(pidfd, Updater::<GET_INFO, PidfdInfo>::new(&mut info)).ok()? };
    let [mask, .., last] = info;
    (mask & STATUS != 0).then_some(((last >> 32) as u32).cast_signed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_told_from_signals() {
        let told = |status| Failure::of(status).map(|failure| failure.to_string());
        assert_eq!(told(0), None);
        assert_eq!(told(3 << 8).unwrap(), "exit status 3");
        assert_eq!(told(11).unwrap(), "signal 11 (SIGSEGV)");
        // It has left a core.
        assert_eq!(told(0x80 | 6).unwrap(), "signal 6 (SIGABRT)");
        assert_eq!(
            serde_json::to_string(&[Failure::Signal(9), Failure::ExitStatus(1)]).unwrap(),
            r#"[{"signal":9},{"exit_status":1}]"#
        );
    }
}
