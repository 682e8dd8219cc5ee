//! One ELF file: a shared library, or an executable with the library linked in.

use std::fmt::Write;

use object::elf;
use object::read::elf::{Dyn, FileHeader, ProgramHeader, SectionHeader};
use object::{LittleEndian, SectionIndex};

use super::{
    ElfError,
    segments::Segments,
    symbol_table::{Header, Sections, Symbol, SymbolTable, sections, string_at},
};

/// Note segments, and notes in each. Files have two or three.
const MAX_NOTES: usize = 16;

/// The facts of one x86-64 ELF file, borrowed from its bytes.
#[derive(Debug)]
pub struct Library<'data> {
    bytes: &'data [u8],
    pub(super) segments: Segments,
    sections: Sections<'data>,
    dynamic_symbols: Option<SymbolTable<'data>>,
    symbols: Option<SymbolTable<'data>>,
    build_id: Option<String>,
    soname: Option<&'data str>,
}

impl<'data> Library<'data> {
    /// Reads headers and tables; the functions are looked for later.
    ///
    /// A file without section headers is no error: it simply has no symbols.
    pub fn parse(bytes: &'data [u8]) -> Result<Self, ElfError> {
        check_identity(bytes)?;
        let header = Header::parse(bytes).map_err(ElfError::malformed("the ELF header"))?;
        match header.e_type(LittleEndian) {
            elf::ET_EXEC | elf::ET_DYN => {}
            kind => return Err(ElfError::NotLoadable { kind: kind.0 }),
        }
        let sections = sections(header, bytes)?;
        Ok(Self {
            bytes,
            segments: Segments::parse(header, bytes)?,
            dynamic_symbols: SymbolTable::parse(&sections, bytes, elf::SHT_DYNSYM, ".dynsym")?,
            symbols: SymbolTable::parse(&sections, bytes, elf::SHT_SYMTAB, ".symtab")?,
            build_id: build_id(header, bytes),
            soname: soname(&sections, bytes),
            sections,
        })
    }

    /// GNU build id in lower-case hexadecimal; many libraries have none (the wheels on PyPI, for example).
    pub fn build_id(&self) -> Option<&str> {
        self.build_id.as_deref()
    }

    /// DT_SONAME, such as `libmpi.so.40`. For display: names tell nothing about which library it is.
    pub fn soname(&self) -> Option<&'data str> {
        self.soname
    }

    /// Without `.symtab`: only exported functions can be found.
    pub fn is_stripped(&self) -> bool {
        self.symbols.is_none()
    }

    /// Every symbol of `.dynsym`, then of `.symtab`; most exported ones come twice.
    pub(super) fn all_symbols(&self) -> impl Iterator<Item = Symbol<'data>> {
        self.dynamic_symbols.iter().chain(&self.symbols).flat_map(SymbolTable::iter)
    }

    /// The contents of the sections that hold constants: neither code nor writable.
    pub(super) fn constants(&self) -> impl Iterator<Item = &'data [u8]> {
        let constants = self.sections.iter().filter(|section| {
            let flags = section.sh_flags(LittleEndian);
            section.sh_type(LittleEndian) == elf::SHT_PROGBITS
                && flags.contains(elf::SHF_ALLOC)
                && !flags.intersects(elf::SHF_WRITE | elf::SHF_EXECINSTR)
        });
        constants.filter_map(|section| section.data(LittleEndian, self.bytes).ok())
    }

    /// The file's bytes from `offset`, `length` of them or fewer if the file ends before.
    pub(super) fn bytes_from(&self, offset: u64, length: u64) -> &'data [u8] {
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(self.bytes.len());
        let end = start.saturating_add(usize::try_from(length).unwrap_or(usize::MAX)).min(self.bytes.len());
        self.bytes.get(start..end).unwrap_or_default()
    }
}

/// Looks at `e_ident` and `e_machine` before the parser does, for a message that says what kind of file it is.
fn check_identity(bytes: &[u8]) -> Result<(), ElfError> {
    let Some(&[class, data]) = bytes.strip_prefix(b"\x7fELF").and_then(|rest| rest.first_chunk()) else {
        return Err(ElfError::NotElf);
    };
    if data != elf::ELFDATA2LSB.0 {
        return Err(ElfError::BigEndian);
    }
    if class != elf::ELFCLASS64.0 {
        return Err(ElfError::Not64Bit);
    }
    match bytes.get(18..20).and_then(|bytes| bytes.first_chunk()).map(|&bytes| u16::from_le_bytes(bytes)) {
        Some(machine) if machine != elf::EM_X86_64.0 => Err(ElfError::OtherMachine { machine }),
        // Shorter than a header: the parser says so.
        _ => Ok(()),
    }
}

/// From the PT_NOTE segments; a damaged note is as good as none.
fn build_id(header: &Header, bytes: &[u8]) -> Option<String> {
    let programs = header.program_headers(LittleEndian, bytes).ok()?;
    let programs = programs.iter().filter(|program| program.p_type(LittleEndian) == elf::PT_NOTE);
    let id = programs.take(MAX_NOTES).find_map(|program| {
        let mut notes = program.notes(LittleEndian, bytes).ok()??;
        for _ in 0..MAX_NOTES {
            let note = notes.next().ok()??;
            if note.name() == elf::ELF_NOTE_GNU && note.n_type(LittleEndian) == elf::NT_GNU_BUILD_ID {
                // SHA-1 has 20 bytes; anything over 64 is no digest.
                return Some(note.desc()).filter(|id| !id.is_empty() && id.len() <= 64);
            }
        }
        None
    })?;
    let mut text = String::with_capacity(2 * id.len());
    for byte in id {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    Some(text)
}

fn soname<'data>(sections: &Sections<'data>, bytes: &'data [u8]) -> Option<&'data str> {
    let (dynamic, strings): (_, SectionIndex) = sections.dynamic(LittleEndian, bytes).ok()??;
    let strings = sections.section(strings).ok()?.data(LittleEndian, bytes).ok()?;
    let entry = dynamic.iter().find(|entry| entry.tag(LittleEndian) == elf::DT_SONAME)?;
    string_at(strings, entry.val(LittleEndian))
}
