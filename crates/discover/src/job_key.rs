//! What processes of one job, and only they, have in common.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    allocation::{Allocation, Manager},
    environment::Environment,
    launcher::HydraGroup,
    rank::{LauncherKind, RankInfo},
    text::plain,
};

const SPAWNED: &str = "/spawned";

/// A short name for a job (an `MPI_COMM_WORLD`), such as `ompi:838205441` or `hydra:node1:37367`: the same in all its processes and
/// different in all others of the user's on this node. Printable ASCII.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct JobKey(String);

/// Where a process stands among others, when its environment does not name the job.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// The hydra proxy that started it.
    pub hydra: Option<HydraGroup>,
    /// The nearest launcher above it.
    pub launcher: Option<u32>,
    pub parent: u32,
    pub pid: u32,
}

impl JobKey {
    /// The job of a process with this environment, which runs in these allocations.
    pub fn derive(
        kind: LauncherKind,
        environment: &Environment,
        allocations: &[Allocation],
        around: &Surroundings,
    ) -> Self {
        Self(named(kind, environment, allocations, around).unwrap_or_else(|| match around {
            Surroundings { launcher: Some(launcher), .. } => format!("tree:{launcher}{}", world(kind, environment)),
            // It has a rank, so somebody started it, in some way unknown here: its siblings are its job.
            Surroundings { parent, .. } if kind != LauncherKind::None => {
                format!("tree:{parent}{}", world(kind, environment))
            }
            Surroundings { pid, .. } => format!("single:{pid}"),
        }))
    }

    /// The job of a process that may have ended: only what it noted of its environment and its ids are left of it.
    pub fn of_environment(rank: &RankInfo, environment: &Environment, parent: u32, pid: u32) -> Self {
        let allocations = Allocation::of_process(&[], environment);
        let around = Surroundings { hydra: None, launcher: None, parent, pid };
        Self::derive(rank.launcher, environment, &allocations, &around)
    }

    /// The job of a process of which nothing but its environment is known; `None`: that does not name the job.
    pub fn of_environment_alone(rank: &RankInfo, environment: &Environment) -> Option<Self> {
        let allocations = Allocation::of_process(&[], environment);
        named(rank.launcher, environment, &allocations, &Surroundings::default()).map(Self)
    }

    /// Whether it is only said by whom the processes were started: the job had no name that was still known.
    pub fn is_of_tree(&self) -> bool {
        self.0.starts_with("tree:")
    }

    /// Whether it is of processes that others of the same launcher have spawned.
    pub fn is_spawned(&self) -> bool {
        self.0.ends_with(SPAWNED)
    }

    /// The same key told apart from another user's of the same name.
    #[must_use]
    pub fn of_user(&self, user: &str) -> Self {
        Self(format!("{}@{user}", self.0))
    }

    #[cfg(test)]
    pub fn for_test(text: &str) -> Self {
        Self(text.to_owned())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether `text` means this job: the whole name, or what follows its first colon.
    pub fn is_meant_by(&self, text: &str) -> bool {
        self.0 == text || self.0.split_once(':').is_some_and(|(_, rest)| rest == text)
    }
}

impl fmt::Display for JobKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The job's name where launcher or environment give it one.
fn named(
    kind: LauncherKind,
    environment: &Environment,
    allocations: &[Allocation],
    around: &Surroundings,
) -> Option<String> {
    let value = |name| environment.get(name).and_then(plain);
    // By its number if that is known, which is in the tables of processes that count themselves and have ended, too.
    let slurm_step = || {
        let steps = || allocations.iter().filter(|one| one.manager == Manager::Slurm && one.part.is_some());
        let number = steps().find(|one| one.has_number());
        let step = number.or_else(|| steps().next())?;
        Some(format!("slurm:{}.{}", step.id, step.part.as_deref()?))
    };
    match kind {
        LauncherKind::OpenMpi => value("PMIX_NAMESPACE").map(|namespace| format!("ompi:{namespace}")),
        LauncherKind::Pmix => value("PMIX_NAMESPACE").map(|namespace| format!("pmix:{namespace}")),
        LauncherKind::IntelMpi => value("I_MPI_HYDRA_UUID").map(|uuid| format!("impi:{uuid}")),
        LauncherKind::Hydra | LauncherKind::Mvapich => {
            let world = |group: &HydraGroup| if group.is_first() { world(kind, environment) } else { "" };
            around.hydra.as_ref().map(|group| format!("{group}{}", world(group))).or_else(slurm_step)
        }
        LauncherKind::Pals => value("PALS_APID").map(|application| format!("pals:{application}")),
        LauncherKind::Slurm => slurm_step(),
        LauncherKind::None => None,
    }
}

/// What tells processes that `MPI_Comm_spawn` has started from those that called it, where one proxy of MPICH's has started both. Worlds
/// that were spawned one after the other have no names.
fn world(kind: LauncherKind, environment: &Environment) -> &'static str {
    let is_hydra = matches!(kind, LauncherKind::Hydra | LauncherKind::Mvapich);
    if is_hydra && environment.get("PMI_SPAWNED") == Some(b"1") { SPAWNED } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(kind: LauncherKind, variables: &[(&'static str, &'static str)], around: &Surroundings) -> String {
        let environment = variables.iter().copied().collect();
        JobKey::derive(kind, &environment, &Allocation::of_process(&[], &environment), around).to_string()
    }

    #[test]
    fn launchers_name_their_jobs() {
        let around = Surroundings { launcher: Some(9), parent: 8, pid: 7, ..Surroundings::default() };
        let namespace = [("PMIX_NAMESPACE", "838205441")];
        assert_eq!(key(LauncherKind::OpenMpi, &namespace, &around), "ompi:838205441");
        assert_eq!(key(LauncherKind::Pmix, &namespace, &around), "pmix:838205441");
        assert_eq!(key(LauncherKind::IntelMpi, &[("I_MPI_HYDRA_UUID", "ab")], &around), "impi:ab");
        assert_eq!(key(LauncherKind::Pals, &[("PALS_APID", "ab-1")], &around), "pals:ab-1");
        let step = [("SLURM_JOB_ID", "17"), ("SLURM_STEP_ID", "2")];
        assert_eq!(key(LauncherKind::Slurm, &step, &around), "slurm:17.2");
        // The cgroup knows better.
        let (environment, cgroup) = (step.into_iter().collect(), b"0::/system.slice/slurmstepd.scope/job_3/step_0\n");
        let allocations = Allocation::of_process(cgroup, &environment);
        let key = JobKey::derive(LauncherKind::Slurm, &environment, &allocations, &around);
        assert_eq!(key.as_str(), "slurm:3.0");
    }

    #[test]
    fn without_a_name_the_tree_of_processes_decides() {
        let around = Surroundings { launcher: Some(9), parent: 8, pid: 7, ..Surroundings::default() };
        assert_eq!(key(LauncherKind::Hydra, &[], &around), "tree:9");
        assert_eq!(key(LauncherKind::None, &[], &around), "tree:9");
        let spawned = [("PMI_RANK", "0"), ("PMI_SPAWNED", "1")];
        assert_eq!(key(LauncherKind::Hydra, &spawned, &around), "tree:9/spawned");
        assert_eq!(key(LauncherKind::Slurm, &spawned, &around), "tree:9");
        let orphan = Surroundings { launcher: None, ..around };
        assert_eq!(key(LauncherKind::Hydra, &[], &orphan), "tree:8");
        assert_eq!(key(LauncherKind::None, &[], &orphan), "single:7");
    }

    #[test]
    fn a_name_that_could_mislead_is_none() {
        let around = Surroundings { parent: 8, ..Surroundings::default() };
        for bad in ["", "a b", "a\nb", "\u{202e}x"] {
            assert_eq!(key(LauncherKind::OpenMpi, &[("PMIX_NAMESPACE", bad)], &around), "tree:8", "{bad:?}");
        }
        assert_eq!(plain(&[b'x'; 129]), None);
    }

    #[test]
    fn what_people_type() {
        let key = JobKey::for_test("hydra:node1:37367");
        assert!(key.is_meant_by("hydra:node1:37367"));
        assert!(key.is_meant_by("node1:37367"));
        assert!(!key.is_meant_by("37367"));
        assert!(!key.is_meant_by("hydra"));
    }
}
