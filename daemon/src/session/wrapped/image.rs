//! One process image with its tables.

use std::{io, path::Path};

use mpiprobe_common::file::{Header, SUFFIX};
use mpiprobe_discover::{
    Failure, ForeignFile, JobKey, MpiProcess, ProcRoot, Process, ProcessError, RankInfo,
    environment::Environment,
    mappings::{MappedFile, Mappings},
    printable,
};
use mpiprobe_model::{
    LibraryInfo, RankState,
    analyse::{Beginning, Identity, Observed, SelfCost},
};
use mpiprobe_observe::{ProcessSnapshot, RecentSwitch, TableFile, TableFileError};
use mpiprobe_trace::Process as TracedProcess;

use super::{
    ended_process::fold_threads,
    last_words::LastWords,
    place::{Here, Origin, open_tables, text},
};
use crate::session::trace::traced_process;

/// Costs in a header are multiples of a ns divided by this.
const COST_UNIT: f64 = 1024.0;

/// A file of tables, and the process that writes it as long as that lives.
#[derive(Debug)]
pub(super) struct Image {
    /// Device and inode.
    file: (u64, u64),
    owner: u32,
    tables: Tables,
    origin: Origin,
    /// When the process left by `exit` or one of its kind, ns; 0: it has not.
    left_ns: u64,
    /// And with which status, if it has said so.
    left_with: Option<u8>,
    /// When it had itself replaced by another program, ns. While it lives, that may fail yet.
    replaced_ns: Option<u64>,
    /// What counting a call costs it, and the part of that within measured durations, in units.
    cost: (u64, u64),
    /// Path and words of the library.
    library: (String, String),
    /// Functions of the table that it has.
    functions: u64,
    identity: Identity,
    /// The job as the tables alone tell it, by which images of processes that have ended are compared.
    noted_job: Option<String>,
    process: Option<Process>,
    /// It ran here, and does no more: nobody writes to the tables.
    has_ended: bool,
    /// Its MPI library, where the process has been looked at.
    library_file: Option<MappedFile>,
    /// When it was noticed that the process has ended.
    gone_ns: Option<u64>,
    /// With what it has ended, if it was not successful and that is known.
    failure: Option<Failure>,
}

/// Of a process that has ended, what its tables have said last: no file is held for it, however many there are.
#[derive(Debug)]
enum Tables {
    Open(TableFile),
    Read(Box<LastWords>),
}

impl Image {
    /// Opens a file of tables that was found by its name.
    pub(super) fn open(path: &Path, here: &Here, root: &ProcRoot) -> Result<Self, TableFileError> {
        let mut image = Self::of_file(open_tables(path)?.into())?;
        image.process = here.process(root, &image.origin, image.owner);
        image.has_ended = image.process.is_none() && has_ended(&image.origin, here, root)?;
        Ok(image)
    }

    /// Becomes the image of a process that has mapped it, if it is its own and not any file that the process chose to map.
    pub(super) fn adopt(&mut self, process: &MpiProcess, here: &Here) -> io::Result<bool> {
        if !here.are_own_tables(&process.process, &self.origin, self.owner) {
            return Ok(false);
        }
        self.process = Some(process.process.try_clone()?);
        self.identify(process);
        Ok(true)
    }

    /// Of a file whose process is not known.
    pub(super) fn of_file(file: ForeignFile) -> Result<Self, TableFileError> {
        let state = file.state()?;
        if !state.is_regular {
            return Err(TableFileError::Foreign);
        }
        let tables = TableFile::new(file)?;
        let header = tables.header()?;
        let identity = identity(&header);
        let file = (state.device, state.inode);
        let mut image = Self {
            file,
            owner: state.owner,
            tables: Tables::Open(tables),
            origin: Origin::from(&header),
            left_ns: 0,
            left_with: None,
            replaced_ns: None,
            cost: (0, 0),
            library: (String::new(), String::new()),
            functions: 0,
            noted_job: identity.job.clone(),
            identity,
            process: None,
            has_ended: false,
            library_file: None,
            gone_ns: None,
            failure: None,
        };
        image.note(&header);
        Ok(image)
    }

    /// What its tables say at their head.
    fn note(&mut self, header: &Header) {
        self.origin = Origin::from(header);
        self.left_ns = header.ended_ns;
        self.left_with = header.exit_status();
        self.replaced_ns = header.replaced_ns();
        self.cost = (header.call_cost, header.inside_cost);
        self.functions = header.library_functions;
        self.library = (text(&header.library), implementation(&header.implementation));
    }

    /// Takes over what has been found out about the living process.
    pub(super) fn identify(&mut self, found: &MpiProcess) {
        self.library_file = found.library().map(|library| library.file.clone());
        self.identity = Identity {
            host: std::mem::take(&mut self.identity.host),
            pid: found.pid(),
            rank: found.rank.rank,
            size: found.rank.size,
            job: Some(found.job.to_string()),
            executable: printable(&found.executable.path),
        };
    }

    /// Belongs to the same job as another image: both tell the same of themselves, and the other one's job is known better.
    pub(super) fn adopt_job_of(&mut self, other: &Self) -> bool {
        let is_same =
            self.noted_job == other.noted_job && self.origin.boot == other.origin.boot && self.owner == other.owner;
        if is_same {
            self.identity.job.clone_from(&other.identity.job);
        }
        is_same
    }

    pub(super) fn owner(&self) -> u32 {
        self.owner
    }

    pub(super) fn is_same_file(&self, other: &Self) -> bool {
        self.file == other.file
    }

    pub(super) fn process(&self) -> Option<&Process> {
        self.process.as_ref()
    }

    /// With what it has ended, if it was not successful and that is known. What a process has ended with after it was replaced is the
    /// other program's; and so may be an exit status if nothing was said of either: whoever has exited as this one has said so. Of one that had
    /// ended before it was looked at, its own word is all that there is.
    pub(super) fn failure(&self) -> Option<Failure> {
        let is_own = |failure: &Failure| matches!(failure, Failure::Signal(_)) || self.left_ns != 0;
        let said = || self.left_with.filter(|&status| status != 0 && self.process.is_none()).map(Failure::ExitStatus);
        self.failure.or_else(said).filter(|failure| self.replaced_ns.is_none() && is_own(failure))
    }

    /// When the process went on as another program, if it has: whoever was about to be replaced and lives has done so once the tables are not
    /// in its memory any more.
    pub(super) fn execed_ns(&self) -> Option<u64> {
        let has_gone = |process: &Process| {
            let tables = Mappings::with_suffix(process, SUFFIX);
            tables.is_ok_and(|tables| tables.iter().all(|mapped| mapped.id.inode != self.file.1))
        };
        self.replaced_ns.filter(|_| self.process.as_ref().is_none_or(has_gone))
    }

    pub(super) fn identity(&self) -> &Identity {
        &self.identity
    }

    pub(super) fn origin(&self) -> &Origin {
        &self.origin
    }

    /// The same process as another image's: by an exec the later one has replaced the earlier one.
    pub(super) fn is_later_image_than(&self, earlier: &Self) -> bool {
        let of =
            |image: &Self| (image.origin.boot, image.origin.pid_namespace, image.origin.pid, image.origin.start_ticks);
        of(self) == of(earlier) && self.origin.began_ns > earlier.origin.began_ns
    }

    /// What counting a call costs it, ns; 0: not measured.
    pub(super) fn per_call_ns(&self) -> f64 {
        self.cost.0 as f64 / COST_UNIT
    }

    /// The part of that within measured durations.
    pub(super) fn self_cost(&self) -> SelfCost {
        // Without the one the other was not measured either.
        SelfCost(Some(self.cost.1 as f64 / COST_UNIT).filter(|_| self.cost.0 > 0))
    }

    /// The process has ended, or has become another program.
    pub(super) fn note_end(&mut self, at_ns: u64) {
        if let Some(process) = self.process.take() {
            self.failure = process.failure();
            self.gone_ns = Some(at_ns);
            self.has_ended = true;
        }
    }

    /// Whether nobody writes to the tables any more, for certain.
    pub(super) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Reads the tables, as those of process slot `slot`, once and for all, and closes them. Tells whether that was possible.
    pub(super) fn read_last_words(&mut self, slot: u32) -> bool {
        let Tables::Open(tables) = &self.tables else { return true };
        let read = || -> Result<_, TableFileError> { Ok((tables.header()?, tables.snapshot(slot)?, tables.code()?)) };
        // What cannot be read is asked for again, and then it is said why.
        let Ok((header, snapshot, code)) = read() else { return false };
        self.note(&header);
        self.tables = Tables::Read(Box::new(LastWords::new(snapshot, code)));
        true
    }

    /// Gives room back that the tables of a process that has ended have asked for and not needed.
    pub(super) fn give_room_back(&self) {
        if let Tables::Open(tables) = &self.tables
            && let Err(error) = tables.give_room_back()
        {
            tracing::debug!("tables of process {} stay as large as they are: {error}", self.origin.pid);
        }
    }

    /// What its tables say now, and who it is, as process slot `slot`.
    pub(super) fn read(&mut self, slot: u32, execed: bool) -> Result<(Observed, ProcessSnapshot), TableFileError> {
        let (header, mut snapshot) = match &self.tables {
            Tables::Open(tables) => (Some(tables.header()?), tables.snapshot(slot)?),
            Tables::Read(last) => (None, last.snapshot()),
        };
        if let Some(header) = &header {
            self.note(header);
        }
        let execed_ns = self.execed_ns();
        let execed = execed || execed_ns.is_some();
        let has_ended = execed || self.left_ns != 0 || self.process.is_none();
        let state = self.process.as_ref().and_then(|process| process.stat().ok()).map(|stat| stat.state);
        let mut observed = Observed {
            process: slot,
            identity: self.identity.clone(),
            state: RankState::Running,
            stopped: !has_ended && matches!(state, Some('T' | 't')),
            since_ns: self.origin.began_ns,
            beginning: Beginning::FirstCall,
            until_ns: None,
            failure: self.failure().filter(|_| !execed),
            ended_in: Vec::new(),
            self_cost: self.self_cost(),
        };
        if has_ended {
            let last =
                snapshot.threads.iter().map(|thread| thread.state.last_return_ns.max(thread.state.open.started_ns));
            let last = last.chain(snapshot.ended_threads.iter().map(|thread| thread.ended_ns));
            let last = last.max().unwrap_or(0).max(self.origin.began_ns);
            // It may have ended long before that was noticed, but not before its own last words.
            let left_ns = Some(self.left_ns).filter(|&ns| ns != 0);
            let known = execed_ns.or(left_ns).or(self.gone_ns.filter(|_| !execed));
            let until = known.unwrap_or(last).max(last);
            observed.state = if execed { RankState::Execed } else { RankState::Ended };
            observed.until_ns = Some(until);
            observed.ended_in = fold_threads(&mut snapshot, until);
        }
        Ok((observed, snapshot))
    }

    /// As a trace calls it, that it is recorded in from its first call on.
    pub(super) fn as_traced(&self) -> TracedProcess {
        traced_process(&self.identity, self.library.1.clone(), self.origin.began_ns, false)
    }

    /// When the program asked last for results, ns; 0: it has not.
    pub(super) fn flushed_ns(&self) -> u64 {
        self.tables().and_then(|tables| tables.flushed_ns().ok()).unwrap_or(0)
    }

    /// The file, as long as it is not read for the last time.
    pub(super) fn tables(&self) -> Option<&TableFile> {
        match &self.tables {
            Tables::Open(tables) => Some(tables),
            Tables::Read(_) => None,
        }
    }

    /// What has its last calls written down. The file is only written to if it is the process's own.
    pub(super) fn recent_switch(&self) -> io::Result<RecentSwitch> {
        let process = self.process.as_ref().ok_or(io::ErrorKind::NotFound)?;
        let user = process.status().map_err(io::Error::other)?.users.real;
        let tables = self.tables().ok_or(io::ErrorKind::NotFound)?;
        if tables.owner()? != user {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "they belong to another user"));
        }
        tables.recent_switch()
    }

    /// What it has noted of where it has code.
    pub(super) fn code(&self) -> Option<Vec<u8>> {
        let list = match &self.tables {
            Tables::Open(tables) => tables.code().ok(),
            Tables::Read(last) => Some(last.code()),
        };
        list.filter(|list| !list.is_empty())
    }

    pub(super) fn library_file(&self) -> Option<&MappedFile> {
        self.library_file.as_ref()
    }

    pub(super) fn library(&self) -> LibraryInfo {
        LibraryInfo {
            path: self.library.0.clone(),
            implementation: self.library.1.clone(),
            build_id: None,
            functions: usize::try_from(self.functions).unwrap_or(0).min(mpiprobe_functions::COUNT),
            slow: Vec::new(),
            not_probed: Vec::new(),
        }
    }
}

/// Whether the process of these tables was one of this node, and is no more. What cannot be found out is not so.
fn has_ended(header: &Origin, here: &Here, root: &ProcRoot) -> Result<bool, TableFileError> {
    if !here.numbers_processes_of(header) {
        return Ok(false);
    }
    match Process::open(root, header.pid) {
        Ok(process) => Ok(process.id().start_ticks != header.start_ticks || !process.is_alive()),
        // Later there may be fewer.
        Err(ProcessError::TooManyFiles { source, .. }) => Err(source.into()),
        Err(error) => Ok(error.is_gone()),
    }
}

/// What the library calls itself, as eBPF has it: `MPICH 4.0.2` of `MPICH Version:\t4.0.2`, and `Open MPI 4.1.4` of
/// `Open MPI v4.1.4, package: Debian OpenMPI, …`. How it was built is in further lines, and behind commas.
fn implementation(noted: &[u8]) -> String {
    let text = noted.split(|&byte| matches!(byte, 0 | b'\n' | b',')).next().unwrap_or_default();
    let words = text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty() && *word != b"Version:");
    words.map(without_v).map(printable).collect::<Vec<_>>().join(" ")
}

/// `4.1.4` of `v4.1.4`.
fn without_v(word: &[u8]) -> &[u8] {
    match word {
        [b'v', number @ ..] if number.first().is_some_and(u8::is_ascii_digit) => number,
        _ => word,
    }
}

/// From what the process has noted of its environment.
fn identity(header: &Header) -> Identity {
    let environment = Environment::new(header.environment.to_vec(), false);
    let rank = RankInfo::from_environment(&environment, false);
    Identity {
        host: text(&header.host),
        pid: header.pid,
        rank: rank.rank,
        size: rank.size,
        job: Some(JobKey::of_environment(&rank, &environment, header.parent, header.pid).to_string()),
        executable: text(&header.executable),
    }
}

#[cfg(test)]
mod tests {
    use super::implementation;

    #[test]
    fn a_library_is_called_by_name_and_version() {
        for (noted, name) in [
            (
                "MPICH Version:\t4.0.2\nMPICH Release date:\tThu Apr  7 12:34:45 CDT 2022\nMPICH ABI:\t14:2:2\n",
                "MPICH 4.0.2",
            ),
            (
                "Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4, repo rev: v4.1.4, May 26, 2022\0",
                "Open MPI 4.1.4",
            ),
            ("Intel(R) MPI Library 2021.18.1 for Linux* OS\n", "Intel(R) MPI Library 2021.18.1 for Linux* OS"),
            ("", ""),
        ] {
            assert_eq!(implementation(noted.as_bytes()), name);
        }
    }
}
