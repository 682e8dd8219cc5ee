//! The headers of a file, and how to its contents.

use object::elf::{self, Dyn32, Dyn64, FileHeader32, FileHeader64};
use object::pod::slice_from_all_bytes;
use object::read::elf::{Dyn, FileHeader, NoteIterator, ProgramHeader as _, SectionHeader as _};
use object::{Endianness, ReadRef};

use super::{
    Architecture, ElfError, Segment, Segments, SymbolTable,
    limits::{
        MAX_BUILD_ID, MAX_DYNAMIC, MAX_NOTE_BYTES, MAX_NOTES, MAX_SECTION, MAX_SECTION_NAME, MAX_SECTION_NAMES,
        MAX_SECTIONS, MAX_SEGMENTS,
    },
    symbols::name_at,
};

/// One section header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Section {
    /// Where its name begins among the sections' names.
    pub name: u32,
    pub kind: elf::SectionType,
    pub flags: elf::SectionFlags,
    pub offset: u64,
    pub size: u64,
    /// The number of the section that belongs to it: that with the names, of symbols.
    pub link: u32,
    alignment: u64,
}

impl Section {
    /// Where it is in the file: offset and size in bytes; `None` if the file has nothing of it.
    pub fn range(&self) -> Option<(u64, u64)> {
        (self.kind != elf::SHT_NOBITS).then_some((self.offset, self.size))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SymbolTableKind {
    /// `.dynsym`: what the file gives to others and takes from them.
    Dynamic,
    /// `.symtab`: everything, unless the file is stripped.
    Full,
}

impl SymbolTableKind {
    pub const fn section_name(self) -> &'static str {
        match self {
            Self::Dynamic => ".dynsym",
            Self::Full => ".symtab",
        }
    }

    const fn section_kind(self) -> elf::SectionType {
        match self {
            Self::Dynamic => elf::SHT_DYNSYM,
            Self::Full => elf::SHT_SYMTAB,
        }
    }
}

/// What a file says about linking.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Linkage {
    /// DT_SONAME: what others need it by, such as `libmpi.so.40`. Names tell nothing about which library it is.
    pub soname: Option<Vec<u8>>,
    /// DT_NEEDED: what it needs itself.
    pub needed: Vec<Vec<u8>>,
    /// DF_1_PIE of DT_FLAGS_1: the linker made a position-independent program, which may have no interpreter.
    pub is_program: bool,
}

/// What the headers of an ELF file say. It borrows nothing, so the file need not stay in memory.
#[derive(Debug, Clone)]
pub struct Elf {
    pub architecture: Architecture,
    /// `e_type`.
    pub kind: elf::FileType,
    pub segments: Segments,
    /// Programs run without section headers: what is wrong with them matters only to who asks for them.
    sections: Result<Vec<Section>, ElfError>,
    /// The number of the section with the names of sections.
    names: u32,
}

impl Elf {
    /// Reads the headers of any ELF file.
    pub fn parse<'data>(data: impl ReadRef<'data>) -> Result<Self, ElfError> {
        let architecture = architecture(data)?;
        match architecture.bits {
            32 => Self::read::<FileHeader32<Endianness>, _>(data, architecture),
            _ => Self::read::<FileHeader64<Endianness>, _>(data, architecture),
        }
    }

    /// The same of a program or library for this machine: what can be probed here.
    pub fn parse_native<'data>(data: impl ReadRef<'data>) -> Result<Self, ElfError> {
        let found = architecture(data)?;
        if found.big_endian != Architecture::NATIVE.big_endian {
            return Err(ElfError::BigEndian);
        }
        if found.bits != Architecture::NATIVE.bits {
            return Err(ElfError::Not64Bit);
        }
        if !found.is_native() {
            return Err(ElfError::OtherMachine { machine: found.machine });
        }
        let read = Self::parse(data)?;
        match read.kind {
            elf::ET_EXEC | elf::ET_DYN => Ok(read),
            kind => Err(ElfError::NotLoadable { kind: kind.0 }),
        }
    }

    fn read<'data, H, R>(data: R, architecture: Architecture) -> Result<Self, ElfError>
    where
        H: FileHeader<Endian = Endianness>,
        R: ReadRef<'data>,
    {
        const SEGMENTS: &str = "the program headers";
        const SECTIONS: &str = "the section headers";
        let header = H::parse(data).map_err(ElfError::malformed("the ELF header"))?;
        let endian = architecture.endianness();
        let number = header.phnum(endian, data).map_err(ElfError::malformed(SEGMENTS))?;
        if number as usize > MAX_SEGMENTS {
            return Err(ElfError::TooMany { what: "segments", limit: MAX_SEGMENTS });
        }
        let end =
            data.len().map_err(|()| ElfError::Malformed { what: "the file", why: "its size is unknown".to_owned() })?;
        let programs = header.program_headers(endian, data).map_err(ElfError::malformed(SEGMENTS))?;
        let segments = programs.iter().map(|program| {
            let offset = program.p_offset(endian).into();
            let flags = program.p_flags(endian);
            Segment {
                kind: program.p_type(endian),
                address: program.p_vaddr(endian).into(),
                offset,
                file_size: program.p_filesz(endian).into().min(end.saturating_sub(offset)),
                memory_size: program.p_memsz(endian).into(),
                executable: flags.contains(elf::PF_X),
                writable: flags.contains(elf::PF_W),
                alignment: program.p_align(endian).into(),
            }
        });
        let sections = || {
            let number = header.shnum(endian, data).map_err(ElfError::malformed(SECTIONS))?;
            if number as usize > MAX_SECTIONS {
                return Err(ElfError::TooMany { what: "sections", limit: MAX_SECTIONS });
            }
            let headers = header.section_headers(endian, data).map_err(ElfError::malformed(SECTIONS))?;
            let read = |section: &H::SectionHeader| Section {
                name: section.sh_name(endian),
                kind: section.sh_type(endian),
                flags: section.sh_flags(endian),
                offset: section.sh_offset(endian).into(),
                size: section.sh_size(endian).into(),
                link: section.sh_link(endian),
                alignment: section.sh_addralign(endian).into(),
            };
            Ok(headers.iter().map(read).collect())
        };
        Ok(Self {
            architecture,
            kind: header.e_type(endian),
            segments: Segments::new(segments.collect()),
            sections: sections(),
            names: header.shstrndx(endian, data).unwrap_or_default(),
        })
    }

    /// The section headers. Their names are not read: tools that shrink files remove them, and the types say enough.
    pub fn sections(&self) -> Result<&[Section], ElfError> {
        self.sections.as_deref().map_err(Clone::clone)
    }

    /// Section headers with what the sections are called; none if they are damaged.
    pub fn named_sections<'data>(&self, data: impl ReadRef<'data>) -> Vec<(Vec<u8>, Section)> {
        let sections = self.sections.as_deref().unwrap_or_default();
        let names = usize::try_from(self.names).ok().and_then(|names| sections.get(names));
        let names = names.filter(|names| names.size <= MAX_SECTION_NAMES);
        let names = names.and_then(|names| Self::content(data, names)).unwrap_or_default();
        let name = |section: &Section| {
            let name = name_at(names, section.name);
            name.get(..MAX_SECTION_NAME).unwrap_or(name).to_vec()
        };
        sections.iter().map(|section| (name(section), *section)).collect()
    }

    /// What is in a section, as it stands in the file: compressed, if it is. `None` beyond [`MAX_SECTION`] and beyond the file's end.
    pub fn content<'data>(data: impl ReadRef<'data>, section: &Section) -> Option<&'data [u8]> {
        let (offset, size) = section.range().filter(|(_, size)| *size <= MAX_SECTION)?;
        data.read_bytes_at(offset, size).ok()
    }

    /// The sections of a symbol table and of its names.
    pub fn symbol_sections(&self, kind: SymbolTableKind) -> Option<(Section, Section)> {
        let sections = self.sections.as_deref().ok()?;
        let is_it = |section: &&Section| section.kind == kind.section_kind();
        let table = sections.iter().find(is_it)?;
        Some((*table, *sections.get(usize::try_from(table.link).ok()?)?))
    }

    /// A symbol table; `None` if the file has none.
    pub fn symbols<'data>(
        &self,
        data: impl ReadRef<'data>,
        kind: SymbolTableKind,
    ) -> Result<Option<SymbolTable<'data>>, ElfError> {
        let sections = self.sections()?;
        let what = kind.section_name();
        let damaged = |why: &str| ElfError::Malformed { what, why: why.to_owned() };
        let Some(table) = sections.iter().find(|section| section.kind == kind.section_kind()) else { return Ok(None) };
        let names = usize::try_from(table.link).ok().and_then(|link| sections.get(link));
        let names = names.and_then(|names| Self::content(data, names)).ok_or_else(|| damaged("it has no names"))?;
        let table = Self::content(data, table).ok_or_else(|| damaged("it is not in the file, or enormous"))?;
        SymbolTable::new(self.architecture, table, names, what).map(Some)
    }

    /// Whether the file is a program rather than a library: at a fixed address, with an interpreter of its own, or marked so by the
    /// linker (static-pie programs have no interpreter).
    pub fn is_program<'data>(&self, data: impl ReadRef<'data>) -> bool {
        self.kind == elf::ET_EXEC
            || self.segments.of_kind(elf::PT_INTERP).is_some()
            || self.linkage(data).is_some_and(|linkage| linkage.is_program)
    }

    /// The dynamic section; `None` if there is none, or it is damaged.
    pub fn linkage<'data>(&self, data: impl ReadRef<'data>) -> Option<Linkage> {
        let sections = self.sections.as_deref().ok()?;
        let dynamic = sections.iter().find(|section| section.kind == elf::SHT_DYNAMIC)?;
        let names = sections.get(usize::try_from(dynamic.link).ok()?).and_then(|names| Self::content(data, names))?;
        let bytes = Self::content(data, dynamic)?;
        let endian = self.architecture.endianness();
        Some(match self.architecture.bits {
            32 => linkage(slice_from_all_bytes::<Dyn32<Endianness>>(bytes).ok()?, endian, names),
            _ => linkage(slice_from_all_bytes::<Dyn64<Endianness>>(bytes).ok()?, endian, names),
        })
    }

    /// The GNU build id, 20 bytes mostly: from the notes that are loaded, or in files that are not meant to be loaded from the
    /// sections. Many libraries have none (the wheels on PyPI, for example). A damaged note is as good as none.
    pub fn build_id<'data>(&self, data: impl ReadRef<'data>) -> Option<&'data [u8]> {
        let segments = self.segments.all().filter(|segment| segment.kind == elf::PT_NOTE);
        let segments = segments.map(|segment| (segment.offset, segment.file_size, segment.alignment));
        let sections = self.sections.as_deref().unwrap_or_default();
        let sections = sections.iter().filter(|section| section.kind == elf::SHT_NOTE);
        let sections = sections.map(|section| (section.offset, section.size, section.alignment));
        let places = segments.chain(sections).filter(|(_, size, _)| *size <= MAX_NOTE_BYTES).take(MAX_NOTES);
        places
            .into_iter()
            .find_map(|(offset, size, alignment)| self.build_id_in(data.read_bytes_at(offset, size).ok()?, alignment))
    }

    fn build_id_in<'data>(&self, bytes: &'data [u8], alignment: u64) -> Option<&'data [u8]> {
        let endian = self.architecture.endianness();
        // The layout of a note is the same in files of 32 and 64 bits.
        let mut notes = NoteIterator::<FileHeader64<Endianness>>::new(endian, alignment, bytes).ok()?;
        for _ in 0..MAX_NOTES {
            let note = notes.next().ok()??;
            if note.name() == elf::ELF_NOTE_GNU && note.n_type(endian) == elf::NT_GNU_BUILD_ID {
                return Some(note.desc()).filter(|id| !id.is_empty() && id.len() <= MAX_BUILD_ID);
            }
        }
        None
    }
}

fn architecture<'data>(data: impl ReadRef<'data>) -> Result<Architecture, ElfError> {
    let magic = data.read_bytes_at(0, elf::ELFMAG.len() as u64).ok();
    if magic != Some(&elf::ELFMAG[..]) {
        return Err(ElfError::NotElf);
    }
    let found = data.read_bytes_at(0, Architecture::HEADER as u64).ok().and_then(Architecture::parse);
    found.ok_or_else(|| ElfError::Malformed {
        what: "the ELF header",
        why: "it has no known class or byte order".to_owned(),
    })
}

fn linkage<D: Dyn<Endian = Endianness>>(entries: &[D], endian: Endianness, names: &[u8]) -> Linkage {
    let mut linkage = Linkage::default();
    for entry in entries.iter().take(MAX_DYNAMIC) {
        let value: u64 = entry.d_val(endian).into();
        let name = || {
            let name = name_at(names, u32::try_from(value).ok()?);
            (!name.is_empty()).then(|| name.to_vec())
        };
        match entry.d_tag(endian) {
            elf::DT_NULL => break,
            elf::DT_NEEDED => linkage.needed.extend(name()),
            elf::DT_SONAME => linkage.soname = linkage.soname.or_else(name),
            elf::DT_FLAGS_1 => linkage.is_program |= value & elf::DF_1_PIE.0 != 0,
            _ => {}
        }
    }
    linkage
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn own() -> &'static [u8] {
        static OWN: std::sync::LazyLock<Vec<u8>> =
            std::sync::LazyLock::new(|| std::fs::read("/proc/self/exe").unwrap());
        &OWN
    }

    #[test]
    fn this_program_is_read() {
        let elf = Elf::parse_native(own()).unwrap();
        assert!(elf.is_program(own()));
        assert!(elf.linkage(own()).unwrap().needed.contains(&b"libc.so.6".to_vec()));
        let symbols = elf.symbols(own(), SymbolTableKind::Full).unwrap().unwrap();
        assert!(symbols.iter().any(|symbol| symbols.name(symbol) == b"main"));
        let names: Vec<_> = elf.named_sections(own()).into_iter().map(|(name, _)| name).collect();
        assert!(names.contains(&b".text".to_vec()));
        let main = symbols.iter().find(|&symbol| symbols.name(symbol) == b"main").unwrap();
        let (offset, left) = elf.segments.offset_of(main.address).unwrap();
        assert!(left >= main.size);
        assert_eq!(elf.segments.address_of(offset), Some(main.address));
    }

    #[test]
    fn other_files_are_told_apart() {
        assert_eq!(Elf::parse(&b"#!/bin/sh\n"[..]).unwrap_err(), ElfError::NotElf);
        assert_eq!(Elf::parse(&b""[..]).unwrap_err(), ElfError::NotElf);
        assert!(matches!(Elf::parse(&own()[..40]).unwrap_err(), ElfError::Malformed { what: "the ELF header", .. }));
    }

    #[test]
    fn a_file_without_section_headers_has_segments_and_no_symbols() {
        let mut bytes = own().to_vec();
        // e_shoff behind the end.
        bytes[0x28..0x30].copy_from_slice(&(u64::MAX / 2).to_le_bytes());
        let elf = Elf::parse(&*bytes).unwrap();
        assert!(elf.segments.loaded().count() > 1);
        assert!(elf.sections().is_err() && elf.symbols(&*bytes, SymbolTableKind::Dynamic).is_err());
        assert!(elf.named_sections(&*bytes).is_empty());
        assert_eq!(elf.build_id(&*bytes), Elf::parse(own()).unwrap().build_id(own()));
    }

    proptest! {
        /// Invariant BOUNDED-READS.
        #[test]
        fn whatever_a_file_says_is_survived(
            changes in proptest::collection::vec((0usize..4096, any::<u8>()), 1..24),
            headers in proptest::collection::vec((0usize..2048, any::<u8>()), 0..24),
        ) {
            let sections = usize::try_from(u64::from_le_bytes(own()[0x28..0x30].try_into().unwrap())).unwrap();
            let mut bytes = own().to_vec();
            for (at, value) in changes {
                bytes[at] = value;
            }
            for (at, value) in headers {
                if let Some(byte) = bytes.get_mut(sections + at) {
                    *byte = value;
                }
            }
            let Ok(elf) = Elf::parse(&*bytes) else { return Ok(()) };
            let _ = (elf.build_id(&*bytes), elf.linkage(&*bytes), elf.is_program(&*bytes), elf.named_sections(&*bytes).len());
            for kind in [SymbolTableKind::Dynamic, SymbolTableKind::Full] {
                if let Ok(Some(symbols)) = elf.symbols(&*bytes, kind) {
                    let _ = symbols.iter().map(|symbol| symbols.name(symbol).len() + symbols.c_name(symbol).len()).max();
                }
            }
        }
    }
}
