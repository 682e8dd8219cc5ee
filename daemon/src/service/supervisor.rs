//! The half of the service that has the rights: it listens, starts the worker, answers it, and starts it again when it ends.

use std::{
    collections::VecDeque,
    io,
    net::{SocketAddr, TcpListener},
    os::{
        fd::{AsFd as _, BorrowedFd, OwnedFd},
        unix::{
            fs::{DirBuilderExt as _, FileTypeExt as _, MetadataExt as _, PermissionsExt as _},
            net::{UnixListener, UnixStream},
            process::CommandExt as _,
        },
    },
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

use listenfd::ListenFd;
use mpiprobe_attach::Limits;
use mpiprobe_discover::packet;
use mpiprobe_report::present::say;
use sd_notify::NotifyState;
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    iterator::Signals,
};

use super::{
    configuration::Configuration,
    error::ServiceError,
    grants,
    link::{Order, Port, Surroundings, Word, receive, send},
    rights,
    summaries::{Content, Summaries},
    worker::{NAME, SIGN_OF_LIFE},
};
use crate::memory::keep_little_memory;

/// A worker that gives no sign of life for so long is ended.
const SILENCE: Duration = SIGN_OF_LIFE.saturating_mul(12);
/// So many ends within this time are not for want of luck.
const ENDS: (usize, Duration) = (5, Duration::from_mins(1));
/// Observations at once, of all users.
const MOST_OBSERVATIONS: usize = 64;
/// At the end, for what the worker has said last, and for summaries to be written.
const ENDING: Duration = Duration::from_secs(5);
/// For the worker to close a port.
const CLOSING: Duration = Duration::from_secs(2);
/// What of `/etc/passwd` a packet has room for, bytes: whoever is behind that is shown as a number.
const MOST_OF_USERS: usize = 96 << 10;

/// Runs the service until it is told to end. There must be no other thread yet.
pub fn run(path: &Path, is_usual: bool, socket: Option<&Path>) -> Result<(), ServiceError> {
    keep_little_memory();
    let read = || {
        let configuration = if is_usual { Configuration::read_usual(path) } else { Configuration::read(path) }?;
        Ok(Configuration { socket: socket.map_or(configuration.socket, PathBuf::from), ..configuration })
    };
    let configuration: Configuration = read()?;
    rights::check()?;
    let (listener, mut monitoring) = listeners(&configuration)?;
    let surroundings = surroundings(&configuration, monitoring.port.clone())?;
    rights::keep_needed(&configuration.user)?;
    let mut supervisor = Supervisor::new(listener, configuration, surroundings)?;
    supervisor.monitoring = monitoring.socket.take();
    supervisor.start()?;
    loop {
        match supervisor.event()? {
            Event::Signal(SIGHUP) => match read() {
                Ok(changed) => {
                    supervisor.surroundings.admin_group = admin_group(&changed)?;
                    let address = changed.metrics.address;
                    supervisor.change(changed);
                    let is_other = address != monitoring.asked || monitoring.port.problem.is_some();
                    if !monitoring.is_given && is_other {
                        monitoring = supervisor.listen_elsewhere(address);
                    }
                    say("the service has read its configuration again");
                }
                Err(error) => say(format_args!("{error}; what was set before stays")),
            },
            Event::Signal(_) => {
                let _ = sd_notify::notify(&[NotifyState::Stopping]);
                supervisor.end();
                return Ok(());
            }
            Event::Word(generation, word, content) => supervisor.take(generation, word, content),
            Event::Ended(generation) => supervisor.worker_has_ended(generation)?,
            Event::Silence => supervisor.end_silent(),
        }
    }
}

/// Something that has happened.
enum Event {
    Signal(i32),
    /// Said by the worker of a generation, with what was behind it.
    Word(u64, Word, Vec<u8>),
    /// It says nothing more.
    Ended(u64),
    Silence,
}

struct Supervisor {
    listener: OwnedFd,
    /// Where monitoring asks.
    monitoring: Option<OwnedFd>,
    configuration: Configuration,
    surroundings: Surroundings,
    summaries: Summaries,
    worker: Option<Worker>,
    generation: u64,
    /// When workers have ended, the latest last.
    ends: VecDeque<Instant>,
    events: mpsc::Receiver<Event>,
    to: mpsc::Sender<Event>,
}

struct Worker {
    child: Child,
    orders: OwnedFd,
    heard: Instant,
}

impl Supervisor {
    fn new(listener: OwnedFd, configuration: Configuration, surroundings: Surroundings) -> Result<Self, ServiceError> {
        let (to, events) = mpsc::channel();
        let mut signals =
            Signals::new([SIGHUP, SIGINT, SIGTERM]).map_err(ServiceError::system("cannot wait for signals"))?;
        let signalled = to.clone();
        let thread = thread::Builder::new().name("signals".into()).spawn(move || {
            for signal in &mut signals {
                if signalled.send(Event::Signal(signal)).is_err() {
                    return;
                }
            }
        });
        thread.map_err(ServiceError::system("cannot wait for signals"))?;
        let (worker, ends) = (None, VecDeque::new());
        let monitoring = None;
        let summaries = Summaries::begin().map_err(ServiceError::system("cannot begin to write summaries"))?;
        Ok(Self {
            listener,
            monitoring,
            configuration,
            surroundings,
            summaries,
            worker,
            generation: 0,
            ends,
            events,
            to,
        })
    }

    fn event(&self) -> Result<Event, ServiceError> {
        let heard = self.worker.as_ref().map_or_else(Instant::now, |worker| worker.heard);
        let left = SILENCE.saturating_sub(heard.elapsed());
        match self.events.recv_timeout(left) {
            Ok(event) => Ok(event),
            Err(RecvTimeoutError::Timeout) => Ok(Event::Silence),
            Err(RecvTimeoutError::Disconnected) => {
                Err(ServiceError::System { what: "nothing more can happen", source: io::ErrorKind::BrokenPipe.into() })
            }
        }
    }

    /// Starts a worker, with connections of its own.
    fn start(&mut self) -> Result<(), ServiceError> {
        let failed = || ServiceError::system("cannot start the worker of the service");
        let (orders, theirs) = packet::pair().map_err(failed())?;
        let (files, their_files) = packet::pair().map_err(failed())?;
        let (programs, their_programs) = packet::pair().map_err(failed())?;
        let child = Command::new("/proc/self/exe")
            .arg0(NAME)
            .env_clear()
            .envs(std::env::var_os("RUST_LOG").map(|value| ("RUST_LOG", value)))
            .current_dir("/")
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            .spawn()
            .map_err(failed())?;
        let Configuration { quota, jobs, .. } = &self.configuration;
        let limits = Limits {
            engines: MOST_OBSERVATIONS.saturating_add(jobs.most as usize),
            bytes: quota.tables_of_all.saturating_add(jobs.tables),
        };
        grants::serve(files, limits).and_then(|()| grants::serve(programs, limits)).map_err(failed())?;
        self.generation += 1;
        let (generation, to) = (self.generation, self.to.clone());
        let words = orders.try_clone().map_err(failed())?;
        let listening = move || {
            while let Ok(Some((word, content, _))) = receive::<Word>(words.as_fd()) {
                if to.send(Event::Word(generation, word, content)).is_err() {
                    return;
                }
            }
            let _ = to.send(Event::Ended(generation));
        };
        thread::Builder::new().name("worker".into()).spawn(listening).map_err(failed())?;
        let order = Order::Begin {
            configuration: Box::new(self.configuration.clone()),
            surroundings: self.surroundings.clone(),
        };
        let mut given = vec![self.listener.as_fd(), their_files.as_fd(), their_programs.as_fd()];
        given.extend(self.monitoring.as_ref().map(OwnedFd::as_fd));
        send(orders.as_fd(), &order, &users(), &given).map_err(failed())?;
        self.worker = Some(Worker { child, orders, heard: Instant::now() });
        Ok(())
    }

    fn take(&mut self, generation: u64, word: Word, content: Vec<u8>) {
        let Some(worker) = self.worker.as_mut().filter(|_| generation == self.generation) else { return };
        worker.heard = Instant::now();
        let state = match word {
            Word::Ended(_) | Word::Table(_) => return self.keep(word, content),
            Word::Ready => {
                say(format_args!("the service is ready at {}", self.configuration.socket.display()));
                NotifyState::Ready
            }
            Word::Alive => NotifyState::Watchdog,
        };
        if let Err(error) = sd_notify::notify(&[state]) {
            tracing::warn!("the service manager cannot be told: {error}");
        }
    }

    /// Has the summary of a job written, if that is what was said.
    fn keep(&mut self, word: Word, content: Vec<u8>) {
        let settings = &self.configuration.summaries;
        match word {
            Word::Ended(line) => self.summaries.write(settings.file.as_deref(), settings.mode, Content::Line(line)),
            Word::Table(name) => {
                let table = Content::Table { name, bytes: content };
                self.summaries.write(settings.parquet.as_deref(), settings.mode, table);
            }
            Word::Ready | Word::Alive => {}
        }
    }

    fn change(&mut self, configuration: Configuration) {
        self.configuration = configuration;
        self.tell_change(&[]);
    }

    /// Has monitoring ask elsewhere, or nowhere.
    fn listen_elsewhere(&mut self, address: Option<SocketAddr>) -> Monitoring {
        // The worker closes the present one first: both may be the same port.
        (self.monitoring, self.surroundings.metrics) = (None, Port::default());
        self.tell_change(&[]);
        let began = Instant::now();
        let mut bound = Monitoring::bind(address);
        while bound.port.problem.is_some() && began.elapsed() < CLOSING {
            thread::sleep(Duration::from_millis(50));
            bound = Monitoring::bind(address);
        }
        bound.tell();
        self.surroundings.metrics = bound.port.clone();
        let socket = bound.socket.take();
        self.tell_change(socket.as_ref().map(OwnedFd::as_fd).as_slice());
        self.monitoring = socket;
        bound
    }

    fn tell_change(&self, descriptors: &[BorrowedFd<'_>]) {
        let Some(worker) = &self.worker else { return };
        let order = Order::Change {
            configuration: Box::new(self.configuration.clone()),
            surroundings: self.surroundings.clone(),
        };
        if let Err(error) = send(worker.orders.as_fd(), &order, &users(), descriptors) {
            say(format_args!("the worker of the service cannot be told of its configuration: {error}"));
        }
    }

    /// Takes note of the worker's end, and starts another one, unless that would be of no use.
    fn worker_has_ended(&mut self, generation: u64) -> Result<(), ServiceError> {
        if generation != self.generation {
            return Ok(());
        }
        let Some(mut worker) = self.worker.take() else { return Ok(()) };
        // It has closed its connection, which it does by ending.
        let _ = worker.child.kill();
        let status = worker.child.wait().map_err(ServiceError::system("waiting for the worker of the service"))?;
        let (now, (most, within)) = (Instant::now(), ENDS);
        self.ends.push_back(now);
        self.ends.retain(|end| now.duration_since(*end) < within);
        if self.ends.len() >= most {
            return Err(ServiceError::WorkerEnds { times: most, seconds: within.as_secs(), last: told(status) });
        }
        say(format_args!("the worker of the service has ended with {}, and is started again", told(status)));
        self.start()
    }

    /// Ends a worker that gives no sign of life; that it has ended is noticed as always.
    fn end_silent(&mut self) {
        let Some(worker) = &mut self.worker else { return };
        say(format_args!("the worker of the service has given no sign of life for {} s", SILENCE.as_secs()));
        worker.heard = Instant::now();
        if let Err(error) = worker.child.kill() {
            say(format_args!("it cannot be ended: {error}"));
        }
    }

    /// Ends the worker. What it has said of jobs until then is written.
    fn end(mut self) {
        let Some(mut worker) = self.worker.take() else { return };
        // It holds nothing that must be given back; what it had attached goes with its connections.
        let _ = worker.child.kill();
        let _ = worker.child.wait();
        let began = Instant::now();
        let left = || ENDING.saturating_sub(began.elapsed());
        while let Ok(event) = self.events.recv_timeout(left()) {
            match event {
                Event::Word(generation, word, content) if generation == self.generation => self.keep(word, content),
                Event::Ended(generation) if generation == self.generation => break,
                _ => {}
            }
        }
        if !self.summaries.end(left()) {
            say("summaries of jobs are lost: their file does not answer");
        }
    }
}

fn told(status: ExitStatus) -> String {
    status.to_string()
}

/// The socket that monitoring comes to, and what is told of it.
#[derive(Debug, Default)]
struct Monitoring {
    socket: Option<OwnedFd>,
    port: Port,
    /// What the settings say.
    asked: Option<SocketAddr>,
    /// systemd listens.
    is_given: bool,
}

impl Monitoring {
    /// What cannot be had is said, and done without.
    fn bind(address: Option<SocketAddr>) -> Self {
        let Some(address) = address else { return Self::default() };
        match TcpListener::bind(address).and_then(Self::of) {
            Ok(bound) => Self { asked: Some(address), ..bound },
            Err(error) => {
                let problem = format!(
                    "metrics cannot be had at {address}: {error}; the service goes on without: name another `address` in [metrics], or end \
                     who has this one, and reload or restart it"
                );
                Self { port: Port { address: None, problem: Some(problem) }, asked: Some(address), ..Self::default() }
            }
        }
    }

    fn of(listener: TcpListener) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let port = Port { address: Some(listener.local_addr()?), problem: None };
        Ok(Self { socket: Some(listener.into()), port, ..Self::default() })
    }

    fn tell(&self) {
        if let Some(problem) = &self.port.problem {
            say(problem);
        }
        if let Some(address) = self.port.address {
            say(format_args!("metrics are at http://{address}/metrics"));
            if !self.is_given && has_own_network() {
                say(
                    "the service has a network of its own (PrivateNetwork= in its unit), in which nobody asks: enable \
                     mpiprobe-metrics.socket instead of naming an address",
                );
            }
        }
    }
}

/// Whether the network is another one than that of the system, or of the container.
fn has_own_network() -> bool {
    let network = |process: &str| std::fs::metadata(format!("/proc/{process}/ns/net")).map(|network| network.ino());
    matches!((network("self"), network("1")), (Ok(own), Ok(systems)) if own != systems)
}

/// Where clients come, and where monitoring does: sockets that systemd listens on, or of our own.
fn listeners(configuration: &Configuration) -> Result<(OwnedFd, Monitoring), ServiceError> {
    let mut given = ListenFd::from_env();
    let monitoring = (0..given.len()).find_map(|place| given.take_tcp_listener(place).ok()?);
    let monitoring = match monitoring.map(Monitoring::of) {
        Some(Ok(monitoring)) => Monitoring { is_given: true, ..monitoring },
        Some(Err(error)) => return Err(ServiceError::System { what: "the port for metrics", source: error }),
        None => Monitoring::bind(configuration.metrics.address),
    };
    monitoring.tell();
    if monitoring.port.address.is_some() && !configuration.jobs.observe {
        say("no jobs are observed unasked (`observe` in [jobs]): metrics are of the service alone");
    }
    let clients = (0..given.len()).find_map(|place| given.take_unix_listener(place).ok()?);
    Ok((listener(clients, &configuration.socket)?, monitoring))
}

fn listener(given: Option<UnixListener>, path: &Path) -> Result<OwnedFd, ServiceError> {
    let listen = |source| ServiceError::Listen { path: path.into(), source };
    if let Some(listener) = given {
        return nonblocking(listener).map_err(listen);
    }
    if UnixStream::connect(path).is_ok() {
        return Err(ServiceError::Running(path.into()));
    }
    if let Some(folder) = path.parent() {
        std::fs::DirBuilder::new().recursive(true).mode(0o755).create(folder).map_err(listen)?;
    }
    remove_stale(path).map_err(listen)?;
    let listener = UnixListener::bind(path).map_err(listen)?;
    // Who may see what is decided for each client.
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o666)).map_err(listen)?;
    nonblocking(listener).map_err(listen)
}

fn nonblocking(listener: UnixListener) -> io::Result<OwnedFd> {
    listener.set_nonblocking(true)?;
    Ok(listener.into())
}

/// What an earlier service has left behind.
fn remove_stale(path: &Path) -> io::Result<()> {
    match path.symlink_metadata() {
        Ok(state) if state.file_type().is_socket() => std::fs::remove_file(path),
        Ok(_) => Err(io::Error::new(io::ErrorKind::AlreadyExists, "there is something else than a socket")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

fn surroundings(configuration: &Configuration, metrics: Port) -> Result<Surroundings, ServiceError> {
    let namespace = |name: &str| {
        let state = std::fs::metadata(format!("/proc/self/ns/{name}"));
        state.map(|state| state.ino()).map_err(ServiceError::system("own namespaces are not known"))
    };
    Ok(Surroundings {
        user_namespace: namespace("user")?,
        pid_namespace: namespace("pid")?,
        admin_group: admin_group(configuration)?,
        metrics,
    })
}

fn admin_group(configuration: &Configuration) -> Result<Option<u32>, ServiceError> {
    let Some(name) = &configuration.admin_group else { return Ok(None) };
    let found = rights::group(name).map_err(ServiceError::system("/etc/group"))?;
    if found.is_none() {
        say(format_args!("there is no group {name:?}: nobody but root sees all jobs"));
    }
    Ok(found)
}

/// What `/etc/passwd` says, as much of it as there is room for.
fn users() -> Vec<u8> {
    let mut content = std::fs::read("/etc/passwd").unwrap_or_default();
    if content.len() > MOST_OF_USERS {
        content.truncate(MOST_OF_USERS);
        let end = memchr::memrchr(b'\n', &content).unwrap_or(0);
        content.truncate(end);
    }
    content
}
