//! Who waits for whom.

use std::{
    collections::{HashMap, HashSet},
    mem::{Discriminant, discriminant},
};

use super::{
    calls::{self, CIRCLE_NS},
    circles::Edges,
    held::Held,
    needs::{Need, Wait, Waits},
    world::World,
};
use crate::{Profile, RankProfile, RankState, ThreadLife};

/// Calls shorter than this are no waiting that anybody would want to see, ns.
const SHORTEST_NS: u64 = 100_000_000;

/// Ranks that wait, and those that do so in a circle.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// In the order of the profile's ranks; of a rank with several threads that wait, one for each, the longest first.
    pub waits: Vec<Wait>,
    /// Indices of the profile's ranks, each waiting for the next one, the last for the first.
    pub circles: Vec<Vec<usize>>,
    /// Of these, each waits for another one of them, and of some it is not known for which; smallest first.
    pub knots: Vec<Vec<usize>>,
}

/// The ranks of a profile that have been in their calls for a while; of a job that is over, that had been when they were ended.
pub fn waiting(profile: &Profile) -> Waiting {
    Graph::of(profile).waiting()
}

/// All waits, and what follows from them.
pub(super) struct Graph<'a> {
    pub(super) world: World<'a>,
    pub(super) waits: Vec<Wait>,
    held: Held,
    /// By rank, how many of its threads wait.
    threads: HashMap<usize, usize>,
    /// Ranks of which not all threads wait.
    may_act: HashSet<usize>,
}

impl<'a> Graph<'a> {
    pub(super) fn of(profile: &'a Profile) -> Self {
        let world = World::of(profile);
        let mut waits: Vec<Wait> = Vec::new();
        let mut may_act = HashSet::new();
        for (index, rank) in profile.ranks.iter().enumerate() {
            let mut own: Vec<Wait> = waits_of(&world, index, rank).collect();
            own.sort_by_key(|wait| std::cmp::Reverse(wait.open_ns));
            if !own.is_empty() && has_others(rank, &own) {
                may_act.insert(index);
            }
            waits.append(&mut own);
        }
        let is_dead = |index: usize| profile.ranks.get(index).is_some_and(|rank| has_ended(&world, rank));
        let held = Held::of(profile.ranks.len(), &waits, is_dead, |index| may_act.contains(&index));
        let mut threads = HashMap::new();
        for wait in &waits {
            *threads.entry(wait.rank).or_default() += 1;
        }
        Self { world, waits, held, threads, may_act }
    }

    fn waiting(mut self) -> Waiting {
        let (circles, knots) = self.edges().circles(self.world.profile.ranks.len());
        let member: HashMap<usize, usize> = circles
            .iter()
            .chain(&knots)
            .enumerate()
            .flat_map(|(number, circle)| circle.iter().map(move |&rank| (rank, number)))
            .collect();
        let mut next: HashMap<usize, usize> = HashMap::new();
        for wait in &self.waits {
            if let Some(first) = wait.on.first() {
                next.entry(wait.rank).or_insert(*first);
            }
        }
        for wait in &mut self.waits {
            wait.circle = member.get(&wait.rank).copied();
            wait.chain = chain(wait.rank, &next);
        }
        Waiting { waits: self.waits, circles, knots }
    }

    /// Whether a rank cannot go on, whatever those do that can.
    pub(super) fn is_held(&self, rank: usize) -> bool {
        self.held.contains(rank)
    }

    /// Those that a wait is certain to be for, or for one of whom it is, which makes no difference as none of them can go on.
    pub(super) fn firm_on<'b>(&'b self, wait: &'b Wait) -> impl Iterator<Item = usize> + 'b {
        let is_held = self.is_held(wait.rank);
        // Of several threads, any may be the one that goes on.
        let is_only = self.threads.get(&wait.rank) == Some(&1);
        let is_firm = wait.open_ns >= CIRCLE_NS && !self.may_act.contains(&wait.rank) && (is_held || is_only);
        let needs = wait.needs.iter().filter(move |_| is_firm);
        let firm = needs.filter(move |need| matches!(need, Need::All(_)) || is_held && self.held.has_need(need));
        firm.flat_map(move |need| {
            let is_for_itself = self.is_for_itself(wait, need);
            need.ranks().iter().copied().filter(move |rank| is_for_itself || *rank != wait.rank)
        })
    }

    /// Whether it waits for what only it can do itself: for a message to itself, and no other thread of it calls MPI.
    fn is_for_itself(&self, wait: &Wait, need: &Need) -> bool {
        **need.ranks() == [wait.rank] && self.threads.get(&wait.rank) == Some(&1)
    }

    /// Among those who cannot go on, who waits for whom. Many ranks may wait for the same many others: they meet at a point of their own.
    fn edges(&self) -> Edges {
        let number = self.world.profile.ranks.len();
        let mut points: HashMap<(&[usize], Discriminant<Need>), usize> = HashMap::new();
        let mut found = Edges::default();
        let needs = self.waits.iter().flat_map(|wait| wait.needs.iter().map(|need| (wait.rank, need)));
        // Who waits for one of which ranks, and in which way.
        let alike = |rank: usize, need: &Need| (rank, need.ranks().as_ptr(), discriminant(need));
        let waits_alike: HashSet<(usize, *const usize, Discriminant<Need>)> =
            needs.filter(|(_, need)| need.is_of_one()).map(|(rank, need)| alike(rank, need)).collect();
        for wait in self.waits.iter().filter(|wait| self.is_held(wait.rank)) {
            for need in wait.needs.iter().filter(|need| self.held.has_need(need)) {
                let ranks: &[usize] = need.ranks();
                let edges = found.of(need);
                let others = || ranks.iter().copied().filter(|rank| self.is_held(*rank));
                if self.is_for_itself(wait, need) {
                    edges.push((wait.rank, wait.rank));
                    continue;
                }
                // Where it is itself among those of whom any would do, one of the others stands for all: none of them goes on. It had
                // better be one that does not wait for the same, and has done its part perhaps.
                if ranks.len() == 1 || ranks.contains(&wait.rank) && !matches!(need, Need::OneOf(_)) {
                    let live = || others().filter(|rank| *rank != wait.rank && self.threads.contains_key(rank));
                    let other = live().find(|rank| !waits_alike.contains(&alike(*rank, need)));
                    edges.extend(other.or_else(|| live().next()).map(|to| (wait.rank, to)));
                    continue;
                }
                // Of those who wait for a part of the same ranks each, somebody misses one who does not: operations have an order, and all of
                // them have done their part in the first one.
                let is_member = ranks.contains(&wait.rank);
                let is_alike = |rank: &usize| is_member && waits_alike.contains(&alike(*rank, need));
                let has_other = others().any(|rank| !is_alike(&rank));
                let next = number + points.len();
                let point = *points.entry((ranks, discriminant(need))).or_insert_with(|| {
                    edges.extend(others().filter(|rank| !has_other || !is_alike(rank)).map(|to| (next, to)));
                    next
                });
                edges.push((wait.rank, point));
            }
        }
        found
    }
}

fn waits_of<'a>(world: &World<'a>, index: usize, rank: &'a RankProfile) -> impl Iterator<Item = Wait> {
    let open = calls::blocking(rank, world.moment).filter(|(call, _)| call.open_ns >= SHORTEST_NS);
    open.map(move |(call, function)| {
        let Waits { why, on, certainty, needs } = Waits::of(world, (index, rank), call, function);
        let (tid, open_ns) = (call.tid, call.open_ns);
        Wait { rank: index, tid, open_ns, why, on, certainty, needs, chain: Vec::new(), circle: None }
    })
}

/// Whether threads of the rank that call MPI do something else than these. Of a rank that was not seen from its beginning on, also the one that the
/// process has begun with may, though no call of it was seen; and those of which nothing was seen but the end of a call that had begun before.
fn has_others(rank: &RankProfile, waits: &[Wait]) -> bool {
    let waits_too = |tid: u32| waits.iter().any(|wait| wait.tid == tid);
    let has_ended = rank.state != RankState::Running;
    let is_seen = |tid: u32| waits_too(tid) || rank.threads.iter().any(|thread| thread.tid == tid);
    let is_late = rank.unseen_ns > 0 || !rank.began_before.is_empty();
    let lives = |thread: &&crate::ThreadProfile| thread.state == ThreadLife::Running;
    !has_ended
        && (rank.threads.iter().filter(lives).any(|thread| !waits_too(thread.tid))
            || rank.open_calls.iter().any(|call| !call.ended_inside && !waits_too(call.tid))
            || is_late && !is_seen(rank.pid)
            || rank.began_before.iter().any(|call| !call.is_open && !is_seen(call.tid)))
}

/// Whether the rank does nothing any more, and the others go on.
fn has_ended(world: &World<'_>, rank: &RankProfile) -> bool {
    rank.state == RankState::Ended && calls::blocking(rank, world.moment).next().is_none()
}

fn chain(from: usize, next: &HashMap<usize, usize>) -> Vec<usize> {
    /// Nobody reads longer ones.
    const LONGEST: usize = 32;
    let mut seen = HashSet::from([from]);
    let mut chain = Vec::new();
    let mut at = from;
    while let Some(&to) = next.get(&at).filter(|_| chain.len() < LONGEST) {
        if !seen.insert(to) {
            break;
        }
        chain.push(to);
        at = to;
    }
    chain
}
