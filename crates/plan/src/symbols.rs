//! Which of the wanted functions a library defines, and where.

use std::collections::BTreeMap;

use mpiprobe_elf::{ElfError, Place, Symbol, SymbolKind};

use super::{Library, Rejection};

/// The largest MPI library defines 1,400 names, twice if it is not stripped; a hostile file could claim millions.
const MAX_WANTED: usize = 1 << 14;

/// One name of a function and what the caller knows it by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alias<K> {
    pub name: String,
    pub key: K,
}

/// One function: one address, whatever number of names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function<K> {
    /// `MPI_Send` and `PMPI_Send` mostly, sorted by name. Never empty.
    pub aliases: Vec<Alias<K>>,
    /// In the ELF file's own address space: the process adds the address at which it was loaded.
    pub address: u64,
    /// Of the first instruction, in bytes from the start of the file: what a uprobe is given.
    pub file_offset: u64,
    /// In bytes, cut where the next function begins.
    pub size: u64,
}

impl<K> Function<K> {
    /// One name to call it by: the first one, which is `MPI_X` where there is `PMPI_X` too.
    pub fn name(&self) -> &str {
        self.aliases.first().map_or("", |alias| &alias.name)
    }
}

/// A wanted name that cannot be probed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejected<K> {
    pub name: String,
    pub key: K,
    pub reason: Rejection,
}

/// What was found for the wanted names.
#[derive(Debug)]
pub struct Symbols<K> {
    /// By file offset, each once.
    pub functions: Vec<Function<K>>,
    /// By name; imports too, so that the caller can tell "not there" from "defined elsewhere".
    pub rejected: Vec<Rejected<K>>,
}

/// A function while its names are being collected.
struct NamedFunction<K> {
    address: u64,
    size: u64,
    names: BTreeMap<String, K>,
}

impl<'data> Library<'data> {
    /// Finds the functions whose exact name `wanted` knows, in `.dynsym` and `.symtab`.
    ///
    /// Names are C names without symbol version. Two versions of one name are two functions if their addresses differ.
    pub fn resolve<K>(&self, mut wanted: impl FnMut(&str) -> Option<K>) -> Result<Symbols<K>, ElfError> {
        let mut functions: BTreeMap<u64, NamedFunction<K>> = BTreeMap::new();
        let mut rejected = BTreeMap::new();
        let mut starts = Vec::new();
        let mut matches = 0_usize;
        for (name, symbol) in self.all_symbols() {
            if symbol.place == Place::Defined
                && matches!(symbol.kind, SymbolKind::Function | SymbolKind::IndirectFunction)
            {
                starts.push(symbol.address);
            }
            let Some(key) = wanted(name) else { continue };
            matches += 1;
            if matches > MAX_WANTED {
                return Err(ElfError::TooMany { what: "symbols of the wanted names", limit: MAX_WANTED });
            }
            let (address, name) = (symbol.address, name.to_owned());
            match self.locate(symbol) {
                Ok((file_offset, size)) => {
                    let found =
                        functions.entry(file_offset).or_insert(NamedFunction { address, size, names: BTreeMap::new() });
                    // Names of one address that disagree about its end: the nearer one is safe.
                    found.size = found.size.min(size);
                    found.names.entry(name).or_insert(key);
                }
                Err(reason) => {
                    rejected.entry((name, reason)).or_insert(key);
                }
            }
        }
        starts.sort_unstable();
        let functions = functions.into_iter().map(|(offset, found)| found.finish(offset, &starts)).collect();
        let rejected = rejected.into_iter().map(|((name, reason), key)| Rejected { name, key, reason }).collect();
        Ok(Symbols { functions, rejected })
    }

    /// File offset and size of a function that can be probed.
    fn locate(&self, symbol: Symbol) -> Result<(u64, u64), Rejection> {
        match symbol.place {
            Place::Undefined => return Err(Rejection::Imported),
            Place::Absolute => return Err(Rejection::Absolute),
            Place::Defined => {}
        }
        match symbol.kind {
            SymbolKind::Function => {}
            SymbolKind::IndirectFunction => return Err(Rejection::IndirectFunction),
            SymbolKind::Data | SymbolKind::Other => return Err(Rejection::NotAFunction),
        }
        if symbol.size == 0 {
            return Err(Rejection::NoSize);
        }
        let segments = &self.elf.segments;
        let (segment, _) = segments.containing(symbol.address).ok_or(Rejection::Unmapped)?;
        if !segment.executable {
            return Err(Rejection::NotExecutable);
        }
        let (file_offset, in_file) = segments.offset_of(symbol.address).ok_or(Rejection::NotInFile)?;
        Ok((file_offset, symbol.size.min(in_file)))
    }

    /// The function's machine code as it stands in the file.
    pub fn code<K>(&self, function: &Function<K>) -> &'data [u8] {
        self.bytes_from(function.file_offset, function.size)
    }
}

impl<K> NamedFunction<K> {
    /// `starts`: where functions begin, sorted.
    fn finish(self, file_offset: u64, starts: &[u64]) -> Function<K> {
        let next = starts.get(starts.partition_point(|&start| start <= self.address));
        let room = next.map_or(u64::MAX, |next| next.saturating_sub(self.address));
        Function {
            aliases: self.names.into_iter().map(|(name, key)| Alias { name, key }).collect(),
            address: self.address,
            file_offset,
            size: self.size.min(room),
        }
    }
}
