//! An open ELF file, of which only the headers are in memory.

use mpiprobe_discover::foreign::ForeignFile;
use mpiprobe_elf::{
    Elf, Section, Segments, SymbolTableKind,
    constants::{ET_EXEC, PT_INTERP, SHF_COMPRESSED, SHT_NOBITS},
    decompress, decompress_gnu,
    limits::MAX_SECTION,
};
use object::ReadCache;

/// One x86-64 ELF file, kept open so that it stays the same file whatever becomes of its name and its process.
#[derive(Debug)]
pub(super) struct Image {
    file: ForeignFile,
    /// Size and times of the last change, to see whether somebody writes into the file.
    state: (u64, i64, i64),
    elf: Elf,
    /// With their names. In a file of debug information only, the sections of the program are there without content: they are left out.
    sections: Vec<(Vec<u8>, Section)>,
    build_id: Option<Vec<u8>>,
}

impl Image {
    /// Reads the headers; `None` if it is no ELF file for this machine, or damaged. A file without sections is fine.
    pub(super) fn open(file: impl Into<ForeignFile>) -> Option<Self> {
        let file = file.into();
        let state = state(&file)?;
        let data = ReadCache::new(file.reader());
        let elf = Elf::parse(&data).ok().filter(|elf| elf.architecture.is_native())?;
        let mut sections = elf.named_sections(&data);
        sections.retain(|(_, section)| section.kind != SHT_NOBITS);
        let build_id = elf.build_id(&data).map(<[u8]>::to_vec);
        drop(data);
        Some(Self { file, state, elf, sections, build_id })
    }

    /// GNU build id: up to 64 bytes, 20 mostly.
    pub(super) fn build_id(&self) -> Option<&[u8]> {
        self.build_id.as_deref()
    }

    pub(super) const fn elf(&self) -> &Elf {
        &self.elf
    }

    pub(super) const fn segments(&self) -> &Segments {
        &self.elf.segments
    }

    pub(super) fn file(&self) -> &ForeignFile {
        &self.file
    }

    /// Whether the file is as it was when it was opened.
    pub(super) fn is_unchanged(&self) -> bool {
        state(&self.file) == Some(self.state)
    }

    /// Whether it is a program rather than a library: at a fixed address, or with an interpreter of its own.
    pub(super) fn is_program(&self) -> bool {
        self.elf.kind == ET_EXEC || self.elf.segments.of_kind(PT_INTERP).is_some()
    }

    /// The content of a section, decompressed; `None` if there is none, or it is damaged or larger than `limit` bytes.
    pub(super) fn section(&self, name: &str, limit: u64) -> Option<Vec<u8>> {
        let limit = limit.min(MAX_SECTION);
        if let Some(section) = self.find(name) {
            let bytes = self.content(section)?;
            return if section.flags.contains(SHF_COMPRESSED) {
                decompress(&bytes, limit)
            } else {
                Some(bytes).filter(|bytes| bytes.len() as u64 <= limit)
            };
        }
        decompress_gnu(&self.content(self.find(&compressed_name(name)?)?)?, limit)
    }

    pub(super) fn has_section(&self, name: &str) -> bool {
        self.find(name).is_some() || compressed_name(name).is_some_and(|name| self.find(&name).is_some())
    }

    /// A symbol table and its names.
    pub(super) fn symbols(&self, kind: SymbolTableKind) -> Option<(Vec<u8>, Vec<u8>)> {
        let (table, names) = self.elf.symbol_sections(kind)?;
        Some((self.content(&table)?, self.content(&names)?))
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

    fn find(&self, wanted: &str) -> Option<&Section> {
        self.sections.iter().find(|(name, _)| name == wanted.as_bytes()).map(|(_, section)| section)
    }

    fn content(&self, section: &Section) -> Option<Vec<u8>> {
        let (offset, size) = section.range()?;
        let bytes = self.bytes(offset, size)?;
        (bytes.len() as u64 == size).then_some(bytes)
    }
}

/// What binutils before 2016 called a section after compressing it.
fn compressed_name(name: &str) -> Option<String> {
    Some(format!(".z{}", name.strip_prefix('.')?))
}

/// Size, and time of the last change in seconds and nanoseconds.
fn state(file: &ForeignFile) -> Option<(u64, i64, i64)> {
    let state = file.state().ok()?;
    state.is_regular.then_some((state.size, state.modified.0, state.modified.1))
}
