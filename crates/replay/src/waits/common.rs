//! Where two threads last had to do with each other: causes of a wait are looked for after that.

use std::{collections::VecDeque, sync::Arc};

use hashbrown::HashMap;

use super::rules::Stay;

/// Groups in which a thread was last, that are remembered.
const MOST_GROUPS: usize = 16;

/// Members of a collective by location, in that order.
type Members = Arc<Vec<(u32, Stay)>>;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct CommonPoints {
    /// By location: a point that all have in common.
    base: Vec<Stay>,
    /// By locations, the lower one first.
    pairs: HashMap<(u32, u32), (Stay, Stay)>,
    /// By location, by group.
    groups: Vec<VecDeque<(u64, Members)>>,
}

impl CommonPoints {
    pub(super) fn grow(&mut self, locations: usize) {
        self.base.resize(locations.max(self.base.len()), Stay { entry_ns: 0, return_ns: 0 });
        self.groups.resize_with(locations.max(self.groups.len()), VecDeque::new);
    }

    /// Two have met.
    pub(super) fn pair(&mut self, one: (u32, Stay), other: (u32, Stay)) {
        let (low, high) = if one.0 <= other.0 { (one, other) } else { (other, one) };
        self.pairs.insert((low.0, high.0), (low.1, high.1));
    }

    /// A group has met.
    pub(super) fn group(&mut self, group: u64, members: Vec<(u32, Stay)>) {
        let members = Arc::new(members);
        for &(location, _) in members.iter() {
            let Some(of_location) = self.groups.get_mut(location as usize) else { continue };
            if let Some(place) = of_location.iter().position(|(known, _)| *known == group) {
                of_location.remove(place);
            } else if of_location.len() >= MOST_GROUPS {
                of_location.pop_front();
            }
            of_location.push_back((group, Arc::clone(&members)));
        }
    }

    /// The last common point of two, as it was for each.
    pub(super) fn last(&self, one: u32, other: u32) -> (Stay, Stay) {
        let base = |location: u32| self.base.get(location as usize).copied();
        let nothing = Stay { entry_ns: 0, return_ns: 0 };
        let mut last = (base(one).unwrap_or(nothing), base(other).unwrap_or(nothing));
        let from = last;
        let mut consider = |found: (Stay, Stay)| {
            // Nothing is looked for before what all have in common, by either of the two.
            let is_later = found.0.entry_ns > from.0.entry_ns && found.1.entry_ns > from.1.entry_ns;
            if is_later && found.0.entry_ns >= last.0.entry_ns {
                last = found;
            }
        };
        if let Some(&(low, high)) = self.pairs.get(&(one.min(other), one.max(other))) {
            consider(if one <= other { (low, high) } else { (high, low) });
        }
        for (_, members) in self.groups.get(one as usize).into_iter().flatten() {
            let of = |location: u32| {
                let place = members.binary_search_by_key(&location, |(location, _)| *location).ok()?;
                members.get(place).map(|(_, stay)| *stay)
            };
            if let Some(found) = of(one).zip(of(other)) {
                consider(found);
            }
        }
        last
    }

    /// All have met.
    pub(super) fn all(&mut self, base: &[(u32, Stay)]) {
        for &(location, stay) in base {
            if let Some(known) = self.base.get_mut(location as usize) {
                *known = stay;
            }
        }
    }

    /// Nothing is looked for any more before a point; those of it who are not named keep theirs.
    pub(super) fn cut(&mut self, base: &[(u32, Stay)]) {
        self.all(base);
        let from = |location: u32| self.base.get(location as usize).map_or(0, |stay| stay.entry_ns);
        self.pairs
            .retain(|&(low, high), (of_low, of_high)| of_low.entry_ns > from(low) && of_high.entry_ns > from(high));
        let base = &self.base;
        for (location, groups) in self.groups.iter_mut().enumerate() {
            let from = base.get(location).map_or(0, |stay| stay.entry_ns);
            groups.retain(|(_, members)| {
                let own = members.binary_search_by_key(&location, |(location, _)| *location as usize);
                own.ok().and_then(|place| members.get(place)).is_some_and(|(_, stay)| stay.entry_ns > from)
            });
        }
    }
}
