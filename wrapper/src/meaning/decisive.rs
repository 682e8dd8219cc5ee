//! Which arguments decide what a call is: whom it is with, and how much it moves.

use mpiprobe_common::{
    Descriptor,
    descriptor::{NONE, Side, amount as kind, flags},
};

use super::Call;
use crate::entry::{DESCRIPTORS, FUNCTIONS};

/// Arguments that can decide, at most.
pub(super) const MOST: usize = 8;

/// What the arguments that decide are in a call.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Words {
    words: [u64; MOST],
    in_place: u64,
}

/// Of one function.
pub(super) struct Decisive {
    /// Positions of arguments, each with how it is to be read; [`NONE`] behind the last.
    positions: [u8; MOST],
    /// Positions of the buffers, and whether they may be `MPI_IN_PLACE`.
    buffers: [u8; 2],
    can_be_in_place: bool,
    /// Nothing else decides: no counts in memory, no matched message.
    pub(super) is_all: bool,
    /// But for what arrives, which a status tells.
    pub(super) by_status: bool,
}

/// How an argument is to be read: a handle, an `int`, or as it is.
const AS_IS: u8 = 0;
const HANDLE: u8 = 0x40;
const INT: u8 = 0x80;
const POSITION: u8 = 0x3f;

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

impl Decisive {
    const fn of(descriptor: &Descriptor) -> Self {
        let by_status = is_by_status(descriptor.receive_amount);
        let mut all = Self {
            positions: [NONE; MOST],
            buffers: [descriptor.send_buffer, descriptor.receive_buffer],
            can_be_in_place: (descriptor.send_amount | descriptor.receive_amount) & kind::KIND != kind::NOTHING
                && descriptor.destination == NONE
                && descriptor.source == NONE,
            is_all: descriptor.message == NONE
                && is_by_value(descriptor.send_amount)
                && (is_by_value(descriptor.receive_amount) || by_status),
            by_status: by_status && descriptor.status != NONE,
        };
        let count = if descriptor.flags & flags::LARGE_COUNT != 0 { AS_IS } else { INT };
        all.add(descriptor.destination, INT);
        all.add(descriptor.source, INT);
        all.add(descriptor.communicator, HANDLE);
        all.add(descriptor.window, HANDLE);
        all.add(descriptor.file, AS_IS);
        all.add_side(descriptor.send_side(), count);
        all.add_side(descriptor.receive_side(), count);
        all.add(descriptor.root, INT);
        all.add(descriptor.op, HANDLE);
        all.add(descriptor.partitions, INT);
        all
    }

    const fn add_side(&mut self, side: Side, count: u8) {
        if side.amount & kind::KIND != kind::NOTHING {
            self.add(side.count, count);
            self.add(side.datatype, HANDLE);
        }
    }

    #[expect(clippy::indexing_slicing, reason = "done by the compiler, which refuses what is out of bounds")]
    const fn add(&mut self, position: u8, how: u8) {
        if position == NONE {
            return;
        }
        let mut place = 0;
        while place < MOST {
            if self.positions[place] == position | how {
                return;
            }
            if self.positions[place] == NONE {
                self.positions[place] = position | how;
                return;
            }
            place += 1;
        }
        self.is_all = false;
    }

    /// Whether the arguments are what they were in another call.
    #[inline]
    pub(super) fn are(&self, call: &Call<'_>, known: &Words) -> bool {
        for (&position, &word) in self.positions.iter().zip(&known.words) {
            if position == NONE {
                break;
            }
            if read(call, position) != word {
                return false;
            }
        }
        !self.can_be_in_place || self.in_place(call) == known.in_place
    }

    /// What they are.
    pub(super) fn words(&self, call: &Call<'_>) -> Words {
        let mut words = [0; MOST];
        for (word, &position) in words.iter_mut().zip(&self.positions) {
            if position != NONE {
                *word = read(call, position);
            }
        }
        Words { words, in_place: self.in_place(call) }
    }

    /// Which of the buffers are `MPI_IN_PLACE`, a bit each.
    fn in_place(&self, call: &Call<'_>) -> u64 {
        let in_place = call.library.layout.constants.in_place;
        let bit = |position: u8| u64::from(position != NONE && call.arguments.word(position) == in_place);
        bit(self.buffers[0]) | bit(self.buffers[1]) << 1
    }
}

#[inline]
fn read(call: &Call<'_>, position: u8) -> u64 {
    let given = call.arguments.word(position & POSITION);
    if position & INT != 0 {
        given & 0xffff_ffff
    } else if position & HANDLE != 0 {
        call.library.layout.handle(given)
    } else {
        given
    }
}

/// Whether an amount follows from arguments that are not addresses.
const fn is_by_value(amount: u8) -> bool {
    matches!(amount & kind::KIND, kind::NOTHING | kind::BUFFER | kind::EACH | kind::UNKNOWN)
}

const fn is_by_status(amount: u8) -> bool {
    amount & kind::KIND == kind::STATUS
}
