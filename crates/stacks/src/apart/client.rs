//! The process that has none of the rights.

use std::{
    fmt, io,
    os::fd::{BorrowedFd, OwnedFd},
    sync::OnceLock,
};

use super::request::{Answer, Request};
use crate::CaptureError;

/// The way to the process that has the rights.
pub trait AskFor: Send + Sync + fmt::Debug {
    fn ask(&self, request: &Request, descriptors: &[BorrowedFd<'_>]) -> io::Result<(Answer, Vec<OwnedFd>)>;
}

static OTHER: OnceLock<Box<dyn AskFor>> = OnceLock::new();

/// From now on another process looks. Only the first one counts.
pub fn ask_instead(other: Box<dyn AskFor>) {
    let _ = OTHER.set(other);
}

pub(crate) fn is_apart() -> bool {
    OTHER.get().is_some()
}

fn ask(request: &Request) -> io::Result<(Answer, Vec<OwnedFd>)> {
    let other = OTHER.get().ok_or(io::ErrorKind::NotConnected)?;
    match other.ask(request, &[])? {
        (Answer::Failed { errno: Some(errno), .. }, _) => Err(io::Error::from_raw_os_error(errno)),
        (Answer::Failed { message, errno: None }, _) => Err(io::Error::other(message)),
        answered => Ok(answered),
    }
}

/// A program that another process has loaded. Released when dropped.
#[derive(Debug)]
pub(crate) struct Looking {
    number: u64,
}

impl Looking {
    /// With its tables of notes and of pages.
    pub(crate) fn load() -> Result<(Self, [OwnedFd; 2]), CaptureError> {
        let failed = |error: io::Error| CaptureError::Program(Box::new(error));
        let (answer, tables) = ask(&Request::Load).map_err(failed)?;
        match (answer, tables.try_into()) {
            (Answer::Loaded(number), Ok(tables)) => Ok((Self { number }, tables)),
            _ => Err(failed(io::ErrorKind::InvalidData.into())),
        }
    }

    pub(crate) fn look(&self, threads: &[u32]) -> Result<(), CaptureError> {
        let request = Request::Look { looking: self.number, threads: threads.to_vec() };
        ask(&request).map(drop).map_err(CaptureError::Run)
    }
}

impl Drop for Looking {
    fn drop(&mut self) {
        if let Err(error) = ask(&Request::Release { looking: self.number }) {
            tracing::warn!("a program that looks at threads stays loaded: {error}");
        }
    }
}

/// A perf event of a thread, switched off.
pub(crate) fn open_event(tid: u32) -> io::Result<OwnedFd> {
    let (_, descriptors) = ask(&Request::Sample { tid })?;
    descriptors.into_iter().next().ok_or_else(|| io::ErrorKind::InvalidData.into())
}
