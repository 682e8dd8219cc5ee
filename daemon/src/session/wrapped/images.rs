//! All process images that are shown together, and what their tables say.

use std::{
    collections::{BTreeMap, HashSet},
    path::{Path, PathBuf},
};

use mpiprobe_discover::{ForeignFile, MpiProcess, ProcRoot, Process};
use mpiprobe_model::{LibraryInfo, analyse::Observed};
use mpiprobe_observe::{FileRings, Snapshot, TableFileError, monotonic_ns};

use super::{clocks::Clocks, datatypes::Datatypes, hosts::unite_jobs, image::Image, place::Here, recent::RecentCalls};
use crate::preload::{DirectoryError, tables_in};

/// A file that nobody has decided about yet, and what is in it.
pub(super) type NewFile = (PathBuf, Result<Image, TableFileError>);

/// What becomes of the file of a process that has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::session) enum Keeping {
    /// It stays open: its last calls may be looked at.
    #[default]
    Open,
    /// It is read, and closed.
    Closed,
    /// It stays, with the room that it needs.
    Small,
    /// It goes: nobody else asks for it.
    Nothing,
}

impl Keeping {
    /// The process of an image may have ended: then its tables are read for the last time.
    fn close(self, slot: u32, image: &mut Image, path: Option<&PathBuf>) {
        // Tables of other nodes are read once where they are only reported.
        let is_closed = image.has_ended() || (self == Self::Closed && image.process().is_none());
        if self == Self::Open || !is_closed {
            return;
        }
        if self == Self::Small {
            image.give_room_back();
        }
        if image.read_last_words(slot)
            && self == Self::Nothing
            && let Some(path) = path
            && let Err(error) = std::fs::remove_file(path)
        {
            tracing::debug!("cannot remove {}: {error}", path.display());
        }
    }
}

/// The files that were found, and why some are of no use.
#[derive(Debug)]
pub(super) struct Images {
    root: ProcRoot,
    here: Here,
    /// By process slot.
    taken: Vec<Image>,
    /// Where they were found, by process slot.
    paths: BTreeMap<u32, PathBuf>,
    keeping: Keeping,
    /// Where rings are wanted: those of images that were taken in since the last time, by slot.
    rings: Option<Vec<(u32, Result<FileRings, TableFileError>)>>,
    refused: BTreeMap<PathBuf, String>,
    /// Whose files are believed besides those of this user; `None`: anybody's.
    owners: Option<HashSet<u32>>,
    /// Files that need not be looked at again.
    known: HashSet<PathBuf>,
    /// Until when programs' requests for results have been seen, ns.
    flushed_ns: u64,
    recent: RecentCalls,
    datatypes: Datatypes,
}

impl Images {
    pub(super) fn new(root: ProcRoot) -> Self {
        Self {
            root,
            here: Here::now(),
            taken: Vec::new(),
            paths: BTreeMap::new(),
            keeping: Keeping::default(),
            rings: None,
            refused: BTreeMap::new(),
            owners: Some(HashSet::from([rustix::process::getuid().as_raw()])),
            known: HashSet::new(),
            flushed_ns: monotonic_ns(),
            recent: RecentCalls::default(),
            datatypes: Datatypes::default(),
        }
    }

    /// Files of all users are believed.
    pub(super) fn take_of_any_owner(&mut self) {
        self.owners = None;
    }

    /// The numbers of all processes whose tables were taken in.
    pub(super) fn pids(&self) -> HashSet<u32> {
        self.taken.iter().map(|image| image.origin().pid).collect()
    }

    /// Opens those files of a directory that nobody has decided about yet.
    pub(super) fn new_in(&self, directory: &Path) -> Result<Vec<NewFile>, DirectoryError> {
        let new = tables_in(directory)?.into_iter().filter(|path| !self.known.contains(path));
        Ok(new.map(|path| (self.open(&path), path)).map(|(image, path)| (path, image)).collect())
    }

    /// A file that anybody may have put there.
    fn open(&self, path: &Path) -> Result<Image, TableFileError> {
        let image = Image::open(path, &self.here, &self.root)?;
        match &self.owners {
            Some(owners) if !owners.contains(&image.owner()) => Err(TableFileError::OtherOwner(image.owner())),
            _ => Ok(image),
        }
    }

    /// The tables that a process has mapped, if they are its own; other files of its owner's are believed from then on. `None`: they
    /// are those of another process that lives, as a forked child has them.
    pub(super) fn mapped_by(
        &mut self,
        process: &MpiProcess,
        file: ForeignFile,
    ) -> Result<Option<Image>, TableFileError> {
        let mut image = Image::of_file(file)?;
        if !image.adopt(process, &self.here)? {
            let is_anothers = self.here.process(&self.root, image.origin(), image.owner()).is_some();
            return if is_anothers { Ok(None) } else { Err(TableFileError::OtherProcess(image.origin().pid)) };
        }
        if let Some(owners) = &mut self.owners {
            owners.insert(image.owner());
        }
        Ok(Some(image))
    }

    /// Takes an image in; gives its slot. `None`: it is there already, under another name.
    pub(super) fn take(&mut self, path: PathBuf, image: Image) -> Option<u32> {
        self.refused.remove(&path);
        self.known.insert(path.clone());
        let slot = u32::try_from(self.taken.len()).ok()?;
        // A file that was removed has left its number to others.
        if self.taken.iter().any(|other| other.is_same_file(&image) && other.tables().is_some()) {
            return None;
        }
        let mut image = image;
        if let (Some(rings), Some(tables)) = (&mut self.rings, image.tables()) {
            // Before the file is closed.
            rings.push((slot, FileRings::of(tables)));
        }
        self.keeping.close(slot, &mut image, Some(&path));
        self.taken.push(image);
        self.paths.insert(slot, path);
        Some(slot)
    }

    /// From now on the rings of images are wanted.
    pub(super) fn want_rings(&mut self) {
        self.rings.get_or_insert_default();
    }

    /// Those of images that were taken in since the last time.
    pub(super) fn take_rings(&mut self) -> Vec<(u32, Result<FileRings, TableFileError>)> {
        self.rings.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// A file is of no use; it may be whole the next time.
    pub(super) fn refuse(&mut self, path: PathBuf, why: &TableFileError) {
        self.refused.insert(path, why.to_string());
    }

    /// A file is none of those that are asked for.
    pub(super) fn pass_over(&mut self, path: PathBuf) {
        self.known.insert(path);
    }

    /// Takes in everything that is new in a directory, one after the other, so that no more files are open than of living processes; gives
    /// the slots of those.
    pub(super) fn take_all(&mut self, directory: &Path) -> Result<Vec<u32>, DirectoryError> {
        let mut slots = Vec::new();
        for path in tables_in(directory)? {
            if self.known.contains(&path) {
                continue;
            }
            match self.open(&path) {
                Ok(image) => slots.extend(self.take(path, image)),
                Err(error) => self.refuse(path, &error),
            }
        }
        Ok(slots)
    }

    pub(super) fn get(&self, slot: u32) -> Option<&Image> {
        self.taken.get(slot as usize)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Image> {
        self.taken.iter()
    }

    /// The process of a slot, while it lives.
    pub(super) fn process(&self, slot: u32) -> Option<&Process> {
        self.get(slot)?.process()
    }

    /// Processes have ended, given by their slots.
    pub(super) fn note_ends(&mut self, slots: &[u64]) {
        let now = monotonic_ns();
        for (slot, image) in (0..).zip(&mut self.taken).filter(|(slot, _)| slots.contains(&u64::from(*slot))) {
            image.note_end(now);
            self.keeping.close(slot, image, self.paths.get(&slot));
        }
    }

    /// What becomes of the files of processes that have ended; nothing, unless it is said.
    pub(super) fn keep(&mut self, keeping: Keeping) {
        self.keeping = keeping;
    }

    /// Processes may have ended that were not watched.
    pub(super) fn note_silent_ends(&mut self) {
        let now = monotonic_ns();
        for (slot, image) in (0..).zip(&mut self.taken) {
            if image.process().is_some_and(|process| !process.is_alive()) {
                image.note_end(now);
                self.keeping.close(slot, image, self.paths.get(&slot));
            }
        }
    }

    /// Whether a process still runs.
    pub(super) fn is_anybody_left(&self) -> bool {
        self.taken.iter().any(|image| image.process().is_some_and(Process::is_alive))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.taken.is_empty()
    }

    /// Whether a program has asked since the last time for what was counted to be written out.
    pub(super) fn take_flush(&mut self) -> bool {
        let living = self.taken.iter().filter(|image| image.process().is_some());
        let last_ns = living.map(Image::flushed_ns).max().unwrap_or(0);
        let is_new = last_ns > self.flushed_ns;
        self.flushed_ns = self.flushed_ns.max(last_ns);
        is_new
    }

    /// Files of no use, and why.
    pub(super) fn refused(&self) -> impl Iterator<Item = String> {
        self.refused.iter().map(|(path, why)| unread(path, why))
    }

    /// The libraries that were wrapped, each once.
    pub(super) fn libraries(&self) -> Vec<LibraryInfo> {
        let mut libraries: Vec<LibraryInfo> = Vec::new();
        for library in self.taken.iter().map(Image::library) {
            if !libraries.contains(&library) {
                libraries.push(library);
            }
        }
        libraries
    }

    /// Whether the last calls of each rank are to be shown.
    pub(super) fn show_recent_calls(&mut self, wanted: bool) {
        self.recent.show(&self.taken, wanted);
    }

    /// They are, still: to be said several times a second.
    pub(super) fn go_on_with_recent_calls(&mut self) {
        self.recent.renew(&self.taken);
    }

    /// Everything as it is now, and why it is not whole. Times are those of this node, or if nobody was here, of the first one's.
    pub(super) fn read(&mut self) -> (Vec<Observed>, Snapshot, Vec<String>) {
        let is_running = self.is_anybody_left();
        let clocks = Clocks::of(&self.here, self.taken.iter().map(Image::origin));
        let execed: Vec<bool> = self.taken.iter().map(|image| self.was_replaced(image)).collect();
        let mut observed = Vec::new();
        let mut snapshot = Snapshot { taken_ns: monotonic_ns(), missed_hits: Some(0), ..Snapshot::default() };
        let mut incomplete: Vec<String> = self.refused().collect();
        for ((slot, image), execed) in (0..).zip(&mut self.taken).zip(execed) {
            match image.read(slot, execed) {
                Ok((mut who, mut tables)) => {
                    self.recent.complete(slot, image, &mut tables);
                    self.datatypes.complete(slot, image, snapshot.taken_ns, &mut tables);
                    clocks.adjust(image.origin(), &mut who, &mut tables);
                    observed.push(who);
                    snapshot.processes.push(tables);
                }
                // Somebody has written to it or cut it short meanwhile.
                Err(error) => {
                    let who = image.identity();
                    incomplete.push(format!("tables of process {} on {} were not read: {error}", who.pid, who.host));
                }
            }
        }
        if !is_running && let Some(last) = observed.iter().filter_map(|who| who.until_ns).max() {
            snapshot.taken_ns = last;
        }
        unite_jobs(&mut observed);
        (observed, snapshot, incomplete)
    }

    /// Whether the process of an image went on as another program.
    fn was_replaced(&self, image: &Image) -> bool {
        self.taken.iter().any(|other| other.is_later_image_than(image))
    }

    /// What counting a call costs, and the part of that within measured durations, as far as it is known, ns: mean over processes.
    pub(super) fn costs(&self) -> (f64, Option<f64>) {
        let mean = |costs: Vec<f64>| {
            let sum: f64 = costs.iter().sum();
            Some(sum / costs.len() as f64).filter(|_| !costs.is_empty())
        };
        let per_call = mean(self.taken.iter().map(Image::per_call_ns).collect());
        (per_call.unwrap_or(0.0), mean(self.taken.iter().filter_map(|image| image.self_cost().0).collect()))
    }
}

fn unread(path: &Path, why: &str) -> String {
    format!("{} was not read: {why}", path.display())
}
