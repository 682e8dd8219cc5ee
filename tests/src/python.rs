//! Python interpreters with mpi4py: Debian's for Open MPI, and one with the PyPI wheel for MPICH, as Debian builds mpi4py for one
//! MPI only.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use thiserror::Error;

use crate::compile::cache_directory;
use crate::mpi::{Mpi, find_library};

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

/// Made when it is asked for the first time, which needs the network for MPICH (PyPI).
pub(crate) fn interpreter(mpi: Mpi) -> Result<Interpreter, PythonError> {
    let error = |reason: String| PythonError { mpi, reason };
    match mpi {
        Mpi::OpenMpi => {
            run(DEBIAN_PYTHON, &["-c", "import mpi4py"])
                .map_err(|reason| error(format!("{reason}; install python3-mpi4py")))?;
            Ok(Interpreter { command: DEBIAN_PYTHON.into(), environment: Vec::new() })
        }
        _ if mpi.wheel().is_some() => Err(error("the tests run only C programs with it".to_owned())),
        _ => {
            let directory = cache_directory().join(mpi.id()).join("python");
            let library =
                find_library(mpi.c_library()).ok_or_else(|| error(format!("{} is missing", mpi.c_library())))?;
            let libraries = directory.join("lib-mpich");
            virtual_environment(&directory, &libraries, &library).map_err(error)?;
            // The wheel has modules for both ABIs.
            let environment = vec![("MPI4PY_MPIABI", "mpich".into()), ("LD_LIBRARY_PATH", libraries.into_os_string())];
            Ok(Interpreter { command: directory.join("bin/python"), environment })
        }
    }
}

/// Once; several tests may ask at the same time.
fn virtual_environment(directory: &Path, libraries: &Path, library: &Path) -> Result<(), String> {
    let ready = directory.join(MPI4PY);
    let text = |error: std::io::Error| format!("{}: {error}", directory.display());
    fs::create_dir_all(libraries).map_err(text)?;
    File::create(directory.join(".lock")).and_then(|lock| lock.lock().map(|()| lock)).map_err(text).and_then(|_lock| {
        if ready.exists() {
            return Ok(());
        }
        let target = directory.display().to_string();
        run(DEBIAN_PYTHON, &["-m", "venv", &target]).map_err(|reason| format!("{reason}; install python3-venv"))?;
        let pip = directory.join("bin/pip").display().to_string();
        run(&pip, &["install", "--quiet", "--only-binary", ":all:", MPI4PY])?;
        // The wheel looks for MPICH under its upstream name, which Debian has changed.
        let _ = fs::remove_file(libraries.join("libmpi.so.12"));
        symlink(library, libraries.join("libmpi.so.12")).map_err(text)?;
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
