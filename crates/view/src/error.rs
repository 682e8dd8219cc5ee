//! Why there is no view.

use std::io;

use thiserror::Error;

#[derive(Debug, Error)]
pub enum ViewError {
    #[error("cannot use the terminal: {0}; --plain prints tables instead")]
    Terminal(#[source] io::Error),
    #[error("cannot start the view: {0}; --plain prints tables instead")]
    Start(#[source] io::Error),
    #[error("the view has failed; this is an error in mpiprobe. --plain prints tables instead")]
    Panicked,
}
