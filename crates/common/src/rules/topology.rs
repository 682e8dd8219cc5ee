//! Neighbours in grids: which of them there are. The order of neighbours is that of the standard (MPI-4.1, section 8.6): in each dimension
//! first the one before the process, then the one behind it.

use crate::flow::Degrees;

/// Dimensions of a grid at most: two bits are known of each. Of a grid with more of them, how many neighbours it has is not known.
pub const MOST_DIMENSIONS: u32 = 16;

const BEFORE: u32 = 1 << 0;
const BEHIND: u32 = 1 << 1;

/// What is found of a grid, one dimension at a time.
#[derive(Clone, Copy, Debug)]
pub struct Grid {
    /// In the dimensions that are still to come.
    rank: u32,
    absent: u32,
}

impl Grid {
    /// The process's rank in the grid's communicator.
    pub const fn of(rank: u32) -> Self {
        Self { rank, absent: 0 }
    }

    /// A dimension: they come from the last to the first, for ranks count up in the last one fastest. `false`: it is none.
    #[inline(always)]
    pub const fn has(&mut self, dimension: u32, length: i32, is_periodic: bool) -> bool {
        if length <= 0 {
            return false;
        }
        let length = length as u32;
        let place = self.rank % length;
        self.rank /= length;
        if !is_periodic {
            let before = if place == 0 { BEFORE } else { 0 };
            let behind = if place == length - 1 { BEHIND } else { 0 };
            self.absent |= (before | behind) << (2 * (dimension % MOST_DIMENSIONS));
        }
        true
    }

    /// With all its dimensions.
    pub const fn degrees(self, dimensions: u32) -> Degrees {
        Degrees::new(2 * dimensions, 2 * dimensions, self.absent)
    }
}

/// What is found of a part of a grid that has some of its dimensions, one dimension of the whole at a time.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// Those that are still to come.
    whole: u32,
    dimensions: u32,
    absent: u32,
}

impl Part {
    pub const fn of(whole: Degrees) -> Self {
        Self { whole: whole.absent, dimensions: 0, absent: 0 }
    }

    /// The next dimension of the whole, from the first to the last.
    #[inline(always)]
    pub const fn next(&mut self, is_kept: bool) {
        if is_kept {
            self.absent |= (self.whole & (BEFORE | BEHIND)) << (2 * (self.dimensions % MOST_DIMENSIONS));
            self.dimensions += 1;
        }
        self.whole >>= 2;
    }

    pub const fn degrees(self) -> Degrees {
        Degrees::new(2 * self.dimensions, 2 * self.dimensions, self.absent)
    }
}
