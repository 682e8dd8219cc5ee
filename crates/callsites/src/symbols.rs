//! `.symtab` and `.dynsym` by address.

use std::ops::Range;

use object::LittleEndian;
use object::elf::{self, Sym64};
use object::read::elf::Sym as _;

use super::image::Image;

/// Functions in a file; the largest programs have some hundred thousand.
const MAX_FUNCTIONS: usize = 1 << 22;
/// Longer names than this are not read, in bytes. Those of C++ templates have some thousand.
const MAX_NAME: usize = 4 << 10;

#[derive(Debug, Clone, Copy)]
struct Entry {
    address: u64,
    size: u64,
    /// Where the name is.
    name: u32,
    /// Of several names for one address the one with the lowest number is shown: global, weak, local.
    order: u8,
    table: u8,
}

/// The functions of a file, by address.
#[derive(Debug, Default)]
pub(super) struct Symbols {
    /// Ascending by address.
    entries: Vec<Entry>,
    names: Vec<Vec<u8>>,
}

impl Symbols {
    /// The symbols of a file and of its file of debug information.
    pub(super) fn read<'a>(images: impl Iterator<Item = &'a Image>) -> Self {
        let mut symbols = Self::default();
        for image in images {
            if let Some((table, names)) = image.symbols(elf::SHT_SYMTAB) {
                symbols.add(&table, names);
            }
        }
        symbols.finish();
        symbols
    }

    /// The exported symbols only.
    pub(super) fn read_dynamic(image: &Image) -> Self {
        let mut symbols = Self::default();
        if let Some((table, names)) = image.symbols(elf::SHT_DYNSYM) {
            symbols.add(&table, names);
            symbols.finish();
        }
        symbols
    }

    /// Names as they stand in the file, and where the functions are; those of no size are left out.
    pub(super) fn functions(&self) -> impl Iterator<Item = (&[u8], Range<u64>)> {
        let sized = self.entries.iter().filter(|entry| entry.size > 0);
        sized.map(|entry| (self.name(entry), entry.address..entry.address.saturating_add(entry.size)))
    }

    /// About what it takes of memory, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        let names: usize = self.names.iter().map(Vec::len).sum();
        (names + self.entries.len() * size_of::<Entry>()) as u64
    }

    /// The function that contains `address`: its name as it stands in the file, and its own address.
    pub(super) fn find(&self, address: u64) -> Option<(&[u8], u64)> {
        let after = self.entries.partition_point(|entry| entry.address <= address);
        let before = self.entries.get(..after)?;
        // Only one address can be the nearest; a function of no size (assembly) reaches to the next one.
        let nearest = before.last()?.address;
        let mut candidates = before.iter().rev().take_while(|entry| entry.address == nearest);
        let best = candidates.by_ref().filter(|entry| entry.size == 0 || address - entry.address < entry.size);
        let best = best.min_by_key(|entry| (entry.order, self.name(entry).len()))?;
        Some((self.name(best), best.address))
    }

    fn name(&self, entry: &Entry) -> &[u8] {
        let names = self.names.get(usize::from(entry.table)).map(Vec::as_slice).unwrap_or_default();
        let rest = usize::try_from(entry.name).ok().and_then(|start| names.get(start..)).unwrap_or_default();
        let rest = rest.get(..MAX_NAME).unwrap_or(rest);
        let name = memchr::memchr(0, rest).and_then(|end| rest.get(..end)).unwrap_or_default();
        // The version that .symtab appends: MPI_Send@@LIBMPI_1.0.
        memchr::memchr(b'@', name).filter(|&end| end > 0).and_then(|end| name.get(..end)).unwrap_or(name)
    }

    fn add(&mut self, table: &[u8], names: Vec<u8>) {
        let Ok(number) = u8::try_from(self.names.len()) else { return };
        self.names.push(names);
        let whole = table.len() - table.len() % size_of::<Sym64<LittleEndian>>();
        let symbols = table.get(..whole).and_then(|table| object::pod::slice_from_all_bytes(table).ok());
        let symbols: &[Sym64<LittleEndian>] = symbols.unwrap_or_default();
        let endian = LittleEndian;
        let functions = symbols.iter().filter(|symbol| {
            let kind = symbol.st_type();
            symbol.st_shndx(endian) != elf::SHN_UNDEF
                && symbol.st_shndx(endian) != elf::SHN_ABS
                && (kind == elf::STT_FUNC || kind == elf::STT_GNU_IFUNC)
        });
        let room = MAX_FUNCTIONS.saturating_sub(self.entries.len());
        self.entries.extend(functions.take(room).map(|symbol| Entry {
            address: symbol.st_value(endian),
            size: symbol.st_size(endian),
            name: symbol.st_name(endian),
            order: match symbol.st_bind() {
                elf::STB_GLOBAL => 0,
                elf::STB_WEAK => 1,
                _ => 2,
            },
            table: number,
        }));
    }

    fn finish(&mut self) {
        self.entries.sort_by_key(|entry| entry.address);
    }
}
