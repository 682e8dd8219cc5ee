//! What an observation of processes that count themselves waits for: their ends, and the time to look for new ones.

use std::time::Duration;

use mpiprobe_discover::Process;
use tokio::time::Interval;

use crate::session::{error::SessionError, event_loop::regular, watch::EndWatch};

/// Waits for changes among some processes.
#[derive(Debug)]
pub(super) struct Changes {
    ends: EndWatch,
    looks: Interval,
}

/// What there is to do.
#[derive(Debug)]
pub(in crate::session) enum Event {
    /// Processes have ended, given by the tokens of their watches: their slots, or a command's.
    Ended(Vec<u64>),
    /// New processes may have come.
    Look,
}

impl Changes {
    /// Of processes that are watched already, if any; new ones are looked for once in each `interval`.
    pub(super) fn new(ends: EndWatch, interval: Duration) -> Self {
        Self { ends, looks: regular(interval) }
    }

    /// Watches for the end of the process in a slot.
    pub(super) fn add(&self, process: &Process, slot: u32) {
        self.ends.add_process(process, slot);
    }

    pub(super) async fn next(&mut self) -> Result<Event, SessionError> {
        tokio::select! {
            ended = self.ends.ended() => Ok(Event::Ended(ended.map_err(SessionError::Watch)?)),
            _ = self.looks.tick() => Ok(Event::Look),
        }
    }
}
