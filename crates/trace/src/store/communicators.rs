//! Which communicators of different processes are one.
//!
//! Making one is collective: all that are in it make those with the same members in the same order; out of different ones, threads may do so
//! at once. The library's number, where it is known, tells those apart which exist at the same time. Each process knows its own place, and
//! all together who is in it.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::definition::LocalCommunicator;
use crate::definitions::{Communicator, CommunicatorId, CommunicatorKind, Neighbours, Process, ProcessId};

/// By process and number there.
pub(super) type Numbers = HashMap<(ProcessId, u32), CommunicatorId>;

/// Members of larger ones are not listed.
const MOST_MEMBERS: u32 = 1 << 22;

/// Size of a group of processes, and some of its members.
type Side = (u32, [Option<u32>; 3]);

/// What all that know one communicator say of it: of each side of an inter-communicator, the smaller one first. With what it was made from, if
/// the library's number is not known.
type Key<'a> = (Option<&'a str>, u8, u64, Option<CommunicatorId>, [Side; 2]);

#[derive(Default)]
struct Group<'a> {
    processes: HashSet<ProcessId>,
    /// Sides and ranks that somebody has.
    places: HashSet<(Side, u32)>,
    known: Vec<&'a LocalCommunicator>,
    /// Until when it existed, in those that have freed it; `None`: not in all.
    freed_ns: Option<u64>,
}

/// All communicators, and what processes' numbers mean. `given`: what some of these were taken for, and stay.
pub(super) fn unite(
    known: &BTreeMap<(ProcessId, u32), LocalCommunicator>,
    given: &Numbers,
    processes: &[Process],
) -> (Vec<Communicator>, Numbers) {
    let job =
        |local: &LocalCommunicator| processes.get(local.process.index()).and_then(|process| process.job.as_deref());
    let mut locals: Vec<&LocalCommunicator> = known.values().collect();
    locals.sort_by_key(|local| place_in_order(local));
    let mut groups: Vec<Group<'_>> = Vec::new();
    let mut by_key: HashMap<Key<'_>, Vec<usize>> = HashMap::new();
    let mut numbers = Numbers::new();
    let given = |local: &LocalCommunicator| given.get(&(local.process, local.number)).copied();
    let mut given_groups: HashMap<CommunicatorId, usize> = HashMap::new();
    // Whoever comes later must not be taken for one of those that are known.
    locals.sort_by_key(|local| given(local).is_none());
    for local in locals {
        // It was made before, and is known by now.
        let parent = local.parent.filter(|&parent| is_made_by_all(local, known.get(&(local.process, parent))));
        let parent = parent.and_then(|parent| numbers.get(&(local.process, parent)).copied());
        let same = by_key.entry(key(local, job(local), parent)).or_default();
        let id = given(local);
        let found = match id {
            Some(id) => given_groups.get(&id).copied(),
            None => {
                same.iter().copied().find(|&index| groups.get(index).is_some_and(|group| group.has_room_for(local)))
            }
        };
        let index = found.unwrap_or_else(|| {
            same.push(groups.len());
            groups.push(Group { freed_ns: local.freed_ns, ..Group::default() });
            groups.len() - 1
        });
        if let Some(id) = id {
            given_groups.insert(id, index);
        }
        if let Some(group) = groups.get_mut(index) {
            group.add(local);
        }
        numbers.insert((local.process, local.number), CommunicatorId(u32::try_from(index).unwrap_or(u32::MAX)));
    }
    let world_rank = |process: ProcessId| processes.get(process.index()).and_then(|process| process.rank);
    // What is kept of a process may begin later than what was seen of it.
    let was_made = |local: &LocalCommunicator| {
        let process = processes.get(local.process.index());
        local.was_made && process.is_some_and(|process| process.recorded_from_ns <= local.first_ns)
    };
    let united = groups.iter().map(|group| group.united(&numbers, job, world_rank, was_made));
    let mut communicators: Vec<Communicator> = united.collect();
    name(&mut communicators, &groups);
    (communicators, numbers)
}

impl<'a> Group<'a> {
    fn has_room_for(&self, local: &LocalCommunicator) -> bool {
        let is_there = local.was_made || self.freed_ns.is_none_or(|ns| ns >= local.first_ns);
        // A process has one world, however often it was told of.
        let is_told_again = local.kind == CommunicatorKind::World && self.processes.contains(&local.process);
        // Everybody has one of his own, and they are shown as one.
        local.kind == CommunicatorKind::Own
            || is_told_again
            || !self.processes.contains(&local.process)
                && !self.places.contains(&(own_side(local), local.rank))
                && is_there
    }

    fn add(&mut self, local: &'a LocalCommunicator) {
        self.processes.insert(local.process);
        self.places.insert((own_side(local), local.rank));
        self.freed_ns = self.freed_ns.zip(local.freed_ns).map(|(one, other)| one.max(other));
        self.known.push(local);
    }

    fn united(
        &self,
        numbers: &Numbers,
        job: impl Fn(&'a LocalCommunicator) -> Option<&'a str>,
        world_rank: impl Fn(ProcessId) -> Option<u32>,
        was_made: impl Fn(&LocalCommunicator) -> bool,
    ) -> Communicator {
        let first = self.known.first();
        let kind = first.map_or(CommunicatorKind::Made, |local| local.kind);
        let mut parents = self.known.iter().filter_map(|local| Some((local.process, local.parent?)));
        let of_side = |side: Option<Side>| {
            let size = side.map_or(0, |(size, _)| size);
            let mut members = vec![None; if size > MOST_MEMBERS { 0 } else { size as usize }];
            for local in &self.known {
                let is_own = Some(own_side(local)) == side;
                // What a process lists as its own group is the remote one of those on the other side.
                let listed = if is_own { &local.members } else { &local.remote_members };
                for (member, known) in members.iter_mut().zip(listed) {
                    *member = member.or(*known);
                }
                if is_own && let Some(member) = members.get_mut(local.rank as usize) {
                    *member = world_rank(local.process).or(*member);
                }
            }
            members
        };
        // Of a side of which nobody is known, it is known how many they are.
        let known = |members: Vec<Option<u32>>| if members.iter().all(Option::is_none) { Vec::new() } else { members };
        let (own, other) = first.map_or((None, None), |local| (Some(own_side(local)), other_side(local)));
        let members = match kind {
            CommunicatorKind::World => (0..first.map_or(0, |local| local.size).min(MOST_MEMBERS)).map(Some).collect(),
            CommunicatorKind::Own => first.map_or_else(Vec::new, |local| local.members.clone()),
            CommunicatorKind::Made => known(of_side(own)),
        };
        let neighbours = self.known.iter().filter_map(|local| Some((local.rank, local.neighbours.clone()?)));
        let (members, remote_members) = (members, of_side(other));
        Communicator {
            name: self.given_name(&world_rank).unwrap_or_default(),
            kind,
            job: first.and_then(|local| job(local)).map(ToOwned::to_owned),
            was_made: self.known.len() == members.len() + remote_members.len()
                && self.known.iter().all(|local| was_made(local)),
            members,
            remote_members,
            parent: parents.find_map(|of| numbers.get(&of).copied()),
            neighbours: neighbours.collect::<BTreeMap<u32, Neighbours>>(),
        }
    }

    /// The name that the program has given; that of the lowest rank, since all should have given the same one.
    fn given_name(&self, world_rank: impl Fn(ProcessId) -> Option<u32>) -> Option<String> {
        let is_predefined = |local: &LocalCommunicator| {
            matches!(
                (local.kind, local.name.as_str()),
                (CommunicatorKind::World, "MPI_COMM_WORLD") | (CommunicatorKind::Own, "MPI_COMM_SELF")
            )
        };
        let named = self.known.iter().filter(|local| !local.name.is_empty() && !is_predefined(local));
        named.min_by_key(|local| (world_rank(local.process), local.process)).map(|local| local.name.clone())
    }
}

/// Names those that have none: by how they were made, and from which.
fn name(communicators: &mut [Communicator], groups: &[Group<'_>]) {
    let mut counts: HashMap<(Option<String>, String), u32> = HashMap::new();
    let mut generated: Vec<(usize, String)> = Vec::new();
    let mut in_order: Vec<_> = communicators.iter_mut().zip(groups).enumerate().collect();
    in_order.sort_by_key(|(_, (_, group))| group.known.iter().map(|local| place_in_order(local)).min());
    for (index, (communicator, group)) in in_order {
        let how = group.known.iter().map(|local| local.made()).min_by_key(|how| *how == "comm").unwrap_or_default();
        let count = counts.entry((communicator.job.clone(), how.clone())).or_default();
        // Those with a name of their own are counted too: it may come later.
        *count += 1;
        if communicator.name.is_empty() {
            communicator.name =
                if communicator.kind == CommunicatorKind::Made { format!("{how}#{count}") } else { how };
            generated.push((index, communicator.name.clone()));
        }
    }
    for (index, short) in generated {
        let parent = communicators.get(index).and_then(|one| one.parent);
        let parent = parent.and_then(|id| {
            let named = generated_name(communicators, id)?;
            Some(format!("{short} of {named}"))
        });
        if let (Some(text), Some(one)) = (parent, communicators.get_mut(index)) {
            one.name = text;
        }
    }
}

/// A communicator's name without where it comes from.
fn generated_name(communicators: &[Communicator], id: CommunicatorId) -> Option<&str> {
    communicators.get(id.index())?.name.split(" of ").next()
}

/// In this order communicators are looked at: as they were made, if that was seen.
fn place_in_order(local: &LocalCommunicator) -> (u8, bool, u64, ProcessId, u32) {
    (kind_order(local.kind), !local.was_made, local.first_ns, local.process, local.number)
}

fn kind_order(kind: CommunicatorKind) -> u8 {
    match kind {
        CommunicatorKind::World => 0,
        CommunicatorKind::Own => 1,
        CommunicatorKind::Made => 2,
    }
}

/// The group that the process belongs to.
fn own_side(local: &LocalCommunicator) -> Side {
    let [first, middle, last] = local.outline;
    if local.remote_size == 0 { (local.size, [first, middle, last]) } else { (local.size, [first, None, None]) }
}

/// The other one of an inter-communicator.
fn other_side(local: &LocalCommunicator) -> Option<Side> {
    let [.., first] = local.outline;
    (local.remote_size != 0).then_some((local.remote_size, [first, None, None]))
}

fn key<'a>(local: &LocalCommunicator, job: Option<&'a str>, parent: Option<CommunicatorId>) -> Key<'a> {
    const NOBODY: Side = (0, [None; 3]);
    let kind = kind_order(local.kind);
    if local.kind != CommunicatorKind::Made {
        return (job, kind, 0, None, [NOBODY; 2]);
    }
    // Each side of an inter-communicator calls the other one remote.
    let mut sides = [own_side(local), other_side(local).unwrap_or(NOBODY)];
    sides.sort_unstable();
    (job, kind, local.context, parent, sides)
}

/// Whether only what it was made from tells it from others, and is one for all its members: each side makes an inter-communicator from another
/// one, but for copies.
fn is_made_by_all(local: &LocalCommunicator, parent: Option<&LocalCommunicator>) -> bool {
    let is_copy = || parent.is_some_and(|parent| parent.remote_size != 0);
    local.was_made && local.context == 0 && (local.remote_size == 0 || is_copy())
}

#[cfg(test)]
#[path = "communicators_tests.rs"]
mod tests;
