//! Looks at every process of this node and keeps those that use MPI.

use std::collections::BTreeMap;
use std::fs::File;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::{
    param::clock_ticks_per_second,
    process::{Resource, getrlimit, setrlimit},
    time::{ClockId, clock_gettime},
};

use super::{
    access::{Caller, Refusal, may_trace},
    allocation::{self, Allocation},
    copies::forked_from,
    environment::Environment,
    job::Job,
    job_key::{JobKey, Surroundings},
    launcher::{Genealogy, Launcher, is_launcher},
    mappings::FileId,
    mpi_process::{MpiProcess, Search, Unanswered, is_wrapper},
    proc_root::{ProcRoot, ProcRootError},
    process::{Executable, Process},
    process_error::ProcessError,
    rank::RankInfo,
    recognise::{Cache, Recognise},
    stat::Stat,
    text::base_name,
    users::Users,
};

/// The MPI processes of this node at some moment.
#[derive(Debug, Default)]
pub struct Snapshot {
    /// In ascending order of pid.
    pub processes: Vec<MpiProcess>,
    pub jobs: Vec<Job>,
    /// How many processes were looked at.
    pub examined: usize,
    /// How many of them the caller may not trace: there may be MPI among them.
    pub refused: usize,
    /// What kept the scan from telling whether a process uses MPI.
    pub errors: Vec<ProcessError>,
    /// How many processes have files mapped that could not be opened: there may be MPI among them.
    pub unopened: usize,
    /// Why one of these could not be.
    pub why_unopened: Option<String>,
    /// Processes that may use MPI by way of a file that does not answer, by user.
    pub unanswered: Vec<Unanswered>,
}

impl Snapshot {
    fn merge(mut self, other: Self) -> Self {
        self.processes.extend(other.processes);
        self.errors.extend(other.errors);
        self.examined += other.examined;
        self.refused += other.refused;
        self.unopened += other.unopened;
        self.why_unopened = self.why_unopened.or(other.why_unopened);
        self.unanswered.extend(other.unanswered);
        self
    }

    /// Who belongs together, and to whom.
    fn group(&mut self) {
        let users = Users::read();
        self.jobs = Job::group(&mut self.processes, &users);
        self.unanswered = by_user(std::mem::take(&mut self.unanswered), &users);
    }
}

/// What a process turned out to be.
#[derive(Debug)]
pub enum Finding {
    Mpi(Box<MpiProcess>),
    /// No mapped file defines MPI's functions (yet: it may load one later).
    NotMpi(Process, Search),
    /// It starts ranks and is none.
    Launcher(Process),
    /// One of the kernel's own.
    KernelThread,
    /// This very process.
    Own,
    Refused(Refusal),
}

/// Finds MPI processes; made once, since it remembers which files are MPI libraries.
#[derive(Debug)]
pub struct Scanner<R> {
    root: ProcRoot,
    caller: Caller,
    cache: Mutex<Cache<R>>,
    /// Those that [`Scanner::scan_jobs`] found the last time, by pid.
    known: Mutex<BTreeMap<u32, MpiProcess>>,
}

/// Threads to look at processes with: most of the time goes into the kernel's printing of their mappings, which takes
/// about 0.2 ms for an MPI process. More than this many would only get in the job's way.
const MOST_THREADS: usize = 16;
/// Processes that are worth a thread.
const SHARE: usize = 32;

impl<R: Recognise + Send> Scanner<R> {
    /// Looks for processes that `caller` may trace below `root`.
    pub fn new(root: ProcRoot, caller: Caller, recogniser: R) -> Self {
        raise_file_limit();
        Self { root, caller, cache: Mutex::new(Cache::new(recogniser)), known: Mutex::default() }
    }

    pub fn root(&self) -> &ProcRoot {
        &self.root
    }

    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Looks at every process. Those that end meanwhile are left out.
    pub fn scan(&mut self) -> Result<Snapshot, ProcRootError> {
        self.known.get_mut().unwrap_or_else(PoisonError::into_inner).clear();
        let mut snapshot = self.look()?;
        snapshot.group();
        Ok(snapshot)
    }

    /// As [`Scanner::scan`], for whoever may trace all and looks for jobs again and again: of a process with MPI that executes what it did
    /// the last time, nothing else is read again. The processes are kept for that.
    pub fn scan_jobs(&mut self) -> Result<Snapshot, ProcRootError> {
        let mut snapshot = self.look()?;
        // Of each process alone; a group's says whose it is as well.
        let keys: Vec<JobKey> = snapshot.processes.iter().map(|process| process.job.clone()).collect();
        snapshot.group();
        let found = std::mem::take(&mut snapshot.processes).into_iter().zip(keys);
        let known = found.map(|(process, job)| (process.pid(), MpiProcess { job, ..process })).collect();
        *self.known.get_mut().unwrap_or_else(PoisonError::into_inner) = known;
        Ok(snapshot)
    }

    fn look(&mut self) -> Result<Snapshot, ProcRootError> {
        self.begin_round();
        let pids = self.root.pids()?;
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let threads = cores.min(MOST_THREADS).min(pids.len().div_ceil(SHARE));
        let (next, genealogy) = (AtomicUsize::new(0), Mutex::new(Genealogy::default()));
        let mut snapshot = thread::scope(|scope| {
            let (scanner, next, pids, genealogy) = (&*self, &next, &pids, &genealogy);
            let workers: Vec<_> = (0..threads)
                .map(|_| {
                    scope.spawn(move || {
                        let claim = || pids.get(next.fetch_add(1, Ordering::Relaxed));
                        scanner.examine_all(std::iter::from_fn(claim).copied(), genealogy)
                    })
                })
                .collect();
            let parts = workers.into_iter().map(|worker| worker.join().unwrap_or_else(|panic| resume_unwind(panic)));
            parts.reduce(Snapshot::merge).unwrap_or_default()
        });
        snapshot.processes.sort_by_key(MpiProcess::pid);
        Ok(snapshot)
    }

    /// Looks at several processes, anew.
    pub fn inspect_all(&mut self, pids: &[u32]) -> Vec<Result<Finding, ProcessError>> {
        self.begin_round();
        pids.iter().map(|&pid| self.examine(pid, &Mutex::default())).collect()
    }

    /// The rank of a process image, and of which job it would be, whether or not it uses MPI. Of one without a rank there is no telling.
    pub fn rank_and_job(&self, image: &Image<'_>, environment: &Environment) -> (RankInfo, Option<JobKey>) {
        let rank = RankInfo::from_environment(environment, false);
        if rank.rank.is_none() {
            return (rank, None);
        }
        let there = image.process.and_then(|process| Some(Around::of(process, &process.stat().ok()?)));
        let around = match (there, image.parent) {
            // One that has ended may have been given another parent.
            (Some(around), parent) => Around { parent: parent.unwrap_or(around.parent), ..around },
            (_, Some(parent)) => {
                Around { pid: image.pid, parent, began_ticks: image.began_ticks(), cgroups: Vec::new() }
            }
            (_, None) => {
                let job = JobKey::of_environment_alone(&rank, environment);
                return (rank, job);
            }
        };
        let Belonging { rank, job, .. } = belonging(&self.root, &around, environment, &Mutex::default());
        (rank, Some(job))
    }

    /// Whether a file that processes will have mapped implements MPI.
    pub fn is_mpi(&mut self, path: &Path, file: &File, id: FileId) -> bool {
        let cache = self.cache.get_mut().unwrap_or_else(PoisonError::into_inner);
        let recognised = cache.pin(id, || file.try_clone().map(Into::into)).ok().flatten();
        recognised.is_some_and(|recognised| recognised.implements_mpi()) && !is_wrapper(path)
    }

    /// Looks at one process, anew.
    pub fn inspect(&mut self, pid: u32) -> Result<Finding, ProcessError> {
        self.begin_round();
        self.examine(pid, &Mutex::default())
    }

    fn begin_round(&mut self) {
        self.cache.get_mut().unwrap_or_else(PoisonError::into_inner).begin_round();
    }

    fn examine_all(&self, pids: impl Iterator<Item = u32>, genealogy: &Mutex<Genealogy>) -> Snapshot {
        let mut snapshot = Snapshot::default();
        for pid in pids {
            if let Some(known) = self.known(pid) {
                snapshot.processes.push(known);
                snapshot.examined += 1;
                continue;
            }
            match self.examine(pid, genealogy) {
                Ok(Finding::Mpi(process)) => snapshot.processes.push(*process),
                Ok(Finding::Refused(_)) => snapshot.refused += 1,
                Ok(Finding::NotMpi(_, search)) => match (search.unanswered(), search.unopened.first()) {
                    (Some(unanswered), _) => snapshot.unanswered.push(unanswered),
                    (None, Some(why)) => {
                        snapshot.unopened += 1;
                        snapshot.why_unopened.get_or_insert_with(|| why.to_string());
                    }
                    (None, None) => {}
                },
                Ok(_) => {}
                Err(error) if error.is_gone() => continue,
                Err(error) => snapshot.errors.push(error),
            }
            snapshot.examined += 1;
        }
        snapshot
    }

    fn examine(&self, pid: u32, genealogy: &Mutex<Genealogy>) -> Result<Finding, ProcessError> {
        if self.root.is_live() && pid == std::process::id() {
            return Ok(Finding::Own);
        }
        let process = Process::open(&self.root, pid).map_err(|error| match error {
            ProcessError::IsThread { .. } | ProcessError::Hidden { .. } if self.caller.within.is_some() => {
                ProcessError::NoSuchProcess { pid }
            }
            error => error,
        })?;
        // Half of what runs on a node, or much more where there are many processors: nothing more is read of these.
        if process.was_kernel_thread() {
            let is_hidden = self.caller.within.is_some();
            return if is_hidden { Err(ProcessError::NoSuchProcess { pid }) } else { Ok(Finding::KernelThread) };
        }
        if let Some(refusal) = self.refusal(&process)? {
            return Ok(Finding::Refused(refusal));
        }
        let search = Search::of(&process, &self.cache)?;
        // Most processes of a node end here: only the others are worth more reads.
        if search.libraries.is_empty() {
            let stat = process.stat()?;
            return Ok(match () {
                () if stat.has_ended() => return Err(ProcessError::Vanished { pid }),
                () if is_launcher(&stat.comm) => Finding::Launcher(process),
                () => Finding::NotMpi(process, search),
            });
        }
        let finding = describe(&self.root, process, search, genealogy)?;
        // It may have executed a set-user-id file between the first look and the last.
        if let Finding::Mpi(found) = &finding
            && let Some(refusal) = self.refusal(&found.process)?
        {
            return Ok(Finding::Refused(refusal));
        }
        Ok(finding)
    }

    /// A process that was found before, if it still is what it was, and the caller's whatever it has become.
    fn known(&self, pid: u32) -> Option<MpiProcess> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).remove(&pid)?;
        let sees_all = self.caller.may_trace_all && self.caller.within.is_none();
        (sees_all && known.process.has_same_program()).then_some(known)
    }

    fn refusal(&self, process: &Process) -> Result<Option<Refusal>, ProcessError> {
        match may_trace(&self.caller, process) {
            Ok(()) => Ok(None),
            Err(Refusal::Unknown(error)) => Err(error),
            // What this process may see of strangers, a caller from elsewhere perhaps may not (hidepid, containers).
            Err(Refusal::OtherUser { pid, .. } | Refusal::OtherNamespaces { pid }) if self.caller.within.is_some() => {
                Err(ProcessError::NoSuchProcess { pid })
            }
            Err(refusal) => Ok(Some(refusal)),
        }
    }
}

/// Each user once.
fn by_user(single: Vec<Unanswered>, users: &Users) -> Vec<Unanswered> {
    let mut all: BTreeMap<u32, Unanswered> = BTreeMap::new();
    for one in single {
        let user = users.user(one.user.id);
        all.entry(user.id).or_insert(Unanswered { user, processes: 0, path: one.path }).processes += one.processes;
    }
    all.into_values().collect()
}

/// Reads the rest about a process that has MPI libraries.
fn describe(
    root: &ProcRoot,
    process: Process,
    search: Search,
    genealogy: &Mutex<Genealogy>,
) -> Result<Finding, ProcessError> {
    let pid = process.pid();
    let (stat, status) = (process.stat()?, process.status()?);
    let executable: Executable = process.executable()?;
    let name = base_name(&executable.path);
    if is_launcher(&stat.comm) || is_launcher(name) {
        return Ok(Finding::Launcher(process));
    }
    let other_names = process.command_line()?.names(name);
    let environment = process.environment()?;
    let around = Around::of(&process, &stat);
    let Belonging { rank, job, allocations, launcher } = belonging(root, &around, &environment, genealogy);
    let forked_from = forked_from(root, &stat, &executable);
    Ok(Finding::Mpi(Box::new(MpiProcess {
        executable,
        comm: stat.comm,
        other_names,
        user: status.users.real,
        namespace_pid: status.namespace_pids.last().copied().filter(|inner| *inner != pid),
        libraries: search.libraries,
        tools: search.tools,
        job,
        allocations,
        rank,
        launcher,
        forked_from,
        process,
    })))
}

/// A process image that may be gone by now.
#[derive(Clone, Copy, Debug)]
pub struct Image<'a> {
    pub pid: u32,
    /// If it is there.
    pub process: Option<&'a Process>,
    /// Who has started it, as the kernel has told.
    pub parent: Option<u32>,
    /// When it began, by `CLOCK_MONOTONIC`.
    pub began_ns: u64,
}

impl Image<'_> {
    /// The clock ticks since boot at which it had begun for sure.
    fn began_ticks(&self) -> u64 {
        let [boot, monotonic] = [ClockId::Boottime, ClockId::Monotonic]
            .map(|clock| Duration::try_from(clock_gettime(clock)).unwrap_or_default());
        let since_boot = boot.saturating_sub(monotonic).saturating_add(Duration::from_nanos(self.began_ns));
        let ticks = since_boot.as_nanos() * u128::from(clock_ticks_per_second()) / 1_000_000_000;
        u64::try_from(ticks).unwrap_or(u64::MAX).saturating_add(1)
    }
}

/// What stands around a process.
struct Around {
    pid: u32,
    parent: u32,
    /// When it began, clock ticks since boot.
    began_ticks: u64,
    /// As the kernel prints them.
    cgroups: Vec<u8>,
}

impl Around {
    fn of(process: &Process, stat: &Stat) -> Self {
        // Older kernels may be built without cgroups.
        let cgroups = process.read("cgroup", allocation::LIMIT).map(|read| read.bytes).unwrap_or_default();
        Self { pid: process.pid(), parent: stat.parent, began_ticks: stat.start_ticks, cgroups }
    }
}

/// Where a process belongs that a launcher has started.
struct Belonging {
    rank: RankInfo,
    job: JobKey,
    allocations: Vec<Allocation>,
    launcher: Option<Launcher>,
}

fn belonging(root: &ProcRoot, around: &Around, environment: &Environment, genealogy: &Mutex<Genealogy>) -> Belonging {
    let &Around { pid, parent, began_ticks, ref cgroups } = around;
    let allocations = Allocation::of_process(cgroups, environment);
    let mut genealogy = genealogy.lock().unwrap_or_else(PoisonError::into_inner);
    let ancestry = genealogy.ancestry(root, parent, began_ticks);
    let rank = RankInfo::from_environment(environment, ancestry.under_hydra);
    let surroundings = Surroundings { hydra: ancestry.hydra, launcher: ancestry.nearest, parent, pid };
    let job = JobKey::derive(rank.launcher, environment, &allocations, &surroundings);
    Belonging { rank, job, allocations, launcher: ancestry.launcher }
}

/// Two files stay open for each MPI process, and the usual limit of 1024 is less than a large node needs.
fn raise_file_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // If it fails, running out of files is reported when it happens.
    let _ = setrlimit(Resource::Nofile, limit);
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;
