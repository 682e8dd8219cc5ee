//! The half of the service that has the rights: it listens, starts the worker, answers it, and starts it again when it ends.

use std::{
    collections::VecDeque,
    io,
    os::{
        fd::{AsFd as _, OwnedFd},
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
    link::{Order, Surroundings, Word, receive, send},
    rights,
    worker::{NAME, SIGN_OF_LIFE},
};
use crate::memory::keep_little_memory;

/// A worker that gives no sign of life for so long is ended.
const SILENCE: Duration = SIGN_OF_LIFE.saturating_mul(12);
/// So many ends within this time are not for want of luck.
const ENDS: (usize, Duration) = (5, Duration::from_mins(1));
/// Observations at once, of all users.
const MOST_OBSERVATIONS: usize = 64;
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
    let listener = listener(&configuration.socket)?;
    let mut surroundings = surroundings(&configuration)?;
    rights::keep_needed(&configuration.user)?;
    let mut supervisor = Supervisor::new(listener, configuration, surroundings.clone())?;
    supervisor.start()?;
    loop {
        match supervisor.event()? {
            Event::Signal(SIGHUP) => match read() {
                Ok(changed) => {
                    surroundings.admin_group = admin_group(&changed)?;
                    supervisor.change(changed, surroundings.clone());
                    say("the service has read its configuration again");
                }
                Err(error) => say(format_args!("{error}; what was set before stays")),
            },
            Event::Signal(_) => {
                let _ = sd_notify::notify(&[NotifyState::Stopping]);
                supervisor.end();
                return Ok(());
            }
            Event::Word(generation, word) => supervisor.take(generation, word),
            Event::Ended(generation) => supervisor.worker_has_ended(generation)?,
            Event::Silence => supervisor.end_silent(),
        }
    }
}

/// Something that has happened.
enum Event {
    Signal(i32),
    /// Said by the worker of a generation.
    Word(u64, Word),
    /// It says nothing more.
    Ended(u64),
    Silence,
}

struct Supervisor {
    listener: OwnedFd,
    configuration: Configuration,
    surroundings: Surroundings,
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
        Ok(Self { listener, configuration, surroundings, worker, generation: 0, ends, events, to })
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
        let limits = Limits { engines: MOST_OBSERVATIONS, bytes: self.configuration.quota.tables_of_all };
        grants::serve(files, limits).and_then(|()| grants::serve(programs, limits)).map_err(failed())?;
        self.generation += 1;
        let (generation, to) = (self.generation, self.to.clone());
        let words = orders.try_clone().map_err(failed())?;
        let listening = move || {
            while let Ok(Some((word, ..))) = receive::<Word>(words.as_fd()) {
                if to.send(Event::Word(generation, word)).is_err() {
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
        let given = [self.listener.as_fd(), their_files.as_fd(), their_programs.as_fd()];
        send(orders.as_fd(), &order, &users(), &given).map_err(failed())?;
        self.worker = Some(Worker { child, orders, heard: Instant::now() });
        Ok(())
    }

    fn take(&mut self, generation: u64, word: Word) {
        let Some(worker) = self.worker.as_mut().filter(|_| generation == self.generation) else { return };
        worker.heard = Instant::now();
        let state = match word {
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

    fn change(&mut self, configuration: Configuration, surroundings: Surroundings) {
        (self.configuration, self.surroundings) = (configuration, surroundings);
        let Some(worker) = &self.worker else { return };
        let order = Order::Change {
            configuration: Box::new(self.configuration.clone()),
            surroundings: self.surroundings.clone(),
        };
        if let Err(error) = send(worker.orders.as_fd(), &order, &users(), &[]) {
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

    fn end(&mut self) {
        if let Some(mut worker) = self.worker.take() {
            // It holds nothing that must be given back; what it had attached goes with its connections.
            let _ = worker.child.kill();
            let _ = worker.child.wait();
        }
    }
}

fn told(status: ExitStatus) -> String {
    status.to_string()
}

/// The socket that systemd listens on, or one of our own.
fn listener(path: &Path) -> Result<OwnedFd, ServiceError> {
    let listen = |source| ServiceError::Listen { path: path.into(), source };
    let mut given = ListenFd::from_env();
    if let Some(listener) = given.take_unix_listener(0).map_err(listen)? {
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

fn surroundings(configuration: &Configuration) -> Result<Surroundings, ServiceError> {
    let namespace = |name: &str| {
        let state = std::fs::metadata(format!("/proc/self/ns/{name}"));
        state.map(|state| state.ino()).map_err(ServiceError::system("own namespaces are not known"))
    };
    Ok(Surroundings {
        user_namespace: namespace("user")?,
        pid_namespace: namespace("pid")?,
        admin_group: admin_group(configuration)?,
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
