//! Looking a few known names up, to see what kind of file this is.

use std::collections::BTreeMap;

use super::{
    Library,
    symbol_table::{Kind, Place},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    Function { address: u64, size: u64 },
    Data { address: u64, size: u64 },
    Import,
}

/// What the file has under some names.
#[derive(Debug)]
pub(super) struct Names<'names>(BTreeMap<&'names str, Found>);

impl Names<'_> {
    pub(super) fn defines_function(&self, name: &str) -> bool {
        matches!(self.0.get(name), Some(Found::Function { .. }))
    }

    pub(super) fn imports(&self, name: &str) -> bool {
        self.0.get(name) == Some(&Found::Import)
    }

    pub(super) fn defines_data(&self, name: &str) -> bool {
        matches!(self.0.get(name), Some(Found::Data { .. }))
    }

    pub(super) fn get(&self, name: &str) -> Option<Found> {
        self.0.get(name).copied()
    }
}

impl Library<'_> {
    pub(super) fn look_up<'names>(&self, names: &[&'names str]) -> Names<'names> {
        let wanted: BTreeMap<&str, &'names str> = names.iter().map(|&name| (name, name)).collect();
        let mut found = BTreeMap::new();
        for symbol in self.all_symbols() {
            let Some(&name) = wanted.get(symbol.name) else { continue };
            let (address, size) = (symbol.address, symbol.size);
            match (symbol.place, symbol.kind) {
                (Place::Undefined, _) => {
                    found.entry(name).or_insert(Found::Import);
                }
                (Place::Defined, Kind::Function) => {
                    found.insert(name, Found::Function { address, size });
                }
                (Place::Defined, Kind::Data) => {
                    found.insert(name, Found::Data { address, size });
                }
                _ => {}
            }
        }
        Names(found)
    }

    /// The bytes of a data or function symbol that are in the file, at most `limit`.
    pub(super) fn bytes_of(&self, found: Found, limit: u64) -> &[u8] {
        let (Found::Function { address, size } | Found::Data { address, size }) = found else { return &[] };
        match self.segments.bytes_at(address) {
            Some((offset, in_file)) => self.bytes_from(offset, size.min(in_file).min(limit)),
            None => &[],
        }
    }
}
