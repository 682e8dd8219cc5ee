//! What the process was told by its environment.

use core::ffi::CStr;

use crate::{
    imports,
    text::{Text, number},
};

/// Beginnings of the names of those variables by which launchers tell ranks and jobs.
const LAUNCHERS: [&[u8]; 17] = [
    b"OMPI_COMM_WORLD_",
    b"PMIX_RANK",
    b"PMIX_NAMESPACE",
    b"PMIX_SIZE",
    b"PMIX_LOCAL",
    b"PMI_RANK",
    b"PMI_SIZE",
    b"PMI_LOCAL",
    b"PMI_SPAWNED=",
    b"MPI_LOCAL",
    b"MV2_COMM_WORLD_",
    b"MVP_COMM_WORLD_",
    b"PALS_",
    b"ALPS_APP_PE",
    b"I_MPI_HYDRA_UUID",
    b"SLURM_JOB_ID",
    b"SLURM_",
];

/// Of Slurm's, of which there are many, those that matter.
const SLURM: [&[u8]; 6] =
    [b"SLURM_JOB_ID=", b"SLURM_STEP_", b"SLURM_PROCID=", b"SLURM_NTASKS=", b"SLURM_LOCALID=", b"SLURM_NNODES="];

/// Variables that tell a rank among the processes of this node.
const LOCAL_RANKS: [&CStr; 8] = [
    c"OMPI_COMM_WORLD_LOCAL_RANK",
    c"MPI_LOCALRANKID",
    c"PMIX_LOCAL_RANK",
    c"PMI_LOCAL_RANK",
    c"MV2_COMM_WORLD_LOCAL_RANK",
    c"MVP_COMM_WORLD_LOCAL_RANK",
    c"PALS_LOCAL_RANKID",
    c"SLURM_LOCALID",
];

/// The value of a variable; `None` also for an empty one.
pub(crate) fn get(name: &CStr) -> Option<&'static CStr> {
    let is_it = |variable: &&CStr| {
        let rest = variable.to_bytes().strip_prefix(name.to_bytes());
        rest.is_some_and(|rest| rest.first() == Some(&b'='))
    };
    let variable = variables().find(is_it)?.to_bytes_with_nul();
    let value = CStr::from_bytes_with_nul(variable.get(name.to_bytes().len() + 1..)?).ok()?;
    if value.is_empty() { None } else { Some(value) }
}

/// `NAME=value` of all variables. They live until somebody changes them: they are looked at at once.
fn variables() -> impl Iterator<Item = &'static CStr> {
    let mut entry = imports::environment();
    core::iter::from_fn(move || {
        // SAFETY: null, or a place in an array of pointers to texts that ends in a null pointer.
        unsafe {
            if entry.is_null() || (*entry).is_null() {
                return None;
            }
            let variable = CStr::from_ptr(*entry);
            entry = entry.add(1);
            Some(variable)
        }
    })
}

/// Whether this process is the one of several that speaks for all on this node; a process without a launcher is.
pub(crate) fn is_spokesman() -> bool {
    let local = LOCAL_RANKS.iter().find_map(|name| number(get(name)?.to_bytes()));
    local.is_none_or(|rank| rank == 0)
}

/// `NAME=value` of launchers' variables, each with a final NUL.
pub(crate) fn of_launchers<const N: usize>() -> Text<N> {
    let mut text = Text::new();
    for variable in variables().map(CStr::to_bytes_with_nul) {
        if is_of_launcher(variable) && variable.len() < 256 {
            text.push(variable);
        }
    }
    text
}

fn is_of_launcher(variable: &[u8]) -> bool {
    if variable.starts_with(b"SLURM_") {
        return SLURM.iter().any(|name| variable.starts_with(name));
    }
    LAUNCHERS.iter().any(|name| variable.starts_with(name))
}
