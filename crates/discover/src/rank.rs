//! Rank and size of a process, as its launcher told it through the environment.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::environment::Environment;

/// Who started a process, as its environment shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LauncherKind {
    OpenMpi,
    /// A PMIx server other than Open MPI's launchers and Slurm.
    Pmix,
    /// MPICH's mpiexec.
    Hydra,
    IntelMpi,
    Mvapich,
    /// HPE Cray's PALS or ALPS.
    Pals,
    Slurm,
    /// Nobody: a process started by itself (a singleton), or with an environment that was cleaned.
    None,
}

/// A process's place in its `MPI_COMM_WORLD`; `None` where it is unknown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RankInfo {
    pub launcher: LauncherKind,
    pub rank: Option<u32>,
    pub size: Option<u32>,
    /// Rank among the job's processes on this node.
    pub local_rank: Option<u32>,
    /// How many processes the job has on this node.
    pub local_size: Option<u32>,
}

/// The variables of one launcher; of several names for one thing the first that holds a number counts.
struct Source {
    launcher: LauncherKind,
    rank: &'static [&'static str],
    size: &'static [&'static str],
    local_rank: &'static [&'static str],
    local_size: &'static [&'static str],
}

/// The most telling first: an outer launcher's variables are inherited, and Slurm's are in everything that runs in an
/// allocation, so that under `mpirun` in a batch script every rank has the script's `SLURM_PROCID=0`.
const SOURCES: [Source; 6] = [
    Source {
        launcher: LauncherKind::OpenMpi,
        rank: &["OMPI_COMM_WORLD_RANK"],
        size: &["OMPI_COMM_WORLD_SIZE"],
        local_rank: &["OMPI_COMM_WORLD_LOCAL_RANK"],
        local_size: &["OMPI_COMM_WORLD_LOCAL_SIZE"],
    },
    Source {
        launcher: LauncherKind::Pmix,
        rank: &["PMIX_RANK"],
        size: &["PMIX_SIZE"],
        local_rank: &["PMIX_LOCAL_RANK"],
        local_size: &["PMIX_LOCAL_SIZE"],
    },
    Source {
        launcher: LauncherKind::Mvapich,
        rank: &["MV2_COMM_WORLD_RANK", "MVP_COMM_WORLD_RANK"],
        size: &["MV2_COMM_WORLD_SIZE", "MVP_COMM_WORLD_SIZE"],
        local_rank: &["MV2_COMM_WORLD_LOCAL_RANK", "MVP_COMM_WORLD_LOCAL_RANK"],
        local_size: &["MV2_COMM_WORLD_LOCAL_SIZE", "MVP_COMM_WORLD_LOCAL_SIZE"],
    },
    Source {
        launcher: LauncherKind::Pals,
        rank: &["PALS_RANKID", "ALPS_APP_PE"],
        size: &[],
        local_rank: &["PALS_LOCAL_RANKID"],
        local_size: &["PALS_LOCAL_SIZE"],
    },
    Source {
        launcher: LauncherKind::Hydra,
        rank: &["PMI_RANK"],
        size: &["PMI_SIZE"],
        local_rank: &["MPI_LOCALRANKID", "PMI_LOCAL_RANK"],
        local_size: &["MPI_LOCALNRANKS", "PMI_LOCAL_SIZE"],
    },
    Source {
        launcher: LauncherKind::Slurm,
        rank: &["SLURM_PROCID"],
        size: &["SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"],
        local_rank: &["SLURM_LOCALID"],
        local_size: &[],
    },
];

impl RankInfo {
    /// Reads a process's environment. `under_hydra` says that a hydra proxy started it, so that its PMI variables are newer
    /// than any other launcher's.
    pub fn from_environment(environment: &Environment, under_hydra: bool) -> Self {
        let number = |names: &[&str]| names.iter().find_map(|name| environment.get(name).and_then(natural));
        let mut sources: Vec<&Source> = SOURCES.iter().filter(|source| number(source.rank).is_some()).collect();
        if under_hydra {
            sources.sort_by_key(|source| source.launcher != LauncherKind::Hydra);
        }
        let unknown = Self { launcher: LauncherKind::None, rank: None, size: None, local_rank: None, local_size: None };
        let Some(first) = sources.first() else { return unknown };
        let rank = number(first.rank);
        let launcher = launcher(first.launcher, environment, under_hydra);
        // PMIx gives a rank and Slurm the rest: what has the same rank speaks of the same thing, unless it is Slurm's and
        // somebody else started the process.
        sources.retain(|source| {
            number(source.rank) == rank && (source.launcher != LauncherKind::Slurm || launcher == LauncherKind::Slurm)
        });
        let known =
            |names: fn(&Source) -> &'static [&'static str]| sources.iter().find_map(|source| number(names(source)));
        let (size, local_size) = (known(|source| source.size), known(|source| source.local_size));
        let local_rank = known(|source| source.local_rank);
        Self {
            launcher,
            // Numbers that contradict each other are worth nothing.
            rank: rank.filter(|rank| size.is_none_or(|size| *rank < size)),
            size: size.filter(|size| rank.is_none_or(|rank| rank < *size)),
            local_rank: local_rank.filter(|rank| local_size.is_none_or(|size| *rank < size)),
            local_size: local_size.filter(|size| local_rank.is_none_or(|rank| rank < *size)),
        }
    }
}

/// Who it really was, among those who use the same variables.
fn launcher(variables: LauncherKind, environment: &Environment, under_hydra: bool) -> LauncherKind {
    let in_slurm_step = environment.get("SLURM_STEP_ID").is_some();
    match variables {
        LauncherKind::Pmix if environment.get("PMIX_NAMESPACE").is_some_and(|name| name.starts_with(b"slurm.")) => {
            LauncherKind::Slurm
        }
        LauncherKind::Hydra if environment.get("I_MPI_HYDRA_UUID").is_some() => LauncherKind::IntelMpi,
        LauncherKind::Hydra if in_slurm_step && !under_hydra => LauncherKind::Slurm,
        other => other,
    }
}

/// A number as launchers write it: digits alone. Anything else is unknown.
fn natural(value: &[u8]) -> Option<u32> {
    let digits = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    // MPI's ranks are of type int.
    digits.then(|| std::str::from_utf8(value).ok()?.parse::<i32>().ok()?.try_into().ok()).flatten()
}

#[cfg(test)]
#[path = "rank_tests.rs"]
mod tests;
