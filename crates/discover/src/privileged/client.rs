//! Whom to ask.

use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::OnceLock;

use super::request::{Granted, Request};

/// The way to the process that has the rights.
pub trait AskFor: Send + Sync + fmt::Debug {
    /// `directory`: of `/proc`, where the request has a name in it.
    fn ask(&self, request: &Request, directory: Option<BorrowedFd<'_>>) -> io::Result<Granted>;
}

static OTHER: OnceLock<Box<dyn AskFor>> = OnceLock::new();

/// From now on `/proc` is not touched by this process: another one is asked. Only the first one counts.
pub fn ask_instead(other: Box<dyn AskFor>) {
    let _ = OTHER.set(other);
}

/// Whether another process is asked.
pub fn is_apart() -> bool {
    OTHER.get().is_some()
}

/// The answer, if another process is asked.
pub(super) fn asked(request: &Request, directory: Option<BorrowedFd<'_>>) -> Option<io::Result<Granted>> {
    OTHER.get().map(|other| other.ask(request, directory))
}
