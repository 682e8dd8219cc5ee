//! Reads an interpreter's memory, within a budget: whatever is there was written by somebody else, and may change meanwhile.

use std::{fs::File, os::unix::fs::FileExt as _};

/// Bytes that are read for one thread.
const MOST: usize = 4 << 20;
/// Of a text.
const MOST_OF_TEXT: u64 = 1 << 10;
/// Of a table of lines.
const MOST_OF_TABLE: u64 = 256 << 10;
/// Of a bytes object: its length, and where its content begins.
const LENGTH: u64 = 16;
const BYTES: u64 = 32;

/// Memory of one process.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    file: &'a File,
    left: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(file: &'a File) -> Self {
        Self { file, left: MOST }
    }

    fn read(&mut self, address: u64, length: u64) -> Option<Vec<u8>> {
        let length = usize::try_from(length).ok()?;
        self.left = self.left.checked_sub(length)?;
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, address).ok()?;
        Some(bytes)
    }

    pub(super) fn word(&mut self, address: u64) -> Option<u64> {
        Some(u64::from_le_bytes(self.read(address, 8)?.try_into().ok()?))
    }

    pub(super) fn half(&mut self, address: u64) -> Option<u32> {
        Some(u32::from_le_bytes(self.read(address, 4)?.try_into().ok()?))
    }

    pub(super) fn byte(&mut self, address: u64) -> Option<u8> {
        self.read(address, 1)?.first().copied()
    }

    /// The word in a structure's field; `None` if it is zero, too: a pointer to nothing.
    pub(super) fn pointer(&mut self, structure: u64, field: u64) -> Option<u64> {
        self.word(structure.checked_add(field)?).filter(|&pointer| pointer != 0)
    }

    /// What a `bytes` object contains.
    pub(super) fn bytes(&mut self, object: u64) -> Option<Vec<u8>> {
        let length = self.word(object.checked_add(LENGTH)?)?;
        if length > MOST_OF_TABLE {
            return None;
        }
        self.read(object.checked_add(BYTES)?, length)
    }

    /// What a `str` object contains, whose characters follow after so many bytes: of an ASCII one, and of others.
    pub(super) fn text(&mut self, object: u64, (ascii, compact): (u64, u64)) -> Option<String> {
        let length = self.word(object.checked_add(LENGTH)?)?;
        let state = self.half(object.checked_add(32)?)?;
        let (kind, is_compact, is_ascii) = ((state >> 2) & 7, state >> 5 & 1 == 1, state >> 6 & 1 == 1);
        if length > MOST_OF_TEXT || !is_compact || !matches!(kind, 1 | 2 | 4) || (is_ascii && kind != 1) {
            return None;
        }
        let start = object.checked_add(if is_ascii { ascii } else { compact })?;
        let bytes = self.read(start, length * u64::from(kind))?;
        let number = |one: &[u8]| one.iter().rev().fold(0, |number, &byte| number << 8 | u32::from(byte));
        bytes.chunks_exact(usize::try_from(kind).ok()?).map(|one| char::from_u32(number(one))).collect()
    }
}
