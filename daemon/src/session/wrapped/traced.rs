//! Images whose calls are recorded one by one.

use std::{collections::BTreeSet, sync::Arc};

use mpiprobe_discover::Failure;
use mpiprobe_model::WaitStates;
use mpiprobe_observe::monotonic_ns;
use mpiprobe_report::present::say;

use super::{image::Image, images::Images};
use crate::session::{
    sites::Sites,
    trace::{End, FileSource, LineSource, Lines, Tracing},
};

/// Those of a run.
#[derive(Debug)]
pub(super) struct TracedImages {
    tracing: Tracing,
    /// By slot: as long as they go on.
    living: BTreeSet<u32>,
}

impl TracedImages {
    pub(super) fn new(tracing: Tracing, images: &mut Images) -> Self {
        images.want_rings();
        Self { tracing, living: BTreeSet::new() }
    }

    /// Takes in images that are new, and names call sites.
    pub(super) fn look(&mut self, images: &mut Images, sites: &mut Sites) {
        for (slot, rings) in images.take_rings() {
            let Some(image) = images.get(slot) else { continue };
            if !self.tracing.wants(image.identity().rank) {
                // It has been told in its environment to write them. If it cannot be told otherwise, its rings will be full soon.
                if let Some(mut switch) = rings.ok().and_then(|rings| rings.switch().ok())
                    && switch.renew().is_ok()
                {
                    switch.end();
                }
                continue;
            }
            let source = rings.map(Arc::new).map_err(|error| error.to_string()).and_then(|rings| {
                let referred = Box::new(rings.referred());
                let source = FileSource::new(slot, rings, true).map_err(|error| error.to_string())?;
                Ok((referred, Box::new(source) as Box<dyn LineSource>))
            });
            match source {
                Ok((referred, source)) => {
                    self.tracing.add(slot, image.as_traced(), false, referred, Lines::Own(source));
                    self.living.insert(slot);
                }
                Err(why) => say(format_args!("calls of process {} are not recorded: {why}", image.identity().pid)),
            }
        }
        self.note_ends(images);
        // What the wrapper writes says it.
        self.tracing.locate_open_calls(|| ());
        self.name_sites(images, sites, false);
    }

    /// Everybody was looked at who had called MPI by then.
    pub(super) fn know_until(&self, ns: u64) {
        self.tracing.know_until(ns);
    }

    /// Processes may have ended.
    pub(super) fn note_ends(&mut self, images: &Images) {
        let now = monotonic_ns();
        let mut ends = Vec::new();
        self.living.retain(|&slot| {
            let image = images.get(slot);
            let goes_on = image.is_some_and(|image| image.process().is_some());
            if !goes_on {
                let failure = image.and_then(Image::failure);
                let has_execed = image.is_some_and(|image| image.execed_ns().is_some());
                ends.push((slot, End { at_ns: now, has_execed, failure, cut_short: Vec::new() }));
            }
            goes_on
        });
        // Which was the first of those that have ended since the last look, nobody knows: not one that a launcher has ended because of another.
        ends.sort_by_key(|(_, end)| end.failure.is_some_and(Failure::is_termination));
        for (slot, end) in ends {
            self.tracing.end_process(slot, end);
        }
    }

    fn name_sites(&mut self, images: &Images, sites: &mut Sites, is_last: bool) {
        self.tracing.name_sites(|slot, address| sites.call_site(slot, address, images.process(slot), is_last));
    }

    /// Who waits for whom, as far as it is known by now, if that was asked for.
    pub(super) fn wait_states(&self) -> Option<WaitStates> {
        self.tracing.wait_states()
    }

    /// Nothing more will be known of their call sites.
    pub(super) fn conclude(mut self, images: &Images, sites: &mut Sites) -> Tracing {
        self.tracing.stop();
        self.name_sites(images, sites, true);
        self.tracing
    }
}
