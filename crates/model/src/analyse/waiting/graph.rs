//! Who waits for whom.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{
    calls::{self, Message, Moment, of_request},
    circles::circles,
};
use crate::{CallArguments, CommunicatorProfile, OpenCallInfo, PendingRow, Profile, RankProfile};
use mpiprobe_functions::{Group, Role};

/// Calls shorter than this are no waiting that anybody would want to see, ns.
const SHORTEST_NS: u64 = 100_000_000;
/// A circle is one only if all its calls have lasted as long, ns: what looks like one for a moment is messages on their way.
pub(super) const CIRCLE_NS: u64 = 1_000_000_000;

/// Ranks that wait, and those that do so in a circle.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// In the order of the profile's ranks.
    pub waits: Vec<Wait>,
    /// Indices of the profile's ranks, each waiting for the next one, the last for the first.
    pub circles: Vec<Vec<usize>>,
}

/// One rank that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Its index among the profile's ranks.
    pub rank: usize,
    /// How long it has been in its call, ns.
    pub open_ns: u64,
    pub why: Why,
    /// For whom: indices of the profile's ranks.
    pub on: Vec<usize>,
    pub certainty: Certainty,
    /// From the first of those on, who waits for whom, as far as that goes; ends before somebody comes a second time.
    pub chain: Vec<usize>,
    /// The circle that it is part of, as an index.
    pub circle: Option<usize>,
}

/// What a rank waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// A message, or that one is received.
    Message,
    /// A message of anybody.
    Anybody,
    /// Its requests.
    Requests,
    /// The others in a collective call.
    Collective,
    /// A call of which it is not known what it waits for.
    Unknown,
}

/// Whether it cannot go on before all those have done something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certainty {
    Certain,
    /// Before one of them has, but it is not known which.
    OneOf,
    Possible,
}

/// The ranks of a profile that have been in their calls for a while; of a job that is over, that had been when they were ended.
pub fn waiting(profile: &Profile) -> Waiting {
    let world = World::of(profile);
    let mut waits: Vec<Wait> = (0..).zip(&profile.ranks).filter_map(|(index, rank)| world.wait(index, rank)).collect();
    let circles = find_circles(profile, &waits);
    let member: HashMap<usize, usize> = circles
        .iter()
        .enumerate()
        .flat_map(|(number, circle)| circle.iter().map(move |&rank| (rank, number)))
        .collect();
    let next: HashMap<usize, usize> = waits.iter().filter_map(|wait| Some((wait.rank, *wait.on.first()?))).collect();
    for wait in &mut waits {
        wait.circle = member.get(&wait.rank).copied();
        wait.chain = chain(wait.rank, &next);
    }
    Waiting { waits, circles }
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

/// Whether it is certain for whom a wait of those that are [`held`] is, or that it makes no difference.
pub(super) fn is_firm(wait: &Wait, held: &HashSet<usize>) -> bool {
    wait.open_ns >= CIRCLE_NS
        && match wait.certainty {
            Certainty::Certain => true,
            Certainty::OneOf => held.contains(&wait.rank),
            Certainty::Possible => false,
        }
}

/// Ranks that wait for each other whichever it is that some of them wait for.
pub(super) fn held(waits: &[Wait]) -> HashSet<usize> {
    let firm = waits.iter().filter(|wait| wait.open_ns >= CIRCLE_NS && wait.certainty != Certainty::Possible);
    let firm: Vec<&Wait> = firm.collect();
    let mut held: HashSet<usize> = firm.iter().map(|wait| wait.rank).collect();
    loop {
        let is_free = |wait: &&&Wait| {
            let mut on = wait.on.iter().map(|rank| held.contains(rank));
            let waits_for_held =
                if wait.certainty == Certainty::OneOf { on.all(|is_held| is_held) } else { on.any(|is_held| is_held) };
            held.contains(&wait.rank) && !waits_for_held
        };
        let free: Vec<usize> = firm.iter().filter(is_free).map(|wait| wait.rank).collect();
        if free.is_empty() {
            return held;
        }
        for rank in free {
            held.remove(&rank);
        }
    }
}

fn find_circles(profile: &Profile, waits: &[Wait]) -> Vec<Vec<usize>> {
    let number = profile.ranks.len();
    // Many ranks may wait for the same many others: they meet at a point of their own.
    let mut points: BTreeMap<&[usize], usize> = BTreeMap::new();
    let mut edges = Vec::new();
    let held = held(waits);
    for wait in waits.iter().filter(|wait| is_firm(wait, &held)) {
        if wait.why != Why::Collective {
            edges.extend(wait.on.iter().map(|&to| (wait.rank, to)));
            continue;
        }
        let next_point = number + points.len();
        let point = *points.entry(&wait.on).or_insert_with(|| {
            edges.extend(wait.on.iter().map(|&to| (next_point, to)));
            next_point
        });
        edges.push((wait.rank, point));
    }
    circles(number, &edges)
}

/// One communicator, as far as it can be told which.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Over<'a> {
    /// The whole job.
    World(Option<&'a str>),
    /// [`CommunicatorProfile::id`](crate::CommunicatorProfile::id)
    Id(u32),
}

/// The ranks by their numbers, and where they meet.
pub(super) struct World<'a> {
    profile: &'a Profile,
    moment: Moment,
    indices: HashMap<(Option<&'a str>, u32), usize>,
    communicators: HashMap<u32, &'a CommunicatorProfile>,
    /// Of collective calls that somebody is in: which observed members are not; in order.
    absent: HashMap<(Over<'a>, &'static str), Vec<usize>>,
}

impl<'a> World<'a> {
    pub(super) fn of(profile: &'a Profile) -> Self {
        let numbered = (0..).zip(&profile.ranks).filter_map(|(index, rank)| Some((rank, rank.rank?, index)));
        // A later image of the same rank takes its place.
        let indices = numbered.map(|(rank, number, index)| ((rank.job.as_deref(), number), index)).collect();
        let known = profile.traffic.iter().flat_map(|traffic| &traffic.communicators);
        let communicators = known.map(|communicator| (communicator.id, communicator)).collect();
        let moment = Moment::of(profile);
        let mut world = Self { profile, moment, indices, communicators, absent: HashMap::new() };
        let mut there: HashMap<(Over<'_>, &'static str), HashSet<usize>> = HashMap::new();
        for (index, rank) in profile.ranks.iter().enumerate() {
            if let Some((call, function)) = calls::blocking(rank, moment)
                && calls::is_collective(function)
                && let Some(over) = world.over(rank, call)
            {
                there.entry((over, function.name)).or_default().insert(index);
            }
        }
        let absent = there.into_iter().map(|((over, function), there)| {
            let mut members = world.members(over);
            members.retain(|index| !there.contains(index));
            ((over, function), members)
        });
        world.absent = absent.collect();
        world
    }

    /// Whether others who are in the same call mean another root than this rank, or one that is not known.
    fn roots_differ(&self, rank: &'a RankProfile, call: &OpenCallInfo) -> bool {
        let root = |rank: &RankProfile, call: &OpenCallInfo| {
            call.arguments.as_ref().and_then(|arguments| self.root(rank, arguments))
        };
        let (own, over) = (root(rank, call), self.over(rank, call));
        let others = self.profile.ranks.iter().filter_map(|rank| Some((rank, calls::blocking(rank, self.moment)?.0)));
        let mut same = others.filter(|(rank, other)| other.function == call.function && self.over(rank, other) == over);
        own.is_none() || same.any(|(rank, other)| root(rank, other) != own)
    }

    /// Sets of ranks that are in one collective call, all members of its communicator, and mean different roots.
    pub(super) fn different_roots(&self) -> Vec<Vec<usize>> {
        let mut found: BTreeMap<Vec<usize>, (HashSet<usize>, usize)> = BTreeMap::new();
        for rank in &self.profile.ranks {
            if let Some((call, function)) = calls::blocking(rank, self.moment)
                && call.open_ns >= CIRCLE_NS
                && let Some(over) = self.over(rank, call)
                && self.absent.get(&(over, function.name)).is_some_and(Vec::is_empty)
                && let Some(root) = call.arguments.as_ref().and_then(|arguments| self.root(rank, arguments))
            {
                let members = self.members(over);
                if self.is_whole(over, members.len()) {
                    let (roots, there) = found.entry(members).or_default();
                    roots.insert(root);
                    *there += 1;
                }
            }
        }
        let differ =
            |ranks: &[usize], (roots, there): &(HashSet<usize>, usize)| roots.len() > 1 && *there == ranks.len();
        found.into_iter().filter(|(ranks, seen)| differ(ranks, seen)).map(|(ranks, _)| ranks).collect()
    }

    /// Whether so many are all members.
    fn is_whole(&self, over: Over<'a>, number: usize) -> bool {
        let size = match over {
            Over::World(job) => {
                let of_job = self.profile.ranks.iter().find(|rank| rank.job.as_deref() == job);
                of_job.and_then(|rank| rank.size)
            }
            Over::Id(id) => self.communicators.get(&id).and_then(|communicator| communicator.size),
        };
        size.and_then(|size| usize::try_from(size).ok()) == Some(number)
    }

    pub(super) fn index(&self, of: &RankProfile, number: u32) -> Option<usize> {
        self.indices.get(&(of.job.as_deref(), number)).copied()
    }

    fn over(&self, rank: &'a RankProfile, call: &OpenCallInfo) -> Option<Over<'a>> {
        if call.function == calls::FINALIZE {
            return Some(Over::World(rank.job.as_deref()));
        }
        let communicator = call.arguments.as_ref()?.communicator.as_ref()?;
        if communicator.name.as_deref() == Some("MPI_COMM_WORLD") {
            return Some(Over::World(rank.job.as_deref()));
        }
        Some(Over::Id(self.communicator(rank, communicator.number?)?.id))
    }

    pub(super) fn communicator(&self, rank: &RankProfile, number: u32) -> Option<&'a CommunicatorProfile> {
        let row = rank.traffic.as_ref()?.communicators.iter().find(|row| row.number == number)?;
        self.communicators.get(&row.id?).copied()
    }

    /// World ranks of those that a call's ranks mean, where that is not the world itself.
    fn translation(&self, rank: &RankProfile, arguments: &CallArguments) -> Option<&'a [Option<u32>]> {
        let communicator = self.communicator(rank, arguments.communicator.as_ref()?.number?)?;
        // Between two groups, ranks are those of the other one, whichever that is.
        communicator.members.as_deref().filter(|_| communicator.remote_size.is_none())
    }

    /// The observed ranks in a communicator, in order.
    fn members(&self, over: Over<'a>) -> Vec<usize> {
        let mut members: Vec<usize> = match over {
            Over::World(job) => {
                self.indices.iter().filter(|((of, _), _)| *of == job).map(|(_, &index)| index).collect()
            }
            Over::Id(id) => {
                let communicator = self.communicators.get(&id);
                let job = communicator.and_then(|communicator| communicator.job.as_deref());
                let both = communicator.into_iter().flat_map(|of| of.members.iter().chain(&of.remote_members));
                both.flatten().filter_map(|rank| self.indices.get(&(job, (*rank)?)).copied()).collect()
            }
        };
        members.sort_unstable();
        members
    }

    pub(super) fn messages(&self, rank: &RankProfile, arguments: &CallArguments) -> impl Iterator<Item = Message> {
        let number = arguments.communicator.as_ref().and_then(|communicator| communicator.number);
        calls::messages(arguments, self.id(rank, number), self.translation(rank, arguments))
    }

    /// Messages of the requests that the rank has posted and that nobody has said to be complete; each with its place among those.
    pub(super) fn pending<'b>(
        &'b self,
        rank: &'b RankProfile,
    ) -> impl Iterator<Item = (usize, &'b PendingRow, Message)> {
        let pending = rank.traffic.iter().flat_map(|traffic| traffic.pending.iter().enumerate());
        pending.filter_map(|(place, row)| Some((place, row, of_request(row, self.id(rank, row.communicator))?)))
    }

    fn id(&self, rank: &RankProfile, number: Option<u32>) -> Option<u32> {
        Some(self.communicator(rank, number?)?.id)
    }

    fn wait(&self, index: usize, rank: &'a RankProfile) -> Option<Wait> {
        let (call, function) = calls::blocking(rank, self.moment).filter(|(call, _)| call.open_ns >= SHORTEST_NS)?;
        let wait = |why, on: Vec<usize>, certainty: Certainty| {
            let certainty = if on.is_empty() { Certainty::Possible } else { certainty };
            Some(Wait { rank: index, open_ns: call.open_ns, why, on, certainty, chain: Vec::new(), circle: None })
        };
        if calls::is_collective(function) {
            let absent = self.over(rank, call).and_then(|over| self.absent.get(&(over, function.name)));
            let Some(absent) = absent else { return wait(Why::Unknown, Vec::new(), Certainty::Possible) };
            // With a root, some end earlier and are not there any more: it waits for one of those who are not, whichever that is.
            let has_root = function.position(Role::Root).is_some();
            let certainty = match absent.len() {
                _ if calls::needs_everybody(function) => Certainty::Certain,
                // Some have not called what the others have, or not in this order: who is to come cannot be told.
                _ if self.roots_differ(rank, call) => Certainty::Possible,
                1 if has_root => Certainty::Certain,
                _ if has_root => Certainty::OneOf,
                _ => Certainty::Possible,
            };
            return wait(Why::Collective, absent.clone(), certainty);
        }
        let Some(arguments) = &call.arguments else { return wait(Why::Unknown, Vec::new(), Certainty::Possible) };
        // Whoever has locked a window is not told by who wants to.
        if function.group == Group::OneSided {
            return wait(Why::Unknown, Vec::new(), Certainty::Possible);
        }
        let own: Vec<Message> = self.messages(rank, arguments).collect();
        if !own.is_empty() {
            let on = self.unmet(rank, &own);
            let is_any = on.is_empty() && own.iter().any(|message| message.peer.is_none());
            // One that sends and receives waits for either, and may be done with the other.
            let has_both = [Role::Destination, Role::Source].into_iter().all(|role| function.position(role).is_some());
            let are_known = arguments.destination.is_some() && arguments.source.is_some();
            let certainty = match on.len() {
                _ if !has_both => Certainty::Certain,
                1 if are_known => Certainty::Certain,
                _ if are_known => Certainty::OneOf,
                _ => Certainty::Possible,
            };
            return wait(if is_any { Why::Anybody } else { Why::Message }, on, certainty);
        }
        if arguments.requests.is_some() {
            let posted: Vec<Message> = self.pending(rank).map(|(.., message)| message).collect();
            let all = calls::all_requests(function, arguments);
            let is_certain = all.is_some_and(|all| u64::try_from(posted.len()).is_ok_and(|posted| posted <= all));
            let certainty = if is_certain { Certainty::Certain } else { Certainty::Possible };
            return wait(Why::Requests, self.unmet(rank, &posted), certainty);
        }
        wait(Why::Unknown, Vec::new(), Certainty::Possible)
    }

    /// The root of a call, as an index of ranks.
    pub(super) fn root(&self, rank: &RankProfile, arguments: &CallArguments) -> Option<usize> {
        let root = arguments.root?;
        let member = || {
            let members = self.translation(rank, arguments)?;
            members.get(usize::try_from(root.rank?).ok()?).copied().flatten()
        };
        self.index(rank, root.world_rank.or_else(member)?)
    }

    /// Those who are to be at the other end of messages, and do nothing about it.
    fn unmet(&self, rank: &RankProfile, messages: &[Message]) -> Vec<usize> {
        let Some(own) = rank.rank else { return Vec::new() };
        let mut found: Vec<usize> = Vec::new();
        for message in messages {
            let Some(peer) = message.peer else { continue };
            let Some(index) = self.index(rank, peer) else { continue };
            let Some(other) = self.profile.ranks.get(index) else { continue };
            let open = calls::blocking(other, self.moment).and_then(|(call, _)| call.arguments.as_ref());
            let pending = self.pending(other).map(|(.., message)| message);
            let mut offered = open.into_iter().flat_map(|open| self.messages(other, open)).chain(pending);
            let is_met = offered.any(|offer| message.meets(own, &offer, peer));
            if !is_met && !found.contains(&index) {
                found.push(index);
            }
        }
        found
    }
}
