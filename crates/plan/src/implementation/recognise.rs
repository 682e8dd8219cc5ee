//! Who recognises which library, by what it exports and says of itself.

use super::{
    Evidence, Family,
    text::{after, is_version, string_of},
};

/// Family, name and version, if the library is known.
pub(super) type Recognised = Option<(Family, &'static str, Option<String>)>;

/// What the library is looked through for.
pub(super) fn names() -> Vec<&'static str> {
    [OPEN_MPI_NAMES, MPICH_NAMES].concat()
}

/// The first that knows the library.
pub(super) fn recognise(evidence: &Evidence<'_, '_>) -> Recognised {
    [standard_abi, open_mpi, intel, mpich].iter().find_map(|recognise| recognise(evidence))
}

/// The standard binary interface of MPI 5.0.
///
/// MPICH 5 exports `MPI_Abi_get_version` from its ordinary library as well, so only the SONAME, which the standard prescribes,
/// tells the two apart. An executable linked statically to such a library is not recognised.
fn standard_abi(evidence: &Evidence<'_, '_>) -> Recognised {
    if !evidence.library.soname()?.starts_with("libmpi_abi.so") {
        return None;
    }
    if let Some(words) = intel_words(evidence) {
        return Some((
            Family::StandardAbi,
            "Intel MPI (standard ABI)",
            words.into_iter().find(|word| is_version(word)),
        ));
    }
    let name = if is_mpich_family(evidence) { "MPICH (standard ABI)" } else { "MPI (standard ABI)" };
    Some((Family::StandardAbi, name, mpich_version(evidence)))
}

const OPEN_MPI_WORLD: &str = "ompi_mpi_comm_world";
const OPEN_MPI_VERSION: &str = "ompi_version_string";

/// Open MPI: the predefined communicator is an exported object.
const OPEN_MPI_NAMES: &[&str] = &[OPEN_MPI_WORLD, OPEN_MPI_VERSION];

fn open_mpi(evidence: &Evidence<'_, '_>) -> Recognised {
    evidence
        .names
        .defines_data(OPEN_MPI_WORLD)
        .then(|| (Family::OpenMpi, "Open MPI", string_of(evidence, OPEN_MPI_VERSION)))
}

/// As MPI_Get_library_version returns it: `Intel(R) MPI Library 2021.18 for Linux* OS`.
const INTEL_TEXT: &[u8] = b"Intel(R) MPI Library ";

/// Intel MPI: handles and constants are MPICH's, the name stands in its version text.
fn intel(evidence: &Evidence<'_, '_>) -> Recognised {
    if !is_mpich_family(evidence) {
        return None;
    }
    let text = intel_words(evidence)?;
    Some((Family::Mpich, "Intel MPI", text.into_iter().find(|word| is_version(word))))
}

/// The words that follow the name, wherever it stands in the library; `None` if it stands nowhere.
fn intel_words(evidence: &Evidence<'_, '_>) -> Option<Vec<String>> {
    let words = after(evidence.library, INTEL_TEXT);
    (!words.is_empty()).then_some(words)
}

/// Exported by MPICH 3 and 4.
const MPICH_VERSION: &str = "MPII_Version_string";
/// Exported for the Fortran 2008 bindings: 4.x and 5.x name it differently.
const MPICH_STATUS_IGNORE: [&str; 3] =
    ["MPIR_F08_MPI_STATUS_IGNORE_OBJ", "MPIR_F08_MPI_STATUS_IGNORE", "MPI_F08_STATUS_IGNORE"];
/// The global state: hidden in shared libraries, visible in executables linked statically.
const MPICH_STATE: &str = "MPIR_Process";

const MPICH_NAMES: &[&str] =
    &[MPICH_VERSION, MPICH_STATUS_IGNORE[0], MPICH_STATUS_IGNORE[1], MPICH_STATUS_IGNORE[2], MPICH_STATE];

/// MPICH, and descendants that nothing else recognises.
fn mpich(evidence: &Evidence<'_, '_>) -> Recognised {
    is_mpich_family(evidence).then(|| (Family::Mpich, "MPICH", mpich_version(evidence)))
}

fn is_mpich_family(evidence: &Evidence<'_, '_>) -> bool {
    MPICH_NAMES.iter().any(|name| evidence.names.defines_data(name))
}

fn mpich_version(evidence: &Evidence<'_, '_>) -> Option<String> {
    string_of(evidence, MPICH_VERSION)
}
