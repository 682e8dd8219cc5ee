//! MPICH, and descendants that nothing else recognises.

use super::{Evidence, Family, Recognised, text::string_of};

/// Exported by MPICH 3 and 4.
const VERSION: &str = "MPII_Version_string";
/// Exported for the Fortran 2008 bindings: 4.x and 5.x name it differently.
const STATUS_IGNORE: [&str; 3] =
    ["MPIR_F08_MPI_STATUS_IGNORE_OBJ", "MPIR_F08_MPI_STATUS_IGNORE", "MPI_F08_STATUS_IGNORE"];
/// The global state: hidden in shared libraries, visible in executables linked statically.
const STATE: &str = "MPIR_Process";

pub(super) const NAMES: &[&str] = &[VERSION, STATUS_IGNORE[0], STATUS_IGNORE[1], STATUS_IGNORE[2], STATE];

pub(super) fn recognise(evidence: &Evidence<'_, '_>) -> Recognised {
    is_family(evidence).then(|| (Family::Mpich, "MPICH", version(evidence)))
}

pub(super) fn is_family(evidence: &Evidence<'_, '_>) -> bool {
    NAMES.iter().any(|name| evidence.names.defines_data(name))
}

pub(super) fn version(evidence: &Evidence<'_, '_>) -> Option<String> {
    string_of(evidence, VERSION)
}
