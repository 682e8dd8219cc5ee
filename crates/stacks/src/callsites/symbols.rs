//! `.symtab` and `.dynsym` by address.

use std::ops::Range;

use mpiprobe_elf::{
    Place, SymbolKind, SymbolTable, SymbolTableKind,
    constants::{STB_GLOBAL, STB_WEAK},
    name_at,
};

use super::image::Image;

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
            symbols.add(image, SymbolTableKind::Full);
        }
        symbols.finish();
        symbols
    }

    /// The exported symbols only.
    pub(super) fn read_dynamic(image: &Image) -> Self {
        let mut symbols = Self::default();
        symbols.add(image, SymbolTableKind::Dynamic);
        symbols.finish();
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
        name_at(self.names.get(usize::from(entry.table)).map(Vec::as_slice).unwrap_or_default(), entry.name)
    }

    fn add(&mut self, image: &Image, kind: SymbolTableKind) {
        let Some((table, names)) = image.symbols(kind) else { return };
        let Ok(number) = u8::try_from(self.names.len()) else { return };
        let architecture = image.elf().architecture;
        if let Ok(symbols) = SymbolTable::new(architecture, &table, &names, kind.section_name()) {
            let functions = symbols.iter().filter(|symbol| {
                symbol.place == Place::Defined
                    && matches!(symbol.kind, SymbolKind::Function | SymbolKind::IndirectFunction)
            });
            self.entries.extend(functions.map(|symbol| Entry {
                address: symbol.address,
                size: symbol.size,
                name: symbol.name,
                order: match symbol.binding {
                    STB_GLOBAL => 0,
                    STB_WEAK => 1,
                    _ => 2,
                },
                table: number,
            }));
        }
        self.names.push(names);
    }

    fn finish(&mut self) {
        self.entries.sort_by_key(|entry| entry.address);
    }
}
