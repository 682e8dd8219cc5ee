//! Which communicators of different processes are one.
//!
//! A handle means something in its own process only, and the library's number for a communicator is used again: in parts of one
//! split, and when it has been freed. So the size and some members belong to the identity, and the order in time: as making a
//! communicator is collective, all have made one before any of them has made the next one with the same number and members. Where the
//! library's number is not known, all make those with the same members in the same order, out of the same one: out of different ones, threads
//! may do so at once.

use std::collections::{BTreeMap, HashMap, HashSet};

use mpiprobe_common::{Communicator, flow::communicator_kind};
use mpiprobe_observe::{CommunicatorSnapshot, ProcessSnapshot};

/// A communicator as one process knows it.
#[derive(Clone, Copy, Debug)]
pub(super) struct MemberView<'a> {
    pub(super) process: u32,
    pub(super) communicator: &'a CommunicatorSnapshot,
    pub(super) job: Option<&'a str>,
    /// Of the process, in `MPI_COMM_WORLD`.
    pub(super) world_rank: Option<u32>,
}

/// One communicator.
#[derive(Debug, Default)]
pub(super) struct Group<'a> {
    /// By process; never empty.
    pub(super) known: Vec<MemberView<'a>>,
    processes: HashSet<u32>,
    places: HashSet<([u32; 2], u32)>,
    /// Tells it from all others, while they are recognised.
    number: u64,
}

/// All communicators, in the order in which they were made.
#[derive(Debug, Default)]
pub(super) struct Recognised<'a> {
    pub(super) groups: Vec<Group<'a>>,
    of: HashMap<(u32, u32), usize>,
}

/// What the records of one communicator have in common, and few others.
type Key<'a> = (Option<&'a str>, u32, Option<(u64, u64, [[i64; 4]; 2])>);

/// What a communicator was made from, where that tells it from others.
mod parent {
    pub(super) const ANY: u64 = 0;
    pub(super) const WORLD: u64 = 1;
    /// From here on, one that was made.
    pub(super) const MADE: u64 = 2;
}

impl MemberView<'_> {
    fn facts(&self) -> &Communicator {
        &self.communicator.facts
    }

    /// Which of the two groups of an inter-communicator the process belongs to.
    fn side(&self) -> [u32; 2] {
        let facts = self.facts();
        if facts.is_inter == 0 { [0, 0] } else { [facts.size, facts.first.cast_unsigned()] }
    }
}

fn key<'a>(known: &MemberView<'a>, parent: u64) -> Key<'a> {
    let facts = known.facts();
    let described = match facts.kind {
        communicator_kind::WORLD | communicator_kind::OWN => None,
        _ if facts.is_inter != 0 => {
            // Each side calls the other one remote.
            let own = [facts.size.into(), facts.first.into(), 0, 0];
            let other = [facts.remote_size.into(), facts.last.into(), 0, 0];
            Some((facts.context, parent, if own < other { [own, other] } else { [other, own] }))
        }
        _ => {
            let members = [facts.size.into(), facts.first.into(), facts.middle.into(), facts.last.into()];
            Some((facts.context, parent, [members, [0; 4]]))
        }
    };
    (known.job, facts.kind, described)
}

impl<'a> Group<'a> {
    pub(super) fn first_ns(&self) -> u64 {
        self.known.iter().map(|known| known.facts().first_ns).min().unwrap_or(0)
    }

    /// When the last one freed it; `None` if not all have.
    pub(super) fn freed_ns(&self) -> Option<u64> {
        let freed = self.known.iter().map(|known| Some(known.facts().freed_ns).filter(|&ns| ns != 0));
        freed.max().flatten().filter(|_| self.known.iter().all(|known| known.facts().freed_ns != 0))
    }

    pub(super) fn job(&self) -> Option<&'a str> {
        self.known.first().and_then(|known| known.job)
    }

    /// What is the same for all of them.
    pub(super) fn facts(&self) -> Communicator {
        self.known.first().map(|known| *known.facts()).unwrap_or_default()
    }

    fn has_room_for(&self, known: &MemberView<'_>) -> bool {
        // Everybody has one of his own, and they are shown as one.
        known.facts().kind == communicator_kind::OWN
            || !self.processes.contains(&known.process) && !self.places.contains(&(known.side(), known.facts().rank))
    }

    fn add(&mut self, known: MemberView<'a>) {
        self.processes.insert(known.process);
        self.places.insert((known.side(), known.facts().rank));
        self.known.push(known);
    }
}

impl<'a> Recognised<'a> {
    pub(super) fn of(mut records: Vec<MemberView<'a>>) -> Self {
        // Those that were seen to be made come first, in this order.
        records.sort_by_key(|known| (known.facts().made_by_plus_1 == 0, known.facts().first_ns, known.process));
        let is_world = |known: &&MemberView<'_>| known.facts().kind == communicator_kind::WORLD;
        let worlds =
            records.iter().filter(is_world).map(|known| ((known.process, known.communicator.number), parent::WORLD));
        let mut numbers: HashMap<(u32, u32), u64> = worlds.collect();
        let inter = records.iter().filter(|known| known.facts().is_inter != 0);
        let inter: HashSet<(u32, u32)> = inter.map(|known| (known.process, known.communicator.number)).collect();
        let mut next = parent::MADE;
        let mut by_key: BTreeMap<Key<'_>, Vec<Group<'_>>> = BTreeMap::new();
        for known in records {
            let was_made = known.facts().made_by_plus_1 != 0;
            let is_counted = was_made && known.facts().context == 0;
            // It was made before, and is known by now. Each side makes an inter-communicator from another one, but for copies.
            let place = (known.process, known.facts().parent);
            let is_of_all = is_counted && (known.facts().is_inter == 0 || inter.contains(&place));
            let parent = numbers.get(&place).copied().filter(|_| is_of_all);
            let groups = by_key.entry(key(&known, parent.unwrap_or(parent::ANY))).or_default();
            let fitting = if is_counted {
                // A process that counts itself has seen all of them made, and does not know the library's number: the n-th one with
                // these members in one process is the n-th in all.
                groups.iter_mut().find(|group| group.has_room_for(&known))
            } else if was_made {
                groups.last_mut().filter(|group| group.has_room_for(&known))
            } else {
                // It was there before its process was observed: any that it can have been at that time.
                groups.iter_mut().find(|group| {
                    group.has_room_for(&known) && group.freed_ns().is_none_or(|ns| ns >= known.facts().first_ns)
                })
            };
            let place = (known.process, known.communicator.number);
            let number = if let Some(group) = fitting {
                group.add(known);
                group.number
            } else {
                let mut group = Group { number: next, ..Group::default() };
                group.add(known);
                groups.push(group);
                next += 1;
                next - 1
            };
            numbers.entry(place).or_insert(number);
        }
        let mut groups: Vec<Group<'_>> = by_key.into_values().flatten().collect();
        groups.sort_by_key(|group| (order(group.facts().kind), group.first_ns()));
        let of = (0..).zip(&groups).flat_map(|(index, group)| {
            group.known.iter().map(move |known| ((known.process, known.communicator.number), index))
        });
        Self { of: of.collect(), groups }
    }

    /// The place in [`Self::groups`] of a communicator as a process knows it.
    pub(super) fn index(&self, process: u32, number: u32) -> Option<usize> {
        self.of.get(&(process, number)).copied()
    }
}

/// The world first, then `MPI_COMM_SELF`.
fn order(kind: u32) -> u32 {
    match kind {
        communicator_kind::WORLD => 0,
        communicator_kind::OWN => 1,
        _ => 2,
    }
}

/// The number of ranks in `MPI_COMM_WORLD`, as a process itself has found out.
pub(super) fn world_size(tables: &ProcessSnapshot) -> Option<u32> {
    let world = tables.communicators.iter().find(|known| known.facts.kind == communicator_kind::WORLD)?;
    Some(world.facts.size)
}

/// The rank in `MPI_COMM_WORLD` that a process itself has found out.
pub(super) fn world_rank(tables: &ProcessSnapshot) -> Option<u32> {
    let world = tables.communicators.iter().find(|known| known.facts.kind == communicator_kind::WORLD)?;
    Some(world.facts.rank)
}

#[cfg(test)]
mod tests;
