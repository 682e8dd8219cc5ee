//! Looks at every process of this node and keeps those that use MPI.

use rustix::process::{Resource, getrlimit, setrlimit};

use super::access::{Caller, Refusal, may_trace};
use super::job::Job;
use super::job_key::{JobKey, Surroundings};
use super::launcher::{Genealogy, is_launcher};
use super::mpi_process::{MpiProcess, Search};
use super::proc_root::{ProcRoot, ProcRootError};
use super::process::{Executable, Process};
use super::process_error::ProcessError;
use super::rank::RankInfo;
use super::recognise::{Cache, Recognise};
use super::text::base_name;
use super::users::Users;

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
    cache: Cache<R>,
}

impl<R: Recognise> Scanner<R> {
    /// Looks for processes that `caller` may trace below `root`.
    pub fn new(root: ProcRoot, caller: Caller, recogniser: R) -> Self {
        raise_file_limit();
        Self { root, caller, cache: Cache::new(recogniser) }
    }

    pub fn root(&self) -> &ProcRoot {
        &self.root
    }

    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Looks at every process. Those that end meanwhile are left out.
    pub fn scan(&mut self) -> Result<Snapshot, ProcRootError> {
        self.cache.begin_round();
        let mut genealogy = Genealogy::default();
        let mut snapshot = Snapshot::default();
        for pid in self.root.pids()? {
            match self.examine(pid, &mut genealogy) {
                Ok(Finding::Mpi(process)) => snapshot.processes.push(*process),
                Ok(Finding::Refused(_)) => snapshot.refused += 1,
                Ok(_) => {}
                Err(error) if error.is_gone() => continue,
                Err(error) => snapshot.errors.push(error),
            }
            snapshot.examined += 1;
        }
        snapshot.jobs = Job::group(&mut snapshot.processes, &Users::read());
        Ok(snapshot)
    }

    /// Looks at one process, anew.
    pub fn inspect(&mut self, pid: u32) -> Result<Finding, ProcessError> {
        self.cache.begin_round();
        self.examine(pid, &mut Genealogy::default())
    }

    fn examine(&mut self, pid: u32, genealogy: &mut Genealogy) -> Result<Finding, ProcessError> {
        if self.root.is_live() && pid == std::process::id() {
            return Ok(Finding::Own);
        }
        let process = Process::open(&self.root, pid)?;
        if let Some(refusal) = self.refusal(&process)? {
            return Ok(Finding::Refused(refusal));
        }
        let search = Search::of(&process, &mut self.cache)?;
        // Most processes of a node end here: only the others are worth more reads.
        if search.libraries.is_empty() {
            let stat = process.stat()?;
            return Ok(match () {
                () if stat.kernel_thread => Finding::KernelThread,
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

    fn refusal(&self, process: &Process) -> Result<Option<Refusal>, ProcessError> {
        match may_trace(&self.caller, process) {
            Ok(()) => Ok(None),
            Err(Refusal::Unknown(error)) => Err(error),
            Err(refusal) => Ok(Some(refusal)),
        }
    }
}

/// Reads the rest about a process that has MPI libraries.
fn describe(
    root: &ProcRoot,
    process: Process,
    search: Search,
    genealogy: &mut Genealogy,
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
    let ancestry = genealogy.ancestry(root, &stat);
    let rank = RankInfo::from_environment(&environment, ancestry.under_hydra);
    let surroundings =
        Surroundings { hydra: ancestry.hydra, launcher: ancestry.nearest, parent: stat.parent, pid: process.pid() };
    Ok(Finding::Mpi(Box::new(MpiProcess {
        executable,
        comm: stat.comm,
        other_names,
        user: status.users.real,
        namespace_pid: status.namespace_pids.last().copied().filter(|inner| *inner != pid),
        libraries: search.libraries,
        job: JobKey::derive(rank.launcher, &environment, &surroundings),
        rank,
        launcher: ancestry.launcher,
        process,
    })))
}

/// Two files stay open for each MPI process, and the usual limit of 1024 is less than a large node needs.
fn raise_file_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // If it fails, running out of files is reported when it happens.
    let _ = setrlimit(Resource::Nofile, limit);
}
