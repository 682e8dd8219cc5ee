//! Records what is observed, on a thread of its own: a slow disk must not keep the observation from noticing new ranks.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, SyncSender, TrySendError, sync_channel},
    },
    thread::JoinHandle,
};

use mpiprobe_discover::files::with_callers_rights;
use mpiprobe_model::Profile;

use super::{
    RecordingError,
    writer::{Added, Writer},
};
use crate::present::{say, units};

/// Moments that wait to be written; of a large job each takes megabytes.
const WAITING: usize = 2;

/// What is recorded where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordTo {
    pub path: PathBuf,
    /// Of the file.
    pub mode: u32,
    /// Bytes that the file may have.
    pub limit: u64,
}

impl RecordTo {
    /// Whether it can probably be made: said before anything has been done in vain.
    pub fn check(&self) -> Result<(), RecordingError> {
        match with_callers_rights(|| self.path.symlink_metadata()) {
            Ok(_) => Err(RecordingError::Exists(self.path.clone())),
            Err(_) => Ok(()),
        }
    }
}

/// A recording under way.
#[derive(Debug)]
pub struct Recorder {
    moments: SyncSender<Arc<Profile>>,
    thread: JoinHandle<Result<(), RecordingError>>,
    skipped: Arc<AtomicU64>,
    has_ended: bool,
}

impl Recorder {
    /// Makes the file.
    pub fn begin(to: &RecordTo) -> Result<Self, RecordingError> {
        let writer = Writer::create(&to.path, to.mode, to.limit)?;
        let (moments, arriving) = sync_channel(WAITING);
        let skipped = Arc::new(AtomicU64::new(0));
        let so_far = Arc::clone(&skipped);
        let thread = std::thread::Builder::new().name("recorder".into());
        let thread = thread.spawn(move || record(writer, &arriving, &so_far)).map_err(RecordingError::Start)?;
        Ok(Self { moments, thread, skipped, has_ended: false })
    }

    /// Records a moment, unless too many wait to be written already. The last one is always waited for, and recorded once.
    pub fn add(&mut self, profile: &Arc<Profile>) {
        if self.has_ended {
            return;
        }
        self.has_ended = profile.end.is_some();
        if self.has_ended {
            // If nobody listens any more, it has been said why.
            let _ = self.moments.send(Arc::clone(profile));
        } else if let Err(TrySendError::Full(_)) = self.moments.try_send(Arc::clone(profile)) {
            self.skipped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until everything is written; whether it could be.
    pub fn end(self) -> bool {
        let skipped = self.skipped;
        drop(self.moments);
        let ended = self.thread.join();
        let skipped = skipped.load(Ordering::Relaxed);
        if skipped > 0 {
            say(format_args!("{skipped} moments were not recorded: the file was written too slowly"));
        }
        // What has failed was said when it did.
        matches!(ended, Ok(Ok(())))
    }
}

/// Until there is nothing more to record.
fn record(mut writer: Writer, moments: &Receiver<Arc<Profile>>, skipped: &AtomicU64) -> Result<(), RecordingError> {
    let mut is_full = false;
    let failed = |error: RecordingError| {
        say(&error);
        error
    };
    for profile in moments {
        let added = writer.add(&profile).map_err(failed)?;
        if added == Added::BeyondLimit && !is_full {
            is_full = true;
            let path = writer.path().display();
            say(format_args!(
                "{path} has reached its limit (--record-limit): nothing more is recorded; the observation goes on"
            ));
        }
    }
    let path = writer.path().display().to_string();
    let left_out = writer.end(skipped.load(Ordering::Relaxed)).map_err(failed)?;
    if left_out > 0 {
        say(format_args!(
            "{} moments are not in {path}: it had reached its limit (--record-limit)",
            units::count(left_out)
        ));
    }
    Ok(())
}
