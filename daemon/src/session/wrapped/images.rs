//! All process images of a run.

use std::{collections::BTreeMap, path::PathBuf};

use super::image::Image;
use crate::{
    analyse::Observed,
    discover::{ProcRoot, Process},
    model::LibraryInfo,
    observe::{Snapshot, monotonic_ns},
    preload::{DirectoryError, RunDirectory},
};

/// The files that were found, and why some are of no use.
#[derive(Debug)]
pub(super) struct Images {
    root: ProcRoot,
    by_path: BTreeMap<PathBuf, Image>,
    refused: BTreeMap<PathBuf, String>,
}

impl Images {
    pub(super) fn new(root: ProcRoot) -> Self {
        Self { root, by_path: BTreeMap::new(), refused: BTreeMap::new() }
    }

    /// Takes in files that are new; gives those whose processes live.
    pub(super) fn look(&mut self, directory: &RunDirectory) -> Result<Vec<&Image>, DirectoryError> {
        let mut new = Vec::new();
        for path in directory.files()? {
            if self.by_path.contains_key(&path) {
                continue;
            }
            let slot = u32::try_from(self.by_path.len()).unwrap_or(u32::MAX);
            match Image::open(&path, slot, &self.root) {
                Ok(image) => {
                    self.refused.remove(&path);
                    self.by_path.insert(path.clone(), image);
                    new.push(path);
                }
                // It may be whole the next time.
                Err(error) => {
                    self.refused.insert(path, error.to_string());
                }
            }
        }
        let new = new.iter().filter_map(|path| self.by_path.get(path));
        Ok(new.filter(|image| image.process().is_some()).collect())
    }

    /// Processes have ended, given by their slots.
    pub(super) fn note_ends(&mut self, slots: &[u64]) {
        let now = monotonic_ns();
        for image in self.by_path.values_mut().filter(|image| slots.contains(&image.slot().into())) {
            image.note_end(now);
        }
    }

    /// Processes may have ended that were not watched.
    pub(super) fn note_silent_ends(&mut self) {
        let now = monotonic_ns();
        for image in self.by_path.values_mut() {
            if image.process().is_some_and(|process| !process.is_alive()) {
                image.note_end(now);
            }
        }
    }

    /// Whether a process still runs.
    pub(super) fn is_anybody_left(&self) -> bool {
        self.by_path.values().any(|image| image.process().is_some_and(Process::is_alive))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_path.is_empty()
    }

    /// The libraries that were wrapped, each once.
    pub(super) fn libraries(&self) -> Vec<LibraryInfo> {
        let mut libraries: Vec<LibraryInfo> = Vec::new();
        for image in self.by_path.values() {
            let library = image.library();
            if !libraries.contains(&library) {
                libraries.push(library);
            }
        }
        libraries
    }

    /// Everything as it is now, and why it is not whole.
    pub(super) fn read(&mut self) -> (Vec<Observed>, Snapshot, Vec<String>) {
        let execed: Vec<u32> =
            self.by_path.values().filter(|image| self.was_replaced(image)).map(Image::slot).collect();
        let mut observed = Vec::new();
        let mut snapshot = Snapshot { taken_ns: monotonic_ns(), missed_hits: Some(0), ..Snapshot::default() };
        let unread = |path: &PathBuf, why: &dyn std::fmt::Display| format!("{} was not read: {why}", path.display());
        let mut incomplete: Vec<String> = self.refused.iter().map(|(path, why)| unread(path, why)).collect();
        for (path, image) in &mut self.by_path {
            match image.read(execed.contains(&image.slot())) {
                Ok((who, tables)) => {
                    observed.push(who);
                    snapshot.processes.push(tables);
                }
                // Somebody has written to it or cut it short meanwhile.
                Err(error) => incomplete.push(unread(path, &error)),
            }
        }
        (observed, snapshot, incomplete)
    }

    /// Whether the process of an image went on as another program.
    fn was_replaced(&self, image: &Image) -> bool {
        self.by_path.values().any(|other| other.is_later_image_than(image))
    }

    /// What counting a call costs, and the part of that within measured durations, ns: mean over processes.
    pub(super) fn costs(&self) -> (f64, f64) {
        let number = self.by_path.len().max(1) as f64;
        let sums =
            self.by_path.values().map(Image::costs).fold((0.0, 0.0), |sum, cost| (sum.0 + cost.0, sum.1 + cost.1));
        (sums.0 / number, sums.1 / number)
    }

    /// When the first of them began.
    pub(super) fn began_ns(&self) -> Option<u64> {
        self.by_path.values().map(Image::began_ns).min()
    }
}
