//! Requests for what a recording in memory has: by a signal, and by `mpiprobe dump`.
//!
//! A recording in memory listens on a socket in the abstract namespace, which has its process's number in its name. Nothing in the file system has to be
//! trusted, and nothing is left when the process is killed. Both ends ask the kernel who the other one is: the process of a connection, not of a number that
//! somebody else may have got since. A signal goes to nobody, and so cannot end a process that was taken for another.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Read as _, Write as _},
    os::{
        fd::AsFd as _,
        linux::net::SocketAddrExt as _,
        unix::net::{SocketAddr, UnixListener, UnixStream},
    },
    process,
    sync::mpsc::channel,
    thread,
    time::Duration,
};

use mpiprobe_discover::printable;
use mpiprobe_report::present::say;
use rustix::{net::sockopt::socket_peercred, process::geteuid};
use signal_hook::{consts::signal::SIGUSR1, iterator::Signals};
use thiserror::Error;

use super::dumps::{Asked, Dumped};

/// The beginning of the name of every socket; the number of the process follows.
const NAME: &str = "mpiprobe-flight-";
/// What is asked.
const DUMP: &[u8] = b"dump\n";
/// How long either end may take for a line.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a dump may take.
const WRITING: Duration = Duration::from_hours(1);
/// The longest answer, bytes: a line for each of thousands of nodes.
const LONGEST: u64 = 1 << 20;
/// How much is read of the kernel's list of sockets, bytes.
const LIST: u64 = 64 << 20;
/// Sockets that are looked at: whoever likes may make some that are called so.
const MOST: usize = 1024;

/// Why nothing was written down.
#[derive(Debug, Error)]
pub enum DumpError {
    #[error(
        "nobody here keeps the last calls of a job in memory (mpiprobe trace --flight) whom you could ask: start that first; what root has started only root \
         may ask"
    )]
    Nobody,
    #[error("process {0} does not keep the last calls of a job in memory (mpiprobe trace --flight), or not for you")]
    NotThere(u32),
    #[error("there are several: say which by --pid ({})", .0.iter().map(u32::to_string).collect::<Vec<_>>().join(", "))]
    Several(Vec<u32>),
    #[error("cannot list the sockets of this node: {0}")]
    List(#[source] io::Error),
    #[error("process {pid} has not answered: {source}")]
    Silent { pid: u32, source: io::Error },
    #[error("process {pid}: {why}")]
    Failed { pid: u32, why: String },
}

/// Takes requests from now on, until the process ends.
pub(super) fn listen(by_signal: bool, take: impl Fn(Asked) + Clone + Send + 'static) -> io::Result<()> {
    if by_signal {
        let mut signals = Signals::new([SIGUSR1])?;
        let take = take.clone();
        let heed = move || {
            for _ in &mut signals {
                take(Asked::because("SIGUSR1 has asked for it".into()));
            }
        };
        thread::Builder::new().name("signals".into()).spawn(heed)?;
    }
    let listener = match UnixListener::bind_addr(&address(process::id())?) {
        Ok(listener) => listener,
        Err(error) => {
            say(format_args!("`mpiprobe dump` cannot reach this process ({error}); SIGUSR1 can"));
            return Ok(());
        }
    };
    let serve = move || {
        for connection in listener.incoming() {
            let served = connection.and_then(|connection| serve(connection, &take));
            if let Err(error) = served {
                tracing::debug!("a request for a dump came to nothing: {error}");
            }
        }
    };
    thread::Builder::new().name("requests".into()).spawn(serve)?;
    Ok(())
}

fn address(pid: u32) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("{NAME}{pid}"))
}

/// One request, of whoever may make it: the same user, or root.
fn serve(mut connection: UnixStream, take: &impl Fn(Asked)) -> io::Result<()> {
    let user = socket_peercred(connection.as_fd())?.uid;
    if !user.is_root() && user != geteuid() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    connection.set_read_timeout(Some(PATIENCE))?;
    connection.set_write_timeout(Some(PATIENCE))?;
    let mut asked = [0; DUMP.len()];
    connection.read_exact(&mut asked)?;
    if asked != DUMP {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let (reply, answer) = channel();
    take(Asked { why: "`mpiprobe dump` has asked for it".into(), reply: Some(reply) });
    let ended = || Dumped { files: Vec::new(), failures: vec!["the recording has ended".into()] };
    let Dumped { files, failures } = answer.recv().unwrap_or_else(|_| ended());
    let lines = files.iter().map(|path| ("+", path)).chain(failures.iter().map(|why| ("-", why)));
    for (sign, text) in lines {
        writeln!(connection, "{sign}{}", printable(text.as_bytes()))?;
    }
    Ok(())
}

/// Has a recording in memory written down: that of a process, or the only one that may be asked. Gives the paths of the files, of which there
/// is one at least, and why there is none of some nodes.
pub fn ask(pid: Option<u32>) -> Result<Dumped, DumpError> {
    let named = match pid {
        Some(pid) => vec![pid],
        None => listening().map_err(DumpError::List)?,
    };
    let mut found: BTreeMap<u32, UnixStream> =
        named.into_iter().filter_map(|pid| Some((pid, connect(pid).ok()?))).collect();
    let pids: Vec<u32> = found.keys().copied().collect();
    match (found.pop_first(), pid) {
        (Some((pid, connection)), _) if found.is_empty() => {
            let dumped = converse(connection).map_err(|source| DumpError::Silent { pid, source })?;
            if dumped.files.is_empty() {
                return Err(DumpError::Failed { pid, why: dumped.failures.join("; ") });
            }
            Ok(dumped)
        }
        (Some(_), _) => Err(DumpError::Several(pids)),
        (None, Some(pid)) => Err(DumpError::NotThere(pid)),
        (None, None) => Err(DumpError::Nobody),
    }
}

/// Connects to a process that is who its socket's name says, and of the same user; root may ask everybody.
fn connect(pid: u32) -> io::Result<UnixStream> {
    let connection = UnixStream::connect_addr(&address(pid)?)?;
    let other = socket_peercred(connection.as_fd())?;
    let is_it = other.pid.as_raw_pid().cast_unsigned() == pid;
    let is_ours = geteuid().is_root() || other.uid == geteuid();
    if is_it && is_ours { Ok(connection) } else { Err(io::ErrorKind::PermissionDenied.into()) }
}

fn converse(mut connection: UnixStream) -> io::Result<Dumped> {
    connection.set_write_timeout(Some(PATIENCE))?;
    connection.set_read_timeout(Some(WRITING))?;
    connection.write_all(DUMP)?;
    let mut answer = Vec::new();
    connection.take(LONGEST).read_to_end(&mut answer)?;
    let mut dumped = Dumped::default();
    for line in answer.split_inclusive(|&byte| byte == b'\n').filter_map(|line| line.strip_suffix(b"\n")) {
        match line.split_first() {
            Some((b'+', path)) => dumped.files.push(printable(path)),
            Some((b'-', why)) => dumped.failures.push(printable(why)),
            _ => return Err(io::ErrorKind::InvalidData.into()),
        }
    }
    if dumped == Dumped::default() { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(dumped) }
}

/// The numbers in the names of sockets that are called so.
fn listening() -> io::Result<Vec<u32>> {
    let mut list = Vec::new();
    File::open("/proc/self/net/unix")?.take(LIST).read_to_end(&mut list)?;
    Ok(numbers(&list))
}

fn numbers(list: &[u8]) -> Vec<u32> {
    let name = |line: &[u8]| {
        let name = line.rsplit(|&byte| byte == b' ').next()?;
        std::str::from_utf8(name).ok()?.strip_prefix('@')?.strip_prefix(NAME)?.parse().ok()
    };
    let mut found: Vec<u32> = list.split(|&byte| byte == b'\n').filter_map(name).take(MOST).collect();
    found.sort_unstable();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_of_others_are_not_meant() {
        let list = b"Num       RefCount Protocol Flags    Type St Inode Path\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 40218 @mpiprobe-flight-77\n\
            0000000000000000: 00000003 00000000 00000000 0001 03 40219 @mpiprobe-flight-77\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 40220 /run/mpiprobe-flight-3\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 40221 @mpiprobe-flight-x\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 40222 @mpiprobe-flight-4\xff\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 40223 @mpiprobe-flight-12\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 40224\n";
        assert_eq!(numbers(list), [12, 77]);
    }

    /// Whoever has the name of a process and is another one is not asked, and who is asked for something else answers nothing.
    #[test]
    fn only_who_it_is_is_asked() {
        let other = u32::MAX;
        let _squatter = UnixListener::bind_addr(&address(other).unwrap()).unwrap();
        assert!(matches!(ask(Some(other)), Err(DumpError::NotThere(pid)) if pid == other));
        let (to, from) = channel();
        listen(false, move |asked| drop(to.send(asked))).unwrap();
        let mut rude = connect(process::id()).unwrap();
        rude.write_all(b"what?").unwrap();
        assert_eq!(rude.read(&mut [0; 8]).unwrap(), 0);
        let answering = thread::spawn(move || {
            let Ok(Asked { reply: Some(reply), .. }) = from.recv() else { return };
            let _ = reply.send(Dumped { files: vec!["/somewhere/x.trace".into()], failures: Vec::new() });
        });
        assert_eq!(ask(Some(process::id())).unwrap().files, ["/somewhere/x.trace"]);
        answering.join().unwrap();
        assert!(matches!(ask(Some(process::id())), Err(DumpError::Failed { .. })), "nobody records any more");
    }
}
