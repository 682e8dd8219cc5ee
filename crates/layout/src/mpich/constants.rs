//! MPICH's special values, the same in all releases and descendants (the ABI compatibility initiative's).

use mpiprobe_common::{
    Layout,
    layout::{Constants, MPICH, Memory},
};

use super::{Target, UNWEIGHTED, WEIGHTS_EMPTY};

pub(super) fn fill(layout: &mut Layout, target: &Target<'_>) {
    // Pointer variables, whose value programs pass.
    let value = |name| target.address(name).ok().and_then(|at| target.memory.word(at)).unwrap_or(0);
    layout.status = MPICH.status;
    layout.constants =
        Constants { unweighted: value(UNWEIGHTED), weights_empty: value(WEIGHTS_EMPTY), ..MPICH.constants };
}
