//! Recognises MPI C libraries, and tools on MPI's profiling interface, by the functions they define and use.

use mpiprobe_elf::{Elf, Place, SymbolKind, SymbolTable, SymbolTableKind, limits::MAX_FILE};
use object::{ReadCache, ReadRef};

use super::{
    foreign::ForeignFile,
    mappings::FileId,
    recognise::{Recognise, Recognised, Role},
    text::printable,
};

/// Reads symbol tables, and of most files only the names in them.
#[derive(Debug, Clone, Copy, Default)]
pub struct SymbolRecogniser;

impl Recognise for SymbolRecogniser {
    fn recognise(&mut self, file: &ForeignFile, _: FileId) -> Option<Recognised> {
        // A sparse file costs nothing and may claim as many sections as fit into it.
        if file.state().ok()?.size > MAX_FILE {
            return None;
        }
        let data = &ReadCache::new(file.reader());
        let elf = Elf::parse(data).ok()?;
        let symbols = Symbols::read(&elf, data)?;
        let role = symbols.role()?;
        let soname = if symbols.is_static { None } else { elf.linkage(data).and_then(|linkage| linkage.soname) };
        Some(Recognised {
            role,
            soname: soname.map(|name| printable(&name)),
            defines_pmpi: symbols.pmpi_init,
            is_static: symbols.is_static,
            architecture: elf.architecture,
            implementation: None,
        })
    }
}

/// Which of the telling symbols a file defines.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each tells whether one symbol was seen")]
struct Symbols {
    init: bool,
    send: bool,
    /// Any function called as MPI's are.
    any: bool,
    pmpi_init: bool,
    any_pmpi: bool,
    uses_pmpi: bool,
    uses_dlsym: bool,
    is_static: bool,
}

impl Symbols {
    /// `None` if the file defines nothing of MPI that others could call.
    fn role(&self) -> Option<Role> {
        // What others define is called by its profiling name, or looked for. Who has profiling names of its own is an implementation,
        // as far as can be told; so is mpiprobe's wrapper, which is not to be timed as a layer.
        let is_tool = self.any && (self.uses_pmpi || (self.uses_dlsym && !self.any_pmpi));
        match (self.init && (self.send || self.is_static), is_tool) {
            (true, true) => Some(Role::ToolOrLibrary),
            (true, false) => Some(Role::Library),
            (false, true) => Some(Role::Tool),
            (false, false) => None,
        }
    }

    /// `None` if what the file says of itself is damaged.
    fn read<'data>(elf: &Elf, data: impl ReadRef<'data>) -> Option<Self> {
        let mut found = Self::default();
        found.collect(elf, data, SymbolTableKind::Dynamic, &[b"MPI_"])?;
        // A program linked with libmpi.a defines only what it calls, and exports none of it.
        if !(found.init && found.send) && elf.is_program(data) {
            let mut all = Self { is_static: true, ..Self::default() };
            // PMPI_Init ends in MPI_Init, and linkers let one name be the tail of another.
            all.collect(elf, data, SymbolTableKind::Full, &[b"MPI_Init\0", b"MPI_Init_thread\0"])?;
            if all.init {
                return Some(all);
            }
        }
        Some(found)
    }

    /// Notes what a table says, if one of the `telling` strings is among its names: these are a small part of most tables.
    fn collect<'data>(
        &mut self,
        elf: &Elf,
        data: impl ReadRef<'data>,
        kind: SymbolTableKind,
        telling: &[&[u8]],
    ) -> Option<()> {
        let Some((table, names)) = elf.symbol_sections(kind) else { return Some(()) };
        let names = Elf::content(data, &names)?;
        if !telling.iter().any(|name| memchr::memmem::find(names, name).is_some()) {
            return Some(());
        }
        let table = Elf::content(data, &table)?;
        let table = SymbolTable::new(elf.architecture, table, names, kind.section_name()).ok()?;
        for symbol in table.iter() {
            let name = table.c_name(symbol);
            if symbol.place == Place::Undefined {
                self.note_use(name);
            } else {
                self.note(name, symbol.kind);
            }
        }
        Some(())
    }

    fn note_use(&mut self, name: &[u8]) {
        match name {
            b"dlsym" | b"dlvsym" => self.uses_dlsym = true,
            _ => self.uses_pmpi |= name.starts_with(b"PMPI_"),
        }
    }

    fn note(&mut self, name: &[u8], kind: SymbolKind) {
        let is_function = matches!(kind, SymbolKind::Function | SymbolKind::IndirectFunction);
        self.any |= is_function && name.starts_with(b"MPI_");
        self.any_pmpi |= is_function && name.starts_with(b"PMPI_");
        match name {
            b"MPI_Init" | b"MPI_Init_thread" if is_function => self.init = true,
            b"MPI_Send" if is_function => self.send = true,
            b"PMPI_Init" | b"PMPI_Init_thread" if is_function => self.pmpi_init = true,
            _ => {}
        }
    }
}

#[cfg(test)]
#[path = "elf_symbols_tests.rs"]
mod tests;
