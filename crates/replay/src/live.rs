//! Wait states of a job that goes on: chunks of a trace as they are written, and how far each process has come by then.

use mpiprobe_model::WaitStates;
use mpiprobe_trace::{
    LocationId, ProcessId,
    store::{FollowError, Following},
};

use crate::{
    clock::Clocks,
    slices::{LocationSlice, Slice, Until},
    waits::{Analysis, Limits},
};

/// The calls of a process that are open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inside {
    pub process: ProcessId,
    /// When the first of them began.
    pub since_ns: u64,
    pub calls: u32,
}

/// See the module.
#[derive(Debug)]
pub struct Live {
    following: Following,
    analysis: Analysis,
}

impl Live {
    pub fn new(limits: Limits) -> Self {
        let following = Following::default();
        let analysis = Analysis::new(following.definitions(), &Clocks::same(), false, 1, limits);
        Self { following, analysis }
    }

    /// The next chunk, or the head of the file.
    pub fn take(&mut self, chunk: &[u8]) -> Result<(), FollowError> {
        self.following.take(chunk)
    }

    /// Events of a location that were recorded, and will not come.
    pub fn lose(&mut self, location: LocationId, events: u64) {
        self.following.lose(location, events);
    }

    /// Events that are here and have not been dealt with.
    pub fn waiting(&self) -> u64 {
        self.following.waiting()
    }

    /// All calls are here that had begun by then, but for those that were open. `now_ns`: the time now.
    pub fn advance(&mut self, at_ns: u64, inside: &[Inside], now_ns: u64) {
        self.following.learn(now_ns);
        let mut until_of = vec![Until::all(at_ns); self.following.definitions().processes.len()];
        for open in inside {
            if let Some(until) = until_of.get_mut(open.process.index()) {
                let ns = open.since_ns.min(at_ns);
                *until = Until { ns, but_one_ns: if open.calls == 1 { at_ns } else { ns } };
            }
        }
        self.step(until_of, at_ns);
    }

    /// Takes in what has come, each process until its time.
    fn step(&mut self, mut until_of: Vec<Until>, at_ns: u64) {
        let mut locations = Vec::new();
        let mut left = vec![(u64::MAX, 0usize); until_of.len()];
        for location in self.following.definitions().location_ids() {
            let process = self.following.definitions().location(location).map(|location| location.process);
            let Some(until) = process.and_then(|process| until_of.get_mut(process.index())) else { continue };
            let mut parts = Vec::new();
            while let Some(part) = self.following.next(location, until.ns) {
                parts.push(part);
            }
            if !parts.is_empty() {
                locations.push(LocationSlice { location, parts });
            }
            if let Some((first_ns, count)) = process.and_then(|process| left.get_mut(process.index())) {
                let (first, waiting) = self.following.waiting_before(location, until.but_one_ns);
                *first_ns = first.map_or(*first_ns, |ns| ns.min(*first_ns));
                *count += waiting;
            }
        }
        for (until, (first_ns, count)) in until_of.iter_mut().zip(left) {
            // What is not taken in yet is known as little as what has not come, unless it is the one call itself.
            if count > 1 || count == 1 && first_ns != until.ns {
                *until = Until::all(until.ns.min(first_ns));
            }
        }
        if self.following.take_news() {
            self.analysis.define(self.following.definitions(), &Clocks::same());
        }
        let until_ns = until_of.iter().map(|until| until.ns).min().unwrap_or(at_ns);
        self.analysis.take(&Slice { until_ns, until_of, locations });
    }

    /// What is known by now.
    pub fn so_far(&self) -> WaitStates {
        self.analysis.so_far()
    }

    /// There is no more.
    pub fn finish(mut self) -> WaitStates {
        // Nothing will be known that is not known now.
        for now_ns in [u64::MAX / 2, u64::MAX] {
            self.following.learn(now_ns);
            let processes = self.following.definitions().processes.len();
            self.step(vec![Until::all(u64::MAX); processes], u64::MAX);
        }
        self.analysis.finish()
    }
}

#[cfg(test)]
#[path = "live_tests.rs"]
mod tests;
