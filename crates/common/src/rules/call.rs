//! A call as the rules see it, whichever engine has seen it.

use crate::{Descriptor, Layout, descriptor::NONE, layout::Memory};

/// The arguments of a call, as they were at its entry, and the memory of the process that made it.
pub trait Arguments: Memory + Copy {
    /// The argument at a position that the function has, as it was passed.
    fn argument(&self, position: u8) -> u64;
}

/// A call, and what it is to be understood by.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a, A> {
    pub descriptor: &'a Descriptor,
    pub layout: &'a Layout,
    pub arguments: A,
}

impl<A: Arguments> Call<'_, A> {
    #[inline(always)]
    pub fn word(&self, position: u8) -> u64 {
        self.arguments.argument(position)
    }

    #[inline(always)]
    pub fn int(&self, position: u8) -> i32 {
        self.word(position) as i32
    }

    #[inline(always)]
    pub fn handle(&self, position: u8) -> u64 {
        self.layout.handle(self.word(position))
    }

    /// The handle in a variable of the program.
    #[inline(always)]
    pub fn handle_at(&self, address: u64) -> Option<u64> {
        self.arguments.integer(address, self.layout.handle_width())
    }

    /// An `int` in a variable of the program.
    #[inline(always)]
    pub fn int_at(&self, address: u64) -> Option<i32> {
        self.arguments.integer(address, 4).map(|int| int as i32)
    }

    /// Whether the call says that anything is complete.
    #[inline(always)]
    pub fn is_complete(&self) -> bool {
        let position = self.descriptor.is_complete;
        position == NONE || self.int_at(self.word(position)).unwrap_or(0) != 0
    }

    /// Where the status of the `position`-th operation is that the call has completed; 0: the program does not want one.
    #[inline(always)]
    pub fn status(&self, position: u32) -> u64 {
        let descriptor = self.descriptor;
        if descriptor.status == NONE {
            return 0;
        }
        let status = self.word(descriptor.status);
        let constants = &self.layout.constants;
        if status == if descriptor.has_one_status() { constants.status_ignore } else { constants.statuses_ignore } {
            return 0;
        }
        status.wrapping_add(position as u64 * self.layout.status.size as u64)
    }
}
