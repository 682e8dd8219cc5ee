//! Pages that are written by a program.
#![expect(clippy::panic, reason = "a helper that cannot go on fails its test")]

use std::fs;

use crate::workspace::{read, root};

/// With this variable in the environment, pages are written instead of compared.
const UPDATE: &str = "MPIPROBE_UPDATE_DOCS";

/// Compares a page with what it has to be, or writes it.
pub(crate) fn check(path: &str, wanted: &str) {
    if std::env::var_os(UPDATE).is_some() {
        fs::write(root().join(path), wanted).unwrap_or_else(|error| panic!("{path}: {error}"));
        return;
    }
    let found = read(path);
    let differs = found.lines().zip(wanted.lines()).position(|(found, wanted)| found != wanted);
    let line = differs.unwrap_or_else(|| found.lines().count().min(wanted.lines().count())) + 1;
    assert!(found == wanted, "{path} is out of date, from line {line} on; write it anew with: cargo xtask docs");
}
