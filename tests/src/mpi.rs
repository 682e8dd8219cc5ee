//! The MPI implementations the tests run on, under Debian's names.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::program::Language;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mpi {
    OpenMpi,
    Mpich,
}

impl Mpi {
    pub const ALL: [Self; 2] = [Self::OpenMpi, Self::Mpich];
    pub const EVERY: [Self; 2] = Self::ALL;

    /// Short lower-case name for directories and test names; the suffix of Debian's alternatives (`mpicc.openmpi`).
    pub fn id(self) -> &'static str {
        match self {
            Self::OpenMpi => "openmpi",
            Self::Mpich => "mpich",
        }
    }

    /// The compiler wrapper; none for Python.
    pub fn compiler(self, language: Language) -> Option<String> {
        let wrapper = match language {
            Language::C => "mpicc",
            Language::Cxx => "mpicxx",
            Language::Fortran => "mpifort",
            Language::Python => return None,
        };
        Some(format!("{wrapper}.{}", self.id()))
    }

    pub fn launcher(self) -> String {
        format!("mpirun.{}", self.id())
    }

    /// File name of the library that defines the C functions.
    pub fn c_library(self) -> &'static str {
        match self {
            Self::OpenMpi => "libmpi.so.40",
            Self::Mpich => "libmpich.so.12",
        }
    }

    /// File names of the libraries that define the Fortran entry points, in the order they are linked.
    pub fn fortran_libraries(self) -> &'static [&'static str] {
        match self {
            Self::OpenMpi => &["libmpi_usempif08.so.40", "libmpi_mpifh.so.40"],
            Self::Mpich => &["libmpichfort.so.12"],
        }
    }

    /// Arguments that make the launcher start `ranks` processes reliably on a small machine. `scratch` takes the session
    /// directory and shared memory files, which otherwise stay behind in /tmp and /dev/shm when a job is killed.
    pub(crate) fn launcher_arguments(self, ranks: u32, scratch: &Path, preload: Option<&Path>) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = Vec::new();
        match self {
            Self::OpenMpi => {
                // Ranks share cores here: without yielding, each waiting rank would use up its time slice.
                arguments.extend(["--allow-run-as-root", "--oversubscribe", "--bind-to", "none"].map(Into::into));
                arguments.extend(["--mca", "mpi_yield_when_idle", "1", "--mca", "btl", "self,vader"].map(Into::into));
                arguments.extend(["--mca", "orte_tmpdir_base"].map(Into::into));
                arguments.push(scratch.into());
                arguments.extend(["--mca", "btl_vader_backing_directory"].map(Into::into));
                arguments.push(scratch.into());
                if let Some(library) = preload {
                    let mut value = OsString::from("LD_PRELOAD=");
                    value.push(library);
                    arguments.extend(["-x".into(), value]);
                }
            }
            Self::Mpich => {
                if let Some(library) = preload {
                    arguments.extend(["-genv".into(), "LD_PRELOAD".into(), library.into()]);
                }
            }
        }
        arguments.extend(["-n".into(), ranks.to_string().into()]);
        arguments
    }
}

impl fmt::Display for Mpi {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::OpenMpi => "Open MPI",
            Self::Mpich => "MPICH",
        })
    }
}

/// Where the linker finds a shared library, without links in the path; `None` if it is not installed.
pub(crate) fn find_library(name: &str) -> Option<PathBuf> {
    let output = Command::new("gcc").arg(format!("-print-file-name={name}")).output().ok()?;
    let path = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    // A library that is not found is printed as it was asked for.
    if path.is_absolute() { path.canonicalize().ok() } else { None }
}

/// Is there a command of this name on PATH?
pub(crate) fn find_command(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|candidate| candidate.is_file())
}
