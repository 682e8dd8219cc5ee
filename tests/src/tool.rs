//! Somebody else's tools on MPI's profiling interface (`tool/`).

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use crate::Mpi;
use crate::compile::{CompileError, build, file_error};
use crate::program::Language;

/// Names the directory that its counts go to.
pub const OUTPUT_VARIABLE: &str = "TOOL_OUTPUT";

/// The library, for `LD_PRELOAD`.
pub fn tool(mpi: Mpi) -> Result<PathBuf, CompileError> {
    library(mpi, "tool.c", "libtool.so")
}

/// One that may be before others.
pub fn next_tool(mpi: Mpi) -> Result<PathBuf, CompileError> {
    library(mpi, "next.c", "libnext.so")
}

/// One that sees how programs begin, in a file that nobody else has mapped.
pub fn tool_of_beginnings(mpi: Mpi, directory: &Path) -> Result<PathBuf, CompileError> {
    let (made, copy) = (library(mpi, "begins.c", "libbegins.so")?, directory.join("libbegins.so"));
    fs::copy(&made, &copy).map_err(file_error("copying", &made))?;
    Ok(copy)
}

fn library(mpi: Mpi, source: &str, name: &str) -> Result<PathBuf, CompileError> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tool").join(source);
    let mut arguments: Vec<OsString> =
        ["-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror"].map(Into::into).to_vec();
    arguments.extend(mpi.compiler_arguments());
    let compiler = mpi.compiler(Language::C).unwrap_or_default();
    build(mpi, &compiler, &arguments, &[source], name)
}

/// What it has counted in a rank: calls of `MPI_Allreduce` and of `MPI_Recv`. `None`: it has written nothing.
pub fn counted(directory: &Path, rank: u32) -> Option<(u64, u64)> {
    let text = fs::read_to_string(directory.join(rank.to_string())).ok()?;
    let (allreduces, receives) = text.split_once(' ')?;
    Some((allreduces.parse().ok()?, receives.parse().ok()?))
}
