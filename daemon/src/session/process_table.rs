//! The processes under observation, past and present.

use std::collections::{BTreeMap, BTreeSet};

use mpiprobe_attach::{Notice, NoticeKind};
use mpiprobe_discover::{ForkRelation, JobKey, MpiProcess, Process, RankInfo, printable, silent_copies};
use mpiprobe_model::{
    RankState,
    analyse::{Beginning, EndedCall, Identity, Observed, SelfCost},
};
use mpiprobe_observe::Snapshot;

use super::host;

/// One process image that is, or was, a target.
#[derive(Debug)]
struct Entry {
    observed: Observed,
    /// Held so that the pid means this process as long as it is watched.
    process: Option<Process>,
    /// Who has started it, of a rank of which it is not known yet that it uses MPI: as long as that lives, it may start others.
    starter: Option<Process>,
    /// Who started it, by the number of then.
    parent: Option<u32>,
    /// Or that it would be of, if it used MPI.
    job: Option<JobKey>,
    /// It was put onto the allow-list in the kernel.
    by_exec: bool,
    /// When it was last seen to have no MPI loaded, ns; 0: never.
    without_mpi_ns: u64,
    /// Known to use MPI, and to be one of those asked for.
    identified: bool,
    /// Has called MPI, whoever it is.
    has_called: bool,
    /// The process that it is a copy of: by fork, without an exec since.
    forked_from: Option<u32>,
}

impl Entry {
    /// Until when it cannot have called MPI, ns.
    fn no_call_before_ns(&self) -> u64 {
        self.observed.since_ns.max(self.without_mpi_ns)
    }
}

/// What is known at once of a process that may use MPI.
#[derive(Debug, Default)]
pub(super) struct Candidate {
    /// As long as it is there.
    pub(super) process: Option<Process>,
    pub(super) starter: Option<Process>,
    pub(super) parent: Option<u32>,
    pub(super) rank: Option<RankInfo>,
    /// That it would be of.
    pub(super) job: Option<JobKey>,
}

/// Ranks that one launcher starts begin within less. Later its number may be somebody else's.
const TOGETHER_NS: u64 = 10_000_000_000;

/// All of them, by process slot.
#[derive(Debug, Default)]
pub(super) struct ProcessTable {
    entries: BTreeMap<u32, Entry>,
}

impl ProcessTable {
    /// Takes in a process that uses MPI.
    pub(super) fn add(&mut self, slot: u32, found: MpiProcess, since_ns: u64, beginning: Beginning) {
        let identity = Identity {
            host: host::name(),
            pid: found.pid(),
            rank: found.rank.rank,
            size: found.rank.size,
            job: Some(found.job.to_string()),
            executable: printable(&found.executable.path),
        };
        let entry = self.entries.entry(slot).or_insert_with(|| Entry {
            observed: observed(slot, identity.clone(), since_ns),
            process: None,
            starter: None,
            parent: found.process.stat().ok().map(|stat| stat.parent),
            job: None,
            by_exec: false,
            without_mpi_ns: 0,
            identified: true,
            has_called: false,
            forked_from: None,
        });
        // What the kernel told at its exec holds where the process has overwritten its environment since.
        let told = std::mem::replace(&mut entry.observed.identity, identity);
        let mut job = found.job;
        if let (None, Some(rank)) = (found.rank.rank, told.rank) {
            entry.observed.identity.rank = Some(rank);
            entry.observed.identity.size = told.size;
            job = entry.job.take().unwrap_or(job);
            entry.observed.identity.job = Some(job.to_string());
        }
        entry.job = Some(job.clone());
        entry.forked_from = found.forked_from;
        entry.process = Some(found.process);
        entry.identified = true;
        entry.observed.since_ns = since_ns;
        entry.observed.beginning = beginning;
        let parent = entry.parent;
        self.name_those_beside(parent, since_ns, Some(&job));
    }

    /// Those whose job had no name that was still known when they were looked at are of this one, if the same parent started them at about
    /// the same time.
    fn name_those_beside(&mut self, parent: Option<u32>, began_ns: u64, job: Option<&JobKey>) {
        let (Some(parent), Some(job)) = (parent, job.filter(|job| !job.is_of_tree())) else { return };
        for entry in self.entries.values_mut().filter(|entry| is_beside(entry, parent, began_ns)) {
            if entry.job.as_ref().is_some_and(|own| own.is_of_tree() && own.is_spawned() == job.is_spawned()) {
                entry.observed.identity.job = Some(job.to_string());
                entry.job = Some(job.clone());
            }
        }
    }

    /// Takes in a process that has the right name and may yet use MPI.
    pub(super) fn add_candidate(&mut self, slot: u32, pid: u32, candidate: Candidate, since_ns: u64, by_exec: bool) {
        let Candidate { process, starter, parent, rank, job } = candidate;
        let executable = process.as_ref().and_then(|process| process.executable().ok());
        let identity = Identity {
            host: host::name(),
            pid,
            rank: rank.as_ref().and_then(|rank| rank.rank),
            size: rank.as_ref().and_then(|rank| rank.size),
            job: job.as_ref().map(ToString::to_string),
            executable: executable.map_or_else(String::new, |executable| printable(&executable.path)),
        };
        let observed = observed(slot, identity, since_ns);
        self.name_those_beside(parent, since_ns, job.as_ref());
        let entry = Entry {
            observed,
            process,
            starter,
            parent,
            job,
            by_exec,
            without_mpi_ns: 0,
            identified: false,
            has_called: false,
            forked_from: None,
        };
        self.entries.insert(slot, entry);
    }

    /// The job of what the same parent started at about the same time, as launchers do, where a process says no more of its own.
    pub(super) fn job_beside(&self, parent: u32, began_ns: u64, own: &JobKey) -> Option<JobKey> {
        let beside = self.entries.values().filter(|entry| is_beside(entry, parent, began_ns));
        let mut jobs = beside.filter_map(|entry| entry.job.as_ref());
        jobs.find(|job| job.is_spawned() == own.is_spawned()).cloned()
    }

    /// A new image of a process is of the same job as the one before, and has its rank, whether or not it lives until it is looked
    /// at.
    pub(super) fn inherit(&mut self, from: u32, to: u32) {
        let Some(old) = self.entries.get(&from) else { return };
        let (job, rank, size) = (old.job.clone(), old.observed.identity.rank, old.observed.identity.size);
        let Some(entry) = self.entries.get_mut(&to) else { return };
        if let Some(job) = job {
            entry.observed.identity.job = Some(job.to_string());
            entry.job = Some(job);
        }
        let identity = &mut entry.observed.identity;
        (identity.rank, identity.size) = (identity.rank.or(rank), identity.size.or(size));
    }

    /// Forgets a process that shall not be observed.
    pub(super) fn remove(&mut self, slot: u32) {
        self.entries.remove(&slot);
    }

    /// The slot and pid of a process image that is still there.
    pub(super) fn running_slot(&self, pid: u32) -> Option<u32> {
        let mut running = self.entries.iter().filter(|(_, entry)| entry.observed.state == RankState::Running);
        running.find(|(_, entry)| entry.observed.identity.pid == pid).map(|(&slot, _)| slot)
    }

    /// The slots of all images of a process.
    pub(super) fn slots_of(&self, pid: u32) -> BTreeSet<u32> {
        let images = self.entries.iter().filter(|(_, entry)| entry.observed.identity.pid == pid);
        images.map(|(&slot, _)| slot).collect()
    }

    /// Slots and pids of processes of which it is not yet known that they use MPI.
    pub(super) fn candidates(&self) -> Vec<(u32, u32)> {
        let candidates =
            self.entries.iter().filter(|(_, entry)| !entry.identified && entry.observed.state == RankState::Running);
        candidates.map(|(&slot, entry)| (slot, entry.observed.identity.pid)).collect()
    }

    pub(super) fn since_ns(&self, slot: u32) -> Option<u64> {
        self.entries.get(&slot).map(|entry| entry.observed.since_ns)
    }

    /// A process had no MPI loaded then, ns.
    pub(super) fn note_without_mpi(&mut self, slot: u32, at_ns: u64) {
        if let Some(entry) = self.entries.get_mut(&slot) {
            entry.without_mpi_ns = at_ns;
        }
    }

    /// Until when a process cannot have called MPI, ns: its exec, or when it was last seen without.
    pub(super) fn no_call_before_ns(&self, slot: u32) -> Option<u64> {
        self.entries.get(&slot).map(Entry::no_call_before_ns)
    }

    /// Whether a thread of the process has ended inside a call.
    pub(super) fn has_ended_in_call(&self, slot: u32) -> bool {
        self.entries.get(&slot).is_some_and(|entry| !entry.observed.ended_in.is_empty())
    }

    /// The process behind a slot, while it lives.
    pub(super) fn process(&self, slot: u32) -> Option<&Process> {
        self.entries.get(&slot)?.process.as_ref()
    }

    /// Whether a process is on the allow-list since its exec.
    pub(super) fn is_by_exec(&self, slot: u32) -> bool {
        self.entries.get(&slot).is_some_and(|entry| entry.by_exec)
    }

    pub(super) fn has_mpi(&self) -> bool {
        self.entries.values().any(|entry| entry.identified)
    }

    /// Ranks of a job that is over, all of whose ranks of this name ended before it was known whether they use MPI.
    pub(super) fn missed(&self) -> usize {
        let is_over = |entry: &&Entry| {
            let may_go_on = entry.starter.as_ref().is_some_and(Process::is_alive);
            entry.observed.state == RankState::Ended && entry.observed.identity.rank.is_some() && !may_go_on
        };
        if self.has_mpi() { 0 } else { self.entries.values().filter(is_over).count() }
    }

    /// A process image has ended: its process has, or it has exec'ed another program.
    pub(super) fn end(&mut self, slot: u32, state: RankState, at_ns: u64) -> Option<u32> {
        let entry = self.entries.get_mut(&slot)?;
        if entry.observed.state != RankState::Running {
            return None;
        }
        entry.observed.state = state;
        entry.observed.until_ns = Some(at_ns);
        let process = entry.process.take().filter(|_| state == RankState::Ended);
        entry.observed.failure = process.as_ref().and_then(Process::failure);
        Some(entry.observed.identity.pid)
    }

    /// All files have been under probes for everybody since `probed_ns`, if they are: who was executed later, and has ended before anybody looked
    /// at him, was counted from his first call on.
    pub(super) fn note_unseen(&mut self, probed_ns: Option<u64>) {
        let Some(probed_ns) = probed_ns else { return };
        for entry in self.entries.values_mut().filter(|entry| entry.by_exec && !entry.identified) {
            if entry.observed.state != RankState::Running && entry.no_call_before_ns() >= probed_ns {
                entry.observed.beginning = Beginning::FirstCall;
            }
        }
    }

    /// A thread has ended inside a call, made by `user` if that is not who called MPI's function.
    pub(super) fn note_ended_call(&mut self, notice: &Notice, user: Option<u64>) {
        let NoticeKind::EndedInCall { tid, function, started_ns, call_site, arguments } = notice.kind else { return };
        if let Some(entry) = self.entries.get_mut(&notice.process) {
            let open_ns = notice.time_ns.saturating_sub(started_ns);
            let call_site = user.or(call_site);
            let ended_ns = notice.time_ns;
            entry.observed.ended_in.push(EndedCall { tid, function, ended_ns, open_ns, call_site, arguments });
        }
    }

    /// Looks which processes are stopped.
    pub(super) fn look_who_is_stopped(&mut self) {
        for entry in self.entries.values_mut() {
            let state = entry.process.as_ref().and_then(|process| process.stat().ok()).map(|stat| stat.state);
            entry.observed.stopped = matches!(state, Some('T' | 't'));
        }
    }

    /// Takes over what the tables know better: exact ends, and who has called MPI.
    pub(super) fn update(&mut self, snapshot: &Snapshot) {
        for process in &snapshot.processes {
            let Some(entry) = self.entries.get_mut(&process.process) else { continue };
            let has_ended_thread = process.counters.ended_threads > 0;
            entry.has_called |= !process.functions.is_empty() || !process.threads.is_empty() || has_ended_thread;
            if entry.observed.until_ns.is_some() && process.counters.last_end_ns > 0 {
                entry.observed.until_ns = Some(process.counters.last_end_ns);
            }
        }
    }

    /// Processes were in calls that had begun before.
    pub(super) fn note_callers(&mut self, slots: impl Iterator<Item = u32>) {
        for slot in slots {
            if let Some(entry) = self.entries.get_mut(&slot) {
                entry.has_called = true;
            }
        }
    }

    /// Whether a process is still there that is an MPI process, or may become one of the job's. As long as there has been none, any
    /// may; afterwards those that a launcher has given a rank, or whose earlier images were of the job: of a common name, such as
    /// that of an interpreter, there are others all the time.
    pub(super) fn is_anybody_left(&self) -> bool {
        let has_mpi = self.has_mpi() || self.missed() > 0;
        let may_join = |entry: &Entry| !has_mpi || entry.observed.identity.rank.is_some() || entry.job.is_some();
        let copies = self.silent_copies();
        let mut running = self.entries.values().filter(|entry| entry.observed.state == RankState::Running);
        running.any(|entry| (entry.identified || may_join(entry)) && !copies.contains(&entry.observed.identity.pid))
    }

    /// Whether one that uses MPI is.
    pub(super) fn is_rank_left(&self) -> bool {
        let copies = self.silent_copies();
        let mut ranks = self.entries.values().filter(|entry| !copies.contains(&entry.observed.identity.pid));
        ranks.any(|entry| entry.identified && entry.observed.state == RankState::Running)
    }

    /// The processes that use MPI: those known to, and those that had called it when they ended too soon to be looked at.
    pub(super) fn observed(&self) -> Vec<Observed> {
        let mut all = Vec::new();
        self.each_observed(|observed| all.push(observed.clone()));
        all
    }

    /// The same one by one.
    pub(super) fn each_observed(&self, see: impl FnMut(&Observed)) {
        let copies = self.silent_copies();
        let is_rank = |entry: &&Entry| is_shown(entry) && !copies.contains(&entry.observed.identity.pid);
        self.entries.values().filter(is_rank).map(|entry| &entry.observed).for_each(see);
    }

    /// Processes that ranks have forked, and that are none themselves.
    pub(super) fn silent_copies(&self) -> BTreeSet<u32> {
        if self.entries.values().all(|entry| entry.forked_from.is_none()) {
            return BTreeSet::new();
        }
        let mut members: BTreeMap<u32, ForkRelation> = BTreeMap::new();
        for entry in self.entries.values().filter(|entry| entry.identified) {
            let pid = entry.observed.identity.pid;
            let member = ForkRelation { pid, forked_from: entry.forked_from, calls: entry.has_called };
            // What one of its images has called, the process has.
            members.entry(pid).and_modify(|known| known.calls |= member.calls).or_insert(member);
        }
        silent_copies(&members.into_values().collect::<Vec<_>>())
    }

    /// Slot, pid and beginning (ns) of images that have ended, if there was no other one of that number: which of several has mapped
    /// what is not known.
    pub(super) fn ended_once(&self) -> Vec<(u32, u32, u64)> {
        let mut images: BTreeMap<u32, u32> = BTreeMap::new();
        for entry in self.entries.values() {
            *images.entry(entry.observed.identity.pid).or_default() += 1;
        }
        let is_one = |entry: &Entry| images.get(&entry.observed.identity.pid) == Some(&1);
        let ended = |entry: &Entry| entry.observed.state == RankState::Ended;
        let found = self.entries.iter().filter(|(_, entry)| ended(entry) && is_one(entry));
        found.map(|(&slot, entry)| (slot, entry.observed.identity.pid, entry.observed.since_ns)).collect()
    }

    /// The jobs of those that are known to.
    pub(super) fn jobs(&self) -> Vec<&JobKey> {
        self.entries.values().filter(|entry| entry.identified).filter_map(|entry| entry.job.as_ref()).collect()
    }
}

fn is_shown(entry: &Entry) -> bool {
    entry.identified || (entry.has_called && entry.observed.state != RankState::Running)
}

fn observed(process: u32, identity: Identity, since_ns: u64) -> Observed {
    Observed {
        process,
        identity,
        state: RankState::Running,
        stopped: false,
        since_ns,
        beginning: Beginning::Awaited,
        until_ns: None,
        failure: None,
        ended_in: Vec::new(),
        self_cost: SelfCost::default(),
    }
}

/// Whether the same parent started it at about that time, as launchers do.
fn is_beside(entry: &Entry, parent: u32, began_ns: u64) -> bool {
    entry.parent == Some(parent) && entry.observed.since_ns.abs_diff(began_ns) < TOGETHER_NS
}

#[cfg(test)]
mod tests {
    use mpiprobe_discover::environment::Environment;

    use super::*;

    const RANK: (&str, &str) = ("OMPI_COMM_WORLD_RANK", "1");

    fn told(environment: &[(&'static str, &'static str)]) -> Candidate {
        let environment: Environment = environment.iter().copied().collect();
        Candidate { rank: Some(RankInfo::from_environment(&environment, false)), ..Candidate::default() }
    }

    /// Slot 1: a rank of the job. Slot 2: a process of the same name with this environment, which does not use MPI yet.
    fn process_table(of_other: &[(&'static str, &'static str)]) -> ProcessTable {
        let mut process_table = ProcessTable::default();
        process_table.add_candidate(1, 4001, told(&[]), 0, true);
        process_table.add_candidate(2, 4002, told(of_other), 0, true);
        process_table
    }

    fn ends_with_its_job(mut process_table: ProcessTable) -> bool {
        process_table.entries.get_mut(&1).unwrap().identified = true;
        process_table.end(1, RankState::Ended, 5);
        !process_table.is_anybody_left()
    }

    /// Invariant OTHERS-COME-AND-GO.
    #[test]
    fn others_of_a_common_name_do_not_put_off_the_end() {
        assert!(ends_with_its_job(process_table(&[])));
        assert!(!ends_with_its_job(process_table(&[RANK])), "a rank that has not loaded MPI yet");
    }

    #[test]
    fn before_there_was_a_job_anybody_of_the_name_may_become_it() {
        let mut process_table = process_table(&[]);
        process_table.end(1, RankState::Ended, 5);
        assert!(process_table.is_anybody_left());
        process_table.end(2, RankState::Ended, 6);
        assert!(!process_table.is_anybody_left());
    }

    #[test]
    fn who_was_started_together_is_of_one_job() {
        let environment = [("PMIX_NAMESPACE", "77"), RANK].into_iter().collect();
        let job = JobKey::of_environment_alone(&RankInfo::from_environment(&environment, false), &environment);
        let mut process_table = ProcessTable::default();
        process_table.add_candidate(1, 4001, Candidate { parent: Some(9), job: job.clone(), ..told(&[RANK]) }, 5, true);
        let job = job.expect("it has a name");
        assert_eq!(process_table.job_beside(9, TOGETHER_NS + 4, &job), Some(job.clone()));
        assert_eq!(process_table.job_beside(9, TOGETHER_NS + 5, &job), None, "the number may be somebody else's");
        assert_eq!(process_table.job_beside(8, 5, &job), None);
    }

    #[test]
    fn who_was_looked_at_too_late_to_know_its_job_is_of_that_of_the_others() {
        let environment = [("PMIX_NAMESPACE", "77"), RANK].into_iter().collect();
        let job = JobKey::of_environment_alone(&RankInfo::from_environment(&environment, false), &environment);
        let unnamed = [RANK].into_iter().collect();
        let rank = RankInfo::from_environment(&unnamed, false);
        let of_tree = || Some(JobKey::of_environment(&rank, &unnamed, 9, 1)).filter(JobKey::is_of_tree);
        assert!(of_tree().is_some());
        let mut process_table = ProcessTable::default();
        for (slot, parent) in [(1, 9), (2, 8)] {
            let candidate = Candidate { parent: Some(parent), job: of_tree(), ..told(&[RANK]) };
            process_table.add_candidate(slot, 4000 + slot, candidate, 5, true);
        }
        process_table.add_candidate(3, 4003, Candidate { parent: Some(9), job: job.clone(), ..told(&[RANK]) }, 6, true);
        let job_of = |slot: u32| process_table.entries[&slot].job.clone();
        assert_eq!([job_of(1), job_of(2), job_of(3)], [job.clone(), of_tree(), job]);
    }

    #[test]
    fn who_has_ended_unseen_was_counted_from_the_first_call_on_if_all_was_probed_by_then() {
        let mut process_table = ProcessTable::default();
        for (slot, since_ns) in [(1, 99), (2, 100), (3, 101)] {
            process_table.add_candidate(slot, 4000 + slot, told(&[RANK]), since_ns, true);
        }
        process_table.add_candidate(4, 4004, told(&[RANK]), 102, false);
        for slot in [1, 2, 4] {
            process_table.end(slot, RankState::Ended, 200);
        }
        // Executed before, and without MPI still when all was probed.
        process_table.add_candidate(5, 4005, told(&[RANK]), 98, true);
        process_table.note_without_mpi(5, 100);
        process_table.end(5, RankState::Ended, 200);
        assert_eq!([2, 5].map(|slot| process_table.no_call_before_ns(slot)), [Some(100); 2]);
        process_table.note_unseen(Some(100));
        let beginnings = [1, 2, 3, 4, 5].map(|slot| process_table.entries[&slot].observed.beginning);
        let [awaited, whole] = [Beginning::Awaited, Beginning::FirstCall];
        assert_eq!(
            beginnings,
            [awaited, whole, awaited, awaited, whole],
            "one runs still, one was not executed under our eyes"
        );
    }

    #[test]
    fn a_job_that_was_over_too_soon_has_been_there() {
        let root = mpiprobe_discover::ProcRoot::system().unwrap();
        let mut process_table = ProcessTable::default();
        let ourselves = Process::open(&root, std::process::id()).unwrap();
        let rank = || told(&[RANK]);
        process_table.add_candidate(1, 4001, Candidate { starter: Some(ourselves), ..rank() }, 0, true);
        process_table.add_candidate(2, 4002, told(&[]), 0, true);
        assert_eq!(process_table.missed(), 0);
        process_table.end(1, RankState::Ended, 5);
        assert_eq!(process_table.missed(), 0, "who has started it lives, and may start another one");
        process_table.add_candidate(3, 4003, rank(), 0, true);
        process_table.end(3, RankState::Execed, 6);
        assert_eq!(process_table.missed(), 0, "it has become another program");
        process_table.add_candidate(4, 4004, rank(), 0, true);
        process_table.end(4, RankState::Ended, 7);
        assert_eq!(process_table.missed(), 1);
        assert!(!process_table.is_anybody_left(), "others of the name have no rank");
    }
}
