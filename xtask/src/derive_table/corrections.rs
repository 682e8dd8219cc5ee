//! Where the C binding says something else than the Forum's list.

use anyhow::Context as _;

use super::{Parameter, Procedure};

type Correction = (&'static str, &'static str, fn(&mut Parameter));

const CORRECTIONS: &[Correction] = &[
    // The request itself is only read, but C passes its address.
    ("MPI_Cancel", "request", |p| "inout".clone_into(&mut p.param_direction)),
    // Unlike MPI_Init, which takes the address of argc.
    ("MPI_Info_create_env", "argc", |p| "in".clone_into(&mut p.param_direction)),
    // A receive buffer like any other.
    ("MPI_Precv_init", "buf", |p| "out".clone_into(&mut p.param_direction)),
    // Every process of a scatter receives, as MPI_Scatterv and MPI_Iscatterv have it.
    ("MPI_Scatterv_init", "recvbuf", |p| p.root_only = false),
];

/// Fails when the list no longer has what a correction is about.
pub(super) fn apply(procedures: &mut [Procedure]) -> anyhow::Result<()> {
    for (function, parameter, correct) in CORRECTIONS {
        let found = procedures
            .iter_mut()
            .find(|procedure| procedure.name == *function)
            .and_then(|procedure| procedure.parameters.iter_mut().find(|p| p.name == *parameter));
        correct(found.with_context(|| format!("{function} has no parameter {parameter} to correct"))?);
    }
    Ok(())
}
