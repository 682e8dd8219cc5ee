//! What the tests have from PyPI: MPI libraries that Debian does not have, and readers of what traces are exported to.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::command::{self, target_dir};

/// What is installed: what an environment has, as requirements of pip's, a line. The tests read the same files, and look where this module
/// puts things.
const WHEELS: [&str; 2] =
    [include_str!("../../../tests/wheels.txt"), include_str!("../../../tests/readers/wheels.txt")];

/// Written when everything else is there.
const READY: &str = ".ready";

/// Debian's, which the package python3-venv belongs to.
const PYTHON: &str = "/usr/bin/python3";

/// Those that are not installed yet.
pub(crate) fn missing() -> Vec<&'static str> {
    WHEELS.iter().flat_map(|list| list.lines()).filter(|wheel| !directory(wheel).join(READY).exists()).collect()
}

/// Installs each in a virtual environment of its own, as they would overwrite each other's files.
pub(crate) fn install(wheels: &[&str]) -> Result<()> {
    wheels.iter().try_for_each(|wheel| install_one(wheel, &directory(wheel)))
}

fn install_one(wheel: &str, directory: &Path) -> Result<()> {
    let failed = || format!("{wheel} cannot be installed; it comes from PyPI, so the network must reach that");
    command::run(Command::new(PYTHON).args(["-m", "venv"]).arg(directory)).with_context(failed)?;
    let mut pip = Command::new(directory.join("bin/pip"));
    // What is listed alone: what else a wheel asks for is for other fabrics and accelerators, or for what is not used.
    pip.args(["install", "--quiet", "--only-binary", ":all:", "--no-deps"]).args(wheel.split(' '));
    command::run(&mut pip).with_context(failed)?;
    let ready = directory.join(READY);
    File::create(&ready).map(drop).with_context(|| format!("{} cannot be made", ready.display()))
}

/// Removes nothing: an environment that was not finished is made anew over itself.
fn directory(wheel: &str) -> PathBuf {
    let directory = target_dir().join("mpi-programs/wheels").join(wheel.split(' ').next().unwrap_or(wheel));
    fs::canonicalize(&directory).unwrap_or(directory)
}
