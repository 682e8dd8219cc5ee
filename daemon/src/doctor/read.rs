//! The kernel's own small files below `/proc` and `/sys`.

use std::{
    fs::File,
    io::{self, Read as _},
    path::Path,
};

/// At most this much of a file is read, in bytes: a node with thousands of containers has mountinfo of some 100 KiB.
const LIMIT: u64 = 4 << 20;

/// A file's text, without blanks around it; what is not UTF-8 is replaced.
pub(super) fn read_text(path: impl AsRef<Path>) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(LIMIT).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
}
