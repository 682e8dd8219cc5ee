//! Which MPI libraries the processes of a job have loaded, and whether they were under probes by then.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    ffi::OsStr,
    fs::File,
    io::{self, Write as _},
    os::unix::ffi::OsStrExt as _,
    path::Path,
};

use mpiprobe_attach::{CodeEvents, CodeMapped, Record};
use mpiprobe_discover::{identity_when_mapped, mappings::FileId, open_regular, printable};

use super::{coverage::Late, observation::Observation};

/// What all processes of a job map as code.
#[derive(Debug)]
pub(super) struct Loaded {
    events: CodeEvents,
    /// No MPI libraries, or those of which everything has been said.
    settled: HashSet<FileId>,
    /// MPI libraries that were probed only after a process had loaded them.
    late: HashMap<FileId, Late>,
    /// Notices that were lost.
    lost: u64,
    lists: Lists,
}

/// What each process has mapped as code, as lines of `/proc/PID/maps`: of one that ends before anybody has looked at it, nothing else tells
/// where in its files its calls come from.
#[derive(Debug, Default)]
struct Lists {
    of_process: HashMap<u32, Vec<u8>>,
    /// Of all of them.
    bytes: usize,
}

impl Lists {
    /// Of all processes, and of one.
    const MOST_BYTES: usize = 16 << 20;
    const MOST_OF_ONE: usize = 64 << 10;

    fn add(&mut self, mapped: &CodeMapped) {
        if self.bytes >= Self::MOST_BYTES {
            return;
        }
        let list = self.of_process.entry(mapped.pid).or_default();
        let before = list.len();
        if before >= Self::MOST_OF_ONE {
            return;
        }
        let CodeMapped { start, end, offset, major, minor, inode, .. } = mapped;
        // Writing to memory does not fail.
        let _ = write!(list, "{start:x}-{end:x} r-xp {offset:08x} {major:02x}:{minor:02x} {inode} ");
        for &byte in &mapped.path {
            // As the kernel writes it, so that a line remains one.
            if byte == b'\n' { list.extend(b"\\012") } else { list.push(byte) }
        }
        list.push(b'\n');
        self.bytes += list.len() - before;
    }
}

impl Loaded {
    /// Of the process and all that it will start.
    pub(super) fn new(pid: u32) -> io::Result<Self> {
        Ok(Self {
            events: CodeEvents::open(pid)?,
            settled: HashSet::new(),
            late: HashMap::new(),
            lost: 0,
            lists: Lists::default(),
        })
    }

    /// Probes MPI libraries that are new. What was loaded before it was probed is noted.
    pub(super) fn look(&mut self, observation: &mut Observation) {
        let mut mapped = Vec::new();
        for record in self.events.read() {
            match record {
                Record::Mapped(one) => mapped.push(one),
                Record::Executed { .. } => {}
                Record::Lost(number) => self.lost += number,
            }
        }
        // The first who has loaded a library was without probes for longest.
        mapped.sort_by_key(|one| one.time_ns);
        for one in &mapped {
            self.lists.add(one);
            self.settle(one, observation);
        }
    }

    /// What a process has mapped as code since it began, as lines of `/proc/PID/maps`; empty if nothing is known.
    pub(super) fn list(&self, pid: u32) -> &[u8] {
        self.lists.of_process.get(&pid).map(Vec::as_slice).unwrap_or_default()
    }

    /// What is left to be said when the job has ended.
    pub(super) fn conclude(&mut self, observation: &mut Observation) {
        observation.note_late(std::mem::take(&mut self.late).into_values());
        if self.lost > 0 {
            observation.note_missing(format!(
                "{} notices of what the job loads were lost: other MPI libraries than those probed may have been used",
                self.lost
            ));
        }
    }

    fn settle(&mut self, mapped: &CodeMapped, observation: &mut Observation) {
        let id = FileId { major: mapped.major, minor: mapped.minor, inode: mapped.inode };
        if let Some(late) = self.late.get_mut(&id).filter(|late| mapped.time_ns < late.since_ns) {
            late.pids.insert(mapped.pid);
        }
        // Not a file, such as the kernel's own code.
        if !mapped.path.starts_with(b"/") || self.settled.contains(&id) {
            return;
        }
        if observation.probed_since_ns(id).is_some_and(|since_ns| since_ns <= mapped.time_ns) {
            return;
        }
        self.settled.insert(id);
        let shown = printable(&mapped.path);
        let found = open(mapped).and_then(|file| Some((identity_when_mapped(&file).ok()??, file)));
        let Some((own_id, file)) = found else {
            if is_called_mpi(&mapped.path) {
                observation.note_missing(format!(
                    "{shown} could not be opened: if it is an MPI library, what was called in it is not counted"
                ));
            }
            return;
        };
        let path = Path::new(OsStr::from_bytes(&mapped.path));
        if !observation.is_mpi(path, &file, own_id) {
            return;
        }
        match observation.cover_file(path, &file, own_id) {
            Ok(since_ns) => {
                let since_ns = since_ns.unwrap_or(u64::MAX);
                let without_ns = since_ns.saturating_sub(mapped.time_ns);
                if without_ns > 0 {
                    self.late.insert(id, Late { shown, since_ns, without_ns, pids: BTreeSet::from([mapped.pid]) });
                }
            }
            Err(error) => observation.note_missing(format!("{shown} is not probed: {error}")),
        }
    }
}

/// The file as the process sees it, or by its name. That it is the same one is checked as far as stat tells.
fn open(mapped: &CodeMapped) -> Option<File> {
    let own = Path::new(OsStr::from_bytes(&mapped.path)).to_owned();
    let seen = Path::new(&format!("/proc/{}/root", mapped.pid)).join(own.strip_prefix("/").ok()?);
    let is_same = |file: &File| rustix::fs::fstat(file).is_ok_and(|stat| stat.st_ino == mapped.inode);
    [seen, own].into_iter().find_map(|path| open_regular(&path).ok().filter(is_same))
}

fn is_called_mpi(path: &[u8]) -> bool {
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    memchr::memmem::find(name, b"mpi").is_some()
}

#[cfg(test)]
mod tests {
    use mpiprobe_discover::mappings::{MappedFile, Mappings};

    use super::*;

    fn mapped(pid: u32, path: &[u8]) -> CodeMapped {
        let place =
            CodeMapped { start: 0x7f00_0000_1000, end: 0x7f00_0000_3000, offset: 0x1000, ..CodeMapped::default() };
        CodeMapped { pid, major: 8, minor: 1, inode: 99, path: path.to_vec(), ..place }
    }

    #[test]
    fn lists_are_read_as_those_of_the_kernel() {
        let mut lists = Lists::default();
        lists.add(&mapped(1, b"/lib/a b.so"));
        lists.add(&CodeMapped { inode: 100, ..mapped(1, b"/lib/c\nd.so") });
        let read = Mappings::parse(lists.of_process.get(&1).unwrap(), false);
        let paths: Vec<_> = read.files.iter().map(MappedFile::display_path).collect();
        assert_eq!(paths.len(), 2);
        assert_eq!(paths[0], "/lib/a b.so");
        let range = read.files[0].ranges[0];
        assert_eq!((range.start, range.end, range.offset), (0x7f00_0000_1000, 0x7f00_0000_3000, 0x1000));
    }

    #[test]
    fn lists_are_bounded() {
        let mut lists = Lists::default();
        for _ in 0..2000 {
            lists.add(&mapped(1, &[b'x'; 100]));
        }
        assert!(lists.bytes < Lists::MOST_OF_ONE + 1024 && lists.bytes == lists.of_process.get(&1).unwrap().len());
        for pid in 0..5_000 {
            lists.add(&mapped(pid, &[b'x'; 4000]));
        }
        assert!(lists.bytes < Lists::MOST_BYTES + 8192);
    }
}
