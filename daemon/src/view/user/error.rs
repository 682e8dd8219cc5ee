//! What is wrong with files of the user's.

use std::{io, path::PathBuf};

use thiserror::Error;

#[derive(Debug, Error)]
pub enum FileError {
    #[error("neither {0} nor HOME says where files of yours are")]
    Nowhere(&'static str),
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    /// Nobody writes into the home of another: above all not as root.
    #[error("{} belongs to uid {owner}, mpiprobe runs as uid {user}: nothing is written there", path.display())]
    OfSomebodyElse { path: PathBuf, owner: u32, user: u32 },
    #[error("{} is not left alone: others may have put something there", path.display())]
    NotTrusted { path: PathBuf },
    #[error("{} is a symbolic link: it is read but never replaced", path.display())]
    Link { path: PathBuf },
    #[error("{} is larger than {limit} bytes", path.display())]
    TooLarge { path: PathBuf, limit: usize },
    #[error("{}: {message}", path.display())]
    Config { path: PathBuf, message: String },
    #[error("a view's name has 1 to 60 characters, all of which can be seen")]
    Name,
}
