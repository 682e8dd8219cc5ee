//! Moments that were read lately: going back and forth reads each once.

use std::{collections::VecDeque, sync::Arc};

use mpiprobe_model::Profile;
use mpiprobe_report::{Moments, SourceError};

/// So much is kept, bytes of JSON; in memory it is a few times more.
const MOST_BYTES: u64 = 32 << 20;

#[derive(Debug, Default)]
pub(super) struct Kept {
    /// Number, size in bytes of JSON, and profile; used last is last.
    profiles: VecDeque<(usize, u64, Arc<Profile>)>,
    bytes: u64,
}

impl Kept {
    pub(super) fn read(&mut self, run: &Moments, index: usize) -> Result<Arc<Profile>, SourceError> {
        let known = self.profiles.iter().position(|(known, ..)| *known == index);
        let entry = if let Some(entry) = known.and_then(|place| self.profiles.remove(place)) {
            entry
        } else {
            let (bytes, profile) = (run.bytes(index), Arc::new(run.moment(index)?));
            self.bytes = self.bytes.saturating_add(bytes);
            (index, bytes, profile)
        };
        let profile = Arc::clone(&entry.2);
        self.profiles.push_back(entry);
        while self.bytes > MOST_BYTES
            && self.profiles.len() > 1
            && let Some((_, bytes, _)) = self.profiles.pop_front()
        {
            self.bytes = self.bytes.saturating_sub(bytes);
        }
        Ok(profile)
    }
}
