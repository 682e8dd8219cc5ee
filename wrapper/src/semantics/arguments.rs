//! The arguments of a call, and what is in the variables that they point to.

use mpiprobe_common::{Layout, layout::Memory, rules};

use crate::{entry::Frame, own_status};

/// The process's own memory: only what MPI has read or written in a call that was successful.
#[derive(Clone, Copy)]
pub(crate) struct Own;

impl Memory for Own {
    #[inline]
    fn word(&self, address: u64) -> Option<u64> {
        // SAFETY: by contract.
        if address == 0 { None } else { Some(unsafe { (address as *const u64).read_unaligned() }) }
    }

    #[inline]
    fn integer(&self, address: u64, width: u32) -> Option<u64> {
        if address == 0 {
            return None;
        }
        // SAFETY: by contract.
        unsafe {
            match width {
                1 => Some((address as *const u8).read() as u64),
                2 => Some((address as *const u16).read_unaligned() as u64),
                4 => Some((address as *const u32).read_unaligned() as u64),
                8 => Some((address as *const u64).read_unaligned()),
                _ => None,
            }
        }
    }
}

/// As they were at the entry: the frame of the trampoline keeps them, and the caller those on the stack. In place of a status that the
/// program does not want is what the library was given ([`own_status`]).
#[derive(Clone, Copy)]
pub(super) struct Arguments(pub(super) *mut Frame);

impl Arguments {
    /// The argument at a position that the function has.
    #[inline]
    pub(super) fn word(self, position: u8) -> u64 {
        // SAFETY: the trampoline's frame.
        unsafe {
            let frame = &*self.0;
            if let Some(&word) = frame.arguments.get(position as usize) {
                word
            } else if frame.own_status.position_plus_1 == u64::from(position) + 1 {
                own_status::address(self.0)
            } else {
                *Frame::on_stack(self.0).add(position as usize - frame.arguments.len())
            }
        }
    }

    /// The same as the program has passed it.
    pub(super) fn given(self, position: u8) -> u64 {
        // SAFETY: the trampoline's frame.
        let own = unsafe { &(*self.0).own_status };
        if own.position_plus_1 == u64::from(position) + 1 { own.given } else { self.word(position) }
    }

    #[inline]
    pub(super) fn int(self, position: u8) -> i32 {
        self.word(position) as i32
    }

    #[inline]
    pub(super) fn handle(self, layout: &Layout, position: u8) -> u64 {
        layout.handle(self.word(position))
    }
}

impl Memory for Arguments {
    #[inline]
    fn word(&self, address: u64) -> Option<u64> {
        Own.word(address)
    }

    #[inline]
    fn integer(&self, address: u64, width: u32) -> Option<u64> {
        Own.integer(address, width)
    }
}

impl rules::call::Arguments for Arguments {
    #[inline]
    fn argument(&self, position: u8) -> u64 {
        Self::word(*self, position)
    }
}

/// The handle in a variable of the program.
#[inline]
pub(super) fn handle_at(layout: &Layout, address: u64) -> Option<u64> {
    Own.integer(address, layout.handle_width())
}
