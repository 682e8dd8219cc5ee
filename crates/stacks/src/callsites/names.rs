//! All that is known of the names in one module.

use mpiprobe_model::SourceFrame;

use super::{debug_files, demangle::function_name, dwarf::Dwarf, module::Module, symbols::Symbols};

#[derive(Default)]
pub(super) struct Names {
    dwarf: Option<Dwarf>,
    symbols: Symbols,
    /// Only looked at where `symbols` says nothing.
    exported: Symbols,
}

/// What is known of one address.
#[derive(Default)]
pub(super) struct ResolvedAddress {
    /// From the inside out.
    pub(super) frames: Vec<SourceFrame>,
    /// The function by the symbol table, and its address.
    pub(super) symbol: Option<(String, u64)>,
}

impl Names {
    /// Reads everything there is. A file that somebody has written into since it was mapped has no names.
    /// `left` bytes may be read only to find the right file.
    pub(super) fn read(module: &Module, left: &mut u64) -> Self {
        let Some(image) = module.image.as_ref().filter(|image| image.is_unchanged()) else { return Self::default() };
        let separate = if Dwarf::has(image) { None } else { debug_files::separate(module, image, left) };
        let with_dwarf = separate.as_ref().map_or(image, |separate| &separate.image);
        let supplement = debug_files::supplement(module, with_dwarf, separate.as_ref());
        Self {
            dwarf: Dwarf::read(with_dwarf, supplement.as_ref()),
            symbols: Symbols::read(std::iter::once(image).chain(separate.as_ref().map(|separate| &separate.image))),
            exported: Symbols::read_dynamic(image),
        }
    }

    /// What the instruction at `address` belongs to.
    pub(super) fn find(&self, address: u64) -> ResolvedAddress {
        let frames = self.dwarf.as_ref().map(|dwarf| dwarf.find(address)).unwrap_or_default();
        let symbol = self.symbols.find(address).or_else(|| self.exported.find(address));
        let symbol = symbol.filter(|(name, _)| !name.is_empty());
        ResolvedAddress { frames, symbol: symbol.map(|(name, start)| (function_name(name, None), start)) }
    }

    #[cfg(test)]
    pub(super) fn budget(&self) -> Option<(u64, u64)> {
        self.dwarf.as_ref().map(Dwarf::budget)
    }

    /// About what it takes of memory, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.dwarf.as_ref().map_or(0, Dwarf::bytes) + self.symbols.bytes() + self.exported.bytes()
    }
}
