//! Why there is no service.

use std::{io, path::PathBuf};

use thiserror::Error;

/// Each message says what failed, why, and what to do.
#[derive(Debug, Error)]
pub enum ServiceError {
    #[error(
        "the service needs {missing}: start it as root, or give them to its user as ambient capabilities, as the systemd unit does \
         (docs/service.md)"
    )]
    Capabilities { missing: String },
    #[error("{}: {reason}", path.display())]
    Configuration { path: PathBuf, reason: String },
    #[error(
        "there is no user {0:?}, as whom the service is to run; make one (systemd-sysusers does it from the package), or name another by `user` in its configuration"
    )]
    NoUser(String),
    #[error("cannot become user {user}: {source}")]
    User { user: String, source: io::Error },
    #[error("another service answers at {} already", .0.display())]
    Running(PathBuf),
    #[error("cannot listen at {}: {source}", path.display())]
    Listen { path: PathBuf, source: io::Error },
    #[error("{what}: {source}")]
    System { what: &'static str, source: io::Error },
    #[error(
        "the worker of the service has ended {times} times within {seconds} s, for the last time with {last}; see what it said before"
    )]
    WorkerEnds { times: usize, seconds: u64, last: String },
}

impl ServiceError {
    pub(super) fn system(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::System { what, source }
    }
}
