//! What the arguments that decide are in a call.

use mpiprobe_common::{
    CacheKey, Descriptor,
    cache_key::{KEY_WORDS, read as how},
    descriptor::NONE,
};

use super::Call;
use crate::entry::{DESCRIPTORS, FUNCTIONS};

/// By function id.
#[expect(clippy::indexing_slicing, reason = "done by the compiler, which refuses what is out of bounds")]
pub(super) static CACHE_KEYS: [CacheKey; FUNCTIONS] = {
    let mut all = [const { CacheKey::of(&Descriptor::EMPTY) }; FUNCTIONS];
    let mut function = 0;
    while function < FUNCTIONS {
        all[function] = CacheKey::of(&DESCRIPTORS[function]);
        function += 1;
    }
    all
};

/// What they are.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Words {
    words: [u64; KEY_WORDS],
    in_place: u64,
}

impl Words {
    pub(super) fn of(key: &CacheKey, call: &Call<'_>) -> Self {
        let mut words = [0; KEY_WORDS];
        for (word, &position) in words.iter_mut().zip(&key.positions) {
            if position != NONE {
                *word = read(call, position);
            }
        }
        Self { words, in_place: in_place(key, call) }
    }

    /// Whether they are the same in another call.
    #[inline]
    pub(super) fn are_those_of(&self, key: &CacheKey, call: &Call<'_>) -> bool {
        for (&position, &word) in key.positions.iter().zip(&self.words) {
            if position == NONE {
                break;
            }
            if read(call, position) != word {
                return false;
            }
        }
        key.buffers == [NONE; 2] || in_place(key, call) == self.in_place
    }
}

/// Which of the buffers are `MPI_IN_PLACE`, a bit each.
fn in_place(key: &CacheKey, call: &Call<'_>) -> u64 {
    let in_place = call.library.layout.constants.in_place;
    let bit = |position: u8| u64::from(position != NONE && call.arguments.word(position) == in_place);
    bit(key.buffers[0]) | bit(key.buffers[1]) << 1
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
