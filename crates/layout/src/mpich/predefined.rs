//! Tables of predefined objects, which nothing describes.

use mpiprobe_common::layout::Memory;

use super::{Target, scan};

/// Objects that are there from the start and have consecutive handles.
#[derive(Debug, Clone, Copy)]
pub(super) struct Predefined {
    /// Names of the table in different releases, seen if the file is not stripped.
    pub(super) symbols: [&'static str; 2],
    /// The first handle of the table, and how many there are at least.
    pub(super) first: u32,
    pub(super) count: u32,
    /// Objects count who refers to them, and somebody does.
    counted: bool,
}

/// Where such a table is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TableLocation {
    pub(super) start: u64,
    pub(super) stride: u32,
}

/// `MPI_COMM_WORLD` and `MPI_COMM_SELF`.
pub(super) const COMMUNICATORS: Predefined =
    Predefined { symbols: ["MPIR_Comm_builtin", "MPIR_Comm_builtin"], first: 0x4400_0000, count: 2, counted: true };
/// The types of a value and an index. In MPICH 4 the table goes on with those that the program makes.
pub(super) const PAIRS: Predefined = Predefined {
    symbols: ["MPIR_Datatype_direct", "MPIR_Datatype_direct"],
    first: 0x8c00_0000,
    count: 5,
    counted: true,
};
/// One for each kind of operation: requests that are complete from the start. Later releases have more kinds: [`Predefined::length`].
pub(super) const REQUESTS: Predefined = Predefined {
    symbols: ["MPIR_Request_builtin", "MPIR_Request_builtins"],
    first: 0x6c00_0000,
    count: 9,
    counted: false,
};

/// How far apart objects may be, in bytes: they have some hundred, some more with each network.
const STRIDES: std::ops::RangeInclusive<u32> = 128..=16384;

/// No table of objects of one for each kind is longer.
const LONGEST: u32 = 16;

impl Predefined {
    /// How many objects there are, of those that are found in a table.
    pub(super) fn length(self, target: &Target<'_>, table: &TableLocation) -> u32 {
        let is = |index: &u32| {
            let place = table.start.checked_add(u64::from(*index) * u64::from(table.stride));
            let header = place.and_then(|address| target.memory.word(address));
            header.is_some_and(|header| header & 0xffff_ffff == u64::from(self.first + index))
        };
        (self.count..LONGEST).find(|index| !is(index)).unwrap_or(LONGEST)
    }

    /// The table; `None` as long as the library has not made the objects.
    pub(super) fn find(self, target: &Target<'_>) -> Option<TableLocation> {
        if let Some(start) = self.symbols.iter().find_map(|symbol| target.address(symbol).ok()) {
            return self.at(target, start);
        }
        let first = self.first.to_le_bytes();
        scan::find(target, &target.blueprint.data.writable, 8, |address, bytes| {
            bytes.starts_with(&first).then(|| self.at(target, address)).flatten()
        })
    }

    /// Whether the table is at `start`: from the first object to the second it is as far as to all the others.
    fn at(self, target: &Target<'_>, start: u64) -> Option<TableLocation> {
        let is = |index: u32, address: Option<u64>| {
            let header = address.and_then(|address| target.memory.word(address));
            let handle = u64::from(self.first + index);
            header.is_some_and(|header| header & 0xffff_ffff == handle && (header >> 32 != 0 || !self.counted))
        };
        let place = |index: u32, stride: u32| start.checked_add(u64::from(index) * u64::from(stride));
        let stride = STRIDES.step_by(8).find(|stride| is(1, place(1, *stride)))?;
        (0..self.count).all(|index| is(index, place(index, stride))).then_some(TableLocation { start, stride })
    }
}
