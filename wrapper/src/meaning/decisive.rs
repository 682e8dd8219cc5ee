//! What the arguments that decide are in a call.

use mpiprobe_common::{
    Decisive, Descriptor,
    decisive::{DECISIVE_WORDS, read as how},
    descriptor::NONE,
};

use super::Call;
use crate::entry::{DESCRIPTORS, FUNCTIONS};

/// By function id.
#[expect(clippy::indexing_slicing, reason = "done by the compiler, which refuses what is out of bounds")]
pub(super) static DECISIVE: [Decisive; FUNCTIONS] = {
    let mut all = [const { Decisive::of(&Descriptor::EMPTY) }; FUNCTIONS];
    let mut function = 0;
    while function < FUNCTIONS {
        all[function] = Decisive::of(&DESCRIPTORS[function]);
        function += 1;
    }
    all
};

/// What they are.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Words {
    words: [u64; DECISIVE_WORDS],
    in_place: u64,
}

impl Words {
    pub(super) fn of(decisive: &Decisive, call: &Call<'_>) -> Self {
        let mut words = [0; DECISIVE_WORDS];
        for (word, &position) in words.iter_mut().zip(&decisive.positions) {
            if position != NONE {
                *word = read(call, position);
            }
        }
        Self { words, in_place: in_place(decisive, call) }
    }

    /// Whether they are the same in another call.
    #[inline]
    pub(super) fn are_those_of(&self, decisive: &Decisive, call: &Call<'_>) -> bool {
        for (&position, &word) in decisive.positions.iter().zip(&self.words) {
            if position == NONE {
                break;
            }
            if read(call, position) != word {
                return false;
            }
        }
        decisive.buffers == [NONE; 2] || in_place(decisive, call) == self.in_place
    }
}

/// Which of the buffers are `MPI_IN_PLACE`, a bit each.
fn in_place(decisive: &Decisive, call: &Call<'_>) -> u64 {
    let in_place = call.library.layout.constants.in_place;
    let bit = |position: u8| u64::from(position != NONE && call.arguments.word(position) == in_place);
    bit(decisive.buffers[0]) | bit(decisive.buffers[1]) << 1
}

#[inline]
fn read(call: &Call<'_>, position: u8) -> u64 {
    let given = call.arguments.word(position & how::POSITION);
    if position & how::INT != 0 {
        given & 0xffff_ffff
    } else if position & how::HANDLE != 0 {
        call.library.layout.handle(given)
    } else {
        given
    }
}
