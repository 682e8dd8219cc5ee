//! Where a file's variables are, in the file's own addresses.

use std::collections::BTreeMap;
use std::ops::Range;

use super::{Library, lookup::Definition, references::References};

/// A variable that the file defines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataSymbol {
    pub address: u64,
    /// In bytes; 0 if the file does not say.
    pub size: u64,
}

/// What of a file is needed to find its variables in a process. Borrows nothing: the file need not stay in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Data {
    symbols: BTreeMap<&'static str, DataSymbol>,
    /// Writable data.
    pub writable: Vec<Range<u64>>,
    /// Those parts of it that have initial values.
    pub initialised: Vec<Range<u64>>,
    /// File offset and address of the pages with code.
    code: Vec<(Range<u64>, u64)>,
    /// What the functions refer to that were asked for.
    pub references: Vec<u64>,
    /// What their code multiplies indices by: sizes of elements.
    pub factors: Vec<u64>,
}

impl Data {
    /// Looks `names` up in `library`: exported symbols and, if the file is not stripped, hidden ones. And the data that `functions`
    /// refer to.
    pub fn of(library: &Library<'_>, names: &[&'static str], functions: &[&'static str]) -> Self {
        let found = library.look_up(names);
        let symbols = names.iter().filter_map(|&name| match found.get(name) {
            Some(Definition::Data { address, size }) => Some((name, DataSymbol { address, size })),
            _ => None,
        });
        let (writable, initialised) = library.elf.segments.writable().unzip();
        let References { variables, factors } = library.references(functions);
        Self {
            symbols: symbols.collect(),
            writable,
            initialised,
            code: library.elf.segments.code().collect(),
            references: variables,
            factors,
        }
    }

    pub fn symbol(&self, name: &str) -> Option<DataSymbol> {
        self.symbols.get(name).copied()
    }

    /// What to add to the file's addresses, if the page at `offset` of the file is mapped at `start` as code.
    pub fn bias(&self, start: u64, offset: u64) -> Option<u64> {
        let (range, address) = self.code.iter().find(|(range, _)| range.contains(&offset))?;
        Some(start.wrapping_sub(address.wrapping_add(offset - range.start)))
    }

    /// Address of the file's code, less its offset in the file; `None` if that differs between parts of it.
    pub fn code(&self) -> Option<u64> {
        let mut all = self.code.iter().map(|(range, address)| address.wrapping_sub(range.start));
        let first = all.next()?;
        all.all(|other| other == first).then_some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static MARK: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);

    #[test]
    fn the_own_variables_are_where_the_file_and_the_mapping_say() {
        let bytes = std::fs::read("/proc/self/exe").unwrap();
        let data = Data::of(&Library::parse(&bytes).unwrap(), &["no_such_symbol"], &[]);
        assert_eq!(data.symbol("no_such_symbol"), None);
        let own = std::fs::read_link("/proc/self/exe").unwrap().display().to_string();
        let maps = mpiprobe_discover::mappings::Mappings::parse(&std::fs::read("/proc/self/maps").unwrap(), false);
        let mapped = maps.files.iter().find(|mapped| mapped.display_path() == own).unwrap();
        let bias = data.bias(mapped.ranges[0].start, mapped.ranges[0].offset).unwrap();
        let address = std::ptr::from_ref(&MARK).addr() as u64;
        assert!(data.writable.iter().any(|range| range.contains(&address.wrapping_sub(bias))));
    }
}
