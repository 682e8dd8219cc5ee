//! The standard binary interface of MPI 5.0.
//!
//! MPICH 5 exports `MPI_Abi_get_version` from its ordinary library as well, so only the SONAME, which the standard prescribes,
//! tells the two apart. An executable linked statically to such a library is not recognised.

use super::{Evidence, Family, Recognised, intel, mpich, text::is_version};

pub(super) fn recognise(evidence: &Evidence<'_, '_>) -> Recognised {
    if !evidence.library.soname()?.starts_with("libmpi_abi.so") {
        return None;
    }
    if let Some(words) = intel::words_after(evidence) {
        return Some((
            Family::StandardAbi,
            "Intel MPI (standard ABI)",
            words.into_iter().find(|word| is_version(word)),
        ));
    }
    let name = if mpich::is_family(evidence) { "MPICH (standard ABI)" } else { "MPI (standard ABI)" };
    Some((Family::StandardAbi, name, mpich::version(evidence)))
}
