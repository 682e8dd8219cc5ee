//! What the tests have from PyPI: further MPI libraries, which Debian does not have, and programs of others that read what mpiprobe writes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::command::{self, target_dir};

/// MPI libraries, one requirement of pip's a line. The tests read the same files, and look where this module puts things.
const WHEELS: &str = include_str!("../../../tests/wheels.txt");
/// Readers, with all that they need.
const READERS: &str = include_str!("../../../tests/readers.txt");

/// Written when everything else is there: the requirements.
const READY: &str = ".ready";

/// Debian's, which the package python3-venv belongs to.
const PYTHON: &str = "/usr/bin/python3";

/// A virtual environment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Environment {
    /// Below the build directory.
    folder: &'static str,
    name: &'static str,
    requirements: &'static str,
    pub(crate) reason: &'static str,
}

impl Environment {
    /// Each MPI library has one of its own, as they would overwrite each other's files.
    fn all() -> impl Iterator<Item = Self> {
        let reason = "a further MPI library that programs to be profiled use";
        let libraries =
            WHEELS.lines().map(move |line| Self { folder: "wheels", name: line, requirements: line, reason });
        let reason = "programs of others that read what mpiprobe writes";
        libraries.chain([Self { folder: "", name: "readers", requirements: READERS, reason }])
    }

    pub(crate) fn name(self) -> &'static str {
        self.name
    }

    fn is_missing(self) -> bool {
        // Of earlier versions the file was empty.
        let ready = fs::read_to_string(self.directory().join(READY));
        !ready.is_ok_and(|ready| ready == self.requirements || self.folder == "wheels" && ready.is_empty())
    }

    /// Removes nothing: an environment that was not finished is made anew over itself.
    fn directory(self) -> PathBuf {
        let directory = target_dir().join("mpi-programs").join(self.folder).join(self.name);
        fs::canonicalize(&directory).unwrap_or(directory)
    }

    fn install(self, directory: &Path) -> Result<()> {
        let failed =
            || format!("{} cannot be installed; it comes from PyPI, so the network must reach that", self.name);
        command::run(Command::new(PYTHON).args(["-m", "venv"]).arg(directory)).with_context(failed)?;
        let mut pip = Command::new(directory.join("bin/pip"));
        // What is named and no more: what else an MPI library asks for is for other fabrics and accelerators.
        pip.args(["install", "--quiet", "--only-binary", ":all:", "--no-deps"]).args(self.requirements.lines());
        command::run(&mut pip).with_context(failed)?;
        let ready = directory.join(READY);
        fs::write(&ready, self.requirements).with_context(|| format!("{} cannot be made", ready.display()))
    }
}

/// Those that are not installed yet.
pub(crate) fn missing() -> Vec<Environment> {
    Environment::all().filter(|environment| environment.is_missing()).collect()
}

pub(crate) fn install(environments: &[Environment]) -> Result<()> {
    environments.iter().try_for_each(|environment| environment.install(&environment.directory()))
}
