//! An open ELF file, of which only the headers are in memory.

use mpiprobe_discover::foreign::{ForeignFile, Reader};
use object::elf::{self, FileHeader64, ProgramHeader64, SectionHeader64};
use object::read::elf::{FileHeader, NoteIterator, ProgramHeader, SectionHeader};
use object::{LittleEndian, ReadCache};

use super::{
    section::{MAX_SECTION, decompress, decompress_gnu},
    segments::Segments,
};

/// Sections in a file. Those of programs have some dozens.
const MAX_SECTIONS: u32 = 1 << 12;
/// Program headers in a file; linkers make about a dozen.
const MAX_SEGMENTS: usize = 1 << 10;
/// Of all names of sections together, in bytes.
const MAX_NAMES: u64 = 1 << 20;
/// Of one segment of notes, in bytes, and the number of such segments and of notes in each.
const MAX_NOTE: u64 = 64 << 10;
const MAX_NOTES: usize = 64;

#[derive(Debug)]
struct Section {
    name: Vec<u8>,
    header: SectionHeader64<LittleEndian>,
}

/// One x86-64 ELF file, kept open so that it stays the same file whatever becomes of its name and its process.
#[derive(Debug)]
pub(super) struct Image {
    file: ForeignFile,
    /// Size and times of the last change, to see whether somebody writes into the file.
    state: (u64, i64, i64),
    sections: Vec<Section>,
    headers: Vec<ProgramHeader64<LittleEndian>>,
    segments: Segments,
    build_id: Option<Vec<u8>>,
    fixed_address: bool,
}

impl Image {
    /// Reads the headers; `None` if it is no ELF file for x86-64, or damaged. A file without sections is fine.
    pub(super) fn open(file: impl Into<ForeignFile>) -> Option<Self> {
        let file = file.into();
        let state = state(&file)?;
        let data = ReadCache::new(file.reader());
        let header = FileHeader64::<LittleEndian>::parse(&data).ok()?;
        let endian = header.endian().ok()?;
        if header.e_machine(endian) != elf::EM_X86_64 || usize::from(header.e_phnum(endian)) > MAX_SEGMENTS {
            return None;
        }
        let headers = header.program_headers(endian, &data).ok()?.to_vec();
        let sections = sections(header, &data).unwrap_or_default();
        let build_id = build_id(&headers, &sections, &data);
        let fixed_address = header.e_type(endian) == elf::ET_EXEC;
        drop(data);
        let segments = Segments::new(&headers);
        Some(Self { file, state, sections, headers, segments, build_id, fixed_address })
    }

    /// GNU build id: up to 64 bytes, 20 mostly.
    pub(super) fn build_id(&self) -> Option<&[u8]> {
        self.build_id.as_deref()
    }

    pub(super) fn segments(&self) -> &Segments {
        &self.segments
    }

    pub(super) fn file(&self) -> &ForeignFile {
        &self.file
    }

    /// Whether the file is as it was when it was opened.
    pub(super) fn is_unchanged(&self) -> bool {
        state(&self.file) == Some(self.state)
    }

    /// The address range of the segment of that type.
    pub(super) fn segment(&self, kind: elf::ProgramType) -> Option<(u64, u64)> {
        let header = self.headers.iter().find(|header| header.p_type(LittleEndian) == kind)?;
        Some((header.p_vaddr(LittleEndian), header.p_memsz(LittleEndian)))
    }

    /// Whether it is a program rather than a library: at a fixed address, or with an interpreter of its own.
    pub(super) fn is_program(&self) -> bool {
        self.fixed_address || self.segment(elf::PT_INTERP).is_some()
    }

    /// The content of a section, decompressed; `None` if there is none, or it is damaged or larger than `limit` bytes.
    pub(super) fn section(&self, name: &str, limit: u64) -> Option<Vec<u8>> {
        let limit = limit.min(MAX_SECTION);
        if let Some(section) = self.find(|section| section.name == name.as_bytes()) {
            let bytes = self.content(&section.header)?;
            let compressed = section.header.sh_flags(LittleEndian).contains(elf::SHF_COMPRESSED);
            return if compressed {
                decompress(&bytes, limit)
            } else {
                Some(bytes).filter(|bytes| bytes.len() as u64 <= limit)
            };
        }
        let old = format!(".z{}", name.strip_prefix('.')?);
        let section = self.find(|section| section.name == old.as_bytes())?;
        decompress_gnu(&self.content(&section.header)?, limit)
    }

    pub(super) fn has_section(&self, name: &str) -> bool {
        let old = name.strip_prefix('.').map(|name| format!(".z{name}")).unwrap_or_default();
        self.find(|section| section.name == name.as_bytes() || section.name == old.as_bytes()).is_some()
    }

    /// A symbol table and its names.
    pub(super) fn symbols(&self, kind: elf::SectionType) -> Option<(Vec<u8>, Vec<u8>)> {
        let table = self.find(|section| section.header.sh_type(LittleEndian) == kind)?;
        let names = self.sections.get(usize::try_from(table.header.sh_link(LittleEndian)).ok()?)?;
        Some((self.content(&table.header)?, self.content(&names.header)?))
    }

    /// At most `length` bytes of the file from `offset`.
    pub(super) fn bytes(&self, offset: u64, length: u64) -> Option<Vec<u8>> {
        let length = length.min(self.state.0.checked_sub(offset)?);
        if length > MAX_SECTION {
            return None;
        }
        let length = usize::try_from(length).ok()?;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(length).ok()?;
        bytes.resize(length, 0);
        self.file.read_exact_at(&mut bytes, offset).ok()?;
        Some(bytes)
    }

    fn find(&self, wanted: impl Fn(&Section) -> bool) -> Option<&Section> {
        // In a file of debug information only, the sections of the program are there without content.
        let mut sections =
            self.sections.iter().filter(|section| section.header.sh_type(LittleEndian) != elf::SHT_NOBITS);
        sections.find(|section| wanted(section))
    }

    fn content(&self, header: &SectionHeader64<LittleEndian>) -> Option<Vec<u8>> {
        let (offset, size) = header.file_range(LittleEndian)?;
        let bytes = self.bytes(offset, size)?;
        (bytes.len() as u64 == size).then_some(bytes)
    }
}

/// Size, and time of the last change in seconds and nanoseconds.
fn state(file: &ForeignFile) -> Option<(u64, i64, i64)> {
    let state = file.state().ok()?;
    state.is_regular.then_some((state.size, state.modified.0, state.modified.1))
}

fn sections(header: &FileHeader64<LittleEndian>, data: &ReadCache<Reader<'_>>) -> Option<Vec<Section>> {
    let endian = LittleEndian;
    let count = header.shnum(endian, data).ok()?;
    if count > MAX_SECTIONS {
        return None;
    }
    let headers = header.section_headers(endian, data).ok()?;
    let names = headers.get(usize::try_from(header.shstrndx(endian, data).ok()?).ok()?)?;
    let (offset, size) = names.file_range(endian)?;
    if size > MAX_NAMES {
        return None;
    }
    let names = object::ReadRef::read_bytes_at(data, offset, size).ok()?;
    Some(
        headers
            .iter()
            .map(|header| Section { name: name_at(names, header.sh_name(endian)), header: *header })
            .collect(),
    )
}

/// Names of sections that matter are short.
const MAX_NAME: usize = 64;

fn name_at(names: &[u8], offset: u32) -> Vec<u8> {
    let rest = usize::try_from(offset).ok().and_then(|offset| names.get(offset..)).unwrap_or_default();
    rest.iter().take(MAX_NAME).take_while(|&&byte| byte != 0).copied().collect()
}

/// From the notes that are loaded, or in files that are not meant to be loaded from the sections.
fn build_id(
    headers: &[ProgramHeader64<LittleEndian>],
    sections: &[Section],
    data: &ReadCache<Reader<'_>>,
) -> Option<Vec<u8>> {
    let endian = LittleEndian;
    let segments = headers.iter().filter(|header| header.p_filesz(endian) <= MAX_NOTE);
    let segments = segments.filter_map(|header| header.notes(endian, data).ok()?);
    let sections = sections.iter().filter(|section| section.header.sh_size(endian) <= MAX_NOTE);
    let sections = sections.filter_map(|section| section.header.notes(endian, data).ok()?);
    segments.chain(sections).take(MAX_NOTES).find_map(build_id_in)
}

fn build_id_in(mut notes: NoteIterator<'_, FileHeader64<LittleEndian>>) -> Option<Vec<u8>> {
    for _ in 0..MAX_NOTES {
        let note = notes.next().ok()??;
        if note.name() == elf::ELF_NOTE_GNU && note.n_type(LittleEndian) == elf::NT_GNU_BUILD_ID {
            // SHA-1 has 20 bytes; anything over 64 is no digest.
            return Some(note.desc().to_vec()).filter(|id| !id.is_empty() && id.len() <= 64);
        }
    }
    None
}
