//! Which MPI libraries the processes of a job have loaded, and whether they were under probes by then.

use std::{collections::HashSet, ffi::OsStr, fs::File, io, os::unix::ffi::OsStrExt as _, path::Path};

use mpiprobe_attach::{CodeEvents, CodeMapped, Record};
use mpiprobe_discover::{identity_when_mapped, mappings::FileId, open_regular, printable};

use super::observation::Observation;

/// What all processes of a job map as code.
#[derive(Debug)]
pub(super) struct Loaded {
    events: CodeEvents,
    /// No MPI libraries, or those of which everything has been said.
    settled: HashSet<FileId>,
    /// Notices that were lost.
    lost: u64,
}

impl Loaded {
    /// Of the process and all that it will start.
    pub(super) fn new(pid: u32) -> io::Result<Self> {
        Ok(Self { events: CodeEvents::open(pid)?, settled: HashSet::new(), lost: 0 })
    }

    /// Probes MPI libraries that are new. What was loaded before it was probed is noted.
    pub(super) fn look(&mut self, observation: &mut Observation) {
        let mut mapped = Vec::new();
        for record in self.events.read() {
            match record {
                Record::Mapped(one) => mapped.push(one),
                Record::Lost(number) => self.lost += number,
            }
        }
        // The first who has loaded a library was without probes for longest.
        mapped.sort_by_key(|one| one.time_ns);
        for one in &mapped {
            self.settle(one, observation);
        }
    }

    /// What is left to be said when the job has ended.
    pub(super) fn conclude(&self, observation: &mut Observation) {
        if self.lost > 0 {
            observation.note_missing(format!(
                "{} notices of what the job loads were lost: other MPI libraries than those probed may have been used",
                self.lost
            ));
        }
    }

    fn settle(&mut self, mapped: &CodeMapped, observation: &mut Observation) {
        let id = FileId { major: mapped.major, minor: mapped.minor, inode: mapped.inode };
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
                let late_ns = since_ns.unwrap_or(u64::MAX).saturating_sub(mapped.time_ns);
                if late_ns > 0 {
                    observation.note_missing(format!(
                        "{shown} was probed {:.1} ms after a process had loaded it: what was called in it until then is not counted",
                        late_ns as f64 / 1e6
                    ));
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
