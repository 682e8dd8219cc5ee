//! Where discovery and planning meet: a process's library, with the implementation's name and version.

use std::fs::File;

use crate::{
    discover::{Recognise, Recognised, SymbolRecogniser, mappings::FileId},
    plan::{Implementation, Library, read_elf_file},
};

/// Recognises MPI C libraries by their symbols and reads from them which implementation they are.
#[derive(Debug, Default)]
pub struct ImplementationRecogniser {
    symbols: SymbolRecogniser,
}

impl Recognise for ImplementationRecogniser {
    fn recognise(&mut self, file: &File, id: FileId) -> Option<Recognised> {
        // Reads little of most files; the whole of those few that matter is read afterwards.
        let mut recognised = self.symbols.recognise(file, id)?;
        if recognised.role.may_be_library() {
            recognised.implementation = implementation(file);
        }
        Some(recognised)
    }
}

fn implementation(file: &File) -> Option<String> {
    let bytes = read_elf_file(file).ok()?;
    let library = Library::parse(&bytes).ok()?;
    Some(Implementation::of(&library).to_string())
}
