//! The processes of a job: finding them, and ending them.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use super::builder::DIRECTORY_VARIABLE;
use super::{Job, JobError, POLL};
use crate::proc::{self, Process};

/// Far longer than a process takes to die.
const DEATH: Duration = Duration::from_mins(1);

impl Job {
    pub fn launcher_pid(&self) -> u32 {
        self.launcher.id()
    }

    /// Waits until all ranks run; rank → pid. Ranks seen once stay in the map when they end.
    pub fn ranks(&mut self) -> Result<BTreeMap<u32, u32>, JobError> {
        self.wait_until("all ranks to run", |job| {
            if job.ranks.len() < job.size as usize {
                for process in job.processes() {
                    let Some(rank) = process.rank else { continue };
                    // A child of a rank has its environment: the rank is the older one.
                    let known = job.ranks.entry(rank).or_insert_with(|| process.clone());
                    if process.start_time < known.start_time {
                        *known = process;
                    }
                }
            }
            let complete = job.ranks.len() >= job.size as usize;
            Ok(complete.then(|| job.ranks.iter().map(|(rank, process)| (*rank, process.pid)).collect()))
        })
    }

    /// Waits until the command that has started the job, which is `mpiprobe run`, will be told of the end of all ranks.
    pub fn wait_until_watched(&mut self) -> Result<(), JobError> {
        let pids: Vec<u32> = self.ranks()?.into_values().collect();
        self.wait_until("all ranks to be watched", |job| {
            let watched = proc::pidfds(job.launcher.id());
            Ok(pids.iter().all(|pid| watched.contains(pid)).then_some(()))
        })
    }

    pub fn kill_rank(&mut self, rank: u32, signal: Signal) -> Result<(), JobError> {
        self.ranks()?;
        let alive = self.ranks.get(&rank).filter(|process| process.is_alive()).map(|process| process.pid);
        let pid = alive.ok_or_else(|| JobError::NoRank { job: self.name.clone(), rank, output: self.printed() })?;
        self.signal(pid, signal)
    }

    /// SIGKILL for every rank that still runs. As soon as the first is dead the launcher may end the others, and that is as good.
    pub fn kill_ranks(&mut self) -> Result<(), JobError> {
        self.ranks()?;
        for process in self.ranks.values().filter(|process| process.is_alive()) {
            let _ = self.signal(process.pid, Signal::KILL);
        }
        Ok(())
    }

    /// SIGKILL: the launcher gets no chance to end its ranks.
    pub fn kill_launcher(&mut self) -> Result<(), JobError> {
        self.signal(self.launcher_pid(), Signal::KILL)
    }

    /// Sends a signal to the launcher, or to what it was started [under](crate::JobBuilder::under).
    pub fn signal_launcher(&mut self, signal: Signal) -> Result<(), JobError> {
        self.signal(self.launcher_pid(), signal)
    }

    /// Ranks that still run.
    pub fn living_ranks(&mut self) -> Result<Vec<u32>, JobError> {
        self.ranks()?;
        let living = self.ranks.iter().filter(|(_, process)| process.is_alive());
        Ok(living.map(|(rank, _)| *rank).collect())
    }

    fn signal(&self, pid: u32, signal: Signal) -> Result<(), JobError> {
        let result = target(pid).map_or(Err(rustix::io::Errno::SRCH), |target| kill_process(target, signal));
        result.map_err(|error| JobError::Signal { job: self.name.clone(), pid, source: error.into() })
    }

    fn processes(&self) -> Vec<Process> {
        proc::with_environment(&self.variable())
    }

    fn variable(&self) -> String {
        format!("{DIRECTORY_VARIABLE}={}", self.directory().display())
    }

    /// Ends every process of the job, also those whose parents are gone, and waits until they are dead. Errors are of no use here:
    /// what cannot be killed has ended, and what does not die within the time is a broken machine.
    pub(super) fn kill_all(&mut self) {
        let start = Instant::now();
        let mut dying: Vec<Process> = Vec::new();
        loop {
            if self.exit_status().is_none()
                && let Some(group) = target(self.launcher_pid())
            {
                let _ = kill_process_group(group, Signal::KILL);
            }
            let found = self.processes();
            for process in &found {
                let _ = self.signal(process.pid, Signal::KILL);
            }
            // A process that is ending cannot be found any more, but still has its memory and its probes.
            dying.extend(found.into_iter().chain(std::mem::take(&mut self.ranks).into_values()));
            dying.retain(Process::is_alive);
            if (dying.is_empty() && self.exit_status().is_some()) || start.elapsed() > DEATH {
                return;
            }
            thread::sleep(POLL);
        }
    }
}

fn target(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}
