//! The version of the MPI standard that a library claims, read from the machine code of MPI_Get_version.
//!
//! No library stores it as data. `MPI_Get_version(int *version, int *subversion)` stores two constants through its arguments,
//! and a C compiler makes two `mov dword ptr [register], constant` of that.

use std::fmt;

use iced_x86::{Code, Decoder, DecoderOptions, Instruction, Register};

use super::super::{Library, lookup::Definition};

/// How much of the function is decoded, in bytes. It has 40 to 130.
const MAX_DECODED: u64 = 512;

/// A version of the MPI standard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StandardVersion {
    pub major: u8,
    pub minor: u8,
}

impl fmt::Display for StandardVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl StandardVersion {
    pub(super) fn of(library: &Library<'_>) -> Option<Self> {
        let name = "MPI_Get_version";
        let found = library.look_up(&[name]).get(name)?;
        let Definition::Function { address, .. } = found else { return None };
        Self::stored_by(library.bytes_of(found, MAX_DECODED), address)
    }

    /// The two constants stored, if there are exactly two and they are a version.
    fn stored_by(code: &[u8], address: u64) -> Option<Self> {
        let mut decoder = Decoder::try_with_ip(64, code, address, DecoderOptions::NONE).ok()?;
        let mut stores = decoder.iter().take_while(|instruction| !instruction.is_invalid()).filter_map(|i| stored(&i));
        let (first, second) = (stores.next()?, stores.next()?);
        // The compiler may have swapped the stores: the argument registers tell, if they are still used.
        let swapped = first.0 == Register::RSI || second.0 == Register::RDI;
        let (major, minor) = if swapped { (second.1, first.1) } else { (first.1, second.1) };
        let plausible = stores.next().is_none() && (1..=9).contains(&major) && minor <= 9;
        plausible.then_some(Self { major, minor })
    }
}

/// Pointer register and constant of a `mov dword ptr [register], constant` outside the stack.
fn stored(instruction: &Instruction) -> Option<(Register, u8)> {
    let base = instruction.memory_base();
    let through_pointer = instruction.code() == Code::Mov_rm32_imm32
        && instruction.memory_displacement64() == 0
        && instruction.memory_index() == Register::None
        && !matches!(base, Register::None | Register::RSP | Register::RIP);
    through_pointer.then(|| u8::try_from(instruction.immediate32()).ok().map(|constant| (base, constant)))?
}

#[cfg(test)]
mod tests {
    use super::*;

    const VERSION_4: [u8; 6] = [0xc7, 0x07, 4, 0, 0, 0]; // mov dword ptr [rdi], 4
    const SUBVERSION_1: [u8; 6] = [0xc7, 0x06, 1, 0, 0, 0]; // mov dword ptr [rsi], 1

    #[test]
    fn the_two_constants_are_the_version_in_either_order() {
        let expected = Some(StandardVersion { major: 4, minor: 1 });
        assert_eq!(StandardVersion::stored_by(&[VERSION_4, SUBVERSION_1].concat(), 0), expected);
        assert_eq!(StandardVersion::stored_by(&[SUBVERSION_1, VERSION_4].concat(), 0), expected);
    }

    #[test]
    fn anything_but_two_stores_is_no_version() {
        assert_eq!(StandardVersion::stored_by(&VERSION_4, 0), None);
        assert_eq!(StandardVersion::stored_by(&[VERSION_4, SUBVERSION_1, VERSION_4].concat(), 0), None);
        assert_eq!(StandardVersion::stored_by(&[SUBVERSION_1, [0xc7, 0x07, 0, 0, 0, 0]].concat(), 0), None);
        assert_eq!(StandardVersion::stored_by(&[], 0), None);
    }
}
