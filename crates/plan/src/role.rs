//! What a file is to MPI, recognised by what it defines, never by its name.

use super::Library;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MpiRole {
    /// Uses MPI at most.
    None,
    /// Defines the C functions: the library, or an executable with the library linked in. Every MPI call of the process passes here.
    CLibrary,
    /// Defines `MPI_` functions and passes them on to the `PMPI_` functions of another file, as tracing and profiling tools do.
    /// It is a layer of its own: counting there too would count every call twice.
    Interposer,
}

impl Library<'_> {
    /// A tool that finds the next `MPI_` function with dlsym(3) instead of linking to `PMPI_` cannot be told from a library.
    pub fn mpi_role(&self) -> MpiRole {
        let names = self.look_up(&["MPI_Init", "MPI_Send", "PMPI_Init", "PMPI_Send"]);
        if !names.defines_function("MPI_Init") || !names.defines_function("MPI_Send") {
            MpiRole::None
        } else if names.imports("PMPI_Init") || names.imports("PMPI_Send") {
            MpiRole::Interposer
        } else {
            MpiRole::CLibrary
        }
    }

    /// Short for [`MpiRole::CLibrary`].
    pub fn is_mpi_c_library(&self) -> bool {
        self.mpi_role() == MpiRole::CLibrary
    }
}
