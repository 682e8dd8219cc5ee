//! The table that finds a function's unwinding rules (.eh_frame_hdr; Linux Standard Base Core, "Exception Frames").

/// Version and encodings as every linker for x86-64 writes them: the address of the rules relative to its place, the number of
/// entries, and the entries relative to the start of the table.
const ENCODINGS: [u8; 4] = [1, 0x1b, 0x03, 0x3b];
/// Before the entries, in bytes.
const HEADER: usize = 12;
const ENTRY: usize = 8;

/// Functions in ascending order, each with the address of its rules.
#[derive(Debug)]
pub(super) struct FrameIndex {
    bytes: Vec<u8>,
    address: u64,
    count: usize,
    /// The address of all rules.
    pub(super) frames: u64,
}

impl FrameIndex {
    /// Takes the table that is at `address`; `None` if it is of another kind.
    pub(super) fn parse(bytes: Vec<u8>, address: u64) -> Option<Self> {
        if !bytes.starts_with(&ENCODINGS) {
            return None;
        }
        let frames = address.checked_add(4)?.checked_add_signed(number(&bytes, 4)?.into())?;
        let count = usize::try_from(number(&bytes, 8)?.cast_unsigned()).ok()?;
        // As many as are there, whatever the number says.
        let count = count.min(bytes.len().saturating_sub(HEADER) / ENTRY);
        Some(Self { bytes, address, count, frames })
    }

    /// The address of the rules that `address` may have: those of the last function that starts before.
    pub(super) fn find(&self, address: u64) -> Option<u64> {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.field(middle, 0)? <= address { low = middle + 1 } else { high = middle }
        }
        self.field(low.checked_sub(1)?, 4)
    }

    /// The addresses of the rules of all functions, in ascending order of the functions.
    pub(super) fn rules(&self) -> impl Iterator<Item = u64> {
        (0..self.count).filter_map(|entry| self.field(entry, 4))
    }

    fn field(&self, entry: usize, place: usize) -> Option<u64> {
        let relative = number(&self.bytes, HEADER + entry * ENTRY + place)?;
        Some(self.address.wrapping_add_signed(relative.into()))
    }
}

fn number(bytes: &[u8], offset: usize) -> Option<i32> {
    bytes.get(offset..)?.first_chunk().map(|bytes| i32::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(entries: &[[i32; 2]], count: i32) -> Option<FrameIndex> {
        let numbers = [&[0x100, count][..], entries.as_flattened()].concat();
        let numbers = numbers.iter().flat_map(|number| number.to_le_bytes());
        FrameIndex::parse(ENCODINGS.into_iter().chain(numbers).collect(), 0x1000)
    }

    #[test]
    fn the_last_function_before_an_address_is_found() {
        let index = index(&[[-0x800, 0x10], [-0x400, 0x20], [-0x200, 0x30]], 3).unwrap();
        assert_eq!(index.frames, 0x1104);
        let found = [0, 0x7ff, 0x800, 0xbff, 0xc00, 0xdff, 0xe00, u64::MAX].map(|address| index.find(address));
        let [none, first, second, third] = [None, Some(0x1010), Some(0x1020), Some(0x1030)];
        assert_eq!(found, [none, none, first, first, second, second, third, third]);
    }

    #[test]
    fn numbers_of_entries_are_not_believed() {
        assert_eq!(index(&[[-0x800, 0x10]], i32::MAX).unwrap().find(0x900), Some(0x1010));
        assert_eq!(index(&[[-0x800, 0x10]], -1).unwrap().find(0x900), Some(0x1010));
        assert_eq!(index(&[], 7).unwrap().find(0x900), None);
        assert!(FrameIndex::parse(ENCODINGS.to_vec(), 0x1000).is_none());
        assert!(FrameIndex::parse(vec![1, 0, 3, 0x3b, 0, 0, 0, 0, 0, 0, 0, 0], 0x1000).is_none());
    }
}
