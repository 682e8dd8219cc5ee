//! What makes a file an MPI C library or a tool, and remembering the answer.

use std::collections::HashMap;
use std::sync::Arc;

use mpiprobe_elf::Architecture;
use serde::Serialize;

use super::{
    foreign::{FileState, ForeignFile},
    mappings::FileId,
};

/// What a file is that defines functions of MPI.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Recognised {
    pub role: Role,
    /// The name that programs link against (DT_SONAME); none in a program with MPI linked in.
    pub soname: Option<String>,
    /// Whether the profiling names (PMPI_) are defined as well. An implementation has them, a tool that wraps MPI does
    /// not: it calls them.
    pub defines_pmpi: bool,
    /// A program that contains MPI itself.
    pub is_static: bool,
    pub architecture: Architecture,
    /// Name and version of the implementation, such as `Open MPI 4.1.4`; `None` if the recogniser does not tell.
    pub implementation: Option<String>,
}

impl Recognised {
    /// Whether it is MPI itself, as far as can be told without what else a process has mapped; what stands before it defines MPI's
    /// functions as well.
    pub fn implements_mpi(&self) -> bool {
        self.role.may_be_library() && (self.defines_pmpi || self.is_static)
    }
}

/// What a file that defines functions of MPI is to a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// It implements MPI.
    Library,
    /// It defines functions of MPI and passes calls on to another file, but all that a library would define is there: where no
    /// other file implements MPI, this one does.
    ToolOrLibrary,
    /// It defines some functions of MPI and passes calls on to another file.
    Tool,
}

impl Role {
    /// Whether MPI may be here.
    pub const fn may_be_library(self) -> bool {
        matches!(self, Self::Library | Self::ToolOrLibrary)
    }

    /// Whether it may stand between the program and another file.
    pub const fn may_be_tool(self) -> bool {
        matches!(self, Self::Tool | Self::ToolOrLibrary)
    }
}

/// Tells whether a file defines the C functions of MPI.
///
/// A file's name must not matter: MPICH's library is `libmpich.so.12` on Debian, and anybody may call anything `libmpi`.
pub trait Recognise {
    /// Examines a regular file, open at its start; `None` if it is neither an MPI C library nor a tool (or not ELF,
    /// or damaged).
    fn recognise(&mut self, file: &ForeignFile, id: FileId) -> Option<Recognised>;
}

impl<F: FnMut(&ForeignFile, FileId) -> Option<Recognised>> Recognise for F {
    fn recognise(&mut self, file: &ForeignFile, id: FileId) -> Option<Recognised> {
        self(file, id)
    }
}

/// A recogniser that examines each file once, however many processes map it.
#[derive(Debug)]
pub struct Cache<R> {
    recogniser: R,
    known: HashMap<FileId, CachedFile>,
    round: u64,
}

#[derive(Debug)]
struct CachedFile {
    /// Changes when the file is written to, or when its inode number is given to another file.
    content: FileState,
    /// When it was last compared with the file.
    round: u64,
    /// It is remembered, whether or not it is asked about.
    pinned: bool,
    answer: Option<Arc<Recognised>>,
}

impl<R: Recognise> Cache<R> {
    pub fn new(recogniser: R) -> Self {
        Self { recogniser, known: HashMap::new(), round: 0 }
    }

    /// Starts a scan: in it, each file is opened once to see whether it is still the one that was examined.
    pub fn begin_round(&mut self) {
        let last = self.round;
        self.known.retain(|_, known| known.pinned || known.round == last);
        self.round += 1;
    }

    /// The answer for the file `id`, which `open` opens if it has not been seen in this round.
    pub fn look_up<E>(
        &mut self,
        id: FileId,
        open: impl FnOnce() -> Result<ForeignFile, E>,
    ) -> Result<Option<Arc<Recognised>>, E> {
        if let Some(known) = self.known.get(&id).filter(|known| known.round == self.round) {
            return Ok(known.answer.clone());
        }
        let file = open()?;
        let Ok(content) = file.state() else { return Ok(None) };
        let pinned = self.known.get(&id).is_some_and(|known| known.pinned);
        let answer = match self.known.get(&id).filter(|known| known.content == content) {
            Some(known) => known.answer.clone(),
            None => self.recogniser.recognise(&file, id).map(Arc::new),
        };
        self.known.insert(id, CachedFile { content, round: self.round, pinned, answer: answer.clone() });
        Ok(answer)
    }

    /// The same of a file that will be asked about later, perhaps when there is no time to examine it.
    pub fn pin<E>(
        &mut self,
        id: FileId,
        open: impl FnOnce() -> Result<ForeignFile, E>,
    ) -> Result<Option<Arc<Recognised>>, E> {
        let answer = self.look_up(id, open)?;
        if let Some(known) = self.known.get_mut(&id) {
            known.pinned = true;
        }
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;
    use std::io::Write as _;

    const ID: FileId = FileId { major: 1, minor: 2, inode: 3 };

    #[test]
    fn a_file_is_examined_again_only_when_it_has_changed() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let mut opened = 0;
        let mut examined = 0;
        let mut cache = Cache::new(|_: &ForeignFile, _| {
            examined += 1;
            None
        });
        let mut look_up = |cache: &mut Cache<_>, file: &tempfile::NamedTempFile| {
            let open = || {
                opened += 1;
                Ok::<_, Infallible>(file.reopen().unwrap().into())
            };
            assert_eq!(cache.look_up(ID, open), Ok(None));
        };
        for _ in 0..3 {
            look_up(&mut cache, &file);
        }
        cache.begin_round();
        look_up(&mut cache, &file);
        cache.begin_round();
        file.write_all(b"more").unwrap();
        look_up(&mut cache, &file);
        assert_eq!(opened, 3);
        assert_eq!(examined, 2);
    }

    #[test]
    fn files_no_longer_mapped_are_forgotten() {
        let mut cache = Cache::new(|_: &ForeignFile, _| None);
        let open = || Ok::<_, Infallible>(tempfile::tempfile().unwrap().into());
        cache.look_up(ID, open).unwrap();
        cache.begin_round();
        assert_eq!(cache.known.len(), 1);
        cache.begin_round();
        assert_eq!(cache.known.len(), 0);
    }

    #[test]
    fn pinned_files_are_remembered() {
        let mut examined = 0;
        let mut cache = Cache::new(|_: &ForeignFile, _| {
            examined += 1;
            None
        });
        let file = tempfile::tempfile().unwrap();
        cache.pin(ID, || file.try_clone().map(Into::into)).unwrap();
        for _ in 0..3 {
            cache.begin_round();
        }
        cache.look_up(ID, || file.try_clone().map(Into::into)).unwrap();
        assert_eq!(examined, 1);
    }

    #[test]
    fn a_failure_to_open_is_not_remembered() {
        let mut cache = Cache::new(|_: &ForeignFile, _| None);
        assert_eq!(cache.look_up(ID, || Err("no")), Err("no"));
        assert_eq!(cache.look_up(ID, || Ok::<_, &str>(tempfile::tempfile().unwrap().into())), Ok(None));
    }
}
