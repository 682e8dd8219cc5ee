//! The bytes that a probe counts on, to be compared with the target's memory before attaching.
//!
//! They differ if another tool has set a breakpoint there, if a binary patcher (a tracing library, a live patch) has rewritten the
//! function's beginning, or if the file was overwritten after the process mapped it. A probe would then corrupt the target.

use std::io;

use mpiprobe_discover::ForeignFile;

use super::prologue::MAX_DISTANCE;

/// The longest x86 instruction, in bytes.
const MAX_INSTRUCTION: usize = 15;
/// From the entry of a function to the end of the instruction at the farthest site.
const MAX_BYTES: usize = MAX_DISTANCE as usize + MAX_INSTRUCTION;
const BREAKPOINT: u8 = 0xcc;

/// A function's first bytes as they are in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fingerprint(Box<[u8]>);

/// How memory differs from the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Difference {
    #[error("another tool has a breakpoint {at} bytes into the function")]
    Breakpoint { at: usize },
    #[error(
        "{at} bytes into the function the process has {found:#04x} where its file has {expected:#04x}: the function was patched, \
         or the file was overwritten while in use"
    )]
    Patched { at: usize, expected: u8, found: u8 },
    #[error("only {read} of {needed} bytes could be read from the process")]
    Unreadable { read: usize, needed: usize },
}

impl Fingerprint {
    /// At least 16 bytes and the site's whole instruction, unless the function ends before.
    pub(super) fn of(code: &[u8], site: usize) -> Self {
        let wanted = (site + MAX_INSTRUCTION).clamp(16, MAX_BYTES);
        Self(code.get(..wanted).unwrap_or(code).into())
    }

    /// How many bytes to read from the process, beginning at the function's entry.
    pub fn size(&self) -> usize {
        self.0.len()
    }

    /// Compares with what was read from the process at the function's entry. A breakpoint anywhere is reported first.
    pub fn compare(&self, memory: &[u8]) -> Result<(), Difference> {
        if memory.len() < self.0.len() {
            return Err(Difference::Unreadable { read: memory.len(), needed: self.0.len() });
        }
        let differences = || self.0.iter().zip(memory).enumerate().filter(|(_, (expected, found))| expected != found);
        if let Some((at, _)) = differences().find(|(_, (_, found))| **found == BREAKPOINT) {
            return Err(Difference::Breakpoint { at });
        }
        match differences().next() {
            Some((at, (&expected, &found))) => Err(Difference::Patched { at, expected, found }),
            None => Ok(()),
        }
    }
}

/// Compares the bytes that a probe on a function counts on; `address` is that of the function's entry in the process.
///
/// The outer error: the memory could not be read.
pub fn compare_code(
    memory: &ForeignFile,
    address: u64,
    fingerprint: &Fingerprint,
) -> io::Result<Result<(), Difference>> {
    let mut bytes = vec![0; fingerprint.size()];
    memory.read_exact_at(&mut bytes, address)?;
    Ok(fingerprint.compare(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: [u8; 64] = [0x90; 64];

    #[test]
    fn it_covers_the_sites_instruction_but_not_the_next_function() {
        assert_eq!(Fingerprint::of(&CODE, 0).size(), 16);
        assert_eq!(Fingerprint::of(&CODE, 4).size(), 19);
        assert_eq!(Fingerprint::of(&CODE, 24).size(), 39);
        assert_eq!(Fingerprint::of(&CODE[..5], 4).size(), 5);
    }

    /// Invariant SAME-BYTES.
    #[test]
    fn it_tells_a_breakpoint_from_a_patch_and_from_unread_memory() {
        let fingerprint = Fingerprint::of(&CODE, 0);
        let mut memory = CODE;
        assert_eq!(fingerprint.compare(&memory), Ok(()));
        memory[20] = 0xe9;
        assert_eq!(fingerprint.compare(&memory), Ok(()));
        memory[2] = 0xe9;
        assert_eq!(fingerprint.compare(&memory), Err(Difference::Patched { at: 2, expected: 0x90, found: 0xe9 }));
        memory[9] = 0xcc;
        assert_eq!(fingerprint.compare(&memory), Err(Difference::Breakpoint { at: 9 }));
        assert_eq!(fingerprint.compare(&memory[..15]), Err(Difference::Unreadable { read: 15, needed: 16 }));
    }
}
