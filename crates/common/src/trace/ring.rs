//! How far a ring is written, and how far it is read.

use bytemuck::{Pod, Zeroable};

/// Each word has a cache line of its own: one is the writers', the other the reader's.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct RingHead {
    /// Lines whose numbers have been given out.
    pub head: u64,
    pub reserved: [u64; 7],
    /// Lines before this one have been read. Written by the reader.
    pub tail: u64,
    pub reserved_too: [u64; 7],
}

/// Calls of a thread that were to be written and were not.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Unwritten {
    /// Calls for which there was no room at all.
    pub lost: u64,
    /// Those that had only asked, in vain, whether something had happened, while there was little room.
    pub idle: u64,
    /// What has become of requests by calls that were written.
    pub changes: u64,
}

impl Unwritten {
    pub const NONE: Self = Self { lost: 0, idle: 0, changes: 0 };
}

/// What there is room for in a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    Enough,
    /// For what matters: calls that ask in vain whether something has happened are left out.
    Little,
    None,
}

/// Of a ring, the part that may be filled before calls are left out that found nothing.
pub const PRESSURE: u64 = 2;
/// Of a ring, the part that stays free: those who are looking now how much room there is may all find enough.
const SPARE: u64 = 64;

/// What there is room for in a ring of `lines`. A reader that says to be ahead of the writers has made no room.
#[inline]
pub const fn room(lines: u64, head: u64, tail: u64) -> Room {
    let used = head.wrapping_sub(tail);
    if used <= lines / PRESSURE {
        Room::Enough
    } else if used <= lines - lines / SPARE {
        Room::Little
    } else {
        Room::None
    }
}

/// The lines of a ring that may be there and have not been read, from `next` on, by their numbers. Those that were overwritten before they
/// were read are none of them.
pub const fn written(lines: u64, head: u64, next: u64) -> core::ops::Range<u64> {
    let unread = head.wrapping_sub(next);
    if unread > u64::MAX / 2 {
        // The word is not what writers would have put there.
        return next..next;
    }
    let first = if unread > lines { head.wrapping_sub(lines) } else { next };
    first..head
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: u64 = 1024;

    #[test]
    fn a_ring_fills() {
        assert_eq!(room(LINES, 10, 10), Room::Enough);
        assert_eq!(room(LINES, LINES / 2, 0), Room::Enough);
        assert_eq!(room(LINES, LINES / 2 + 1, 0), Room::Little);
        assert_eq!(room(LINES, LINES - 16, 0), Room::Little);
        assert_eq!(room(LINES, LINES - 15, 0), Room::None);
        // However far it has gone, and whatever somebody has written there.
        assert_eq!(room(LINES, 3, u64::MAX - 3), Room::Enough);
        assert_eq!(room(LINES, 3, 4), Room::None);
    }

    #[test]
    fn what_was_overwritten_is_not_read() {
        assert_eq!(written(LINES, 0, 0), 0..0);
        assert_eq!(written(LINES, 700, 100), 100..700);
        assert_eq!(written(LINES, 5000, 100), 5000 - LINES..5000);
        assert_eq!(written(LINES, 99, 100), 100..100);
        assert_eq!(written(LINES, u64::MAX, 100), 100..100);
    }
}
