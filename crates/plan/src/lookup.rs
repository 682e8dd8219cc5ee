//! Looking a few known names up, to see what kind of file this is.

use std::collections::BTreeMap;

use mpiprobe_elf::{Place, SymbolKind};

use super::Library;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Definition {
    Function { address: u64, size: u64 },
    Data { address: u64, size: u64 },
    Import,
}

/// What the file has under some names.
#[derive(Debug)]
pub(super) struct Names<'names>(BTreeMap<&'names str, Definition>);

impl Names<'_> {
    pub(super) fn defines_function(&self, name: &str) -> bool {
        matches!(self.0.get(name), Some(Definition::Function { .. }))
    }

    pub(super) fn imports(&self, name: &str) -> bool {
        self.0.get(name) == Some(&Definition::Import)
    }

    pub(super) fn defines_data(&self, name: &str) -> bool {
        matches!(self.0.get(name), Some(Definition::Data { .. }))
    }

    pub(super) fn get(&self, name: &str) -> Option<Definition> {
        self.0.get(name).copied()
    }
}

impl Library<'_> {
    pub(super) fn look_up<'names>(&self, names: &[&'names str]) -> Names<'names> {
        let wanted: BTreeMap<&str, &'names str> = names.iter().map(|&name| (name, name)).collect();
        let mut found = BTreeMap::new();
        for (symbol_name, symbol) in self.all_symbols() {
            let Some(&name) = wanted.get(symbol_name) else { continue };
            let (address, size) = (symbol.address, symbol.size);
            match (symbol.place, symbol.kind) {
                (Place::Undefined, _) => {
                    found.entry(name).or_insert(Definition::Import);
                }
                (Place::Defined, SymbolKind::Function) => {
                    found.insert(name, Definition::Function { address, size });
                }
                (Place::Defined, SymbolKind::Data) => {
                    found.insert(name, Definition::Data { address, size });
                }
                _ => {}
            }
        }
        Names(found)
    }

    /// The bytes of a data or function symbol that are in the file, at most `limit`.
    pub(super) fn bytes_of(&self, found: Definition, limit: u64) -> &[u8] {
        let (Definition::Function { address, size } | Definition::Data { address, size }) = found else { return &[] };
        match self.elf.segments.offset_of(address) {
            Some((offset, in_file)) => self.bytes_from(offset, size.min(in_file).min(limit)),
            None => &[],
        }
    }
}
