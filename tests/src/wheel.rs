//! MPI libraries from PyPI, each in a virtual environment of its own that `cargo xtask setup test` makes.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    process::Command,
};

use libtest_mimic::Failed;

use crate::compile::cache_directory;

/// What is installed, one requirement of pip's a line; xtask reads the same file.
const WHEELS: &str = include_str!("../wheels.txt");

/// What reads, with all that it needs.
const READERS: &str = include_str!("../readers.txt");

/// Written when everything else is there.
const READY: &str = ".ready";

/// The Python of the environment with programs of others that read what mpiprobe writes (`readers.txt`); `None`: it has not been made.
pub fn readers() -> Option<PathBuf> {
    let directory = cache_directory().join("readers");
    let ready = std::fs::read_to_string(directory.join(READY)).unwrap_or_default();
    (ready == READERS).then(|| directory.join("bin/python"))
}

/// What one of the scripts in `tests/readers/` prints. A warning is one too many.
pub fn read(script: &str, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Result<String, Failed> {
    let python = readers().ok_or("the readers are not installed: cargo xtask setup test")?;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("readers").join(script);
    let output = Command::new(python).arg(path).args(arguments).output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() || !errors.is_empty() {
        return Err(format!("{script} complains: {}\n{errors}", output.status).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// The environment of `package`; `None` if it has not been made.
pub(crate) fn environment(package: &str) -> Option<PathBuf> {
    let requirement = WHEELS.lines().find(|line| line.split("==").next() == Some(package))?;
    let directory = cache_directory().join("wheels").join(requirement);
    directory.join(READY).exists().then_some(directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_versions_are_pinned() {
        for line in WHEELS.lines().chain(READERS.lines()) {
            let (package, version) = line.split_once("==").unwrap();
            assert!(!package.is_empty() && version.starts_with(|c: char| c.is_ascii_digit()), "{line}");
        }
    }
}
