//! Open MPI: the predefined communicator is an exported object.

use super::{Evidence, Family, Recognised, text::string_of};

const WORLD: &str = "ompi_mpi_comm_world";
const VERSION: &str = "ompi_version_string";

pub(super) const NAMES: &[&str] = &[WORLD, VERSION];

pub(super) fn recognise(evidence: &Evidence<'_, '_>) -> Recognised {
    evidence.names.defines_data(WORLD).then(|| (Family::OpenMpi, "Open MPI", string_of(evidence, VERSION)))
}
