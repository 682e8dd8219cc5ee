//! Which communicators of different processes are one.
//!
//! Making one is collective: all that are in it make those with the same members in the same order. The library's number, where it is
//! known, tells those apart which exist at the same time.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::definition::LocalCommunicator;
use crate::definitions::{Communicator, CommunicatorId, CommunicatorKind, Neighbours, Process, ProcessId};

/// By process and number there, plus one.
pub(super) type Numbers = HashMap<(ProcessId, u32), CommunicatorId>;

/// What all that know one communicator say of it.
type Key<'a> = (Option<&'a str>, u8, u64, Vec<Option<u32>>, Vec<Option<u32>>, [u32; 2]);

struct Group<'a> {
    processes: HashSet<ProcessId>,
    /// By rank.
    neighbours: BTreeMap<u32, &'a Neighbours>,
    /// Until when it existed, in those that have freed it; `None`: not in all.
    freed_ns: Option<u64>,
    first: &'a LocalCommunicator,
}

/// All communicators, and what processes' numbers mean.
pub(super) fn unite(
    known: &BTreeMap<(ProcessId, u32), LocalCommunicator>,
    processes: &[Process],
) -> (Vec<Communicator>, Numbers) {
    let job =
        |local: &LocalCommunicator| processes.get(local.process.index()).and_then(|process| process.job.as_deref());
    let mut locals: Vec<&LocalCommunicator> = known.values().collect();
    locals.sort_by_key(|local| (kind_order(local.kind), !local.was_made, local.first_ns, local.process, local.number));
    let mut groups: Vec<Group<'_>> = Vec::new();
    let mut by_key: HashMap<Key<'_>, Vec<usize>> = HashMap::new();
    let mut numbers = Numbers::new();
    for local in locals {
        let same = by_key.entry(key(local, job(local))).or_default();
        let fits = |group: &Group<'_>| {
            let is_there = local.was_made || group.freed_ns.is_none_or(|ns| ns >= local.first_ns);
            local.kind == CommunicatorKind::Own || !group.processes.contains(&local.process) && is_there
        };
        let found = same.iter().copied().find(|&index| groups.get(index).is_some_and(fits));
        let index = found.unwrap_or_else(|| {
            same.push(groups.len());
            groups.push(Group {
                processes: HashSet::new(),
                neighbours: BTreeMap::new(),
                freed_ns: local.freed_ns,
                first: local,
            });
            groups.len() - 1
        });
        if let Some(group) = groups.get_mut(index) {
            group.processes.insert(local.process);
            if let Some(neighbours) = &local.neighbours {
                group.neighbours.insert(local.rank, neighbours);
            }
            group.freed_ns = group.freed_ns.zip(local.freed_ns).map(|(one, other)| one.max(other));
        }
        numbers.insert((local.process, local.number), CommunicatorId(u32::try_from(index).unwrap_or(u32::MAX)));
    }
    let communicators = groups.iter().map(|group| {
        let local = group.first;
        let parent = local.parent.and_then(|number| numbers.get(&(local.process, number)).copied());
        let world = || match local.kind {
            CommunicatorKind::World if local.members.is_empty() => (0..local.size.min(1 << 22)).map(Some).collect(),
            _ => local.members.clone(),
        };
        Communicator {
            name: local.name.clone(),
            kind: local.kind,
            job: job(local).map(ToOwned::to_owned),
            members: world(),
            remote_members: local.remote_members.clone(),
            parent,
            neighbours: group.neighbours.iter().map(|(&rank, &known)| (rank, known.clone())).collect(),
        }
    });
    (communicators.collect(), numbers)
}

fn kind_order(kind: CommunicatorKind) -> u8 {
    match kind {
        CommunicatorKind::World => 0,
        CommunicatorKind::Own => 1,
        CommunicatorKind::Made => 2,
    }
}

fn key<'a>(local: &LocalCommunicator, job: Option<&'a str>) -> Key<'a> {
    let kind = kind_order(local.kind);
    if local.kind != CommunicatorKind::Made {
        return (job, kind, 0, Vec::new(), Vec::new(), [0; 2]);
    }
    // Each side of an inter-communicator calls the other one remote.
    let (own, other) = (local.members.clone(), local.remote_members.clone());
    let sizes = [local.size.min(local.remote_size), local.size.max(local.remote_size)];
    let (first, second) = if own <= other { (own, other) } else { (other, own) };
    (job, kind, local.context, first, second, sizes)
}
