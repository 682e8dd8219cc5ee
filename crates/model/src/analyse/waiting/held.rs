//! Which ranks cannot go on, whatever those do that can.

use std::{collections::HashMap, sync::Arc};

use super::{
    calls::CIRCLE_NS,
    needs::{Need, Wait},
};

/// Ranks that wait for each other for good, or for somebody who has ended: the largest set of ranks of which none can go on before
/// another one of the set has. With "all of" and "one of" that is what is left when everybody is taken away, again and again,
/// whose wait can end by what those do who are not in it (the AND-OR model of deadlocks: Hilbrich and others, "MPI runtime error
/// detection with MUST", 2013).
#[derive(Debug, Default)]
pub(super) struct Held(Vec<bool>);

/// What waits are made of: a need and those that it is a need of.
struct Set<'a> {
    ranks: &'a Arc<[usize]>,
    is_one_of: bool,
    /// Ranks in it that are not known to be free.
    left: usize,
    is_free: bool,
    /// Waits that have it.
    waits: Vec<usize>,
}

impl Held {
    /// `dead`: ranks that do nothing any more. `may_act`: ranks with a thread that waits for nothing.
    pub(super) fn of(
        number: usize,
        waits: &[Wait],
        dead: impl Fn(usize) -> bool,
        may_act: impl Fn(usize) -> bool,
    ) -> Self {
        let mut sets: Vec<Set<'_>> = Vec::new();
        let mut known: HashMap<(*const usize, usize, bool), usize> = HashMap::new();
        // By wait, how many needs it has that are not known to be met some time.
        let mut left = vec![0_usize; waits.len()];
        let mut is_held: Vec<bool> = (0..number).map(&dead).collect();
        for (place, wait) in waits.iter().enumerate() {
            if let Some(held) = is_held.get_mut(wait.rank) {
                *held = true;
            }
            for need in &wait.needs {
                let (ranks, is_one_of) = (need.ranks(), need.is_of_one());
                let key = (ranks.as_ptr(), ranks.len(), is_one_of);
                let set = *known.entry(key).or_insert_with(|| {
                    sets.push(Set { ranks, is_one_of, left: ranks.len(), is_free: false, waits: Vec::new() });
                    sets.len() - 1
                });
                if let (Some(set), Some(left)) = (sets.get_mut(set), left.get_mut(place)) {
                    set.waits.push(place);
                    *left += 1;
                }
            }
        }
        let mut sets_of: Vec<Vec<usize>> = vec![Vec::new(); number];
        for (place, set) in sets.iter().enumerate() {
            for rank in set.ranks.iter() {
                if let Some(sets) = sets_of.get_mut(*rank) {
                    sets.push(place);
                }
            }
        }
        let mut free: Vec<usize> = (0..number).filter(|rank| !is_held.get(*rank).copied().unwrap_or(false)).collect();
        let mut release = |rank: usize, free: &mut Vec<usize>| {
            if let Some(held) = is_held.get_mut(rank).filter(|held| **held) {
                *held = false;
                free.push(rank);
            }
        };
        for (wait, left) in waits.iter().zip(&left) {
            // Of threads of one rank, one that goes on may do whatever others wait for.
            let is_firm = *left > 0 && wait.open_ns >= CIRCLE_NS && !may_act(wait.rank);
            if !is_firm && !dead(wait.rank) {
                release(wait.rank, &mut free);
            }
        }
        while let Some(rank) = free.pop() {
            for &set in sets_of.get(rank).into_iter().flatten() {
                let Some(set) = sets.get_mut(set) else { continue };
                set.left = set.left.saturating_sub(1);
                if set.is_free || !(set.is_one_of || set.left == 0) {
                    continue;
                }
                set.is_free = true;
                for &wait in &set.waits {
                    let (Some(of), Some(left)) = (waits.get(wait), left.get_mut(wait)) else { continue };
                    *left = left.saturating_sub(1);
                    if *left == 0 && !dead(of.rank) {
                        release(of.rank, &mut free);
                    }
                }
            }
        }
        Self(is_held)
    }

    pub(super) fn contains(&self, rank: usize) -> bool {
        self.0.get(rank).copied().unwrap_or(false)
    }

    /// Whether a need cannot be met any more.
    pub(super) fn has_need(&self, need: &Need) -> bool {
        match need {
            Need::All(ranks) => ranks.iter().any(|rank| self.contains(*rank)),
            Need::Any(ranks) | Need::OneOf(ranks) => ranks.iter().all(|rank| self.contains(*rank)),
        }
    }
}
