//! How processes, threads, communicators and places are called.

use std::collections;

use hashbrown::HashMap;
use mpiprobe_trace::{CommunicatorId, Definitions, LocationId, ProcessId};

/// Who is who in a trace that is being exported.
#[derive(Debug)]
pub(crate) struct Names<'a> {
    pub(crate) definitions: &'a Definitions,
    /// Processes that are exported, in the order of jobs and ranks.
    pub(crate) processes: Vec<ProcessId>,
    /// Place there of each process.
    places: HashMap<ProcessId, u32>,
    by_rank: collections::HashMap<(Option<&'a str>, u32), ProcessId>,
    /// By communicator.
    members: Vec<Members>,
    /// By location: which thread of its process it is.
    thread: Vec<u32>,
}

/// Of a communicator, those that are exported: what has only a part of them has other ranks there.
#[derive(Debug, Default)]
pub(crate) struct Members {
    pub(crate) processes: Vec<ProcessId>,
    /// By rank, where in `processes`.
    places: Vec<Option<u32>>,
}

impl Members {
    fn new(by_rank: impl Iterator<Item = Option<ProcessId>>) -> Self {
        let mut all = Self::default();
        for process in by_rank {
            let next = u32::try_from(all.processes.len()).ok();
            all.places.push(next.filter(|_| process.is_some()));
            all.processes.extend(process);
        }
        all
    }

    pub(crate) fn place(&self, rank: usize) -> Option<u32> {
        self.places.get(rank).copied().flatten()
    }

    /// Whether it has members, which are all exported.
    pub(crate) fn are_all(&self) -> bool {
        !self.places.is_empty() && self.processes.len() == self.places.len()
    }
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
        let places: HashMap<ProcessId, u32> = processes.iter().copied().zip(0..).collect();
        let by_rank = definitions.by_rank();
        let exported =
            |rank: u32, job: Option<&'a str>| by_rank.get(&(job, rank)).filter(|id| places.contains_key(*id));
        let members = definitions.communicators.iter().map(|known| {
            let all = known.members.iter().chain(&known.remote_members);
            Members::new(all.map(|&rank| exported(rank?, known.job.as_deref()).copied()))
        });
        Self { definitions, members: members.collect(), places, processes, by_rank, thread }
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

    /// Who is exported of a communicator's members; of both groups of an inter-communicator, the own one first.
    pub(crate) fn members(&self, communicator: CommunicatorId) -> Option<&Members> {
        self.members.get(communicator.index())
    }

    /// As [`Definitions::process_name`] has it.
    pub(crate) fn process(&self, id: ProcessId) -> String {
        self.definitions.process_name(id).unwrap_or_else(|| "process ?".into())
    }
}
