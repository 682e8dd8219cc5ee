//! Where discovery and planning meet: a process's library, with the implementation's name and version.

use mpiprobe_discover::{ForeignFile, Recognise, Recognised, SymbolRecogniser, mappings::FileId};

use crate::{ElfFile, Implementation, Library};

/// Recognises MPI C libraries by their symbols and reads from them which implementation they are.
#[derive(Debug, Default)]
pub struct ImplementationRecogniser {
    symbols: SymbolRecogniser,
}

impl Recognise for ImplementationRecogniser {
    fn recognise(&mut self, file: &ForeignFile, id: FileId) -> Option<Recognised> {
        // Reads little of most files, and more of those few that matter.
        let mut recognised = self.symbols.recognise(file, id)?;
        if recognised.role.may_be_library() {
            recognised.implementation = implementation(file);
        }
        Some(recognised)
    }
}

fn implementation(file: &ForeignFile) -> Option<String> {
    let file = ElfFile::new(file).ok()?;
    let library = Library::read(&file).ok()?;
    Some(Implementation::of(&library).to_string())
}
