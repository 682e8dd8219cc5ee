//! What is wrong with the configuration and the history.

use std::path::PathBuf;

use mpiprobe_discover::files;
use thiserror::Error;

#[derive(Debug, Error)]
pub enum FileError {
    #[error("neither {0} nor HOME says where files of yours are")]
    Nowhere(&'static str),
    #[error(transparent)]
    File(#[from] files::FileError),
    #[error("{}: {message}", path.display())]
    Config { path: PathBuf, message: String },
    #[error("a view's name has 1 to 60 characters, all of which can be seen")]
    Name,
}
