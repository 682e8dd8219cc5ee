//! The MPI programs in `tests/programs/`. What each one calls is written at the top of its source.

use std::path::{Path, PathBuf};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Language {
    C,
    Cxx,
    Fortran,
    Python,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Program {
    /// Also the name of the executable, hence of its processes.
    pub name: &'static str,
    pub source: &'static str,
    pub language: Language,
}

const fn program(name: &'static str, source: &'static str, language: Language) -> Program {
    Program { name, source, language }
}

pub const RING: Program = program("ring", "ring.c", Language::C);

impl Program {
    pub fn path(&self) -> PathBuf {
        directory().join(self.source)
    }
}

pub(crate) fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("programs")
}
