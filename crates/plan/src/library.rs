//! One ELF file: a shared library, or an executable with the library linked in.

use std::fmt::Write;

use mpiprobe_elf::{
    Elf, ElfError, Symbol, SymbolTable, SymbolTableKind,
    constants::{SHF_ALLOC, SHF_EXECINSTR, SHF_WRITE, SHT_PROGBITS},
};
use object::ReadRef as _;

use super::read::{Bytes, ElfFile};

/// The facts of one x86-64 ELF file, borrowed from its bytes.
#[derive(Debug)]
pub struct Library<'data> {
    bytes: Bytes<'data>,
    pub(super) elf: Elf,
    dynamic_symbols: Option<SymbolTable<'data>>,
    symbols: Option<SymbolTable<'data>>,
    build_id: Option<String>,
    soname: Option<String>,
}

impl<'data> Library<'data> {
    /// Reads headers and tables; the functions are looked for later.
    ///
    /// A file without section headers is no error: it simply has no symbols.
    pub fn parse(bytes: &'data [u8]) -> Result<Self, ElfError> {
        Self::of(Bytes::Memory(bytes))
    }

    /// The same of a file of which no more than that is read.
    pub fn read(file: &'data ElfFile<'_>) -> Result<Self, ElfError> {
        Self::of(Bytes::File(file))
    }

    fn of(bytes: Bytes<'data>) -> Result<Self, ElfError> {
        let elf = Elf::parse_native(bytes)?;
        elf.sections()?;
        Ok(Self {
            bytes,
            dynamic_symbols: elf.symbols(bytes, SymbolTableKind::Dynamic)?,
            symbols: elf.symbols(bytes, SymbolTableKind::Full)?,
            build_id: elf.build_id(bytes).map(hexadecimal),
            soname: elf.linkage(bytes).and_then(|linkage| String::from_utf8(linkage.soname?).ok()),
            elf,
        })
    }

    /// GNU build id in lower-case hexadecimal; many libraries have none (the wheels on PyPI, for example).
    pub fn build_id(&self) -> Option<&str> {
        self.build_id.as_deref()
    }

    /// DT_SONAME, such as `libmpi.so.40`. For display: names tell nothing about which library it is.
    pub fn soname(&self) -> Option<&str> {
        self.soname.as_deref()
    }

    /// Without `.symtab`: only exported functions can be found.
    pub fn is_stripped(&self) -> bool {
        self.symbols.is_none()
    }

    /// Every symbol of `.dynsym`, then of `.symtab`, with its name; most exported ones come twice.
    pub(super) fn all_symbols(&self) -> impl Iterator<Item = (&'data str, Symbol)> {
        let named = |table: &SymbolTable<'data>| {
            let table = *table;
            table.iter().filter_map(move |symbol| Some((str::from_utf8(table.c_name(symbol)).ok()?, symbol)))
        };
        self.dynamic_symbols.iter().chain(&self.symbols).flat_map(named)
    }

    /// The contents of the sections that hold constants: neither code nor writable.
    pub(super) fn constants(&self) -> impl Iterator<Item = &'data [u8]> {
        let constants = self.elf.sections().unwrap_or_default().iter().filter(|section| {
            section.kind == SHT_PROGBITS
                && section.flags.contains(SHF_ALLOC)
                && !section.flags.intersects(SHF_WRITE | SHF_EXECINSTR)
        });
        constants.filter_map(|section| Elf::content(self.bytes, section))
    }

    /// The file's bytes from `offset`, `length` of them or fewer if the file ends before.
    pub(super) fn bytes_from(&self, offset: u64, length: u64) -> &'data [u8] {
        let rest = self.bytes.len().unwrap_or_default().saturating_sub(offset);
        self.bytes.read_bytes_at(offset, length.min(rest)).unwrap_or_default()
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
