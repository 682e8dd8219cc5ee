//! What the program's own functions have in registers and on their stack: whether they have gone on between two looks.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crate::{copy::Stack, registers::RSP, unwind::Frame};

/// Registers that calls leave alone, and the stack pointer.
const KEPT: [u16; 7] = [3, 6, RSP, 12, 13, 14, 15];
/// Of the stack, bytes: loops are in the innermost functions mostly.
const MOST: u64 = 16 << 10;

/// The state of a program's functions outside of a call into a library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fingerprint {
    /// Where the innermost goes on.
    offset: u64,
    /// As far as they are known.
    registers: [Option<u64>; KEPT.len()],
    /// A number for what is on the stack between the innermost and the outermost; `None` if not all of it was copied.
    stack: Option<u64>,
}

impl Fingerprint {
    /// `own` are the program's functions from the inside out; `None` if there are none.
    pub(crate) fn of(own: &[Frame], stack: &Stack) -> Option<Self> {
        let (first, last) = (own.first()?, own.last()?);
        let registers = KEPT.map(|register| first.registers.get(register));
        let start = first.registers.sp()?;
        let end = last.registers.sp()?.min(start.saturating_add(MOST));
        let mut hasher = DefaultHasher::new();
        let mut address = start;
        let mut is_whole = true;
        while address < end {
            match stack.word(address) {
                Some(word) => word.hash(&mut hasher),
                None => is_whole = false,
            }
            address += 8;
        }
        Some(Self { offset: first.at.offset, registers, stack: is_whole.then(|| hasher.finish()) })
    }

    /// Whether something is another than there; what is not known in one of them is no difference.
    pub fn differs(&self, other: &Self) -> bool {
        let both_differ =
            |one: Option<u64>, other: Option<u64>| one.zip(other).is_some_and(|(one, other)| one != other);
        let mut registers = self.registers.iter().zip(&other.registers);
        self.offset != other.offset
            || registers.any(|(one, other)| both_differ(*one, *other))
            || both_differ(self.stack, other.stack)
    }

    /// Whether all is known that a program could have changed on its stack.
    pub fn is_whole(&self) -> bool {
        self.stack.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fingerprint(register: Option<u64>, stack: Option<u64>) -> Fingerprint {
        Fingerprint { offset: 7, registers: [register, None, None, None, None, None, None], stack }
    }

    #[test]
    fn what_is_not_known_is_no_difference() {
        let known = fingerprint(Some(1), Some(2));
        for same in [fingerprint(Some(1), Some(2)), fingerprint(None, Some(2)), fingerprint(Some(1), None)] {
            assert!(!known.differs(&same) && !same.differs(&known), "{same:?}");
        }
        for other in
            [fingerprint(Some(3), Some(2)), fingerprint(None, Some(3)), Fingerprint { offset: 8, ..known.clone() }]
        {
            assert!(known.differs(&other) && other.differs(&known), "{other:?}");
        }
        assert!(known.is_whole() && !fingerprint(Some(1), None).is_whole());
    }
}
