//! What the processes of a run have counted, as a profile.

use super::images::Images;
use crate::{
    analyse,
    model::{EndReason, EngineInfo, Profile},
    session::{host, sites::Sites},
};

/// The processes of one run.
#[derive(Debug)]
pub(super) struct Account {
    pub(super) images: Images,
    pub(super) sites: Sites,
    /// Beginning of the run, UTC, and by the clock of the tables, ns.
    pub(super) began: String,
    pub(super) began_ns: u64,
}

impl Account {
    /// Everything up to now.
    pub(super) fn profile(&mut self, end: Option<EndReason>) -> Profile {
        let images = &mut self.images;
        let (observed, snapshot, incomplete_because) = images.read();
        let (per_call_ns, inside_ns) = images.costs();
        let session = analyse::Session {
            host: host::name(),
            began: self.began.clone(),
            began_ns: images.began_ns().map_or(self.began_ns, |first| first.min(self.began_ns)),
            end,
            engine: EngineInfo {
                engine: "wrapper",
                attached_by: "LD_PRELOAD".to_owned(),
                attach_ns: 0,
                libraries: images.libraries(),
            },
            per_call_ns,
            inside_ns,
            nested: false,
            traffic: true,
            communicators: Vec::new(),
            incomplete_because,
        };
        let sites = &mut self.sites;
        analyse::profile(&session, &observed, &snapshot, &mut |slot, address| sites.name(slot, address, None))
    }
}
