//! How the worker asks the supervisor: packets over a pair of sockets for files of processes, and over another one for programs and
//! tables, which take longer. A packet is JSON, and behind a zero what else there is.

use std::{
    io,
    net::SocketAddr,
    os::fd::{AsFd as _, BorrowedFd, OwnedFd},
    sync::{Arc, Mutex, PoisonError},
};

use mpiprobe_attach::apart as kernel;
use mpiprobe_discover::{
    packet::{self, MOST_BYTES},
    privileged,
};
use mpiprobe_stacks::apart as stacks;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::configuration::Configuration;

/// One question.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Question {
    Process(privileged::Request),
    Kernel(kernel::Request),
    Stacks(stacks::Request),
}

/// Its answer.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Reply {
    /// What was read is behind it.
    Process,
    Kernel(kernel::Answer),
    Stacks(stacks::Answer),
    /// What the system has said.
    Failed {
        errno: Option<i32>,
    },
}

/// What the supervisor tells the worker.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Order {
    /// With the socket that clients come to, that for files, that for programs and, if there is one, that for monitoring. Behind it is
    /// what `/etc/passwd` says.
    Begin { configuration: Box<Configuration>, surroundings: Surroundings },
    /// Other settings from now on, and as before what `/etc/passwd` says. With another socket for monitoring, if that has changed.
    Change { configuration: Box<Configuration>, surroundings: Surroundings },
}

/// What the worker cannot find out by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Surroundings {
    /// Numbers of the inodes of its user and pid namespace.
    pub(super) user_namespace: u64,
    pub(super) pid_namespace: u64,
    /// The number of the group whose members see all.
    pub(super) admin_group: Option<u32>,
    pub(super) metrics: Port,
}

/// Where monitoring may ask.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Port {
    /// `None`: nowhere.
    pub(super) address: Option<SocketAddr>,
    /// Why it cannot where it should.
    pub(super) problem: Option<String>,
}

/// What the worker tells the supervisor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Word {
    /// It serves.
    Ready,
    /// It still does.
    Alive,
    /// What is to be kept of a job that has ended: one line.
    Ended(String),
    /// The same as a file of a name. What is in it is behind this.
    Table(String),
}

pub(super) fn send(
    socket: BorrowedFd<'_>,
    message: &impl Serialize,
    content: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let mut bytes = serde_json::to_vec(message)?;
    if !content.is_empty() {
        bytes.push(0);
        bytes.extend_from_slice(content);
    }
    packet::send(socket, &bytes, descriptors, true)
}

/// A message, what else was in its packet, and what came with it.
pub(super) type Received<M> = (M, Vec<u8>, Vec<OwnedFd>);

/// Waits for the next message; `None`: there will be none.
pub(super) fn receive<M: DeserializeOwned>(socket: BorrowedFd<'_>) -> io::Result<Option<Received<M>>> {
    let mut buffer = vec![0; MOST_BYTES];
    let Some((length, descriptors)) = packet::receive(socket, &mut buffer)? else { return Ok(None) };
    buffer.truncate(length);
    let end = memchr::memchr(0, &buffer).unwrap_or(length);
    let message = serde_json::from_slice(buffer.get(..end).unwrap_or_default())?;
    let content = buffer.get(end + 1..).unwrap_or_default().to_vec();
    Ok(Some((message, content, descriptors)))
}

/// One of the two connections, at the worker's end.
#[derive(Clone, Debug)]
pub(super) struct Link(Arc<Mutex<OwnedFd>>);

impl Link {
    pub(super) fn new(socket: OwnedFd) -> Self {
        Self(Arc::new(Mutex::new(socket)))
    }

    fn ask(&self, question: &Question, descriptors: &[BorrowedFd<'_>]) -> io::Result<Received<Reply>> {
        let socket = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        send(socket.as_fd(), question, &[], descriptors)?;
        match receive(socket.as_fd())? {
            Some((Reply::Failed { errno: Some(errno) }, ..)) => Err(io::Error::from_raw_os_error(errno)),
            Some((Reply::Failed { errno: None }, ..)) => Err(io::ErrorKind::PermissionDenied.into()),
            Some(answered) => Ok(answered),
            None => Err(io::ErrorKind::ConnectionAborted.into()),
        }
    }
}

fn unexpected() -> io::Error {
    io::ErrorKind::InvalidData.into()
}

impl privileged::AskFor for Link {
    fn ask(&self, request: &privileged::Request, directory: Option<BorrowedFd<'_>>) -> io::Result<privileged::Granted> {
        match self.ask(&Question::Process(request.clone()), directory.as_slice())? {
            (Reply::Process, content, descriptors) => {
                Ok(privileged::Granted { content, descriptor: descriptors.into_iter().next() })
            }
            _ => Err(unexpected()),
        }
    }
}

impl kernel::AskFor for Link {
    fn ask(
        &self,
        request: &kernel::Request,
        descriptors: &[BorrowedFd<'_>],
    ) -> io::Result<(kernel::Answer, Vec<OwnedFd>)> {
        match self.ask(&Question::Kernel(request.clone()), descriptors)? {
            (Reply::Kernel(answer), _, descriptors) => Ok((answer, descriptors)),
            _ => Err(unexpected()),
        }
    }
}

impl stacks::AskFor for Link {
    fn ask(
        &self,
        request: &stacks::Request,
        descriptors: &[BorrowedFd<'_>],
    ) -> io::Result<(stacks::Answer, Vec<OwnedFd>)> {
        match self.ask(&Question::Stacks(request.clone()), descriptors)? {
            (Reply::Stacks(answer), _, descriptors) => Ok((answer, descriptors)),
            _ => Err(unexpected()),
        }
    }
}
