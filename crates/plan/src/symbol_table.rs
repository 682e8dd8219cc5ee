//! `.dynsym` and `.symtab` as they stand in the file, with names bounded and every range checked.

use object::LittleEndian;
use object::elf::FileHeader64;
use object::elf::{self, SectionType, Sym64};
use object::read::StringTable;
use object::read::elf::{FileHeader, SectionHeader, SectionTable, Sym};

use super::ElfError;

/// Longer names are cut to nothing: the longest MPI function has 34 characters, and an unbounded search for the end of a name
/// would let a hostile file keep mpiprobe busy for hours.
const MAX_NAME: usize = 256;
/// Per table. The largest static executables have some hundred thousand.
const MAX_SYMBOLS: usize = 1 << 22;

pub(super) type Header = FileHeader64<LittleEndian>;
pub(super) type Sections<'data> = SectionTable<'data, Header>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SymbolKind {
    Function,
    IndirectFunction,
    Data,
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SymbolPlace {
    /// Imported: another file defines it.
    Undefined,
    /// A number, not an address in this file.
    Absolute,
    Defined,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Symbol<'data> {
    /// Without the version that `.symtab` appends (`MPI_Send@@LIBMPI_1.0`).
    pub(super) name: &'data str,
    pub(super) kind: SymbolKind,
    pub(super) place: SymbolPlace,
    pub(super) address: u64,
    pub(super) size: u64,
}

#[derive(Debug)]
pub(super) struct SymbolTable<'data> {
    symbols: &'data [Sym64<LittleEndian>],
    strings: &'data [u8],
}

impl<'data> SymbolTable<'data> {
    /// The table of that type, if the file has one.
    pub(super) fn parse(
        sections: &Sections<'data>,
        bytes: &'data [u8],
        kind: SectionType,
        what: &'static str,
    ) -> Result<Option<Self>, ElfError> {
        let Some(section) = sections.iter().find(|section| section.sh_type(LittleEndian) == kind) else {
            return Ok(None);
        };
        let symbols: &[_] = section.data_as_array(LittleEndian, bytes).map_err(ElfError::malformed(what))?;
        if symbols.len() > MAX_SYMBOLS {
            return Err(ElfError::TooMany { what: "symbols", limit: MAX_SYMBOLS });
        }
        let strings = sections
            .section(object::SectionIndex(section.sh_link(LittleEndian) as usize))
            .and_then(|strings| strings.data(LittleEndian, bytes))
            .map_err(ElfError::malformed(what))?;
        Ok(Some(Self { symbols, strings }))
    }

    /// Symbols whose name is readable; the others cannot be asked for.
    pub(super) fn iter(&self) -> impl Iterator<Item = Symbol<'data>> {
        self.symbols.iter().filter_map(|symbol| self.read(symbol))
    }

    fn read(&self, symbol: &Sym64<LittleEndian>) -> Option<Symbol<'data>> {
        let kind = match symbol.st_type() {
            elf::STT_FUNC => SymbolKind::Function,
            elf::STT_GNU_IFUNC => SymbolKind::IndirectFunction,
            elf::STT_OBJECT => SymbolKind::Data,
            _ => SymbolKind::Other,
        };
        let place = match symbol.st_shndx(LittleEndian) {
            elf::SHN_UNDEF => SymbolPlace::Undefined,
            elf::SHN_ABS => SymbolPlace::Absolute,
            _ => SymbolPlace::Defined,
        };
        let name = string_at(self.strings, symbol.st_name(LittleEndian).into())?;
        let name = name.split('@').next().unwrap_or(name);
        Some(Symbol { name, kind, place, address: symbol.st_value(LittleEndian), size: symbol.st_size(LittleEndian) })
    }
}

/// The NUL-terminated UTF-8 string at `offset`, of at most `MAX_NAME` bytes.
pub(super) fn string_at(strings: &[u8], offset: u64) -> Option<&str> {
    let rest = strings.get(usize::try_from(offset).ok()?..)?;
    let end = rest.iter().take(MAX_NAME + 1).position(|&byte| byte == 0)?;
    std::str::from_utf8(rest.get(..end)?).ok()
}

/// The section headers. Their names are not read: tools that shrink files remove them, and the types say enough.
pub(super) fn sections<'data>(header: &Header, bytes: &'data [u8]) -> Result<Sections<'data>, ElfError> {
    let headers = header.section_headers(LittleEndian, bytes).map_err(ElfError::malformed("the section headers"))?;
    Ok(Sections::new(headers, StringTable::default()))
}
