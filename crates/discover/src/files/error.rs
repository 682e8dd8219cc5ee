//! What is wrong with files of the user's, and with places for them.

use std::{io, path::PathBuf};

use thiserror::Error;

#[derive(Debug, Error)]
pub enum FileError {
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    /// Nobody writes into the home of another: above all not as root.
    #[error("{} belongs to uid {owner}, mpiprobe runs as uid {user}: nothing is written there", path.display())]
    OfSomebodyElse { path: PathBuf, owner: u32, user: u32 },
    #[error("{} is not left alone: others may have put something there", path.display())]
    NotTrusted { path: PathBuf },
    #[error(
        "{} can be replaced by others ({} belongs to uid {owner}, mode {mode:04o}): nothing is run from there",
        path.display(), changeable.display()
    )]
    Replaceable { path: PathBuf, changeable: PathBuf, owner: u32, mode: u32 },
    #[error("{} is a symbolic link: it is read but never replaced", path.display())]
    Link { path: PathBuf },
    #[error("{} cannot be preloaded: for the dynamic linker, spaces and colons in it end a name", path.display())]
    NoPreload { path: PathBuf },
    #[error("{} is larger than {limit} bytes", path.display())]
    TooLarge { path: PathBuf, limit: usize },
}

/// Without a path: rights could not be put aside, which nothing else can be done about.
impl From<io::Error> for FileError {
    fn from(source: io::Error) -> Self {
        Self::Io { path: PathBuf::new(), source }
    }
}
