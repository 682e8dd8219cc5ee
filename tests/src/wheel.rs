//! MPI libraries from PyPI, each in a virtual environment of its own that `cargo xtask setup test` makes.

use std::path::PathBuf;

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
