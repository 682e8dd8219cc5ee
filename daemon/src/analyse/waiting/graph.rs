//! Who waits for whom.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{
    calls::{self, Message},
    circles::circles,
};
use crate::model::{OpenCallInfo, Profile, RankProfile};

/// Calls shorter than this are no waiting that anybody would want to see, ns.
const SHORTEST_NS: u64 = 100_000_000;
/// A circle is one only if all its calls have lasted as long, ns: what looks like one for a moment is messages on their way.
const CIRCLE_NS: u64 = 1_000_000_000;

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
    Possible,
}

/// The ranks of a profile that have been in their calls for a while.
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

fn find_circles(profile: &Profile, waits: &[Wait]) -> Vec<Vec<usize>> {
    let number = profile.ranks.len();
    // Many ranks may wait for the same many others: they meet at a point of their own.
    let mut points: BTreeMap<&[usize], usize> = BTreeMap::new();
    let mut edges = Vec::new();
    for wait in waits.iter().filter(|wait| wait.certainty == Certainty::Certain && wait.open_ns >= CIRCLE_NS) {
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

/// The ranks by their numbers.
struct World<'a> {
    profile: &'a Profile,
    indices: HashMap<(Option<&'a str>, u32), usize>,
    /// By job and function, who is not in a collective call over the whole world that others of the job are in; in order.
    absent: HashMap<(Option<&'a str>, &'static str), Vec<usize>>,
}

impl<'a> World<'a> {
    fn of(profile: &'a Profile) -> Self {
        let mut meetings: HashMap<(Option<&str>, &'static str), HashSet<usize>> = HashMap::new();
        let mut indices = HashMap::new();
        for (index, rank) in profile.ranks.iter().enumerate() {
            let job = rank.job.as_deref();
            if let Some(number) = rank.rank {
                // A later image of the same rank takes its place.
                indices.insert((job, number), index);
            }
            if let Some((call, function)) = calls::blocking(rank)
                && calls::is_collective(function)
                && is_of_world(call)
            {
                meetings.entry((job, function.name)).or_default().insert(index);
            }
        }
        let absent = meetings.into_iter().map(|((job, function), there)| {
            let of_job = indices.iter().filter(|((of, _), _)| *of == job).map(|(_, &index)| index);
            let mut absent: Vec<usize> = of_job.filter(|index| !there.contains(index)).collect();
            absent.sort_unstable();
            ((job, function), absent)
        });
        let absent = absent.collect();
        Self { profile, indices, absent }
    }

    fn index(&self, of: &RankProfile, number: u32) -> Option<usize> {
        self.indices.get(&(of.job.as_deref(), number)).copied()
    }

    fn wait(&self, index: usize, rank: &'a RankProfile) -> Option<Wait> {
        let (call, function) = calls::blocking(rank).filter(|(call, _)| call.open_ns >= SHORTEST_NS)?;
        let wait = |why, on: Vec<usize>, is_certain: bool| {
            let certainty = if is_certain && !on.is_empty() { Certainty::Certain } else { Certainty::Possible };
            Some(Wait { rank: index, open_ns: call.open_ns, why, on, certainty, chain: Vec::new(), circle: None })
        };
        let Some(arguments) = &call.arguments else { return wait(Why::Unknown, Vec::new(), false) };
        if calls::is_collective(function) {
            let absent = self.absent.get(&(rank.job.as_deref(), function.name)).filter(|_| is_of_world(call));
            return wait(Why::Collective, absent.cloned().unwrap_or_default(), calls::needs_everybody(function));
        }
        let own: Vec<Message> = calls::messages(arguments).collect();
        if !own.is_empty() {
            let on = self.unmet(rank, &own);
            let why = if on.is_empty() && own.iter().any(|message| message.peer.is_none()) {
                Why::Anybody
            } else {
                Why::Message
            };
            return wait(why, on, true);
        }
        if arguments.requests.is_some() {
            let posted: Vec<Message> = calls::pending(rank).collect();
            let all = calls::all_requests(function, arguments);
            let is_certain = all.is_some_and(|all| u64::try_from(posted.len()).is_ok_and(|posted| posted <= all));
            return wait(Why::Requests, self.unmet(rank, &posted), is_certain);
        }
        wait(Why::Unknown, Vec::new(), false)
    }

    /// Those who are to be at the other end of messages, and do nothing about it.
    fn unmet(&self, rank: &RankProfile, messages: &[Message]) -> Vec<usize> {
        let Some(own) = rank.rank else { return Vec::new() };
        let mut found: Vec<usize> = Vec::new();
        for message in messages {
            let Some(peer) = message.peer else { continue };
            let Some(index) = self.index(rank, peer) else { continue };
            let Some(other) = self.profile.ranks.get(index) else { continue };
            let open = calls::blocking(other).and_then(|(call, _)| call.arguments.as_ref());
            let offered = open.into_iter().flat_map(calls::messages).chain(calls::pending(other));
            let is_met = offered.into_iter().any(|offer| message.meets(own, &offer, peer));
            if !is_met && !found.contains(&index) {
                found.push(index);
            }
        }
        found
    }
}

fn is_of_world(call: &OpenCallInfo) -> bool {
    let communicator = call.arguments.as_ref().and_then(|arguments| arguments.communicator.as_ref());
    communicator.and_then(|communicator| communicator.name.as_deref()) == Some("MPI_COMM_WORLD")
}
