//! Programs of Debian packages that `cargo xtask setup test` unpacks and does not install (`debs.txt`).

use std::path::PathBuf;

use crate::compile::cache_directory;
use crate::mpi::find_command;

/// What is unpacked, one package a line; xtask reads the same file.
const PACKAGES: &str = include_str!("../debs.txt");
/// Written when everything else is there: the packages.
const READY: &str = ".ready";

/// The root that they are unpacked below; `None`: it has not been made. What the machine has anyway is not there.
pub fn root() -> Option<PathBuf> {
    let directory = cache_directory().join("debian");
    let ready = std::fs::read_to_string(directory.join(READY)).unwrap_or_default();
    (ready == PACKAGES).then(|| directory.join("root"))
}

/// A program of theirs, or of the machine.
pub fn program(name: &str) -> Option<PathBuf> {
    let root = root()?;
    let unpacked = ["usr/bin", "usr/sbin"].map(|folder| root.join(folder).join(name));
    unpacked.into_iter().find(|path| path.is_file()).or_else(|| find_command(name))
}
