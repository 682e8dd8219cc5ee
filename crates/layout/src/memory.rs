//! Reading another process's memory: the one place where addresses that others chose are followed.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

use mpiprobe_common::layout::Memory;
use mpiprobe_discover::{Process, ProcessError, Regions};

const PAGE: u64 = 4096;

/// How much is read in one look, in bytes, single words and whole ranges together.
const BUDGET: u64 = 256 << 20;

/// The memory of one process, looked at once: what has been read stays as it was.
///
/// Only what the process has mapped readable is read, and no more than a budget in total: a chain of pointers that leads
/// round in circles or a list of absurd length ends with `None`. After the process's end or exec nothing can be read; nor can
/// another process be read that has got the pid since, as the memory belongs to the pinned [`Process`].
#[derive(Debug)]
pub struct TargetMemory {
    file: File,
    regions: Regions,
    pages: RefCell<HashMap<u64, Option<Box<[u8]>>>>,
    left: Cell<u64>,
}

impl TargetMemory {
    /// Begins a look at `process`. For what changes later, begin another.
    pub fn open(process: &Process) -> Result<Self, ProcessError> {
        Ok(Self {
            file: process.memory()?,
            regions: Regions::of(process)?,
            pages: RefCell::default(),
            left: Cell::new(BUDGET),
        })
    }

    /// Whether the memory is still there: if not, what could not be read, or was not seen to be mapped, may have been there all the same.
    /// A process's memory goes before its end is told, and at its exec.
    pub fn is_there(&self) -> bool {
        // Of memory that has gone, the kernel gives nothing; of what is not mapped any more, an error (fs/proc/base.c, mem_rw).
        let somewhere = self.regions.iter().next().map(|region| self.file.read_at(&mut [0], region.start));
        somewhere.is_some_and(|read| !matches!(read, Ok(0)))
    }

    pub fn regions(&self) -> &Regions {
        &self.regions
    }

    /// The bytes of a range; `None` if not all of it can be read.
    pub fn bytes(&self, range: Range<u64>) -> Option<Vec<u8>> {
        let length = range.end.checked_sub(range.start)?;
        if !self.regions.contain(range.start, length) || !self.spend(length) {
            return None;
        }
        let mut bytes = vec![0; usize::try_from(length).ok()?];
        self.file.read_exact_at(&mut bytes, range.start).ok()?;
        Some(bytes)
    }

    /// The text of at most `limit` bytes that begins at `address` and ends with a NUL; invalid UTF-8 is replaced.
    pub fn text(&self, address: u64, limit: u64) -> Option<String> {
        let mut bytes = Vec::new();
        for at in address..address.checked_add(limit)? {
            let word = self.word(at & !7)?;
            match (word >> ((at & 7) * 8)).to_le_bytes().first() {
                Some(0) | None => return Some(String::from_utf8_lossy(&bytes).into_owned()),
                Some(&byte) => bytes.push(byte),
            }
        }
        None
    }

    fn page(&self, number: u64) -> Option<Box<[u8]>> {
        let start = number.checked_mul(PAGE)?;
        if !self.regions.contain(start, PAGE) || !self.spend(PAGE) {
            return None;
        }
        let mut page = vec![0; usize::try_from(PAGE).ok()?].into_boxed_slice();
        match self.file.read_exact_at(&mut page, start) {
            Ok(()) => Some(page),
            Err(error) => {
                // The end of the process shows as the end of the file, and whoever holds the process will notice.
                debug_assert!(error.kind() != io::ErrorKind::InvalidInput, "{error}");
                None
            }
        }
    }

    fn spend(&self, length: u64) -> bool {
        let left = self.left.get().checked_sub(length);
        self.left.set(left.unwrap_or(0));
        left.is_some()
    }
}

impl Memory for TargetMemory {
    fn word(&self, address: u64) -> Option<u64> {
        if address % PAGE > PAGE - 8 {
            return self.bytes(address..address.checked_add(8)?)?.first_chunk().map(|word| u64::from_le_bytes(*word));
        }
        let mut pages = self.pages.borrow_mut();
        let page = pages.entry(address / PAGE).or_insert_with(|| self.page(address / PAGE)).as_ref()?;
        let into = usize::try_from(address % PAGE).ok()?;
        page.get(into..)?.first_chunk().map(|word| u64::from_le_bytes(*word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mpiprobe_discover::ProcRoot;

    fn own() -> TargetMemory {
        TargetMemory::open(&Process::open(&ProcRoot::system().unwrap(), std::process::id()).unwrap()).unwrap()
    }

    #[test]
    fn words_and_texts_are_read_from_where_they_are() {
        let words: Vec<u64> = (0..2048).collect();
        let text = b"within\0after\xff\0".to_vec();
        let memory = own();
        let start = words.as_ptr().addr() as u64;
        // Any alignment, over the ends of pages.
        for offset in 0..8 * 2047 {
            let expected = u128::from(words[offset / 8]) | u128::from(words[offset / 8 + 1]) << 64;
            assert_eq!(
                memory.word(start + offset as u64),
                u64::try_from(expected >> (offset % 8 * 8) & u128::from(u64::MAX)).ok()
            );
        }
        let start = text.as_ptr().addr() as u64;
        assert_eq!(memory.text(start, 7).as_deref(), Some("within"));
        assert_eq!(memory.text(start, 6), None, "no end within the limit");
        assert_eq!(memory.text(start + 7, 64).as_deref(), Some("after\u{fffd}"));
    }

    #[test]
    fn memory_goes_with_its_process() {
        let root = ProcRoot::system().unwrap();
        let mut child = std::process::Command::new("sleep").arg("infinity").spawn().unwrap();
        let memory = TargetMemory::open(&Process::open(&root, child.id()).unwrap()).unwrap();
        assert!(memory.is_there());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!memory.is_there());
        assert!(own().is_there());
    }

    #[test]
    fn what_is_not_mapped_cannot_be_read() {
        let memory = own();
        for address in [0, 8, 4096, u64::MAX - 7, u64::MAX, 1 << 63] {
            assert_eq!(memory.word(address), None, "{address:#x}");
        }
        assert_eq!(memory.bytes(0..8), None);
        #[expect(clippy::reversed_empty_ranges, reason = "what a hostile process may make of two numbers")]
        let backwards = 16..8;
        assert_eq!(memory.bytes(backwards), None);
    }

    #[test]
    fn a_look_has_a_budget() {
        let words = [7u64; 1024];
        let memory = own();
        memory.left.set(PAGE);
        let start = words.as_ptr().addr() as u64;
        assert_eq!(memory.word(start), Some(7));
        assert_eq!(memory.word(start + PAGE), None);
    }
}
