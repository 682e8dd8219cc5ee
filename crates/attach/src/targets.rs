//! The allow-list of processes that the programs consult before anything else.

use aya::maps::{HashMap, MapData, MapError};
use mpiprobe_common::Target;

use super::{AttachError, Tables, pod::Plain};

/// The allow-list. Processes may also get onto it in the kernel, by exec.
#[derive(Debug)]
pub struct Targets<'a> {
    map: HashMap<&'a mut MapData, u32, Plain<Target>>,
}

impl<'a> Targets<'a> {
    pub fn of(tables: &'a mut Tables) -> Result<Self, AttachError> {
        let map = HashMap::try_from(tables.map_mut("TARGETS")?)
            .map_err(|source| AttachError::Object { source: Box::new(source) })?;
        Ok(Self { map })
    }

    /// Observes a process from now on, or changes how.
    pub fn allow(&mut self, tgid: u32, target: Target) -> Result<(), AttachError> {
        self.map.insert(tgid, Plain(target), 0).map_err(table_error)
    }

    /// The slot of a process that is on the list, put there by the kernel perhaps.
    pub fn slot_of(&self, tgid: u32) -> Option<u32> {
        self.map.get(&tgid, 0).ok().map(|Plain(target)| target.process)
    }

    /// Observes a process no longer. Not being on the list is no error.
    pub fn remove(&mut self, tgid: u32) -> Result<(), AttachError> {
        match self.map.remove(&tgid) {
            Ok(()) | Err(MapError::KeyNotFound | MapError::ElementNotFound) => Ok(()),
            Err(MapError::SyscallError(error)) if error.io_error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(table_error(error)),
        }
    }
}

/// Makes a process the first member of the job: what it executes, and what all that it starts execute, is observed. There must be
/// [`mpiprobe_common::Config::job`].
pub fn begin_job(tables: &mut Tables, tgid: u32) -> Result<(), AttachError> {
    const TABLE: &str = "JOB";
    let map = tables.map_mut(TABLE)?;
    let mut members: HashMap<_, u32, u32> =
        HashMap::try_from(map).map_err(|source| AttachError::Object { source: Box::new(source) })?;
    members.insert(tgid, 0, 0).map_err(|error| failed(TABLE, error))
}

fn table_error(error: MapError) -> AttachError {
    failed("TARGETS", error)
}

fn failed(table: &'static str, error: MapError) -> AttachError {
    let source = match error {
        MapError::SyscallError(error) => error.io_error,
        error => std::io::Error::other(error),
    };
    AttachError::Table { table, source }
}
