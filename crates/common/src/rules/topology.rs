//! Neighbours in grids: which of them there are. The order of neighbours is that of the standard (MPI-4.1, section 8.6): in each dimension
//! first the one before the process, then the one behind it.

use super::amount::Way;
use crate::flow::{Degrees, MOST_NEIGHBOURS, Topology, topology_kind};

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

impl Topology {
    pub const NONE: Self = Self {
        kind: 0,
        rank: 0,
        first_length: 0,
        second_length: 0,
        first: [0; MOST_NEIGHBOURS],
        second: [0; MOST_NEIGHBOURS],
    };

    /// The neighbours that data comes from of the process with a rank in the communicator, or those that it goes to: their ranks in it,
    /// without those that are `MPI_PROC_NULL`. `None`: they are not known.
    pub fn neighbours(&self, rank: u32, way: Way) -> Option<impl Iterator<Item = u32>> {
        let mut ranks = [None; MOST_NEIGHBOURS];
        let first = self.first.get(..self.first_length as usize)?;
        let second = self.second.get(..self.second_length as usize)?;
        let listed = match (self.kind, way) {
            (topology_kind::GRID, _) => {
                in_grid(first, second, rank, &mut ranks)?;
                &[]
            }
            _ if rank != self.rank => return None,
            (topology_kind::BOTH_WAYS, _) | (topology_kind::GRAPH, Way::Arrives) => first,
            (topology_kind::GRAPH, Way::Leaves) => second,
            _ => return None,
        };
        for (to, &rank) in ranks.iter_mut().zip(listed) {
            *to = u32::try_from(rank).ok();
        }
        Some(ranks.into_iter().flatten())
    }
}

/// In each dimension the one before the process and the one behind it, as far as they are there.
fn in_grid(lengths: &[i32], periodic: &[i32], rank: u32, neighbours: &mut [Option<u32>]) -> Option<()> {
    // How far apart in rank those are that follow each other in a dimension: ranks count up in the last one fastest.
    let mut stride = 1u32;
    let mut pairs = neighbours.get_mut(..lengths.len().checked_mul(2)?)?.chunks_exact_mut(2).rev();
    for (&length, &is_periodic) in lengths.iter().zip(periodic).rev() {
        let length = u32::try_from(length).ok().filter(|&length| length > 0)?;
        let place = rank / stride % length;
        let origin = rank - place * stride;
        let at = |place: u32| origin.checked_add(place.checked_mul(stride)?);
        let is_round = is_periodic != 0;
        let before = if place > 0 { Some(place - 1) } else { is_round.then_some(length - 1) };
        let behind = if place + 1 < length { Some(place + 1) } else { is_round.then_some(0) };
        if let Some([to_before, to_behind]) = pairs.next() {
            (*to_before, *to_behind) = (before.and_then(at), behind.and_then(at));
        }
        stride = stride.checked_mul(length)?;
    }
    Some(())
}
