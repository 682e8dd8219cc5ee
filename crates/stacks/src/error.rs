//! Why threads cannot be looked at.

use std::io;

use thiserror::Error;

/// Why threads cannot be looked at without stopping them.
#[derive(Debug, Error)]
pub enum CaptureError {
    #[error("cannot read the kernel's types: {0}")]
    Types(#[source] io::Error),
    #[error("the kernel's types do not tell where it keeps what its threads do")]
    UnknownTypes,
    #[error("the kernel does not take the program that looks at threads: {0}")]
    Program(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("the embedded object lacks a {0}")]
    Missing(&'static str),
    #[error("cannot look at threads: {0}")]
    Run(#[source] io::Error),
}
