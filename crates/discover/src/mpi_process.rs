//! The MPI library of a process.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use mpiprobe_elf::Architecture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    allocation::Allocation,
    foreign::charged,
    job_key::JobKey,
    launcher::Launcher,
    mappings::{MappedFile, Mappings},
    open_mapped::{OpenMappedError, open_mapped},
    process::{Executable, Process},
    process_error::ProcessError,
    rank::RankInfo,
    recognise::{Cache, Recognise, Recognised},
    text::base_name,
    users::User,
};

/// A mapped file that defines MPI's C functions.
#[derive(Debug, Clone)]
pub struct MpiLibrary {
    pub file: MappedFile,
    pub recognised: Arc<Recognised>,
}

impl MpiLibrary {
    /// Whether it is MPI itself, as far as can be told: not a tool that wraps it.
    pub fn implements_mpi(&self) -> bool {
        self.recognised.implements_mpi() && !is_wrapper(Path::new(&self.file.display_path()))
    }
}

/// Whether that is mpiprobe's own wrapper, of whatever version, by its name: it has all names of MPI.
pub fn is_wrapper(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"libmpiprobe_wrapper"))
}

/// A process with an MPI C library in its memory, whether or not it has called `MPI_Init`.
#[derive(Debug)]
pub struct MpiProcess {
    pub process: Process,
    pub executable: Executable,
    /// Its command name, at most 15 bytes.
    pub comm: Vec<u8>,
    /// What else it may be called by: the command as it was called, and the script if it runs one.
    pub other_names: Vec<Vec<u8>>,
    /// The real user's id.
    pub user: u32,
    /// Its pid as its own pid namespace has it, if that is not this one.
    pub namespace_pid: Option<u32>,
    /// Never empty; the implementation itself comes before tools that wrap it.
    pub libraries: Vec<MpiLibrary>,
    /// Files that may stand between the program and the library: tools on MPI's profiling interface, by where they are mapped.
    pub tools: Vec<MappedFile>,
    pub rank: RankInfo,
    /// Where it runs by the word of batch system, container engine or systemd; what is sure comes first.
    pub allocations: Vec<Allocation>,
    pub job: JobKey,
    pub launcher: Option<Launcher>,
    /// The process that it is a copy of: by fork, without an exec since.
    pub forked_from: Option<u32>,
}

impl MpiProcess {
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Whether a user who says `name` means this process: the base name of its executable, its command name, the base name of
    /// the command as it was called, or that of the script it runs.
    pub fn is_called(&self, name: &[u8]) -> bool {
        self.names().any(|own| own == name)
    }

    /// What it may be called.
    pub fn names(&self) -> impl Iterator<Item = &[u8]> {
        [base_name(&self.executable.path), &self.comm].into_iter().chain(self.other_names.iter().map(Vec::as_slice))
    }

    /// Whether a user who says `--job NAME` means a job of this process: that of MPI, or that of a batch system or a container.
    pub fn is_of_job(&self, name: &str) -> bool {
        self.job.is_meant_by(name) || self.is_allocated_as(name)
    }

    pub(crate) fn is_allocated_as(&self, name: &str) -> bool {
        self.allocations.iter().any(|allocation| allocation.is_meant_by(name))
    }

    /// The library that implements MPI for this process, as far as can be told.
    pub fn library(&self) -> Option<&MpiLibrary> {
        self.libraries.first()
    }

    /// The library's architecture, if mpiprobe cannot observe it.
    ///
    /// It is the library's that counts: under a user-mode emulator the executable is the emulator, a native program.
    pub fn foreign_architecture(&self) -> Option<Architecture> {
        self.library().map(|library| library.recognised.architecture).filter(|architecture| !architecture.is_native())
    }
}

/// What the search for MPI in a process has seen.
#[derive(Debug, Default)]
pub struct Search {
    /// Files that define MPI's C functions, implementations first.
    pub libraries: Vec<MpiLibrary>,
    /// Files that define some of them and pass calls on. The one that implements MPI for the process is not among them.
    pub tools: Vec<MappedFile>,
    /// How many files the process has mapped executable.
    pub examined: usize,
    /// Files that could not be looked into: MPI may be in there.
    pub unopened: Vec<OpenMappedError>,
    /// Executable memory of no file, in bytes.
    pub anonymous_text: u64,
    /// Whether the list of mappings could not be read to its end.
    pub incomplete: bool,
}

impl Search {
    /// That MPI may be in a file which does not answer.
    pub(super) fn unanswered(&self) -> Option<Unanswered> {
        self.unopened.iter().find_map(|error| match error {
            OpenMappedError::NoAnswer { user, path, .. } => {
                let user = User { id: *user, name: String::new() };
                Some(Unanswered { user, processes: 1, path: path.clone() })
            }
            _ => None,
        })
    }

    /// Looks into every file that `process` has mapped executable and `cache` does not know yet.
    pub fn of<R: Recognise>(process: &Process, cache: &Mutex<Cache<R>>) -> Result<Self, ProcessError> {
        let (mappings, user) = (Mappings::of(process)?, process.user()?);
        let mut search = Self {
            examined: mappings.files.len(),
            anonymous_text: mappings.anonymous_text,
            incomplete: mappings.incomplete,
            ..Self::default()
        };
        for file in mappings.files {
            // Held while a file is examined: nobody else is to examine it meanwhile.
            let mut cache = cache.lock().unwrap_or_else(PoisonError::into_inner);
            match charged(user, || cache.look_up(file.id, || open_mapped(process, &file))) {
                Ok(Some(recognised)) => {
                    if recognised.role.may_be_tool() {
                        search.tools.push(file.clone());
                    }
                    if recognised.role.may_be_library() {
                        search.libraries.push(MpiLibrary { file, recognised });
                    }
                }
                Ok(None) => {}
                Err(OpenMappedError::Process(error)) if error.is_gone() => return Err(error),
                Err(error) => search.unopened.push(error),
            }
        }
        search.libraries.sort_by_key(|library| !library.implements_mpi());
        let library = search.libraries.first().map(|library| library.file.id);
        search.tools.retain(|tool| Some(tool.id) != library);
        Ok(search)
    }
}

/// Processes of one user that have mapped files which do not answer, and no MPI library elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unanswered {
    pub user: User,
    pub processes: usize,
    /// One of the files.
    pub path: String,
}

impl fmt::Display for Unanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { user, processes, path } = self;
        let noun = if *processes == 1 { "process" } else { "processes" };
        write!(f, "{processes} {noun} of user {} could not be looked at: {path} does not answer", user.name)
    }
}
