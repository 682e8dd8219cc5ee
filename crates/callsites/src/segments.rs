//! Where a file's bytes are in its own address space (program headers of type PT_LOAD).

use object::LittleEndian;
use object::elf::{self, ProgramHeader64};
use object::read::elf::ProgramHeader;

#[derive(Debug, Clone, Copy)]
struct Segment {
    address: u64,
    offset: u64,
    size: u64,
    executable: bool,
}

/// The loadable parts of a file.
#[derive(Debug, Default)]
pub(super) struct Segments(Vec<Segment>);

impl Segments {
    pub(super) fn new(headers: &[ProgramHeader64<LittleEndian>]) -> Self {
        let endian = LittleEndian;
        let loaded = headers.iter().filter(|header| header.p_type(endian) == elf::PT_LOAD);
        let mut segments: Vec<_> = loaded
            .map(|header| Segment {
                address: header.p_vaddr(endian),
                offset: header.p_offset(endian),
                size: header.p_filesz(endian),
                executable: header.p_flags(endian).contains(elf::PF_X),
            })
            .collect();
        // The same bytes may be loaded twice, once of them as data: pages that segments share.
        segments.sort_by_key(|segment| !segment.executable);
        Self(segments)
    }

    /// The address that the file gives to its byte at `offset`.
    pub(super) fn address_of(&self, offset: u64) -> Option<u64> {
        self.0.iter().find_map(|segment| {
            let into = offset.checked_sub(segment.offset).filter(|&into| into < segment.size)?;
            segment.address.checked_add(into)
        })
    }

    /// File offset of the byte at `address`, and how many bytes of the segment follow.
    pub(super) fn offset_of(&self, address: u64) -> Option<(u64, u64)> {
        self.0.iter().find_map(|segment| {
            let into = address.checked_sub(segment.address).filter(|&into| into < segment.size)?;
            Some((segment.offset.checked_add(into)?, segment.size - into))
        })
    }
}
