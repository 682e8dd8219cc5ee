//! `.dynsym` and `.symtab` as they stand in the file.

use object::Endianness;
use object::elf::{self, Sym32, Sym64};
use object::pod::slice_from_all_bytes;
use object::read::elf::Sym as RawSymbol;

use super::{
    Architecture, ElfError,
    limits::{MAX_C_NAME, MAX_NAME, MAX_SYMBOLS},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SymbolKind {
    Function,
    /// STT_GNU_IFUNC: the address is that of a resolver.
    IndirectFunction,
    Data,
    Other,
}

/// What a symbol's address is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Imported: another file defines it.
    Undefined,
    /// A number, not an address in this file.
    Absolute,
    Defined,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Symbol {
    /// Where its name begins among the table's names.
    pub name: u32,
    pub kind: SymbolKind,
    pub place: Place,
    pub binding: elf::SymbolBind,
    pub address: u64,
    /// In bytes; 0 if the file does not say.
    pub size: u64,
}

/// One table and its names.
#[derive(Debug, Clone, Copy)]
pub struct SymbolTable<'data> {
    entries: Entries<'data>,
    names: &'data [u8],
}

#[derive(Debug, Clone, Copy)]
enum Entries<'data> {
    Bits32(&'data [Sym32<Endianness>], Endianness),
    Bits64(&'data [Sym64<Endianness>], Endianness),
}

impl<'data> SymbolTable<'data> {
    /// `what` is the table's name for messages.
    pub fn new(
        architecture: Architecture,
        table: &'data [u8],
        names: &'data [u8],
        what: &'static str,
    ) -> Result<Self, ElfError> {
        let malformed = |()| ElfError::Malformed { what, why: "its size is no multiple of an entry's".to_owned() };
        let endian = architecture.endianness();
        let entries = match architecture.bits {
            32 => Entries::Bits32(slice_from_all_bytes(table).map_err(malformed)?, endian),
            _ => Entries::Bits64(slice_from_all_bytes(table).map_err(malformed)?, endian),
        };
        let found = Self { entries, names };
        if found.len() > MAX_SYMBOLS {
            return Err(ElfError::TooMany { what: "symbols", limit: MAX_SYMBOLS });
        }
        Ok(found)
    }

    pub const fn len(&self) -> usize {
        match self.entries {
            Entries::Bits32(entries, _) => entries.len(),
            Entries::Bits64(entries, _) => entries.len(),
        }
    }

    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn iter(&self) -> impl Iterator<Item = Symbol> + use<'data> {
        let (small, large) = match self.entries {
            Entries::Bits32(entries, endian) => (Some((entries, endian)), None),
            Entries::Bits64(entries, endian) => (None, Some((entries, endian))),
        };
        let small =
            small.into_iter().flat_map(|(entries, endian)| entries.iter().map(move |entry| read(entry, endian)));
        let large =
            large.into_iter().flat_map(|(entries, endian)| entries.iter().map(move |entry| read(entry, endian)));
        small.chain(large)
    }

    /// The name, without the version that `.symtab` appends (`MPI_Send@@LIBMPI_1.0`); empty if it has no end within
    /// [`MAX_NAME`] bytes.
    pub fn name(&self, symbol: Symbol) -> &'data [u8] {
        name_at(self.names, symbol.name)
    }

    /// The same where only names of C functions matter: longer ones than [`MAX_C_NAME`] bytes are empty.
    pub fn c_name(&self, symbol: Symbol) -> &'data [u8] {
        ended(start_of(self.names, symbol.name, MAX_C_NAME + 1)).unwrap_or_default()
    }

    /// The first [`MAX_C_NAME`] bytes of the name, for those that only its beginning tells.
    pub fn beginning_of_name(&self, symbol: Symbol) -> &'data [u8] {
        let start = start_of(self.names, symbol.name, MAX_C_NAME);
        ended(start).unwrap_or(start)
    }
}

fn read<S: RawSymbol<Endian = Endianness>>(symbol: &S, endian: Endianness) -> Symbol {
    Symbol {
        name: symbol.st_name(endian),
        kind: match symbol.st_type() {
            elf::STT_FUNC => SymbolKind::Function,
            elf::STT_GNU_IFUNC => SymbolKind::IndirectFunction,
            elf::STT_OBJECT => SymbolKind::Data,
            _ => SymbolKind::Other,
        },
        place: match symbol.st_shndx(endian) {
            elf::SHN_UNDEF => Place::Undefined,
            elf::SHN_ABS => Place::Absolute,
            _ => Place::Defined,
        },
        binding: symbol.st_bind(),
        address: symbol.st_value(endian).into(),
        size: symbol.st_size(endian).into(),
    }
}

/// The NUL-terminated name at `offset`, without a version; empty if there is none within [`MAX_NAME`] bytes.
pub fn name_at(names: &[u8], offset: u32) -> &[u8] {
    ended(start_of(names, offset, MAX_NAME + 1)).unwrap_or_default()
}

fn start_of(names: &[u8], offset: u32, most: usize) -> &[u8] {
    let rest = usize::try_from(offset).ok().and_then(|offset| names.get(offset..)).unwrap_or_default();
    rest.get(..most).unwrap_or(rest)
}

/// The name up to its end or its version; `None` if no end is there.
fn ended(start: &[u8]) -> Option<&[u8]> {
    let name = start.get(..memchr::memchr(0, start)?)?;
    Some(memchr::memchr(b'@', name).filter(|&end| end > 0).and_then(|end| name.get(..end)).unwrap_or(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Invariant BOUNDED-READS.
    #[test]
    fn names_end_where_they_should_or_at_the_limit() {
        let mut names = b"\0MPI_Send@@LIBMPI_1.0\0x\0".to_vec();
        assert_eq!(name_at(&names, 0), b"");
        assert_eq!(name_at(&names, 1), b"MPI_Send");
        assert_eq!(name_at(&names, 22), b"x");
        assert_eq!(name_at(&names, 99), b"");
        let long = u32::try_from(names.len()).unwrap();
        names.extend(vec![b'M'; MAX_NAME]);
        names.push(0);
        assert_eq!(name_at(&names, long).len(), MAX_NAME);
        // One more, and nobody looks for the end: a million such names would take minutes.
        assert_eq!(name_at(&names, long - 2), b"x");
        names.insert(long as usize, b'M');
        assert_eq!(name_at(&names, long), b"");
    }

    #[test]
    fn a_table_has_whole_entries_and_c_names_are_bounded() {
        let names = [&b"\0"[..], &[b'M'; 1000], b"\0"].concat();
        let mut entry = [0; 24];
        entry[..4].copy_from_slice(&1_u32.to_le_bytes());
        entry[4] = elf::STT_FUNC.0;
        entry[6] = 1;
        let table = SymbolTable::new(Architecture::NATIVE, &entry, &names, ".symtab").unwrap();
        let [symbol] = table.iter().collect::<Vec<_>>()[..] else { panic!("{table:?}") };
        assert_eq!((symbol.kind, symbol.place), (SymbolKind::Function, Place::Defined));
        assert_eq!((table.name(symbol).len(), table.c_name(symbol).len()), (1000, 0));
        assert_eq!(table.beginning_of_name(symbol), [b'M'; MAX_C_NAME]);
        let error = SymbolTable::new(Architecture::NATIVE, &entry[1..], &names, ".symtab").unwrap_err();
        assert!(matches!(error, ElfError::Malformed { what: ".symtab", .. }), "{error}");
    }
}
