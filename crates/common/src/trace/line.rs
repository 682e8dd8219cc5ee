//! Lines of a ring.

use bytemuck::{Pod, Zeroable};

/// Words of a line behind its state.
pub const LINE_WORDS: usize = 7;
pub type Words = [u64; LINE_WORDS];

/// A cache line.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Line {
    /// See [`Origin::state`]; 0: nothing was written here yet.
    pub state: u64,
    pub words: Words,
}

/// What a line is.
pub mod kind {
    /// A call that has returned: [`CallRecord`](super::super::CallRecord).
    pub const CALL: u8 = 1;
    /// More of the call in the next line.
    pub const MORE: u8 = 2;
    /// What has become of a request: [`ChangeRecord`](super::super::ChangeRecord).
    pub const CHANGE: u8 = 3;
    /// Another phase: [`PhaseRecord`](super::super::PhaseRecord).
    pub const PHASE: u8 = 4;
}

/// What the state of a line says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Slot of the process, of which there are at most 65,536.
    pub process: u16,
    /// One of [`kind`].
    pub kind: u8,
}

/// Of a line's number plus one, as many bits as there is room for: rings go round long before these do.
const NUMBER_BITS: u32 = 44;
const NUMBER: u64 = (1 << NUMBER_BITS) - 1;
const PROCESS_BITS: u32 = 16;
const KIND_BITS: u32 = 3;
const _: () =
    assert!(NUMBER_BITS + PROCESS_BITS + KIND_BITS == 63, "the highest bit says that a line is being written");

impl Origin {
    /// The line is being written: what is in it is not to be believed.
    pub const WRITING: u64 = 1 << 63;

    /// The state of the line of a number, once it is whole.
    #[inline]
    pub const fn state(self, number: u64) -> u64 {
        let kind = (self.kind as u64) << (NUMBER_BITS + PROCESS_BITS);
        kind | (self.process as u64) << NUMBER_BITS | number.wrapping_add(1) & NUMBER
    }

    /// Of the state of a line that is to be the one of a number; `None`: it is not, or is being written.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "cut off on purpose")]
    pub const fn of(state: u64, number: u64) -> Option<Self> {
        if state & Self::WRITING != 0 || state & NUMBER != number.wrapping_add(1) & NUMBER || state == 0 {
            return None;
        }
        let kind = (state >> (NUMBER_BITS + PROCESS_BITS)) as u8;
        Some(Self { process: (state >> NUMBER_BITS) as u16, kind })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_says_whose_line_it_is_and_which() {
        for number in [0, 1, NUMBER - 1, NUMBER, NUMBER + 1, u64::MAX] {
            for origin in [Origin { process: 0, kind: kind::CALL }, Origin { process: u16::MAX, kind: kind::PHASE }] {
                let state = origin.state(number);
                assert_eq!(Origin::of(state, number), Some(origin), "{number}");
                assert_eq!(Origin::of(state, number.wrapping_add(1)), None);
                assert_eq!(Origin::of(state, number.wrapping_sub(65_536)), None);
                assert_eq!(Origin::of(state | Origin::WRITING, number), None);
            }
        }
        assert_eq!(Origin::of(0, 0), None, "nothing was written yet");
        assert_eq!(Origin::of(0, NUMBER), None);
    }
}
