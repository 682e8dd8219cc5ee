//! Looking at a job: its counts, who waits where.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::{Job, JobError, file_error, files::PROFILE};
use crate::profiler::Profile;
use crate::truth::{Image, Snapshot, Thread, TruthError};

/// A call that has not returned for so long is taken for blocked.
const SETTLED: Duration = Duration::from_millis(50);

impl Job {
    /// All counts up to now, of living and dead ranks. Needs [`truth`](super::JobBuilder::truth).
    pub fn snapshot(&self) -> Result<Snapshot, TruthError> {
        let mut ranks = BTreeMap::new();
        for image in self.images()? {
            // The first image of a rank is the program itself; later ones were executed by it.
            if let Some(rank) = image.rank {
                ranks.entry(rank).or_insert(image);
            }
        }
        Ok(Snapshot { ranks })
    }

    /// The counts of every program image of the job in the order of their start: ranks, what they executed, and so on.
    pub fn images(&self) -> Result<Vec<Image>, TruthError> {
        let mut images = Vec::new();
        for name in self.files("truth-") {
            images.extend(Image::read(&self.directory().join(name))?);
        }
        images.sort_by_key(|image| image.created);
        Ok(images)
    }

    /// What a rank of a program with own counts (see [`program`](crate::program)) says it has called, after it has ended well.
    /// Known without any library being preloaded.
    pub fn own_counts(&self, rank: u32) -> Result<BTreeMap<String, u64>, JobError> {
        let path = self.directory().join(format!("counts-{rank}"));
        let text = fs::read_to_string(&path).map_err(file_error("reading", &path))?;
        let entry = |line: &str| {
            let parsed = line.split_once(' ').and_then(|(name, calls)| Some((name.to_owned(), calls.parse().ok()?)));
            let (job, path, line) = (self.name.clone(), path.clone(), line.to_owned());
            parsed.ok_or(JobError::OwnCounts { job, path, line })
        };
        text.lines().map(entry).collect()
    }

    /// The profile of a job that was [profiled](crate::JobBuilder::profiled), after its end.
    pub fn profile(&self) -> Result<Profile, JobError> {
        let path = self.profile_path();
        let text = fs::read_to_string(&path).map_err(file_error("reading", &path))?;
        let malformed = |error: serde_json::Error| file_error("understanding", &path)(error.into());
        serde_json::from_str(&text).map_err(malformed)
    }

    /// The file that it is in.
    pub fn profile_path(&self) -> PathBuf {
        self.directory().join(PROFILE)
    }

    /// Waits until a thread of the rank is in this function as its outermost call and stays in it: blocked, not passing by.
    pub fn wait_until_inside(&mut self, rank: u32, function: &str) -> Result<(), JobError> {
        let mut seen: Option<(Thread, Instant)> = None;
        self.wait_until(&format!("rank {rank} inside {function}"), |job| {
            let snapshot = job.snapshot()?;
            let threads = snapshot.ranks.get(&rank).map(|image| image.threads.as_slice()).unwrap_or_default();
            let inside = |thread: &&Thread| thread.inside.as_deref() == Some(function);
            match (&seen, threads.iter().find(inside)) {
                (Some((before, since)), Some(_)) if threads.contains(before) => {
                    return Ok((since.elapsed() >= SETTLED).then_some(()));
                }
                (_, Some(thread)) => seen = Some((thread.clone(), Instant::now())),
                (_, None) => seen = None,
            }
            Ok(None)
        })
    }

    /// Waits until every rank has completed so many calls of a function.
    pub fn wait_for_calls(&mut self, function: &str, calls: u64) -> Result<(), JobError> {
        self.wait_until(&format!("{calls} calls of {function} on all ranks"), |job| {
            let snapshot = job.snapshot()?;
            let done = snapshot.ranks.values().filter(|image| image.calls(function).completed >= calls).count();
            Ok((done >= job.size as usize).then_some(()))
        })
    }

    /// Ranks that have reached the gate.
    pub(super) fn ranks_at(&self, gate: &str) -> BTreeSet<u32> {
        let prefix = format!("gate-{gate}.");
        let announced = self.files(&prefix);
        announced.iter().filter_map(|name| name.strip_prefix(&prefix)?.split('.').next()?.parse().ok()).collect()
    }

    fn files(&self, prefix: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.directory()) else { return Vec::new() };
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        names.filter(|name| name.starts_with(prefix)).collect()
    }
}
