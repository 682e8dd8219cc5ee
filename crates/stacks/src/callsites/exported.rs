//! Symbols of data that a file exports, by name.

use mpiprobe_elf::{SymbolTable, SymbolTableKind};

use crate::callsites::module::Module;

impl Module {
    /// Where the file exports something under this name, as an address of the ELF file; `None` if it does not.
    pub fn exported(&self, name: &str) -> Option<u64> {
        const KIND: SymbolTableKind = SymbolTableKind::Dynamic;
        let image = self.image.as_ref()?;
        let (table, names) = image.symbols(KIND)?;
        let symbols = SymbolTable::new(image.elf().architecture, &table, &names, KIND.section_name()).ok()?;
        let is_it = |symbol: &mpiprobe_elf::Symbol| symbol.address != 0 && symbols.c_name(*symbol) == name.as_bytes();
        symbols.iter().find(is_it).map(|symbol| symbol.address)
    }
}
