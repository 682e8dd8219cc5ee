//! Looks at threads, granted to a process that has no rights ([`super::apart`]): it looks at threads of those processes only that are not protected from tracing.

use std::{collections::HashMap, io, os::fd::OwnedFd};

use mpiprobe_discover::privileged;

use crate::{
    CaptureError,
    apart::{Answer, Request},
    kernel::{iterator::Iterator, sample},
};

/// Loads and looks.
#[derive(Debug)]
pub struct Grants {
    /// Programs that may be loaded at once.
    most: usize,
    looking: HashMap<u64, Iterator>,
    next: u64,
}

impl Grants {
    pub fn new(most: usize) -> Self {
        Self { most, looking: HashMap::new(), next: 0 }
    }

    /// Does what a request says, or refuses it.
    pub fn grant(&mut self, request: &Request) -> (Answer, Vec<OwnedFd>) {
        let failed = |message: String, errno| (Answer::Failed { message, errno }, Vec::new());
        match self.answer(request) {
            Ok(answered) => answered,
            Err(CaptureError::Run(error)) => failed(error.to_string(), error.raw_os_error()),
            Err(error) => failed(error.to_string(), None),
        }
    }

    fn answer(&mut self, request: &Request) -> Result<(Answer, Vec<OwnedFd>), CaptureError> {
        match request {
            Request::Load => {
                if self.looking.len() >= self.most {
                    let most = format!("{} looks go on already, which is as many as may", self.most);
                    return Err(CaptureError::Run(io::Error::other(most)));
                }
                let iterator = Iterator::load()?;
                let tables = iterator.descriptors().map_err(CaptureError::Run)?;
                let number = self.next;
                self.next += 1;
                self.looking.insert(number, iterator);
                Ok((Answer::Loaded(number), tables))
            }
            Request::Look { looking, threads } => {
                let gone = || CaptureError::Run(io::ErrorKind::NotFound.into());
                let iterator = self.looking.get_mut(looking).ok_or_else(gone)?;
                let open: Vec<Option<u32>> =
                    threads.iter().map(|&tid| (!privileged::is_protected_thread(tid)).then_some(tid)).collect();
                iterator.note(&open)?;
                Ok((Answer::Done, Vec::new()))
            }
            Request::Sample { tid } => {
                if privileged::is_protected_thread(*tid) {
                    return Err(CaptureError::Run(io::ErrorKind::PermissionDenied.into()));
                }
                let event = sample::switched_off(*tid).map_err(CaptureError::Run)?;
                Ok((Answer::Done, vec![event]))
            }
            Request::Release { looking } => {
                self.looking.remove(looking);
                Ok((Answer::Done, Vec::new()))
            }
        }
    }
}
