//! Asks the process that opens and reads files, and leaves it behind if it does not answer.

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{AtFlags, Mode, OFlags, StatxFlags, openat, statx};
use rustix::time::{ClockId, clock_gettime};

use super::{
    message::{Answer, FileState, MOST_BYTES, MOST_READ, Opened, Opening, Request, receive, send},
    patience::{Patience, Whose, no_answer},
    server::{APART, Asking, NAME, serve},
};
use crate::{maps_line::FileId, open_file::reopen_regular, packet, privileged};

/// How often it is looked whether the wait is to end.
const SLICE: Duration = Duration::from_millis(50);

static CLIENT: OnceLock<Mutex<Client>> = OnceLock::new();
/// This program can be the other process, too.
static IS_PROGRAM: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// What this thread reads costs nobody else's patience.
    static IS_BESIDE: Cell<bool> = const { Cell::new(false) };
}

/// This thread works beside those that serve signals and tables. However long it reads, files are opened for them.
pub fn work_beside() {
    IS_BESIDE.set(true);
}

/// From now on files are opened by a process that runs this program, which must begin with [`super::serve_if_asked`]. Else a thread does it,
/// and where that is stuck this process cannot end.
pub fn use_process() {
    IS_PROGRAM.store(true, Ordering::Relaxed);
}

/// When this is set, no file is waited for any longer: somebody wants mpiprobe to end.
pub fn give_up() -> &'static Arc<AtomicBool> {
    static GIVE_UP: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    GIVE_UP.get_or_init(Arc::default)
}

/// What somebody else's file is when it has been looked for and opened.
#[derive(Debug)]
pub(super) enum Content {
    /// It answers.
    Here(File),
    /// Only the other process has it open.
    Away(Away),
}

/// Looks for a file and opens it. `by` is what the request begins at.
pub(super) fn open(request: &Request, by: BorrowedFd<'_>, whose: Whose) -> io::Result<Opening<Content>> {
    let mut client = client();
    let (opened, descriptor) = match client.ask_for(request, by, whose)? {
        Opening::File(opened) => opened,
        Opening::Other => return Ok(Opening::Other),
        Opening::Nothing => return Ok(Opening::Nothing),
    };
    Ok(Opening::File(if opened.is_here {
        client.patience.note_answering(whose);
        Content::Here(File::from(descriptor))
    } else {
        let device = rustix::fs::major(opened.state.device);
        let whose = Whose { device: Some((device, rustix::fs::minor(opened.state.device))), ..whose };
        Content::Away(Away::new(descriptor, opened.number, client.generation, whose))
    }))
}

/// The mapped file, if it is on a disk of this machine that has answered before: then nobody need be asked.
pub fn open_here(process: BorrowedFd<'_>, links: &[String], id: FileId) -> Option<File> {
    if privileged::is_apart() || !client().patience.is_answering((id.major, id.minor)) {
        return None;
    }
    links.iter().find_map(|link| {
        // Such a link leads to the file itself, and what the kernel knows of that is told without asking its file system.
        let place = openat(process, format!("map_files/{link}"), OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?;
        let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
        let stat = statx(&place, "", flags, StatxFlags::INO).ok()?;
        let found = FileId { major: stat.stx_dev_major, minor: stat.stx_dev_minor, inode: stat.stx_ino };
        (found == id).then(|| reopen_regular(place).ok())?.map(|found| found.file)
    })
}

/// Does work on files of a user's, of which too much keeps further ones from being opened. It counts by what the processor has done, which a
/// busy machine makes no longer.
pub fn charged<T>(user: u32, work: impl FnOnce() -> T) -> T {
    let worked = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default();
    let before = worked();
    let done = work();
    let took = worked().saturating_sub(before);
    if took > Duration::ZERO {
        client().patience.note_work(user, took, Instant::now());
    }
    done
}

fn client() -> MutexGuard<'static, Client> {
    CLIENT.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

/// A file that only the other process has open.
#[derive(Debug)]
pub(super) struct Away {
    place: OwnedFd,
    /// Its number there, and in which of the processes that there have been.
    opened: Mutex<(u64, u64)>,
    whose: Whose,
}

impl Away {
    pub(super) fn new(place: OwnedFd, number: u64, generation: u64, whose: Whose) -> Self {
        Self { place, opened: Mutex::new((number, generation)), whose }
    }

    pub(super) fn place(&self) -> BorrowedFd<'_> {
        self.place.as_fd()
    }

    pub(super) fn state(&self) -> io::Result<FileState> {
        let mut client = client();
        let number = self.number(&mut client)?;
        match client.ask(&Request::State { number }, None, self.whose)? {
            (Reply::Answer(Answer::State(state)), _) => Ok(state),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    pub(super) fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut client = client();
        let number = self.number(&mut client)?;
        let length = u32::try_from(buffer.len().min(MOST_READ)).unwrap_or(0);
        let (Reply::Bytes(bytes), _) = client.ask(&Request::Read { number, offset, length }, None, self.whose)? else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        let to = buffer.get_mut(..bytes.len()).ok_or(io::ErrorKind::InvalidData)?;
        to.copy_from_slice(&bytes);
        Ok(bytes.len())
    }

    /// Opens it once more if another file has kept the process that had it open.
    fn number(&self, client: &mut Client) -> io::Result<u64> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        client.check()?;
        if opened.1 != client.generation {
            match client.ask_for(&Request::Again, self.place.as_fd(), self.whose)? {
                Opening::File((again, _)) => *opened = (again.number, client.generation),
                Opening::Other | Opening::Nothing => return Err(io::ErrorKind::NotFound.into()),
            }
        }
        Ok(opened.0)
    }
}

impl Drop for Away {
    fn drop(&mut self) {
        let mut client = client();
        let opened = self.opened.get_mut().unwrap_or_else(PoisonError::into_inner);
        if client.connection.is_some() && opened.1 == client.generation {
            let _ = client.ask(&Request::Close { number: opened.0 }, None, self.whose);
        }
    }
}

#[derive(Debug, Default)]
struct Client {
    connection: Option<Connection>,
    /// Of the connection: it goes with its files.
    generation: u64,
    patience: Patience,
    /// With those that nobody waits for.
    patience_beside: Patience,
    /// Processes that were left behind; they end when their files answer.
    left: Vec<Child>,
}

#[derive(Debug)]
struct Connection {
    socket: OwnedFd,
    /// `None`: it is a thread, or another process's child.
    child: Option<Child>,
}

enum Reply {
    Answer(Answer),
    Bytes(Vec<u8>),
}

impl Client {
    fn ask_for(
        &mut self,
        request: &Request,
        by: BorrowedFd<'_>,
        whose: Whose,
    ) -> io::Result<Opening<(Opened, OwnedFd)>> {
        match self.ask(request, Some(by), whose)? {
            (Reply::Answer(Answer::Found(Opening::File(opened))), Some(descriptor)) => {
                Ok(Opening::File((opened, descriptor)))
            }
            (Reply::Answer(Answer::Found(Opening::Other)), _) => Ok(Opening::Other),
            (Reply::Answer(Answer::Found(Opening::Nothing)), _) => Ok(Opening::Nothing),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    fn ask(
        &mut self,
        request: &Request,
        by: Option<BorrowedFd<'_>>,
        whose: Whose,
    ) -> io::Result<(Reply, Option<OwnedFd>)> {
        let patience = self.patience().left(whose, Instant::now())?;
        self.check()?;
        let connection = self.connection.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        let start = Instant::now();
        let mut buffer = vec![0; MOST_BYTES];
        let answered = send(connection.socket.as_fd(), &serde_json::to_vec(request)?, by)
            .and_then(|()| wait(connection.socket.as_fd(), start + patience))
            .and_then(|()| receive(connection.socket.as_fd(), &mut buffer));
        let now = Instant::now();
        self.patience().note(whose, now.saturating_duration_since(start), now);
        match answered {
            Ok(Some((length, descriptor))) => {
                buffer.truncate(length);
                if buffer.first() == Some(&0) {
                    buffer.remove(0);
                    return Ok((Reply::Bytes(buffer), None));
                }
                let answer: Answer = serde_json::from_slice(&buffer)?;
                Ok((Reply::Answer(answer.into_result()?), descriptor))
            }
            Ok(None) => {
                self.leave();
                Err(io::ErrorKind::ConnectionAborted.into())
            }
            Err(error) => {
                if error.kind() == io::ErrorKind::TimedOut && !is_given_up() {
                    self.patience().note_silence(whose, now);
                }
                self.leave();
                Err(error)
            }
        }
    }

    fn patience(&mut self) -> &mut Patience {
        if IS_BESIDE.get() { &mut self.patience_beside } else { &mut self.patience }
    }

    /// Makes sure that there is somebody to ask.
    fn check(&mut self) -> io::Result<()> {
        self.left.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
        if self.connection.is_none() {
            self.connection = Some(connect()?);
            self.generation += 1;
        }
        Ok(())
    }

    /// The next request is another one's.
    fn leave(&mut self) {
        if let Some(Connection { child: Some(mut child), .. }) = self.connection.take() {
            // It has effect when the system call is over.
            let _ = child.kill();
            self.left.push(child);
        }
    }
}

fn connect() -> io::Result<Connection> {
    if let Some(socket) = privileged::here::files() {
        return Ok(Connection { socket: socket?, child: None });
    }
    if !IS_PROGRAM.load(Ordering::Relaxed) {
        let (socket, other) = packet::pair()?;
        thread::Builder::new().name("files".to_owned()).spawn(move || serve(other.as_fd(), Asking::Itself))?;
        return Ok(Connection { socket, child: None });
    }
    let (socket, child) = start(Asking::Itself)?;
    Ok(Connection { socket, child: Some(child) })
}

/// Starts the process, with the rights of this one.
pub(crate) fn start(asking: Asking) -> io::Result<(OwnedFd, Child)> {
    let (socket, other) = packet::pair()?;
    let mut command = Command::new("/proc/self/exe");
    if asking == Asking::Apart {
        command.arg(APART);
    }
    // Not one of the terminal's foreground: Ctrl-C is for the process that asks. It holds nothing that anybody may wait for.
    let child = command
        .arg0(NAME)
        .env_clear()
        .current_dir("/")
        .process_group(0)
        .stdin(Stdio::from(other))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    Ok((socket, child))
}

/// Whether somebody wants mpiprobe to end.
pub fn is_given_up() -> bool {
    give_up().load(Ordering::Relaxed)
}

fn wait(socket: BorrowedFd<'_>, until: Instant) -> io::Result<()> {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let slice = Timespec::try_from(left.min(SLICE)).map_err(|_| io::ErrorKind::InvalidInput)?;
        let mut ready = [PollFd::from_borrowed_fd(socket, PollFlags::IN)];
        match poll(&mut ready, Some(&slice)) {
            Ok(0) if left.is_zero() => return Err(no_answer("it does not answer")),
            Ok(0) | Err(rustix::io::Errno::INTR) if is_given_up() => {
                return Err(no_answer("not waited for any longer"));
            }
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}
