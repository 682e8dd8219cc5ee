//! Signals that are meant for the job: mpiprobe stands between it and whoever started it.

use std::{
    io,
    os::fd::{AsFd as _, OwnedFd},
};

use rustix::process::{Signal, pidfd_send_signal};
use signal_hook::{
    consts::signal::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2},
    iterator::{backend::SignalDelivery, exfiltrator::origin::WithOrigin},
    low_level::siginfo::Cause,
};
use tokio::net::UnixStream;

/// Signals that end or steer jobs.
const RELAYED: [i32; 7] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGCONT];

/// Catches signals from when it is made, and hands them on once it is told to whom.
pub(super) struct Relay(SignalDelivery<UnixStream, WithOrigin>);

impl Relay {
    pub(super) fn new() -> io::Result<Self> {
        let (read, write) = UnixStream::pair()?;
        Ok(Self(SignalDelivery::with_pipe(read, write.into_std()?, WithOrigin::default(), RELAYED)?))
    }

    /// Hands all on to the process of a pidfd as long as that lives, beside whatever else is waited for.
    pub(super) fn to(mut self, job: OwnedFd) {
        tokio::spawn(async move {
            while self.arrived().await.is_ok() {
                for origin in self.0.pending() {
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
            }
        });
    }

    /// Waits until there are signals, and takes in all that says so.
    async fn arrived(&self) -> io::Result<()> {
        let pipe = self.0.get_read();
        pipe.readable().await?;
        while pipe.try_read(&mut [0; 64]).is_ok_and(|read| read > 0) {}
        Ok(())
    }
}
