//! Bounded reads of the words of a file.

use std::path::Path;

use super::file::TruthError;

#[derive(Clone, Copy)]
pub(super) struct Reader<'data> {
    pub(super) data: &'data [u8],
    pub(super) path: &'data Path,
}

impl Reader<'_> {
    pub(super) fn bytes<const N: usize>(&self, offset: u64) -> Result<[u8; N], TruthError> {
        let tail = usize::try_from(offset).ok().and_then(|start| self.data.get(start..));
        tail.and_then(|tail| tail.first_chunk()).copied().ok_or_else(|| self.error("it ends early"))
    }

    pub(super) fn u32(&self, offset: u64) -> Result<u32, TruthError> {
        self.bytes(offset).map(u32::from_ne_bytes)
    }

    pub(super) fn i32(&self, offset: u64) -> Result<i32, TruthError> {
        self.bytes(offset).map(i32::from_ne_bytes)
    }

    pub(super) fn u64(&self, offset: u64) -> Result<u64, TruthError> {
        self.bytes(offset).map(u64::from_ne_bytes)
    }

    /// Text in a field of N bytes, padded with zeros. Names that a program made up need not be Unicode.
    pub(super) fn text<const N: usize>(&self, offset: u64) -> Result<String, TruthError> {
        let bytes: [u8; N] = self.bytes(offset)?;
        Ok(String::from_utf8_lossy(bytes.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned())
    }

    pub(super) fn error(&self, what: &'static str) -> TruthError {
        TruthError::Format { path: self.path.to_owned(), what }
    }
}
