//! Who is observed: who was asked for, who has a slot, who joins, who has ended.

use std::collections::BTreeSet;

use mpiprobe_attach::{Passed, Tables, Targets as AllowList};
use mpiprobe_common::{Target as Allowed, process::target_flags};
use mpiprobe_discover::{
    Finding, Image, JobChoice, MpiProcess, Process, ProcessError, Scanner, SelectError, Selection, Target, select,
};
use mpiprobe_model::{RankState, analyse::Beginning};
use mpiprobe_observe::monotonic_ns;
use mpiprobe_plan::ImplementationRecogniser;
use mpiprobe_report::present::say;

use super::{
    error::SessionError,
    found::found_meanwhile,
    jobs::ChosenJobs,
    probes::library_range,
    process_table::{Candidate, ProcessTable},
    watch::EndWatch,
};

/// Above this number of targets one probe for all is cheaper than one for each: every hit walks all probes at its place.
const MOST_SCOPED_TARGETS: usize = 4;

/// All processes that are, were or may become targets.
#[derive(Debug)]
pub(super) struct Targets {
    target: Target,
    pub(super) scanner: Scanner<ImplementationRecogniser>,
    pub(super) jobs: ChosenJobs,
    pub(super) process_table: ProcessTable,
    pub(super) ends: EndWatch,
    /// Slots of processes that are none of those asked for.
    dismissed: BTreeSet<u32>,
}

impl Targets {
    /// Nobody yet.
    pub(super) fn new(
        target: Target,
        scanner: Scanner<ImplementationRecogniser>,
        jobs: ChosenJobs,
    ) -> Result<Self, SessionError> {
        Ok(Self {
            target,
            scanner,
            jobs,
            process_table: ProcessTable::default(),
            ends: EndWatch::new().map_err(SessionError::Watch)?,
            dismissed: BTreeSet::new(),
        })
    }

    /// Those that run now.
    pub(super) fn select(&mut self) -> Result<Selection, SelectError> {
        select(&mut self.scanner, &self.target, &self.jobs.choice())
    }

    /// Those that run now and that the kernel has not told of: it knows programs by their names only, not scripts or jobs.
    pub(super) fn find_new(&mut self) -> Vec<MpiProcess> {
        let selected = self.select();
        let again = |choice: &JobChoice| select(&mut self.scanner, &self.target, choice);
        let Some(selection) = found_meanwhile(selected, &self.jobs, again) else { return Vec::new() };
        let mut new = selection.processes;
        new.retain(|process| self.process_table.running_slot(process.pid()).is_none() && self.jobs.admit(process));
        new
    }

    /// Processes that have the name but no MPI yet, and may load it.
    pub(super) fn find_loaders(&mut self) -> Vec<Process> {
        let pids = match self.select() {
            Err(SelectError::NotMpi { pids, .. }) => pids,
            _ => Vec::new(),
        };
        pids.into_iter().filter_map(|pid| Process::open(self.scanner.root(), pid).ok()).collect()
    }

    /// Probes for single processes are worth it if others use the same library, and nobody can join in.
    pub(super) fn is_scope_worth_it(&mut self, targets: &[MpiProcess]) -> Result<bool, SessionError> {
        if !matches!(self.target, Target::Pids(_)) || targets.is_empty() || targets.len() > MOST_SCOPED_TARGETS {
            return Ok(false);
        }
        let is_target = |process: &MpiProcess| targets.iter().any(|target| target.pid() == process.pid());
        let file = |process: &MpiProcess| process.library().map(|library| library.file.id);
        let others = self.scanner.scan()?.processes;
        let bystander =
            |other: &MpiProcess| !is_target(other) && targets.iter().any(|target| file(target) == file(other));
        Ok(others.iter().any(bystander))
    }

    /// Whether a process that uses MPI is one of those asked for. The first one decides where no job was chosen.
    pub(super) fn admit(&mut self, process: &MpiProcess) -> bool {
        let is_called = match &self.target {
            Target::Name(name) => process.is_called(name.as_bytes()),
            Target::Pids(_) | Target::Any => true,
        };
        is_called && self.jobs.admit(process)
    }

    /// Has the programs count a process from now on.
    pub(super) fn allow(&self, tables: &mut Tables, slot: u32, process: &MpiProcess) -> Result<(), SessionError> {
        let (library_start, library_end) = process.library().map_or((0, 0), library_range);
        let flags = if matches!(self.target, Target::Pids(_)) { target_flags::FOLLOW_EXEC } else { 0 };
        let allowed = Allowed { process: slot, flags, library_start, library_end };
        Ok(AllowList::of(tables)?.allow(process.pid(), allowed)?)
    }

    /// Takes in a process that uses MPI.
    pub(super) fn add(&mut self, slot: u32, process: MpiProcess, since_ns: u64, beginning: Beginning) {
        // Of a process that was known before, this watch is kept instead of the one from then: it ends with its descriptor.
        self.ends.add_process(&process.process, slot);
        self.process_table.add(slot, process, since_ns, beginning);
    }

    /// Takes in a process that has the name and does not use MPI yet.
    pub(super) fn add_loader(&mut self, slot: u32, process: Process) {
        self.ends.add_process(&process, slot);
        let (pid, now_ns) = (process.pid(), monotonic_ns());
        let candidate = self.candidate(pid, Some(process), None, now_ns);
        self.process_table.add_candidate(slot, pid, candidate, now_ns, false);
    }

    /// What can be told of a process at once, which may not live until it is looked at again. `passed`: as the kernel has told.
    fn candidate(&self, pid: u32, process: Option<Process>, passed: Option<Passed>, began_ns: u64) -> Candidate {
        let (told, environment) = passed.map_or((None, None), |passed| (passed.parent, Some(passed.environment)));
        let environment = environment.or_else(|| process.as_ref()?.environment().ok());
        let parent = told.or_else(|| Some(process.as_ref()?.stat().ok()?.parent));
        // As long as nobody has been there that uses MPI.
        let starter = parent.filter(|_| !self.process_table.has_mpi() && process.is_some());
        let starter = starter.and_then(|parent| Process::open(self.scanner.root(), parent).ok());
        let image = Image { pid, process: process.as_ref(), parent, began_ns };
        let (rank, job) = environment.map(|environment| self.scanner.rank_and_job(&image, &environment)).unzip();
        let job = job.flatten().map(|job| {
            // Who has started it may be gone as well.
            let beside = parent.filter(|_| job.is_of_tree());
            beside.and_then(|parent| self.process_table.job_beside(parent, began_ns, &job)).unwrap_or(job)
        });
        Candidate { process, starter, parent, rank, job }
    }

    /// A process became a target by exec at a moment (ns), or stayed one: a new process image either way. Gives the slot of the image
    /// that has ended by that.
    pub(super) fn add_image(&mut self, slot: u32, pid: u32, passed: Option<Passed>, time_ns: u64) -> Option<u32> {
        let old = self.process_table.running_slot(pid);
        if let Some(old) = old {
            self.process_table.end(old, RankState::Execed, time_ns);
        }
        let process = Process::open(self.scanner.root(), pid).ok();
        if let Some(process) = &process {
            self.ends.add_process(process, slot);
        }
        let is_gone = process.is_none();
        let candidate = self.candidate(pid, process, passed, time_ns);
        self.process_table.add_candidate(slot, pid, candidate, time_ns, true);
        if let Some(old) = old {
            self.process_table.inherit(old, slot);
        }
        if is_gone {
            self.process_table.end(slot, RankState::Ended, time_ns);
        }
        old
    }

    /// Whether the image in a slot is, or was, observed.
    pub(super) fn knows(&self, slot: u32) -> bool {
        self.process_table.since_ns(slot).is_some()
    }

    /// Whether the image in a slot turned out to be none that was asked for.
    pub(super) fn is_dismissed(&self, slot: u32) -> bool {
        self.dismissed.contains(&slot)
    }

    /// Candidates by slot and pid, and what they are by now.
    pub(super) fn inspect_candidates(
        &mut self,
    ) -> impl Iterator<Item = ((u32, u32), Result<Finding, ProcessError>)> + use<> {
        let candidates = self.process_table.candidates();
        let pids: Vec<u32> = candidates.iter().map(|&(_, pid)| pid).collect();
        candidates.into_iter().zip(self.scanner.inspect_all(&pids))
    }

    /// A process turned out to be none that was asked for.
    pub(super) fn dismiss(&mut self, tables: &mut Tables, slot: u32, pid: u32) -> Result<(), SessionError> {
        AllowList::of(tables)?.remove(pid)?;
        self.process_table.remove(slot);
        self.dismissed.insert(slot);
        Ok(())
    }

    /// The image in a slot has ended with its process; gives the pid, if it was running still.
    pub(super) fn end(&mut self, slot: u32) -> Option<u32> {
        self.process_table.end(slot, RankState::Ended, monotonic_ns())
    }

    /// The number of a process that has ended means nobody any more. Tells whether it does not mean another one already.
    pub(super) fn forget_pid(&mut self, tables: &mut Tables, pid: u32) -> bool {
        if self.process_table.running_slot(pid).is_some() {
            return false;
        }
        if let Err(error) = AllowList::of(tables).and_then(|mut targets| targets.remove(pid)) {
            tracing::warn!("cannot take process {pid} off the allow-list: {error}");
        }
        true
    }

    /// Says who is observed.
    pub(super) fn tell_observed(&self, number: usize) {
        let jobs: BTreeSet<String> = self.process_table.jobs().into_iter().map(ToString::to_string).collect();
        let jobs: Vec<String> = jobs.into_iter().collect();
        let plural = if number == 1 { "process" } else { "processes" };
        say(format_args!("observing {number} {plural} of {}; Ctrl-C ends and prints the profile", jobs.join(", ")));
    }
}
