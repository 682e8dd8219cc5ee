//! The wrapper as a file: it comes inside the `mpiprobe` binary, and is written to where programs can load it from.

use std::{
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use thiserror::Error;

static LIBRARY: &[u8] = include_bytes!(env!("MPIPROBE_WRAPPER"));

/// Why there is no library to preload.
#[derive(Debug, Error)]
pub enum LibraryError {
    #[error("no place for the wrapper library: neither XDG_CACHE_HOME nor HOME is an absolute path; set one of them")]
    NoHome,
    #[error("cannot put the wrapper library into {}: {source}; set XDG_CACHE_HOME to a directory that can be written", .directory.display())]
    Write { directory: PathBuf, source: io::Error },
}

/// The path of the library, which is written there if it is not yet.
///
/// In the user's cache: home directories are there on all nodes of most clusters, and files in them may be executed.
pub fn library() -> Result<PathBuf, LibraryError> {
    let directory = cache(|name| std::env::var_os(name).map(PathBuf::from))?;
    let failed = |source| LibraryError::Write { directory: directory.clone(), source };
    DirBuilder::new().recursive(true).mode(0o700).create(&directory).map_err(failed)?;
    // By content: another version has another name, so that jobs that run with this one keep it.
    let path = directory.join(format!("libmpiprobe_wrapper-{:08x}.so", crc32fast::hash(LIBRARY)));
    if !fs::read(&path).is_ok_and(|present| present == LIBRARY) {
        replace(&path).map_err(failed)?;
    }
    Ok(path)
}

fn cache(variable: impl Fn(&str) -> Option<PathBuf>) -> Result<PathBuf, LibraryError> {
    let absolute = |name: &str| variable(name).filter(|path| path.is_absolute());
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
    Ok(cache.ok_or(LibraryError::NoHome)?.join("mpiprobe"))
}

/// As a whole or not at all: somebody may be loading it.
fn replace(path: &Path) -> io::Result<()> {
    let unfinished = path.with_extension(format!("{}.tmp", std::process::id()));
    let written = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o755)
        .open(&unfinished)
        .and_then(|mut file| file.write_all(LIBRARY))
        .and_then(|()| fs::rename(&unfinished, path));
    if written.is_err() {
        // The first error is the one to be told.
        let _ = fs::remove_file(&unfinished);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_is_where_the_user_has_it() {
        let of = |variables: &'static [(&str, &str)]| {
            let find = |name: &str| variables.iter().find(|(other, _)| *other == name).map(|(_, value)| value.into());
            cache(find).map_err(|error| error.to_string())
        };
        assert_eq!(of(&[("XDG_CACHE_HOME", "/c"), ("HOME", "/h")]), Ok("/c/mpiprobe".into()));
        assert_eq!(of(&[("XDG_CACHE_HOME", "relative"), ("HOME", "/h")]), Ok("/h/.cache/mpiprobe".into()));
        assert!(of(&[]).is_err());
    }

    #[test]
    fn it_is_a_shared_library() {
        assert!(LIBRARY.starts_with(b"\x7fELF"));
    }
}
