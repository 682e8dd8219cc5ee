//! Symbols of data that a file exports, by name.

use object::{LittleEndian, elf, elf::Sym64, pod::slice_from_all_bytes, read::elf::Sym as _};

use crate::module::Module;

impl Module {
    /// Where the file exports something under this name, as an address of the ELF file; `None` if it does not.
    pub fn exported(&self, name: &str) -> Option<u64> {
        let (table, names) = self.image.as_ref()?.symbols(elf::SHT_DYNSYM)?;
        let symbols = slice_from_all_bytes::<Sym64<LittleEndian>>(&table).ok()?;
        let is_it = |symbol: &&Sym64<LittleEndian>| {
            let start = usize::try_from(symbol.st_name(LittleEndian)).unwrap_or(usize::MAX);
            let rest = names.get(start..).and_then(|rest| rest.strip_prefix(name.as_bytes()));
            rest.is_some_and(|rest| rest.first() == Some(&0))
        };
        let found = symbols.iter().filter(|symbol| symbol.st_value(LittleEndian) != 0).find(is_it)?;
        Some(found.st_value(LittleEndian))
    }
}
