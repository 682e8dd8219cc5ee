//! How processes, threads, communicators and places are called.

use std::collections::HashMap;

use mpiprobe_trace::{Communicator, CommunicatorId, CommunicatorKind, Definitions, LocationId, ProcessId};

/// Who is who in a trace that is being exported.
#[derive(Debug)]
pub(crate) struct Names<'a> {
    pub(crate) definitions: &'a Definitions,
    /// Processes that are exported, in the order of jobs and ranks.
    pub(crate) processes: Vec<ProcessId>,
    /// Place there of each process.
    places: HashMap<ProcessId, u32>,
    by_rank: HashMap<(Option<&'a str>, u32), ProcessId>,
    /// By location: which thread of its process it is.
    thread: Vec<u32>,
}

impl<'a> Names<'a> {
    /// Of those processes that have ranks or threads to be shown.
    pub(crate) fn new(definitions: &'a Definitions, is_shown: impl Fn(LocationId) -> bool) -> Self {
        let shown = |id: &ProcessId| definitions.threads(*id).any(&is_shown);
        let ids = (0..u32::try_from(definitions.processes.len()).unwrap_or(u32::MAX)).map(ProcessId);
        let mut processes: Vec<ProcessId> = ids.filter(shown).collect();
        let key =
            |id: &ProcessId| definitions.process(*id).map(|process| (process.job.clone(), process.rank, process.pid));
        processes.sort_by_key(key);
        let mut thread = Vec::new();
        let mut of_process: HashMap<ProcessId, u32> = HashMap::new();
        for location in &definitions.locations {
            let next = of_process.entry(location.process).or_insert(0);
            thread.push(*next);
            *next += 1;
        }
        Self {
            definitions,
            places: processes.iter().copied().zip(0..).collect(),
            processes,
            by_rank: definitions.by_rank(),
            thread,
        }
    }

    /// Place of a process among those that are exported.
    pub(crate) fn place(&self, process: ProcessId) -> Option<u32> {
        self.places.get(&process).copied()
    }

    /// Which thread of its process it is, from 0 on.
    pub(crate) fn thread(&self, location: LocationId) -> u32 {
        self.thread.get(location.index()).copied().unwrap_or(0)
    }

    /// The process that another one means by a rank, if it is exported.
    pub(crate) fn peer(&self, from: ProcessId, communicator: CommunicatorId, rank: u32) -> Option<ProcessId> {
        let known = self.definitions.process_at(&self.by_rank, from, communicator, rank)?;
        self.places.contains_key(&known).then_some(known)
    }

    /// All members by rank, if all are exported; of both groups of an inter-communicator.
    pub(crate) fn members(&self, communicator: &Communicator) -> Option<Vec<ProcessId>> {
        if communicator.kind == CommunicatorKind::Own || communicator.members.is_empty() {
            return None;
        }
        let all = communicator.members.iter().chain(&communicator.remote_members);
        all.map(|&rank| {
            let process = self.by_rank.get(&(communicator.job.as_deref(), rank?)).copied()?;
            self.places.contains_key(&process).then_some(process)
        })
        .collect()
    }

    /// "rank 3", "rank 3 of job 17" where there are several, "process 1234".
    pub(crate) fn process(&self, id: ProcessId) -> String {
        let Some(process) = self.definitions.process(id) else { return "process ?".into() };
        let several = self.definitions.processes.iter().any(|other| other.job != process.job);
        match (process.rank, &process.job) {
            (Some(rank), Some(job)) if several => format!("rank {rank} of {job}"),
            (Some(rank), _) => format!("rank {rank}"),
            (None, _) => format!("process {}", process.pid),
        }
    }
}
