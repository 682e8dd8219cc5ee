//! Jobs: MPI processes that share an `MPI_COMM_WORLD`.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    allocation::{Allocation, Manager},
    copies::{ForkRelation, silent_copies},
    job_key::JobKey,
    launcher::Launcher,
    mpi_process::{MpiLibrary, MpiProcess},
    proc_root::ProcRoot,
    process::Process,
    rank::LauncherKind,
    text::{base_name, printable},
    users::{User, Users},
};

/// One process of a job on this node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JobRank {
    /// `None` if unknown.
    pub rank: Option<u32>,
    pub pid: u32,
    /// Its pid inside its container.
    pub namespace_pid: Option<u32>,
    /// Path of its executable, made printable.
    pub executable: String,
    /// The file is gone or another one has its name now.
    pub executable_deleted: bool,
}

/// An MPI library that processes of a job use.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct JobLibrary {
    /// Path in the process's own mount namespace, made printable.
    pub path: String,
    /// The file is gone or another one has its name now.
    pub deleted: bool,
    /// Name and version, such as `Open MPI 4.1.4`; `None` if unknown.
    pub implementation: Option<String>,
}

/// The part of a job that runs on this node, as far as the caller may see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Job {
    /// What `--job` takes; unique in one listing.
    pub id: JobKey,
    pub kind: LauncherKind,
    /// Who started it here, if it still runs.
    pub launcher: Option<Launcher>,
    /// The number of its Slurm job: by its cgroup, otherwise as its environment says.
    pub slurm_job: Option<String>,
    /// Where its processes here run by the word of batch system, container engine or systemd; what is sure comes first.
    #[serde(default)]
    pub allocations: Vec<Allocation>,
    pub user: User,
    /// Processes in the whole job, on all nodes; `None` if unknown.
    pub size: Option<u32>,
    /// By rank; those of unknown rank last, by pid. Without processes that they have forked and that are copies of them.
    pub ranks: Vec<JobRank>,
    /// Usually one; several if different programs run in one job.
    pub libraries: Vec<JobLibrary>,
}

impl Job {
    /// How long the oldest of its processes here has been there; `None`: there is none any more.
    pub fn age(&self, root: &ProcRoot) -> Option<Duration> {
        self.ranks.iter().filter_map(|rank| Process::open(root, rank.pid).ok()).map(|process| process.age()).max()
    }

    /// Groups processes into jobs, ordered by their lowest pid, and gives each process the unique name of its job.
    ///
    /// The environment that names a job is the user's to write, so that a name groups processes of one user only.
    pub fn group(processes: &mut [MpiProcess], users: &Users) -> Vec<Self> {
        let mut owners: HashMap<JobKey, BTreeSet<u32>> = HashMap::new();
        for process in processes.iter() {
            owners.entry(process.job.clone()).or_default().insert(process.user);
        }
        for process in processes.iter_mut() {
            if owners.get(&process.job).is_some_and(|owners| owners.len() > 1) {
                // Numbers, because two users may share a name.
                process.job = process.job.of_user(&process.user.to_string());
            }
        }
        let mut groups: BTreeMap<&JobKey, Vec<&MpiProcess>> = BTreeMap::new();
        for process in processes.iter() {
            groups.entry(&process.job).or_default().push(process);
        }
        let mut jobs: Vec<_> = groups.into_values().filter_map(|members| Self::of(&members, users)).collect();
        jobs.sort_by_key(|job| job.ranks.iter().map(|rank| rank.pid).min());
        jobs
    }

    fn of(members: &[&MpiProcess], users: &Users) -> Option<Self> {
        let first = members.first()?;
        // Who of them calls MPI is not known.
        let member = |of: &&MpiProcess| ForkRelation { pid: of.pid(), forked_from: of.forked_from, calls: false };
        let copies = silent_copies(&members.iter().map(member).collect::<Vec<_>>());
        let ranks = members.iter().filter(|member| !copies.contains(&member.pid()));
        let mut ranks: Vec<_> = ranks.map(|member| JobRank::of(member)).collect();
        ranks.sort_by_key(|rank| (rank.rank.is_none(), rank.rank, rank.pid));
        let libraries: BTreeSet<_> = members.iter().filter_map(|member| member.library()).map(JobLibrary::of).collect();
        let allocations: BTreeSet<_> = members.iter().flat_map(|member| &member.allocations).collect();
        let mut allocations: Vec<_> = allocations.into_iter().cloned().collect();
        allocations.sort_by_key(|allocation| allocation.known_by);
        Some(Self {
            id: first.job.clone(),
            kind: first.rank.launcher,
            launcher: members.iter().find_map(|member| member.launcher.clone()),
            slurm_job: slurm_job(&allocations),
            allocations,
            user: users.user(first.user),
            // Processes that disagree on it do not know it.
            size: first.rank.size.filter(|_| members.iter().all(|member| member.rank.size == first.rank.size)),
            ranks,
            libraries: libraries.into_iter().collect(),
        })
    }

    /// The base names of its programs, each once.
    pub fn programs(&self) -> Vec<String> {
        let names: BTreeSet<_> = self.ranks.iter().map(|rank| base_name(rank.executable.as_bytes())).collect();
        names.into_iter().map(printable).collect()
    }
}

/// Its number, whatever else the batch system calls it.
fn slurm_job(allocations: &[Allocation]) -> Option<String> {
    let mut of_slurm = allocations.iter().filter(|allocation| allocation.manager == Manager::Slurm);
    of_slurm.clone().find(|one| one.has_number()).or_else(|| of_slurm.next()).map(|one| one.id.clone())
}

impl JobRank {
    fn of(process: &MpiProcess) -> Self {
        Self {
            rank: process.rank.rank,
            pid: process.pid(),
            namespace_pid: process.namespace_pid,
            executable: printable(&process.executable.path),
            executable_deleted: process.executable.deleted,
        }
    }
}

impl JobLibrary {
    fn of(library: &MpiLibrary) -> Self {
        let implementation = library.recognised.implementation.clone();
        Self { path: library.file.display_path(), deleted: library.file.is_deleted(), implementation }
    }
}

/// One line: `ompi:838205441  ring  4 of 4 ranks  pids 4711-4714  user alice  by mpirun (pid 4709)`.
impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}  {}  {}", self.id, self.programs().join(", "), self.ranks.len())?;
        match self.size {
            Some(size) => write!(f, " of {size} ranks")?,
            None if self.ranks.len() == 1 => write!(f, " process")?,
            None => write!(f, " processes")?,
        }
        let mut pids: Vec<_> = self.ranks.iter().map(|rank| rank.pid).collect();
        pids.sort_unstable();
        write!(f, "  {} {}", if pids.len() == 1 { "pid" } else { "pids" }, ranges(&pids))?;
        write!(f, "  user {}", self.user.name)?;
        match &self.launcher {
            Some(launcher) => write!(f, "  by {} (pid {})", launcher.program(), launcher.pid),
            None => Ok(()),
        }
    }
}

/// Ascending numbers, runs of them shortened: `3, 7-9`.
pub fn ranges(numbers: &[u32]) -> String {
    numbers
        .chunk_by(|one, next| one.checked_add(1) == Some(*next))
        .filter_map(|run| match (run.first()?, run.last()?) {
            (first, last) if first == last => Some(first.to_string()),
            (first, last) => Some(format!("{first}-{last}")),
        })
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
#[path = "job_tests.rs"]
mod tests;
