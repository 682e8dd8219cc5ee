//! Waiting for a file descriptor without occupying a thread.
#![expect(unsafe_code, reason = "tokio wants it promised that the descriptor stays the same and open")]

use std::{io, os::fd::OwnedFd};

use tokio::io::{Interest, unix::AsyncFd};

/// A descriptor that can be awaited.
pub(crate) fn readable(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` always gives the same descriptor and keeps it open until it is dropped, with the `AsyncFd`.
    Ok(unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }?)
}
