//! Which MPI implementation a C library is, recognised by what it exports.

mod recognise;
mod standard_version;
mod text;

use std::fmt;

use super::{Library, lookup::Names};

pub use standard_version::StandardVersion;

/// Implementations that share the values of constants and the form of handles and of `MPI_Status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Family {
    /// Handles are pointers to exported objects.
    OpenMpi,
    /// MPICH and what descends from it (Intel MPI, MVAPICH, Cray MPICH): handles are 32-bit numbers.
    Mpich,
    /// The binary interface of MPI 5.0 (`libmpi_abi`), whoever made it: handles are small numbers or pointers.
    StandardAbi,
    /// Handles and constants cannot be interpreted.
    Unknown,
}

/// An MPI implementation, as far as its library tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Implementation {
    pub family: Family,
    pub name: &'static str,
    /// The implementation's own version, such as `4.1.4`.
    pub version: Option<String>,
    /// The version of the MPI standard that the library claims to implement.
    pub standard: Option<StandardVersion>,
}

/// What the recognisers look at.
struct Evidence<'library, 'data> {
    library: &'library Library<'data>,
    names: Names<'static>,
}

impl Implementation {
    /// Meaningful for a library whose role is [`super::MpiRole::CLibrary`].
    pub fn of(library: &Library<'_>) -> Self {
        let names = recognise::names();
        let evidence = Evidence { library, names: library.look_up(&names) };
        let (family, name, version) = recognise::recognise(&evidence).unwrap_or((Family::Unknown, "unknown MPI", None));
        Self { family, name, version, standard: StandardVersion::of(library) }
    }
}

/// `Open MPI 4.1.4`
impl fmt::Display for Implementation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)?;
        match &self.version {
            Some(version) => write!(f, " {version}"),
            None => Ok(()),
        }
    }
}
