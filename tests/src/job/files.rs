//! Files of a job's own: a program under a name that nobody else uses, a copy of the MPI library.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use tempfile::TempDir;

use super::{JobError, file_error};
use crate::compile::CompileError;
use crate::executable::copy_executable;
use crate::mpi::Mpi;
use crate::program::Program;

/// The profile that `mpiprobe run` writes, in the job's directory.
pub(super) const PROFILE: &str = "profile.json";

/// Not in the job's directory, from which a system may forbid to execute anything (`noexec`).
pub(super) fn directory() -> Result<TempDir, JobError> {
    let parent = std::env::temp_dir();
    let directory =
        TempDir::with_prefix_in("mpiprobe-files-", &parent).map_err(file_error("creating a directory in", &parent))?;
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755))
        .map_err(file_error("opening up", directory.path()))?;
    Ok(directory)
}

/// A name for a program that no other process on the machine has, short enough for the kernel's command name (15 bytes).
pub(super) fn unique_name(program: &str) -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let start: String = program.chars().take(5).collect();
    format!("{start}{:x}-{number}", std::process::id())
}

/// Copies `executable` under `name`.
pub(super) fn copy_program(executable: &Path, directory: &Path, name: &str) -> Result<PathBuf, JobError> {
    let copy = directory.join(name);
    copy_executable(executable, &copy).map_err(file_error("copying", executable))?;
    Ok(copy)
}

/// Gives a program to a user, as whom it is executed from then on.
pub(super) fn set_user(program: &Path, user: u32) -> Result<(), JobError> {
    std::os::unix::fs::chown(program, Some(user), None).map_err(file_error("giving away", program))?;
    fs::set_permissions(program, fs::Permissions::from_mode(0o4755)).map_err(file_error("setting the user of", program))
}

/// Copies the files that an installed program reads.
pub(super) fn copy_input(program: Program, directory: &Path) -> Result<(), JobError> {
    for file in program.files() {
        let name = file.file_name().unwrap_or_default();
        fs::copy(&file, directory.join(name)).map_err(file_error("copying", &file))?;
    }
    Ok(())
}

/// Copies the MPI library under the name that programs look for.
pub(super) fn copy_library(mpi: Mpi, directory: &Path) -> Result<PathBuf, JobError> {
    let library = mpi.c_library();
    let original = mpi.library().ok_or(JobError::Compile(CompileError::NoLibrary { mpi, library }))?;
    let copy = directory.join(library);
    fs::copy(&original, &copy).map_err(file_error("copying", &original))?;
    Ok(copy)
}

/// A shell script that executes a program with the arguments that it is given; `hides`: without naming it in one piece.
pub(super) fn script(program: &Path, directory: &Path, hides: bool) -> Result<PathBuf, JobError> {
    let path = directory.join("script.sh");
    let program = program.display().to_string();
    let name = if hides { program.replace('/', "''/''") } else { program };
    let text = format!("#!/bin/sh\nexec '{name}' \"$@\"\n");
    fs::write(&path, text).map_err(file_error("writing", &path))?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).map_err(file_error("making executable", &path))?;
    Ok(path)
}
