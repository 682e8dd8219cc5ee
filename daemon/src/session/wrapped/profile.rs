//! From images to a profile.

use std::collections::BTreeSet;

use mpiprobe_model::{
    EndReason, EngineInfo, Profile,
    analyse::{self, Expected},
};

use super::images::Images;
use crate::session::{host, sites::Sites};

/// What a profile says besides what is in the tables.
#[derive(Debug, Default)]
pub(super) struct RunFacts {
    /// When the command was started, ns: earlier than its processes' first calls. `None`: not known.
    pub(super) started_ns: Option<u64>,
    pub(super) end: Option<EndReason>,
    /// Patterns of names of communicators that are shown; empty: all.
    pub(super) communicators: Vec<String>,
    /// Whether the processes are to be all of their jobs.
    pub(super) expected: Expected,
    /// Why it is not whole, besides files that cannot be read.
    pub(super) missing: Vec<String>,
    /// Call sites by name.
    pub(super) names_sites: bool,
    /// There is no later one.
    pub(super) is_last: bool,
}

/// What all tables say now.
pub(super) fn profile(images: &mut Images, sites: &mut Sites, facts: RunFacts) -> Profile {
    let (observed, snapshot, mut incomplete_because) = images.read();
    incomplete_because.extend(facts.missing);
    let (per_call_ns, inside_ns) = images.costs();
    let first_ns = observed.iter().map(|who| who.since_ns).chain(facts.started_ns).min();
    let hosts: BTreeSet<&str> = observed.iter().map(|who| who.identity.host.as_str()).collect();
    let session = analyse::Session {
        host: if hosts.is_empty() { host::name() } else { hosts.into_iter().collect::<Vec<_>>().join(", ") },
        began: began(images),
        began_ns: first_ns.unwrap_or(snapshot.taken_ns),
        end: facts.end,
        engine: EngineInfo {
            engine: "wrapper",
            attached_by: "LD_PRELOAD".to_owned(),
            launched: facts.started_ns.is_some(),
            attach_ns: 0,
            libraries: images.libraries(),
            tools: Vec::new(),
        },
        per_call_ns,
        inside_ns,
        nested: false,
        traffic: true,
        communicators: facts.communicators,
        expected: facts.expected,
        incomplete_because,
    };
    if facts.names_sites {
        note_code(images, sites);
    }
    sites.begin_naming(facts.is_last);
    let profile = analyse::profile(&session, &observed, &snapshot, &mut |slot, address| {
        facts.names_sites.then(|| sites.name(slot, address, images.process(slot))).flatten()
    });
    if facts.is_last {
        sites.tell_unnamed();
    }
    profile
}

/// Takes over what processes have noted that nobody has looked at while they lived.
fn note_code(images: &Images, sites: &mut Sites) {
    for (slot, image) in (0..).zip(images.iter()) {
        if sites.lack(slot)
            && let Some(list) = image.code()
        {
            sites.add_noted(slot, &list, image.origin().began_unix_ns);
        }
    }
}

/// When the first process made its first call; of nobody, now.
fn began(images: &Images) -> String {
    let first = images.iter().map(|image| image.origin().began_unix_ns).min();
    let first = first.and_then(|ns| jiff::Timestamp::from_nanosecond(i128::from(ns)).ok());
    first.map_or_else(host::utc_now, |first| format!("{first:.3}"))
}
