//! Intel MPI: handles and constants are MPICH's, the name stands in its version text.

use super::{
    Evidence, Family, Recognised, mpich,
    text::{after, is_version},
};

/// As MPI_Get_library_version returns it: `Intel(R) MPI Library 2021.18 for Linux* OS`.
const TEXT: &[u8] = b"Intel(R) MPI Library ";

pub(super) fn recognise(evidence: &Evidence<'_, '_>) -> Recognised {
    if !mpich::is_family(evidence) {
        return None;
    }
    let text = words_after(evidence)?;
    Some((Family::Mpich, "Intel MPI", text.into_iter().find(|word| is_version(word))))
}

/// The words that follow the name, wherever it stands in the library; `None` if it stands nowhere.
pub(super) fn words_after(evidence: &Evidence<'_, '_>) -> Option<Vec<String>> {
    let words = after(evidence.library, TEXT);
    (!words.is_empty()).then_some(words)
}
