//! Libraries of the MPI 5.0 standard ABI: the standard gives constants and handles, the objects are MPICH's.

use mpiprobe_common::{
    Layout,
    layout::{STANDARD_ABI, capability},
};

use super::{
    blueprint::{Findings, Target},
    mpich,
};

pub(super) fn find(target: &Target<'_>) -> Findings {
    let layout = Layout {
        known: capability::CONSTANTS | capability::BUILTIN_SIZES,
        handles: STANDARD_ABI.handles,
        constants: STANDARD_ABI.constants,
        status: STANDARD_ABI.status,
        ..Layout::default()
    };
    mpich::find_objects(target, &layout)
}
