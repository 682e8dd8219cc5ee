//! Launchers that have somebody else start the ranks: those are not their processes, and not found by who has started whom.

use std::{
    ffi::{OsStr, OsString},
    path::Path,
};

/// What asks a daemon, of this node or another.
const ASKING: [&str; 18] = [
    "srun",
    "sbatch",
    "salloc",
    "prun",
    "flux",
    "aprun",
    "jsrun",
    "lrun",
    "qsub",
    "qrsh",
    "bsub",
    "pbsdsh",
    "ssh",
    "docker",
    "podman",
    "apptainer",
    "singularity",
    "systemd-run",
];
/// Set in jobs of batch systems, whose ways launchers take there even on their own node.
const BATCH: [&str; 6] = ["SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "COBALT_JOBID", "FLUX_URI", "PE_HOSTFILE"];

/// By what ranks may be started that the command does not start itself.
pub(super) fn elsewhere(command: &[OsString], is_set: &dyn Fn(&str) -> bool) -> Option<&'static str> {
    let is_named = |name: &&&str| command.iter().any(|argument| base_name(argument) == Some(OsStr::new(**name)));
    ASKING.iter().find(is_named).or_else(|| BATCH.iter().find(|name| is_set(name))).copied()
}

fn base_name(argument: &OsStr) -> Option<&OsStr> {
    Path::new(argument).file_name()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(command: &[&str], variable: &str) -> Option<&'static str> {
        let command: Vec<OsString> = command.iter().map(Into::into).collect();
        elsewhere(&command, &|name| name == variable)
    }

    #[test]
    fn launchers_that_ask_others_are_known() {
        assert_eq!(asked(&["/usr/bin/srun", "-n", "4", "./ring"], ""), Some("srun"));
        assert_eq!(asked(&["nice", "srun", "./ring"], ""), Some("srun"));
        assert_eq!(asked(&["mpirun", "-n", "4", "./ring"], "SLURM_JOB_ID"), Some("SLURM_JOB_ID"));
        assert_eq!(asked(&["mpirun", "-n", "4", "./ring"], "HOME"), None);
    }
}
