//! Python interpreters with mpi4py: Debian's for Debian's Open MPI, and one with the PyPI wheel for all others, as Debian builds
//! mpi4py for one MPI only.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use thiserror::Error;

use crate::compile::cache_directory;
use crate::mpi::Mpi;

const DEBIAN_PYTHON: &str = "/usr/bin/python3";
/// Pinned: another version may make other calls.
const MPI4PY: &str = "mpi4py==4.1.1";

#[derive(Debug, Error)]
#[error("no Python with mpi4py for {mpi}: {reason}")]
pub struct PythonError {
    mpi: Mpi,
    reason: String,
}

#[derive(Debug, Clone)]
pub(crate) struct Interpreter {
    pub(crate) command: PathBuf,
    pub(crate) environment: Vec<(&'static str, OsString)>,
}

/// Made when it is asked for the first time, which needs the network for all but Debian's Open MPI (PyPI).
pub(crate) fn interpreter(mpi: Mpi) -> Result<Interpreter, PythonError> {
    let error = |reason: String| PythonError { mpi, reason };
    if mpi == Mpi::OpenMpi {
        run(DEBIAN_PYTHON, &["-c", "import mpi4py"])
            .map_err(|reason| error(format!("{reason}; install python3-mpi4py")))?;
        return Ok(Interpreter { command: DEBIAN_PYTHON.into(), environment: Vec::new() });
    }
    // The wheel has modules for these two ABIs.
    let abi = match mpi {
        Mpi::OpenMpi | Mpi::OpenMpi5 => "openmpi",
        Mpi::Mpich | Mpi::Mpich5 | Mpi::Intel => "mpich",
        Mpi::Mpich5Abi | Mpi::IntelAbi => return Err(error(format!("{MPI4PY} is not made for it"))),
    };
    let library = mpi.library().ok_or_else(|| error(format!("{} is missing", mpi.c_library())))?;
    let directory = cache_directory().join("python");
    virtual_environment(&directory).map_err(error)?;
    let libraries = match library.parent() {
        Some(directory) if mpi.wheel().is_some() => directory.to_owned(),
        _ => upstream_name(&cache_directory().join(mpi.id()), &library).map_err(error)?,
    };
    let environment = vec![("MPI4PY_MPIABI", abi.into()), ("LD_LIBRARY_PATH", libraries.into_os_string())];
    Ok(Interpreter { command: directory.join("bin/python"), environment })
}

/// A directory where the wheel finds Debian's MPICH, which has another file name than upstream's.
fn upstream_name(directory: &Path, library: &Path) -> Result<PathBuf, String> {
    let text = |error: std::io::Error| format!("{}: {error}", directory.display());
    let libraries = directory.join("lib-mpich");
    fs::create_dir_all(&libraries).map_err(text)?;
    match symlink(library, libraries.join("libmpi.so.12")) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(text(error)),
        _ => Ok(libraries),
    }
}

/// Once; several tests may ask at the same time.
fn virtual_environment(directory: &Path) -> Result<(), String> {
    let ready = directory.join(MPI4PY);
    let text = |error: std::io::Error| format!("{}: {error}", directory.display());
    fs::create_dir_all(directory).map_err(text)?;
    File::create(directory.join(".lock")).and_then(|lock| lock.lock().map(|()| lock)).map_err(text).and_then(|_lock| {
        if ready.exists() {
            return Ok(());
        }
        let target = directory.display().to_string();
        run(DEBIAN_PYTHON, &["-m", "venv", &target]).map_err(|reason| format!("{reason}; install python3-venv"))?;
        let pip = directory.join("bin/pip").display().to_string();
        run(&pip, &["install", "--quiet", "--only-binary", ":all:", MPI4PY])?;
        File::create(&ready).map(drop).map_err(text)
    })
}

fn run(command: &str, arguments: &[&str]) -> Result<(), String> {
    let output = Command::new(command).args(arguments).output().map_err(|error| format!("{command}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(format!("{command} {} failed: {}", arguments.join(" "), stderr.trim_end()))
}
