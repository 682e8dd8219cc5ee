//! The last calls of each rank that counts itself, while the view shows them.

use std::{collections::HashMap, io};

use mpiprobe_observe::{ProcessSnapshot, RecentLog, RecentSnapshot, RecentSwitch, TableFile};

use super::image::Image;
use crate::session::recent::HandleNames;

/// Of all images, by process slot.
#[derive(Debug, Default)]
pub(super) struct RecentCalls {
    /// There is something as long as somebody looks.
    watched: Option<Watched>,
    names: HandleNames,
}

#[derive(Debug, Default)]
struct Watched {
    log: RecentLog,
    switches: HashMap<u32, io::Result<RecentSwitch>>,
}

impl RecentCalls {
    /// Begins to have calls written down, or ends it.
    pub(super) fn show(&mut self, images: &[Image], wanted: bool) {
        if !wanted {
            self.watched = None;
        } else if self.watched.is_none() {
            self.watched = Some(Watched::default());
            self.renew(images);
        }
    }

    /// To be called several times a second: who does not is taken for dead, and calls are overwritten.
    pub(super) fn renew(&mut self, images: &[Image]) {
        let Some(Watched { log, switches }) = &mut self.watched else { return };
        for (slot, image) in (0..).zip(images).filter(|(_, image)| image.process().is_some()) {
            let switch = switches.entry(slot).or_insert_with(|| image.recent_switch());
            // Before the switch, so that no call is missed.
            let numbered = image.tables().and_then(|tables| tables.recent_calls_numbered().ok()).unwrap_or(0);
            match switch.as_mut().map(RecentSwitch::renew) {
                Err(_) => {}
                Ok(Ok(true)) => gather(log, slot, image, numbered),
                // What was written down before is not what came right before.
                Ok(Ok(false)) => log.begin(slot, numbered),
                Ok(Err(error)) => *switch = Err(error),
            }
        }
    }

    /// Adds them to what the tables of an image say.
    pub(super) fn complete(&mut self, slot: u32, image: &Image, tables: &mut ProcessSnapshot) {
        let Some(Watched { log, switches }) = &mut self.watched else { return };
        let why_not = match switches.get(&slot) {
            Some(Err(error)) => Some(format!("none, since its tables cannot be written to: {error}")),
            None if image.process().is_none() => Some("none, since it has ended before".to_owned()),
            Some(Ok(_)) | None => None,
        };
        if log.has(slot) {
            gather(log, slot, image, tables.counters.recent_calls);
        }
        let (calls, layout) = (log.calls(slot), tables.layout);
        let names = self.names.of(&calls, slot, &layout, image.process());
        tables.recent = Some(RecentSnapshot { calls, layout, names, why_not });
    }
}

/// Takes out what is new.
fn gather(log: &mut RecentLog, slot: u32, image: &Image, numbered: u64) {
    if let Some(Ok(ring)) = image.tables().map(TableFile::recent_ring) {
        log.take(slot, numbered, |number| ring.call(number));
    }
}
