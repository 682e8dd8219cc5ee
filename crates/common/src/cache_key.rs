//! Which arguments decide what a call is: whom it is with, and how much it moves.

use bytemuck::{Pod, Zeroable};

use crate::descriptor::{Descriptor, NONE, Side, amount as kind, flags};

/// Arguments that can decide, at most.
pub const KEY_WORDS: usize = 8;

/// Of one function.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct CacheKey {
    /// Positions of arguments, each ORed with how it is to be read ([`read`]); [`NONE`] behind the last.
    pub positions: [u8; KEY_WORDS],
    /// Positions of the buffers that may be `MPI_IN_PLACE`; [`NONE`]: no such buffer.
    pub buffers: [u8; 2],
    /// Not 0: nothing else decides, such as counts in memory or a matched message.
    pub is_all: u8,
    /// Position of the status that tells what has arrived, which these arguments do not decide; [`NONE`]: they do.
    pub status: u8,
    /// Position of the window or file, among the arguments above; [`NONE`]: neither.
    pub scope: u8,
    /// Padding, zero.
    pub reserved: [u8; 3],
}

/// How an argument is to be read: parts of [`CacheKey::positions`].
pub mod read {
    /// As it is.
    pub const AS_IS: u8 = 0;
    /// A handle: of one with 32 bits the upper half is not to be looked at.
    pub const HANDLE: u8 = 0x40;
    /// An `int`.
    pub const INT: u8 = 0x80;
    /// Where it is.
    pub const POSITION: u8 = 0x3f;
}

impl CacheKey {
    pub const fn of(descriptor: &Descriptor) -> Self {
        let by_status = is_by_status(descriptor.receive_amount);
        let can_be_in_place = (descriptor.send_amount | descriptor.receive_amount) & kind::KIND != kind::NOTHING
            && descriptor.destination == NONE
            && descriptor.source == NONE;
        let is_all = descriptor.message == NONE
            && is_by_value(descriptor.send_amount)
            && (is_by_value(descriptor.receive_amount) || by_status);
        let mut all = Self {
            positions: [NONE; KEY_WORDS],
            buffers: if can_be_in_place { [descriptor.send_buffer, descriptor.receive_buffer] } else { [NONE; 2] },
            is_all: is_all as u8,
            status: if by_status { descriptor.status } else { NONE },
            scope: descriptor.window & descriptor.file,
            reserved: [0; 3],
        };
        let count = if descriptor.flags & flags::LARGE_COUNT != 0 { read::AS_IS } else { read::INT };
        all.add(descriptor.destination, read::INT);
        all.add(descriptor.source, read::INT);
        all.add(descriptor.communicator, read::HANDLE);
        all.add(descriptor.window, read::HANDLE);
        all.add(descriptor.file, read::AS_IS);
        all.add_side(descriptor.send_side(), count);
        all.add_side(descriptor.receive_side(), count);
        all.add(descriptor.root, read::INT);
        all.add(descriptor.op, read::HANDLE);
        all.add(descriptor.partitions, read::INT);
        all
    }

    const fn add_side(&mut self, side: Side, count: u8) {
        if side.amount & kind::KIND != kind::NOTHING {
            self.add(side.count, count);
            self.add(side.datatype, read::HANDLE);
        }
    }

    #[expect(clippy::indexing_slicing, reason = "the index is below the array's length")]
    const fn add(&mut self, position: u8, how: u8) {
        if position == NONE {
            return;
        }
        let mut place = 0;
        while place < KEY_WORDS {
            if self.positions[place] == position | how {
                return;
            }
            if self.positions[place] == NONE {
                self.positions[place] = position | how;
                return;
            }
            place += 1;
        }
        self.is_all = 0;
    }
}

/// Whether an amount follows from arguments that are not addresses.
const fn is_by_value(amount: u8) -> bool {
    matches!(amount & kind::KIND, kind::NOTHING | kind::BUFFER | kind::EACH | kind::UNKNOWN)
}

const fn is_by_status(amount: u8) -> bool {
    amount & kind::KIND == kind::STATUS
}

#[cfg(test)]
mod tests {
    use super::*;

    /// MPI_Recv(buf, count, datatype, source, tag, comm, status)
    const RECEIVE: Descriptor = Descriptor {
        arguments: 7,
        receive_buffer: 0,
        receive_count: 1,
        receive_datatype: 2,
        source: 3,
        receive_tag: 4,
        communicator: 5,
        status: 6,
        receive_amount: kind::STATUS,
        ..Descriptor::EMPTY
    };

    #[test]
    fn tags_and_buffers_of_messages_decide_nothing() {
        let receive = CacheKey::of(&RECEIVE);
        let positions = [3 | read::INT, 5 | read::HANDLE, 1 | read::INT, 2 | read::HANDLE];
        assert_eq!(receive.positions, [&positions[..], &[NONE; 4]].concat()[..]);
        assert_eq!((receive.is_all, receive.status, receive.buffers), (1, 6, [NONE; 2]));
    }

    #[test]
    fn buffers_of_collectives_may_be_in_place() {
        let gather = Descriptor { send_amount: kind::EACH, send_buffer: 0, receive_buffer: 3, ..Descriptor::EMPTY };
        assert_eq!(CacheKey::of(&gather).buffers, [0, 3]);
    }

    #[test]
    fn counts_in_memory_decide_too() {
        let typed = Descriptor { send_amount: kind::TYPED_SUM, ..Descriptor::EMPTY };
        assert_eq!(CacheKey::of(&typed).is_all, 0);
        let matched = Descriptor { message: 3, ..RECEIVE };
        assert_eq!(CacheKey::of(&matched).is_all, 0);
    }
}
