//! Requests to stop.

use std::{
    io,
    sync::{Arc, atomic::Ordering},
};

use mpiprobe_discover::foreign::give_up;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGINT, SIGTERM and SIGHUP, caught from when this is made.
#[derive(Debug)]
pub(super) struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl StopSignals {
    pub(super) fn new() -> io::Result<Self> {
        // Heard also where files of others are waited for.
        for kind in [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()] {
            signal_hook::flag::register(kind.as_raw_value(), Arc::clone(give_up()))?;
        }
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for the next one.
    pub(super) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hang_up.recv() => {}
        }
        // What is to be done in the end may take its time, until the next one.
        give_up().store(false, Ordering::Relaxed);
    }
}
