//! Addresses of the ELF file and where in the file their bytes are (program headers of type PT_LOAD).

use std::ops::Range;

use object::LittleEndian;
use object::elf::{self, FileHeader64};
use object::read::elf::{FileHeader, ProgramHeader};

use super::{ElfError, Rejection};

/// No linker makes more than a dozen; a hostile file would make every lookup slow.
const MAX_SEGMENTS: usize = 1024;
/// In bytes, on x86-64.
const PAGE: u64 = 4096;

#[derive(Debug, Clone, Copy)]
pub(super) struct Segment {
    address: u64,
    offset: u64,
    /// Bytes backed by the file, cut at the file's end.
    file_size: u64,
    memory_size: u64,
    executable: bool,
    writable: bool,
}

#[derive(Debug)]
pub(super) struct Segments(Vec<Segment>);

impl Segments {
    pub(super) fn parse(header: &FileHeader64<LittleEndian>, bytes: &[u8]) -> Result<Self, ElfError> {
        let endian = LittleEndian;
        let headers = header.program_headers(endian, bytes).map_err(ElfError::malformed("the program headers"))?;
        let mut segments = Vec::new();
        for program in headers.iter().filter(|program| program.p_type(endian) == elf::PT_LOAD) {
            if segments.len() == MAX_SEGMENTS {
                return Err(ElfError::TooMany { what: "loadable segments", limit: MAX_SEGMENTS });
            }
            let offset = program.p_offset(endian);
            segments.push(Segment {
                address: program.p_vaddr(endian),
                offset,
                file_size: program.p_filesz(endian).min((bytes.len() as u64).saturating_sub(offset)),
                memory_size: program.p_memsz(endian),
                executable: program.p_flags(endian).contains(elf::PF_X),
                writable: program.p_flags(endian).contains(elf::PF_W),
            });
        }
        Ok(Self(segments))
    }

    /// File offset of `address` and how many bytes of code follow there in the file.
    pub(super) fn code_at(&self, address: u64) -> Result<(u64, u64), Rejection> {
        let (segment, into) = self.containing(address).ok_or(Rejection::Unmapped)?;
        if !segment.executable {
            return Err(Rejection::NotExecutable);
        }
        segment.file_offset(into).ok_or(Rejection::NotInFile)
    }

    /// File offset of `address` and how many bytes follow there in the file, code or data.
    pub(super) fn bytes_at(&self, address: u64) -> Option<(u64, u64)> {
        let (segment, into) = self.containing(address)?;
        segment.file_offset(into)
    }

    /// Where the only segment with code ends in the file; `None` if there are several, or none.
    pub(super) fn text_end(&self) -> Option<u64> {
        let mut code = self.0.iter().filter(|segment| segment.executable);
        match (code.next(), code.next()) {
            (Some(only), None) => only.offset.checked_add(only.file_size),
            _ => None,
        }
    }

    /// Data that the program can change: all of it, and the part of it that has initial values in the file.
    pub(super) fn writable(&self) -> impl Iterator<Item = (Range<u64>, Range<u64>)> {
        let writable = self.0.iter().filter(|segment| segment.writable);
        writable.map(|segment| {
            let end = |size| segment.address.saturating_add(size);
            (
                segment.address..end(segment.memory_size),
                segment.address..end(segment.file_size.min(segment.memory_size)),
            )
        })
    }

    /// Pages with code as they are mapped: their range in the file and the address of the first.
    pub(super) fn code(&self) -> impl Iterator<Item = (Range<u64>, u64)> {
        self.0.iter().filter(|segment| segment.executable).map(|segment| {
            let into = segment.offset % PAGE;
            let end = segment.offset.saturating_add(segment.file_size);
            (segment.offset - into..end, segment.address.wrapping_sub(into))
        })
    }

    fn containing(&self, address: u64) -> Option<(&Segment, u64)> {
        self.0.iter().find_map(|segment| {
            let into = address.checked_sub(segment.address)?;
            (into < segment.memory_size.max(segment.file_size)).then_some((segment, into))
        })
    }
}

impl Segment {
    fn file_offset(&self, into: u64) -> Option<(u64, u64)> {
        let left = self.file_size.checked_sub(into).filter(|&left| left > 0)?;
        Some((self.offset.checked_add(into)?, left))
    }
}
