//! The process that opens and reads files of other users. It may be stuck for ever in any of its system calls, and nobody waits for it.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt as _;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags, PROC_SUPER_MAGIC, fstat, fstatfs, openat};
use rustix::net::sockopt::socket_type;

use super::message::{Answer, MOST_BYTES, MOST_READ, Opened, Opening, Request, receive, send};
use crate::{
    caller_rights::{with_callers_rights, without_any_rights},
    mapped_identity::is_mapped_as,
    maps_line::{self, FileId, Line},
    open_file::{FoundFile, find_regular_at, find_regular_in_root, reopen_regular},
    privileged::is_protected,
    read::read_at,
};

/// What it is started as.
pub(super) const NAME: &str = "mpiprobe-files";
/// Its argument if it is [`Asking::Apart`].
pub(super) const APART: &str = "apart";

/// Who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asking {
    /// The process that has started it, whose rights it has.
    Itself,
    /// A process without rights, which may have been taken over by what it has read: it is given the files that a process has mapped, and
    /// nothing of a process that is protected from tracing. What else it names is opened without rights.
    Apart,
}

/// File systems of the kernel's own, on disks or in memory: no process and no other machine is asked for what is on them. Numbers are those of
/// `linux/magic.h` and of the file systems' own headers: ext2 to ext4, XFS, Btrfs, tmpfs, ramfs, hugetlbfs, SquashFS, EROFS, F2FS, ZFS.
const ANSWERING: [u32; 10] = [
    0xEF53,
    0x5846_5342,
    0x9123_683E,
    0x0102_1994,
    0x8584_58F6,
    0x9584_58F6,
    0x7371_7368,
    0xE0F5_E1E2,
    0xF2F5_2010,
    0x2FC1_2FC1,
];

/// Whether this process is the one for files; then it has done its work when this returns.
pub fn serve_if_asked() -> bool {
    if std::env::args_os().next().is_none_or(|name| name != NAME) {
        return false;
    }
    let input = io::stdin();
    if socket_type(&input).is_ok() {
        let _ = rustix::thread::set_name(c"mpiprobe-files");
        let is_apart = std::env::args_os().nth(1).is_some_and(|argument| argument == APART);
        serve(input.as_fd(), if is_apart { Asking::Apart } else { Asking::Itself });
    }
    true
}

/// Answers until the other end is closed.
pub(super) fn serve(socket: BorrowedFd<'_>, asking: Asking) {
    let mut server = Server { asking, files: HashMap::new(), next: 0, mapped: VecDeque::new() };
    let mut buffer = vec![0; MOST_BYTES];
    while let Ok(Some((length, descriptor))) = receive(socket, &mut buffer) {
        let Ok(request) = serde_json::from_slice(buffer.get(..length).unwrap_or_default()) else { return };
        let sent = match server.answer(&request, descriptor.as_ref().map(OwnedFd::as_fd)) {
            Ok(Reply::Bytes(bytes)) => send(socket, &bytes, None),
            Ok(Reply::Answer(answer, descriptor)) => say(socket, &answer, descriptor.as_ref()),
            Err(error) => say(socket, &Answer::failed(&error), None),
        };
        if sent.is_err() {
            return;
        }
    }
}

fn say(socket: BorrowedFd<'_>, answer: &Answer, descriptor: Option<&OwnedFd>) -> io::Result<()> {
    send(socket, &serde_json::to_vec(answer)?, descriptor.map(OwnedFd::as_fd))
}

/// For so long it is known what a process has mapped: who looks at one asks for many files of it. It takes the kernel a fraction of a
/// millisecond to print that.
const MAPPED_FOR: Duration = Duration::from_secs(1);
/// Of so many processes at once: more than there are threads that look at them.
const MOST_MAPPED: usize = 32;

/// The files that are open here, because their file systems may not answer.
struct Server {
    asking: Asking,
    files: HashMap<u64, File>,
    next: u64,
    /// The latest last.
    mapped: VecDeque<Mapped>,
}

/// What a process has mapped.
struct Mapped {
    /// Its directory.
    device: u64,
    inode: u64,
    at: Instant,
    ids: HashSet<FileId>,
}

enum Reply {
    Answer(Answer, Option<OwnedFd>),
    /// A zero, and what was read.
    Bytes(Vec<u8>),
}

impl Server {
    fn answer(&mut self, request: &Request, descriptor: Option<BorrowedFd<'_>>) -> io::Result<Reply> {
        let given = || descriptor.ok_or(io::ErrorKind::InvalidInput);
        match request {
            Request::Links { links, id } => {
                let found = by_links(self.process(given()?)?, links, *id)?;
                self.reply(found)
            }
            Request::Names { paths, id } => {
                let found = by_names(self.mapping(given()?, *id)?, paths, *id)?;
                self.reply(found)
            }
            Request::InRoot { path } => {
                // The path may be anybody's word.
                let root = given()?;
                let found = self.without_rights(|| find_regular_in_root(root, path))?;
                self.reply(Opening::File(found))
            }
            Request::Link { name } => {
                let directory = given()?;
                if self.asking == Asking::Apart
                    && !(matches!(name.as_str(), "exe" | "mem") && may_look_into(directory)?)
                {
                    return Err(io::ErrorKind::PermissionDenied.into());
                }
                let found = find_regular_at(directory, name)?;
                self.reply(Opening::File(found))
            }
            Request::Again => {
                let place = given()?.try_clone_to_owned()?;
                // Anybody can have a descriptor that stands for the place of any file.
                let found = match self.asking {
                    Asking::Itself => reopen_regular(place),
                    Asking::Apart => without_any_rights(|| reopen_regular(place)),
                }?;
                self.reply(Opening::File(found))
            }
            Request::Read { number, offset, length } => {
                let length = usize::try_from(*length).unwrap_or(MOST_READ).min(MOST_READ);
                let mut bytes = vec![0; 1 + length];
                let read = self.file(*number)?.read_at(bytes.get_mut(1..).unwrap_or_default(), *offset)?;
                bytes.truncate(1 + read);
                Ok(Reply::Bytes(bytes))
            }
            Request::State { number } => {
                let state = fstat(self.file(*number)?)?.into();
                Ok(Reply::Answer(Answer::State(state), None))
            }
            Request::Close { number } => {
                // Closing asks the file system, too.
                let file = self.files.remove(number);
                thread::spawn(move || drop(file));
                Ok(Reply::Answer(Answer::Done, None))
            }
        }
    }

    /// The process, if it may be asked for what it has mapped.
    fn process<'a>(&self, process: BorrowedFd<'a>) -> io::Result<BorrowedFd<'a>> {
        if self.asking == Asking::Apart && !may_look_into(process)? {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        Ok(process)
    }

    /// The process, if it may be asked for this file, which is named by a path.
    fn mapping<'a>(&mut self, process: BorrowedFd<'a>, id: FileId) -> io::Result<BorrowedFd<'a>> {
        let process = self.process(process)?;
        if self.asking == Asking::Apart && !self.has_mapped(process, id)? {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        Ok(process)
    }

    /// Whether the process has mapped the file, or had a moment ago.
    fn has_mapped(&mut self, process: BorrowedFd<'_>, id: FileId) -> io::Result<bool> {
        let state = fstat(process)?;
        let (device, inode) = (state.st_dev, state.st_ino);
        let is_it = |mapped: &Mapped| (mapped.device, mapped.inode) == (device, inode);
        let is_known = |mapped: &Mapped| is_it(mapped) && mapped.at.elapsed() < MAPPED_FOR && mapped.ids.contains(&id);
        if self.mapped.iter().any(is_known) {
            return Ok(true);
        }
        self.mapped.retain(|mapped| !is_it(mapped));
        if self.mapped.len() >= MOST_MAPPED {
            self.mapped.pop_front();
        }
        let maps = read_at(process, "maps", maps_line::LIMIT)?;
        let lines = maps.bytes.split(|byte| *byte == b'\n').filter_map(Line::parse);
        let mapped = Mapped { device, inode, at: Instant::now(), ids: lines.map(|line| line.id).collect() };
        let has_mapped = mapped.ids.contains(&id);
        self.mapped.push_back(mapped);
        Ok(has_mapped)
    }

    fn without_rights<T>(&self, what: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        match self.asking {
            Asking::Itself => with_callers_rights(what),
            Asking::Apart => without_any_rights(what),
        }
    }

    fn file(&self, number: u64) -> io::Result<&File> {
        self.files.get(&number).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn reply(&mut self, found: Opening<FoundFile>) -> io::Result<Reply> {
        let FoundFile { place, file } = match found {
            Opening::File(found) => found,
            Opening::Other => return Ok(Reply::Answer(Answer::Found(Opening::Other), None)),
            Opening::Nothing => return Ok(Reply::Answer(Answer::Found(Opening::Nothing), None)),
        };
        let state = fstat(&file)?.into();
        let is_here = u32::try_from(fstatfs(&file)?.f_type).is_ok_and(|kind| ANSWERING.contains(&kind));
        let number = self.next;
        self.next += 1;
        let descriptor = if is_here {
            file.into()
        } else {
            self.files.insert(number, file);
            place
        };
        Ok(Reply::Answer(Answer::Found(Opening::File(Opened { number, state, is_here })), Some(descriptor)))
    }
}

/// Whether it is a process's directory, and the process may be traced by those who may not trace all.
fn may_look_into(directory: BorrowedFd<'_>) -> io::Result<bool> {
    Ok(fstatfs(directory)?.f_type == PROC_SUPER_MAGIC && !is_protected(directory)?)
}

/// What is behind such a link the process has mapped, whoever has named it.
fn by_links(process: BorrowedFd<'_>, links: &[String], id: FileId) -> io::Result<Opening<FoundFile>> {
    for link in links.iter().filter(|link| is_range(link)) {
        match find_regular_at(process, &format!("map_files/{link}")) {
            // The process may have mapped another file there since.
            Ok(found) if is_mapped_as(&found.file, id).is_ok_and(|is_it| is_it) => return Ok(Opening::File(found)),
            Ok(_) => {}
            // A missing link: the range was split or joined since. The next may do.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Opening::Nothing)
}

/// `START-END`, and no path to something else.
fn is_range(link: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    link.split_once('-').is_some_and(|(start, end)| is_number(start) && is_number(end))
}

fn by_names(process: BorrowedFd<'_>, paths: &[Vec<u8>], id: FileId) -> io::Result<Opening<FoundFile>> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = openat(process, "root", flags, Mode::empty())?;
    let mut other = Opening::Nothing;
    for path in paths {
        match find_regular_in_root(root.as_fd(), path) {
            Ok(found) if is_mapped_as(&found.file, id)? => return Ok(Opening::File(found)),
            Ok(_) => other = Opening::Other,
            // No such name, or a directory, FIFO or device of that name.
            Err(error) if is_absence(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(other)
}

fn is_absence(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidInput, NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory | InvalidInput)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;
    use crate::{mapped_identity::identity_when_mapped, mappings::Mappings, proc_root::ProcRoot, process::Process};

    /// Whoever asks may have been taken over, and name anything.
    #[test]
    fn a_link_leads_to_what_is_mapped_and_nowhere_else() {
        let own = Process::open(&ProcRoot::system().unwrap(), std::process::id()).unwrap();
        let program = std::env::current_exe().unwrap();
        let id = identity_when_mapped(&File::open(&program).unwrap()).unwrap().unwrap();
        let mapped = Mappings::of(&own).unwrap().files.into_iter().find(|file| file.id == id).unwrap();
        let link = mapped.ranges[0].link_name();
        let mut server = Server { asking: Asking::Apart, files: HashMap::new(), next: 0, mapped: VecDeque::new() };
        let mut ask = |link: &str| {
            let request = Request::Links { links: vec![link.to_owned()], id };
            match server.answer(&request, Some(own.directory())).unwrap() {
                Reply::Answer(Answer::Found(Opening::File(opened)), _) => Some(opened.state.inode),
                Reply::Answer(Answer::Found(Opening::Nothing), _) => None,
                _ => panic!("{link}: another answer"),
            }
        };
        let mapped = |server: &mut Server, id: FileId| server.has_mapped(own.directory(), id).unwrap();
        let other = FileId { inode: id.inode + 1, ..id };
        let mut names = Server { asking: Asking::Apart, files: HashMap::new(), next: 0, mapped: VecDeque::new() };
        for _ in 0..2 {
            assert_eq!((mapped(&mut names, id), mapped(&mut names, other)), (true, false));
        }
        // Without the right to follow such links the kernel refuses it, which is an error.
        if rustix::process::geteuid().is_root() {
            assert_eq!(ask(&link), Some(program.metadata().unwrap().ino()));
        }
        for wrong in ["../exe", "0-1/../../exe", "", "-", "0-", "../fd/0", "0-1-2", "1000-2000"] {
            assert_eq!(ask(wrong), None, "{wrong}");
        }
    }
}
