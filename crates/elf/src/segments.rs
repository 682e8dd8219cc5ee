//! Addresses of the ELF file and where in the file their bytes are (program headers).

use std::ops::Range;

use object::elf;

/// Of mappings, in bytes, on x86-64.
const PAGE: u64 = 4096;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    pub kind: elf::ProgramType,
    pub address: u64,
    pub offset: u64,
    /// Bytes that the file has, cut at its end.
    pub file_size: u64,
    pub memory_size: u64,
    pub executable: bool,
    pub writable: bool,
    pub(crate) alignment: u64,
}

impl Segment {
    /// File offset of the byte `into` the segment, and how many bytes follow there in the file.
    fn file_offset(&self, into: u64) -> Option<(u64, u64)> {
        let left = self.file_size.checked_sub(into).filter(|&left| left > 0)?;
        Some((self.offset.checked_add(into)?, left))
    }
}

/// All program headers; most questions are about the loadable ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Segments(Vec<Segment>);

impl Segments {
    /// The same bytes may be loaded twice, once of them as data, in pages that segments share: code is found first.
    pub(crate) fn new(mut segments: Vec<Segment>) -> Self {
        segments.sort_by_key(|segment| !segment.executable);
        Self(segments)
    }

    /// The first of that type.
    pub fn of_kind(&self, kind: elf::ProgramType) -> Option<&Segment> {
        self.0.iter().find(|segment| segment.kind == kind)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Segment> {
        self.0.iter()
    }

    /// What is mapped into memory.
    pub fn loaded(&self) -> impl Iterator<Item = &Segment> {
        self.0.iter().filter(|segment| segment.kind == elf::PT_LOAD)
    }

    /// The loaded segment that an address is in, and how far.
    pub fn containing(&self, address: u64) -> Option<(&Segment, u64)> {
        self.loaded().find_map(|segment| {
            let into = address.checked_sub(segment.address)?;
            (into < segment.memory_size.max(segment.file_size)).then_some((segment, into))
        })
    }

    /// File offset of `address`, and how many bytes of its segment follow there in the file.
    pub fn offset_of(&self, address: u64) -> Option<(u64, u64)> {
        self.loaded().find_map(|segment| segment.file_offset(address.checked_sub(segment.address)?))
    }

    /// The address that the file gives to its byte at `offset`.
    pub fn address_of(&self, offset: u64) -> Option<u64> {
        self.loaded().find_map(|segment| {
            let into = offset.checked_sub(segment.offset).filter(|&into| into < segment.file_size)?;
            segment.address.checked_add(into)
        })
    }

    /// Where the only segment with code ends in the file; `None` if there are several, or none.
    pub fn text_end(&self) -> Option<u64> {
        let mut code = self.loaded().filter(|segment| segment.executable);
        match (code.next(), code.next()) {
            (Some(only), None) => only.offset.checked_add(only.file_size),
            _ => None,
        }
    }

    /// Data that the program can change: all of it, and the part of it that has initial values in the file.
    pub fn writable(&self) -> impl Iterator<Item = (Range<u64>, Range<u64>)> {
        let writable = self.loaded().filter(|segment| segment.writable);
        writable.map(|segment| {
            let end = |size| segment.address.saturating_add(size);
            (
                segment.address..end(segment.memory_size),
                segment.address..end(segment.file_size.min(segment.memory_size)),
            )
        })
    }

    /// Pages with code as they are mapped: their range in the file and the address of the first.
    pub fn code(&self) -> impl Iterator<Item = (Range<u64>, u64)> {
        self.loaded().filter(|segment| segment.executable).map(|segment| {
            let into = segment.offset % PAGE;
            let end = segment.offset.saturating_add(segment.file_size);
            (segment.offset - into..end, segment.address.wrapping_sub(into))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn segment(address: u64, offset: u64, file_size: u64, executable: bool) -> Segment {
        let (memory_size, writable) = (file_size + 0x100, !executable);
        Segment { kind: elf::PT_LOAD, address, offset, file_size, memory_size, executable, writable, alignment: PAGE }
    }

    #[test]
    fn addresses_and_offsets_lead_to_each_other() {
        let segments = Segments::new(vec![segment(0x3000, 0x1ff0, 0x20, false), segment(0x1000, 0x1000, 0x1000, true)]);
        assert_eq!(segments.offset_of(0x1010), Some((0x1010, 0xff0)));
        // The page that both share is code first.
        assert_eq!(segments.address_of(0x1ff8), Some(0x1ff8));
        assert_eq!(segments.address_of(0x2008), Some(0x3018));
        // In memory but not in the file.
        assert_eq!(segments.offset_of(0x3020), None);
        assert!(segments.containing(0x3020).is_some());
        assert_eq!(segments.containing(0x3120), None);
        assert_eq!(segments.text_end(), Some(0x2000));
    }
}
