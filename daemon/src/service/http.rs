//! HTTP/1.1 over a unix socket: JSON, or a stream of it line by line.
//!
//! Whoever connects may send anything, or nothing, or never read. Each connection has limits of its own, and each user of all of its
//! connections; what a client may see is decided once, when it connects ([`Client`]).

use std::{
    collections::{HashMap, VecDeque},
    convert::Infallible,
    io,
    os::fd::AsFd as _,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::{Duration, Instant, SystemTime},
};

use http_body_util::{Either, Full};
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Body, Bytes, Frame, Incoming},
    header::{ACCEPT, ALLOW, CONTENT_TYPE, HeaderValue},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use mpiprobe_discover::{Caller, ProcRoot, Scanner};
use mpiprobe_plan::ImplementationRecogniser;
use mpiprobe_report::present::JobList;
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;
use tokio::{
    net::{UnixListener, UnixStream},
    sync::Semaphore,
};

use super::{
    client::Client,
    configuration::Configuration,
    jobs::{self, Board, Format, OfService},
    link::Surroundings,
    watched::{Line, Refused, Watched, Watching, line},
};
use crate::{hang, memory::give_back_memory, session::Options, viewed};

/// For a request's head. Whoever takes longer is not served.
const HEAD_PATIENCE: Duration = Duration::from_secs(10);
/// What may be waiting of a connection, bytes.
const BUFFER: usize = 64 << 10;
/// Connections of all users.
const MOST_CONNECTIONS: u32 = 512;
/// A list of jobs is as good as new for so long.
const LIST_AGE: Duration = Duration::from_secs(1);
/// Callers whose lists are remembered.
const MOST_LISTS: usize = 64;
/// Looks at stacks at once, of all users.
const MOST_LOOKS: usize = 4;

/// Turns what a client has asked for, in the words of the command line, into what is done.
#[derive(Clone, Copy, Debug)]
pub struct Parse {
    pub observation: fn(Vec<String>) -> Result<Options, String>,
    pub trace: fn(Vec<String>) -> Result<Options, String>,
    pub hang: fn(Vec<String>) -> Result<hang::Asked, String>,
}

type Answer = Response<Either<Full<Bytes>, Stream>>;

/// All that connections share.
#[derive(Debug)]
pub(super) struct Service {
    pub(super) settings: Arc<Mutex<Settings>>,
    /// What is observed unasked.
    pub(super) board: Arc<Board>,
    parse: Parse,
    connections: Mutex<HashMap<u32, u32>>,
    lists: Mutex<HashMap<Key, (Instant, Bytes)>>,
    watched: Arc<Watched>,
    looks: Arc<Semaphore>,
    refusals: Mutex<HashMap<u32, u64>>,
    began: Instant,
    /// The same by the clock of the day.
    began_at: SystemTime,
}

/// What may change while it runs.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) configuration: Configuration,
    pub(super) surroundings: Surroundings,
}

/// Who sees the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key(Option<(u32, u32, u64, Option<u64>)>);

impl Key {
    fn of(caller: &Caller) -> Self {
        Self(caller.within.map(|within| (caller.user, caller.group, within.user, within.pid)))
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Service {
    pub(super) fn new(settings: Settings, parse: Parse) -> Arc<Self> {
        Arc::new(Self {
            settings: Arc::new(Mutex::new(settings)),
            board: Arc::default(),
            parse,
            connections: Mutex::default(),
            lists: Mutex::default(),
            watched: Arc::default(),
            looks: Arc::new(Semaphore::new(MOST_LOOKS)),
            refusals: Mutex::default(),
            began: Instant::now(),
            began_at: SystemTime::now(),
        })
    }

    /// Serves whoever connects, for ever.
    pub(super) async fn listen(self: Arc<Self>, listener: UnixListener) -> io::Error {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => self.accept(stream),
                // Of one who has gone already, or for want of descriptors for a moment.
                Err(error) => {
                    tracing::warn!("a client could not be let in: {error}");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }

    fn accept(self: &Arc<Self>, stream: UnixStream) {
        let Ok(credentials) = stream.peer_cred() else { return };
        let Some(connection) = self.connection(credentials.uid()) else {
            // Before anything is read: it costs nothing more.
            return self.note_refusal(credentials.uid());
        };
        let service = Arc::clone(self);
        tokio::spawn(async move {
            let surroundings = locked(&service.settings).surroundings.clone();
            let client = Client::of(stream.as_fd(), &surroundings).map_err(|error| error.to_string());
            let client = Arc::new(client);
            let answered = service_fn(move |request| {
                let (service, client) = (Arc::clone(&service), Arc::clone(&client));
                async move { Ok::<_, Infallible>(service.answer(&request, (*client).as_ref()).await) }
            });
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(HEAD_PATIENCE).max_buf_size(BUFFER);
            // What a client does wrong is its own matter.
            let served = http.serve_connection(TokioIo::new(stream), answered).await;
            if let Err(error) = served {
                tracing::debug!("a connection ended: {error}");
            }
            drop(connection);
        });
    }

    /// `None`: the user has as many as may be.
    fn connection(self: &Arc<Self>, user: u32) -> Option<Connection> {
        let most = locked(&self.settings).configuration.quota.connections;
        let mut connections = locked(&self.connections);
        let all: u32 = connections.values().sum();
        let own = connections.entry(user).or_default();
        if *own >= most || all >= MOST_CONNECTIONS {
            return None;
        }
        *own += 1;
        Some(Connection { service: Arc::clone(self), user })
    }

    fn note_refusal(&self, user: u32) {
        *locked(&self.refusals).entry(user).or_default() += 1;
    }

    async fn answer(self: &Arc<Self>, request: &Request<Incoming>, client: Result<&Client, &String>) -> Answer {
        let client = match client {
            Ok(client) => client,
            Err(why) => return failed(StatusCode::FORBIDDEN, why),
        };
        let words = || words_of_query(request.uri().query().unwrap_or_default());
        let path: Vec<&str> = request.uri().path().split('/').skip(1).collect();
        match (request.method(), path.as_slice()) {
            (&Method::GET, ["v1", "jobs"]) => self.jobs(client).await,
            (&Method::GET, ["v1", "service"]) => self.own_state(client),
            (&Method::GET, ["metrics"]) if client.sees_all() => {
                let format = Format::accepted(request.headers().get_all(ACCEPT).iter().map(HeaderValue::as_bytes));
                let mut answer = whole(StatusCode::OK, self.metrics(format));
                answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(format.content_type()));
                answer
            }
            (&Method::GET, ["metrics"]) => failed(
                StatusCode::FORBIDDEN,
                "metrics are of all jobs, and you may not see all; the administrator can name a port for them ([metrics] in docs/service.md)",
            ),
            (&Method::GET, ["v1", "observe"]) => match (self.parse.observation)(words()) {
                Ok(options) => self.observe(client, options, false).await,
                Err(why) => failed(StatusCode::BAD_REQUEST, &why),
            },
            (&Method::GET, ["v1", "trace"]) => match (self.parse.trace)(words()) {
                Ok(options) => self.observe(client, options, true).await,
                Err(why) => failed(StatusCode::BAD_REQUEST, &why),
            },
            (&Method::GET, ["v1", "hang"]) => match (self.parse.hang)(words()) {
                Ok(asked) => self.hang(client, asked).await,
                Err(why) => failed(StatusCode::BAD_REQUEST, &why),
            },
            (&Method::GET, ["v1", "look"]) => match (self.parse.hang)(words()) {
                Ok(asked) => self.look(client, asked).await,
                Err(why) => failed(StatusCode::BAD_REQUEST, &why),
            },
            (&Method::POST, ["v1", "observations", number, what]) if let Some(asked) = viewed::asked(what) => {
                let is_there = number.parse().is_ok_and(|number| self.watched.ask(Some(client), number, asked));
                if is_there {
                    json(&json!({}))
                } else {
                    failed(StatusCode::NOT_FOUND, "there is no such observation of yours")
                }
            }
            (_, ["metrics"] | ["v1", "jobs" | "service" | "observe" | "trace" | "hang" | "look"]) => not_allowed("GET"),
            (_, ["v1", "observations", _, what]) if viewed::asked(what).is_some() => not_allowed("POST"),
            _ => failed(
                StatusCode::NOT_FOUND,
                "there is /v1/jobs, /v1/service, /v1/observe, /v1/trace, /v1/hang, /v1/look and /metrics; see docs/service.md",
            ),
        }
    }

    async fn jobs(self: &Arc<Self>, client: &Client) -> Answer {
        let key = Key::of(&client.caller);
        if let Some((at, list)) = locked(&self.lists).get(&key)
            && at.elapsed() < LIST_AGE
        {
            return whole(StatusCode::OK, list.clone());
        }
        let (service, caller) = (Arc::clone(self), client.caller);
        let listed = tokio::task::spawn_blocking(move || -> Result<Bytes, String> {
            // One at a time: others who see the same have it from the first one.
            let mut lists = locked(&service.lists);
            if let Some((at, list)) = lists.get(&key)
                && at.elapsed() < LIST_AGE
            {
                return Ok(list.clone());
            }
            let root = ProcRoot::system().map_err(|error| error.to_string())?;
            let mut scanner = Scanner::new(root, caller, ImplementationRecogniser::default());
            let mut snapshot = scanner.scan().map_err(|error| error.to_string())?;
            if !caller.may_trace_all {
                // How many processes others have is none of its business.
                (snapshot.refused, snapshot.examined) = (0, 0);
            }
            let list = line(&JobList::new(&snapshot));
            if lists.len() >= MOST_LISTS {
                lists.retain(|_, (at, _)| at.elapsed() < LIST_AGE);
                if lists.len() >= MOST_LISTS {
                    lists.clear();
                }
            }
            lists.insert(key, (Instant::now(), list.clone()));
            Ok(list)
        });
        match listed.await {
            Ok(Ok(list)) => whole(StatusCode::OK, list),
            Ok(Err(error)) => failed(StatusCode::INTERNAL_SERVER_ERROR, &error),
            Err(error) => failed(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
        }
    }

    /// What the service is, and what of it is the client's.
    fn own_state(&self, client: &Client) -> Answer {
        let (user, quota) = (client.caller.user, locked(&self.settings).configuration.quota);
        let (observations, bytes) = self.watched.usage(user);
        let refusals = locked(&self.refusals).get(&user).copied().unwrap_or(0);
        let Settings { configuration, surroundings } = locked(&self.settings).clone();
        let is_observed = configuration.jobs.observe;
        let unasked = client.sees_all().then(|| {
            let failed: Vec<_> =
                self.board.failures().into_iter().map(|(job, why)| json!({ "job": job, "why": why })).collect();
            json!({ "set": configuration.jobs, "observed": self.board.running(), "failed": failed })
        });
        json(&json!({
            "schema": "mpiprobe.service/1",
            "version": env!("CARGO_PKG_VERSION"),
            "running_s": self.began.elapsed().as_secs(),
            "you": {
                "user": user,
                "sees_all": client.sees_all(),
                "observations": observations,
                "table_bytes": bytes,
                "refused": refusals,
            },
            "quota": quota,
            "jobs_observed": is_observed,
            "jobs": unasked,
            "metrics": surroundings.metrics,
        }))
    }

    /// What monitoring is told.
    pub(super) fn metrics(&self, format: Format) -> Bytes {
        let with_user = locked(&self.settings).configuration.metrics.user;
        let (observations, table_bytes) = self.watched.usage_of_all();
        let processor = clock_gettime(ClockId::ProcessCPUTime);
        let of_service = OfService {
            observations,
            table_bytes,
            refusals: locked(&self.refusals).values().sum(),
            cpu_seconds: processor.tv_sec as f64 + processor.tv_nsec as f64 / 1e9,
            uptime_seconds: self.began.elapsed().as_secs_f64(),
            began: self.began_at,
        };
        jobs::exposition(&self.board, &of_service, with_user, format).into()
    }

    /// `gives_trace`: the client has the trace that is recorded, too.
    async fn observe(&self, client: &Client, options: Options, gives_trace: bool) -> Answer {
        let quota = locked(&self.settings).configuration.quota;
        self.stream(client, self.watched.observe(client, options, gives_trace, quota)).await
    }

    /// What a look finds, for a client that puts it together with what was found on other nodes.
    async fn look(&self, client: &Client, asked: hang::Asked) -> Answer {
        let quota = locked(&self.settings).configuration.quota;
        match Arc::clone(&self.looks).try_acquire_owned() {
            Ok(turn) => self.stream(client, self.watched.look(client, asked, quota, turn)).await,
            Err(_) => self.no_turn(client),
        }
    }

    async fn stream(&self, client: &Client, begun: Result<Watching, Refused>) -> Answer {
        let mut watching = match begun {
            Ok(watching) => watching,
            Err(refused) => {
                self.note_refusal(client.caller.user);
                return failed(StatusCode::TOO_MANY_REQUESTS, &refused.to_string());
            }
        };
        let head = json!({ "observation": watching.number, "version": env!("CARGO_PKG_VERSION") });
        let mut first = VecDeque::from([line(&head)]);
        // Whether it comes to anything is known before the answer begins.
        while let Some(said) = watching.lines.recv().await {
            match said {
                Line::Said(said) => first.push_back(said),
                Line::Failed(why) => return whole(StatusCode::UNPROCESSABLE_ENTITY, why),
                Line::Begun(begun) => {
                    first.push_back(begun);
                    break;
                }
            }
        }
        let mut answer = Response::new(Either::Right(Stream { first, watching }));
        answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"));
        answer
    }

    fn no_turn(&self, client: &Client) -> Answer {
        self.note_refusal(client.caller.user);
        failed(StatusCode::TOO_MANY_REQUESTS, "others look at stacks already; try again in a second")
    }

    async fn hang(&self, client: &Client, asked: hang::Asked) -> Answer {
        let Ok(_turn) = self.looks.try_acquire() else { return self.no_turn(client) };
        let caller = client.caller;
        let looked = tokio::task::spawn_blocking(move || {
            let explained = hang::explain_for(&asked, caller).map_err(|error| error.to_string())?;
            let shown = hang::Shown::of(&explained, asked.form).map_err(|error| error.to_string());
            drop(explained);
            give_back_memory();
            shown
        });
        match looked.await {
            Ok(Ok(shown)) => json(&shown),
            Ok(Err(error)) => failed(StatusCode::UNPROCESSABLE_ENTITY, &error),
            Err(error) => failed(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
        }
    }
}

/// One of a user's connections.
struct Connection {
    service: Arc<Service>,
    user: u32,
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut connections = locked(&self.service.connections);
        if let Some(own) = connections.get_mut(&self.user) {
            *own -= 1;
            if *own == 0 {
                connections.remove(&self.user);
            }
        }
    }
}

/// Lines as they come. When nobody wants them any more, the observation ends.
#[derive(Debug)]
pub(super) struct Stream {
    first: VecDeque<Bytes>,
    watching: Watching,
}

impl Body for Stream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(first) = self.first.pop_front() {
            return Poll::Ready(Some(Ok(Frame::data(first))));
        }
        self.watching.lines.poll_recv(context).map(|line| line.map(|line| Ok(Frame::data(line.into_bytes()))))
    }
}

/// `?pid-of=ring&traffic` as what would be typed.
pub(crate) fn words_of_query(query: &str) -> Vec<String> {
    let pairs = form_urlencoded::parse(query.as_bytes());
    pairs
        .map(|(name, value)| if value.is_empty() { format!("--{name}") } else { format!("--{name}={value}") })
        .collect()
}

fn json(value: &impl serde::Serialize) -> Answer {
    whole(StatusCode::OK, line(value))
}

fn failed(status: StatusCode, why: &str) -> Answer {
    whole(status, line(&json!({ "failed": why })))
}

fn not_allowed(method: &'static str) -> Answer {
    let mut answer = failed(StatusCode::METHOD_NOT_ALLOWED, &format!("this can be asked for by {method} only"));
    answer.headers_mut().insert(ALLOW, HeaderValue::from_static(method));
    answer
}

fn whole(status: StatusCode, content: Bytes) -> Answer {
    let mut answer = Response::new(Either::Left(Full::new(content)));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}
