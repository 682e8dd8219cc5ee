//! Signals that are meant for the job: mpiprobe stands between it and whoever started it.

use std::{
    io,
    os::fd::{AsFd as _, OwnedFd},
    thread,
};

use rustix::process::{Signal, pidfd_send_signal};
use signal_hook::{
    consts::signal::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2},
    iterator::{SignalsInfo, exfiltrator::origin::WithOrigin},
    low_level::siginfo::Cause,
};

/// Signals that end or steer jobs.
const RELAYED: [i32; 7] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGCONT];

/// Catches signals from when it is made, and hands them on once it is told to whom.
pub(in crate::session) struct Relay(SignalsInfo<WithOrigin>);

impl Relay {
    pub(in crate::session) fn new() -> io::Result<Self> {
        Ok(Self(SignalsInfo::new(RELAYED)?))
    }

    /// Hands all on to the process of a pidfd, from a thread of its own, which lives as long as mpiprobe.
    pub(in crate::session) fn to(mut self, job: OwnedFd) {
        thread::spawn(move || {
            for origin in self.0.forever() {
                // What a terminal sends goes to all of its foreground processes, hence to the job as well.
                if matches!(origin.cause, Cause::Kernel) {
                    continue;
                }
                if let Some(signal) = Signal::from_named_raw(origin.signal)
                    && pidfd_send_signal(job.as_fd(), signal).is_err()
                {
                    return;
                }
            }
        });
    }
}
