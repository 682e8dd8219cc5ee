//! Asking the node service: the client's end of HTTP over its socket.

use std::{
    error::Error,
    io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use http_body_util::{BodyExt as _, Empty};
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Body, Bytes, Incoming},
    client::conn::http1,
    header::{ACCEPT, HOST, HeaderValue},
};
use hyper_util::rt::TokioIo;
use mpiprobe_model::RecentCalls;
use mpiprobe_view::Stacks;
use rustix::{
    process::geteuid,
    thread::{CapabilitySet, capabilities},
};
use serde::Deserialize;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::UnixStream,
    time::timeout,
};

/// For the beginning of an answer. Before that, the service may have to look at all processes, or to load programs.
const PATIENCE: Duration = Duration::from_mins(1);
/// No answer takes more, bytes.
const LONGEST: usize = 1 << 29;

/// What is understood.
const ANYTHING: HeaderValue = HeaderValue::from_static("*/*");

/// Why the service has not answered.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    #[error(
        "the service at {} does not answer: {source}\n  `systemctl status mpiprobe` tells whether it runs; --engine ebpf does without it",
        socket.display()
    )]
    Silent { socket: PathBuf, source: io::Error },
    #[error(
        "{} is not the service's: {why}; --engine ebpf does without it, or name another by --socket",
        socket.display()
    )]
    NotTrusted { socket: PathBuf, why: String },
    #[error("{0}")]
    Refused(String),
    /// There is nobody here of what was asked for.
    #[error("{0}")]
    Nobody(String),
    #[error("the service has said something else than JSON of this version ({version}): {reason}", version = env!("CARGO_PKG_VERSION"))]
    Answer { reason: String },
    #[error("the service has ended, or the connection to it")]
    Ended,
}

/// The service of this node.
#[derive(Clone, Debug)]
pub struct Service {
    socket: PathBuf,
}

/// What is said where something has failed.
#[derive(Deserialize)]
struct Failure {
    failed: String,
    #[serde(default)]
    absent: bool,
}

/// What a line of an observation, or of a look, says besides a profile or what was found.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Head {
    pub(crate) observation: Option<u64>,
    pub(crate) version: Option<String>,
    pub(crate) said: Option<String>,
    pub(crate) failed: Option<String>,
    /// Why it has failed: there is nobody here.
    pub(crate) absent: bool,
    pub(crate) ended: Option<bool>,
    pub(crate) begun: Option<bool>,
    /// It is a profile.
    pub(crate) schema: Option<String>,
    /// The next part of a trace.
    pub(crate) trace: Option<String>,
    /// What a view has asked for.
    pub(crate) stacks: Option<Stacks>,
    /// By process.
    pub(crate) recent: Option<Vec<(u32, RecentCalls)>>,
    pub(crate) calls: Option<String>,
    pub(crate) no_calls: Option<String>,
}

impl Head {
    pub(crate) fn of(line: &[u8]) -> Result<Self, AskError> {
        serde_json::from_slice(line).map_err(|error| AskError::Answer { reason: error.to_string() })
    }
}

impl AskError {
    /// Why the service does not do it; `is_absent`: there is nobody to do it with.
    pub(crate) fn failed(why: String, is_absent: bool) -> Self {
        if is_absent { Self::Nobody(why) } else { Self::Refused(why) }
    }

    /// Whether there is simply nobody here.
    pub(crate) fn is_absence(&self) -> bool {
        matches!(self, Self::Nobody(_))
    }
}

impl Service {
    /// The one that listens there, if somebody does who may be trusted to be it.
    pub fn at(socket: &Path) -> Result<Self, AskError> {
        let silent = |source| AskError::Silent { socket: socket.into(), source };
        let folder = socket.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        for place in [folder, socket] {
            let state = place.metadata().map_err(silent)?;
            let is_ours = state.uid() == 0 || state.uid() == geteuid().as_raw();
            let others_may_replace = place == folder && state.mode() & 0o022 != 0 && state.mode() & 0o1000 == 0;
            if !is_ours || others_may_replace {
                let (owner, shown) = (state.uid(), place.display());
                let why = if is_ours {
                    format!("{shown} can be written by others")
                } else {
                    format!("{shown} belongs to user {owner}")
                };
                return Err(AskError::NotTrusted { socket: socket.into(), why });
            }
        }
        Ok(Self { socket: socket.into() })
    }

    /// Whether there is a socket at all.
    pub fn is_there(socket: &Path) -> bool {
        socket.symlink_metadata().is_ok()
    }

    /// What the service answers to a request, whole.
    pub async fn get(&self, path: &str) -> Result<Bytes, AskError> {
        self.get_as(path, ANYTHING).await
    }

    /// The same, as a media type that it may have.
    pub async fn get_as(&self, path: &str, accepted: HeaderValue) -> Result<Bytes, AskError> {
        let mut lines = self.ask(Method::GET, path, accepted).await?;
        let mut all = Vec::new();
        while let Some(chunk) = lines.chunk().await? {
            all.extend_from_slice(&chunk);
        }
        Ok(all.into())
    }

    /// Tells an observation what is wished: `stacks`, `calls`, …
    pub async fn wish(&self, observation: u64, what: &str) -> Result<(), AskError> {
        self.ask(Method::POST, &format!("/v1/observations/{observation}/{what}"), ANYTHING).await.map(drop)
    }

    /// Has an observation end. Its last lines come as they would have without.
    pub async fn end(&self, observation: u64) -> Result<(), AskError> {
        match self.wish(observation, "end").await {
            // It has ended by itself meanwhile.
            Err(AskError::Refused(_)) => Ok(()),
            asked => asked,
        }
    }

    /// An answer that comes line by line.
    pub async fn lines(&self, path: &str) -> Result<Lines, AskError> {
        self.ask(Method::GET, path, ANYTHING).await
    }

    async fn ask(&self, method: Method, path: &str, accepted: HeaderValue) -> Result<Lines, AskError> {
        let silent = |source| AskError::Silent { socket: self.socket.clone(), source };
        let late = || silent(io::ErrorKind::TimedOut.into());
        let stream = UnixStream::connect(&self.socket).await.map_err(silent)?;
        let failed = |error: hyper::Error| silent(io::Error::other(error));
        let request = Request::builder().method(method).uri(path).header(HOST, "mpiprobe").header(ACCEPT, accepted);
        let request = request.body(Empty::<Bytes>::new());
        let request = request.map_err(|error| silent(io::Error::other(error)))?;
        let asked = timeout(PATIENCE, ask(stream, request)).await;
        let (answer, connection) = asked.map_err(|_| late())?.map_err(failed)?;
        let (status, mut lines) =
            (answer.status(), Lines { body: answer.into_body(), _connection: connection, waiting: Vec::new() });
        if status == StatusCode::OK {
            return Ok(lines);
        }
        let said = timeout(PATIENCE, lines.next()).await.map_err(|_| late())??.unwrap_or_default();
        let unknown = |_| Failure { failed: status.to_string(), absent: false };
        let Failure { failed, absent } = serde_json::from_slice(&said).unwrap_or_else(unknown);
        Err(AskError::failed(failed, absent))
    }
}

/// Asks over a connection. The answer comes for as long as what is given with it lives.
pub(crate) async fn ask<B>(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<B>,
) -> Result<(Response<Incoming>, Connection<B>), hyper::Error>
where
    B: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
{
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // It is the other end's part to say what goes wrong.
    let mut connection = Connection { sender, task: tokio::spawn(async move { drop(connection.await) }) };
    let answer = connection.sender.send_request(request).await?;
    Ok((answer, connection))
}

/// A connection, which ends when this is dropped, also where nobody waits for an answer any more.
#[derive(Debug)]
pub(crate) struct Connection<B> {
    /// As long as it lives, the connection does.
    sender: http1::SendRequest<B>,
    task: tokio::task::JoinHandle<()>,
}

impl<B> Drop for Connection<B> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Lines of an answer.
#[derive(Debug)]
pub struct Lines {
    body: Incoming,
    _connection: Connection<Empty<Bytes>>,
    waiting: Vec<u8>,
}

impl Lines {
    async fn chunk(&mut self) -> Result<Option<Bytes>, AskError> {
        loop {
            match self.body.frame().await {
                None => return Ok(None),
                Some(Err(_)) => return Err(AskError::Ended),
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        return Ok(Some(data));
                    }
                }
            }
        }
    }

    /// The next line, without its end; `None`: there is none. The wait may be given up, and nothing is lost by that.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>, AskError> {
        let mut searched = 0;
        loop {
            let found = memchr::memchr(b'\n', self.waiting.get(searched..).unwrap_or_default());
            if let Some(end) = found.map(|end| searched + end) {
                let rest = self.waiting.split_off(end + 1);
                let mut line = std::mem::replace(&mut self.waiting, rest);
                line.pop();
                return Ok(Some(line));
            }
            searched = self.waiting.len();
            if searched > LONGEST {
                return Err(AskError::Answer { reason: "a line that does not end".into() });
            }
            match self.chunk().await? {
                Some(chunk) => self.waiting.extend_from_slice(&chunk),
                None if self.waiting.is_empty() => return Ok(None),
                None => return Err(AskError::Ended),
            }
        }
    }
}

/// The service, if it is named, or there at its usual place for those who cannot do without.
pub(crate) fn service_for(named: Option<&Path>, usual: &Path) -> Result<Option<Service>, AskError> {
    let is_asked = named.is_some() || (!can_attach_itself() && Service::is_there(usual));
    is_asked.then(|| Service::at(named.unwrap_or(usual))).transpose()
}

/// Whether this process may load programs and attach them by rights of its own.
pub fn can_attach_itself() -> bool {
    let held = capabilities(None).map_or(CapabilitySet::empty(), |held| held.effective);
    held.contains(CapabilitySet::SYS_ADMIN) || held.contains(CapabilitySet::BPF | CapabilitySet::PERFMON)
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::UnixListener,
    };

    use super::*;

    /// What comes of asking somebody to end an observation who answers like this.
    async fn asked_to_end(answer: &'static str) -> Result<(), AskError> {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("socket");
        let listener = UnixListener::bind(&socket).unwrap();
        let answering = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 1024];
            let length = stream.read(&mut request).await.unwrap();
            stream.write_all(answer.as_bytes()).await.unwrap();
            String::from_utf8_lossy(&request[..length]).into_owned()
        });
        let ended = Service::at(&socket).unwrap().end(7).await;
        assert!(answering.await.unwrap().starts_with("POST /v1/observations/7/end HTTP/1.1\r\n"));
        ended
    }

    #[test]
    fn an_observation_that_has_ended_already_needs_no_end() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let done = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{}\n";
            let gone = "HTTP/1.1 404 Not Found\r\nContent-Length: 28\r\n\r\n{\"failed\": \"no such there\"}\n";
            assert!(asked_to_end(done).await.is_ok());
            assert!(asked_to_end(gone).await.is_ok());
            assert!(matches!(asked_to_end("").await, Err(AskError::Silent { .. })));
        });
    }
}
