//! Which sends and receives that are under way have their other end, by MPI's own rule: communicator, ranks and tag have to agree,
//! and of several the earlier ones meet first.
//!
//! Only what is under way is seen. A message that was sent long ago may have arrived without the receiver having asked, and a
//! receive may be posted in a moment: a missing end is a hint, and one that differs in a tag a stronger one.

use std::{cmp::Reverse, collections::HashMap};

use super::{calls::Message, world::World};
use crate::{OtherEndSeen, Profile, RankProfile, RankState, UnmatchedRow};

/// What is younger than that may well be on its way, ns.
const OLD_NS: u64 = 1_000_000_000;

/// One end of a message, under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Index of its rank among the profile's.
    pub rank: usize,
    pub posted: Posted,
    pub is_send: bool,
    /// Rank in the world at the other end; `None`: anybody's.
    pub peer: Option<u32>,
    /// `None`: any.
    pub tag: Option<i32>,
    /// [`CommunicatorProfile::id`](crate::CommunicatorProfile::id); `None`: not known.
    pub communicator: Option<u32>,
    /// Since when, ns.
    pub age_ns: u64,
    pub other_end: OtherEnd,
}

/// What the end is, by its place in its list of the rank's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Posted {
    /// An open call that sends or receives.
    Call(usize),
    /// A request that nobody has said to be complete.
    Request(usize),
}

/// What is seen of the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtherEnd {
    /// It is under way, too: in the rank of that index.
    Posted(usize),
    /// Nothing that would meet it.
    Missing,
    /// Nothing that would meet it, but one without an end of its own that differs in the tag.
    OtherTag(i32),
    /// The same that differs in the communicator: [`CommunicatorProfile::id`](crate::CommunicatorProfile::id).
    OtherCommunicator(u32),
    /// The rank there is not observed, or not any more.
    NotObserved,
}

/// An operation, and whose it is.
struct End {
    operation: Operation,
    own: u32,
}

/// What may differ between two ends that were perhaps meant for each other.
#[derive(Clone, Copy, PartialEq, Eq)]
enum But {
    Nothing,
    Tag,
    Communicator,
}

impl End {
    fn message(&self) -> Message {
        let Operation { is_send, peer, tag, communicator, .. } = self.operation;
        Message { is_send, peer, tag, over: communicator }
    }

    /// Whether both are ends of one message, but for what is left out of the comparison.
    fn meets(&self, other: &Self, but: But) -> bool {
        let message = self.message();
        let (tag, over) = (message.tag.filter(|_| but != But::Tag), message.over.filter(|_| but != But::Communicator));
        Message { tag, over, ..message }.meets(self.own, &other.message(), other.own)
    }
}

/// All sends and receives under way of ranks that are observed, by rank, the oldest first.
pub fn operations(profile: &Profile) -> Vec<Operation> {
    let world = World::of(profile);
    let mut ends: Vec<End> = (0..).zip(&profile.ranks).flat_map(|(index, rank)| ends(&world, index, rank)).collect();
    ends.sort_by_key(|end| (end.operation.rank, Reverse(end.operation.age_ns)));
    match_ends(profile, &mut ends);
    let lonely = Lonely::of(&ends);
    let look = |end: &End| {
        let others = lonely.of_end(end).iter().filter_map(|&place| ends.get(place));
        let is_missing = end.operation.other_end == OtherEnd::Missing;
        if is_missing { missing(profile, &world, end, &others) } else { end.operation.other_end }
    };
    let found: Vec<OtherEnd> = ends.iter().map(look).collect();
    ends.into_iter().zip(found).map(|(end, other_end)| Operation { other_end, ..end.operation }).collect()
}

/// Those that have been without their other end for longer than it takes until the other rank comes to it, if that rank is observed.
pub fn unmatched(profile: &Profile) -> Vec<Operation> {
    let is_alone = |operation: &Operation| {
        operation.age_ns >= OLD_NS && !matches!(operation.other_end, OtherEnd::Posted(_) | OtherEnd::NotObserved)
    };
    operations(profile).into_iter().filter(is_alone).collect()
}

/// The same as they are printed.
pub fn unmatched_rows(profile: &Profile) -> Vec<UnmatchedRow> {
    unmatched(profile).iter().filter_map(|operation| row(profile, operation)).collect()
}

fn row(profile: &Profile, operation: &Operation) -> Option<UnmatchedRow> {
    let rank = profile.ranks.get(operation.rank)?;
    let (other_end, other_tag, other_communicator) = match operation.other_end {
        OtherEnd::Missing => (OtherEndSeen::Missing, None, None),
        OtherEnd::OtherTag(tag) => (OtherEndSeen::OtherTag, Some(tag), None),
        OtherEnd::OtherCommunicator(id) => (OtherEndSeen::OtherCommunicator, None, Some(id)),
        OtherEnd::Posted(_) | OtherEnd::NotObserved => return None,
    };
    Some(UnmatchedRow {
        job: rank.job.clone(),
        rank: rank.rank,
        pid: rank.pid,
        function: operation.posted.function(rank)?,
        is_request: matches!(operation.posted, Posted::Request(_)),
        is_send: operation.is_send,
        peer: operation.peer,
        tag: operation.tag,
        communicator: operation.communicator,
        age_ns: operation.age_ns,
        other_end,
        other_tag,
        other_communicator,
    })
}

impl Posted {
    /// The function that has posted it, in `rank`.
    pub fn function(self, rank: &RankProfile) -> Option<&'static str> {
        Some(match self {
            Self::Call(place) => rank.open_calls.get(place)?.function,
            Self::Request(place) => rank.traffic.as_ref()?.pending.get(place)?.function,
        })
    }
}

fn ends<'a>(world: &World<'a>, index: usize, rank: &'a RankProfile) -> Vec<End> {
    let Some(own) = rank.rank.filter(|_| rank.state == RankState::Running) else { return Vec::new() };
    let end = |(posted, message, age_ns): (Posted, Message, u64)| {
        let Message { is_send, peer, tag, over: communicator } = message;
        let other_end = OtherEnd::Missing;
        End { operation: Operation { rank: index, posted, is_send, peer, tag, communicator, age_ns, other_end }, own }
    };
    let calls = rank.open_calls.iter().enumerate().filter(|(_, call)| !call.ended_inside);
    let calls = calls.filter_map(|(place, call)| Some((place, call, call.arguments.as_ref()?)));
    let calls = calls.flat_map(|(place, call, arguments)| {
        world.messages(rank, arguments).map(move |message| (Posted::Call(place), message, call.open_ns))
    });
    let requests = world.pending(rank).map(|(place, row, message)| (Posted::Request(place), message, row.age_ns));
    calls.chain(requests).map(end).collect()
}

/// Each receive takes the earliest send that meets it, the earliest receive first.
fn match_ends(profile: &Profile, ends: &mut [End]) {
    let mut by_age: Vec<usize> = (0..ends.len()).collect();
    by_age.sort_by_key(|&place| Reverse(ends.get(place).map_or(0, |end| end.operation.age_ns)));
    let mut sends = by_receiver(by_age.iter().filter_map(|&place| Some((place, ends.get(place)?))));
    for receive in by_age {
        let Some(end) = ends.get(receive).filter(|end| !end.operation.is_send) else { continue };
        let Some(waiting) = sends.get_mut(&end.own) else { continue };
        let meets = |place: &usize| {
            ends.get(*place).is_some_and(|send| is_one_job(profile, end, send) && end.meets(send, But::Nothing))
        };
        let Some(place) = waiting.iter().position(meets) else { continue };
        let send = waiting.remove(place);
        let ranks = [send, receive].map(|place| ends.get(place).map_or(0, |end| end.operation.rank));
        for (place, other) in [receive, send].into_iter().zip(ranks) {
            if let Some(end) = ends.get_mut(place) {
                end.operation.other_end = OtherEnd::Posted(other);
            }
        }
    }
}

/// Places of sends by the rank that they are sent to.
fn by_receiver<'a>(ends: impl Iterator<Item = (usize, &'a End)>) -> HashMap<u32, Vec<usize>> {
    let mut sends: HashMap<u32, Vec<usize>> = HashMap::new();
    for (place, end) in ends.filter(|(_, end)| end.operation.is_send) {
        if let Some(peer) = end.operation.peer {
            sends.entry(peer).or_default().push(place);
        }
    }
    sends
}

/// Places of ends that nobody meets, by the rank that has them and by the rank that they are sent to.
struct Lonely {
    by_owner: HashMap<u32, Vec<usize>>,
    by_receiver: HashMap<u32, Vec<usize>>,
}

impl Lonely {
    fn of(ends: &[End]) -> Self {
        let lonely = || ends.iter().enumerate().filter(|(_, end)| end.operation.other_end == OtherEnd::Missing);
        let mut by_owner: HashMap<u32, Vec<usize>> = HashMap::new();
        for (place, end) in lonely() {
            by_owner.entry(end.own).or_default().push(place);
        }
        Self { by_owner, by_receiver: by_receiver(lonely()) }
    }

    /// Those that an end may have been meant for.
    fn of_end(&self, end: &End) -> &[usize] {
        let places = match end.operation.peer {
            Some(peer) => self.by_owner.get(&peer),
            None => self.by_receiver.get(&end.own),
        };
        places.map_or(&[], Vec::as_slice)
    }
}

/// What there is instead of an end that nobody has.
fn missing<'a>(
    profile: &Profile,
    world: &World<'_>,
    end: &End,
    lonely: &(impl Iterator<Item = &'a End> + Clone),
) -> OtherEnd {
    let Some(rank) = profile.ranks.get(end.operation.rank) else { return OtherEnd::Missing };
    if let Some(peer) = end.operation.peer {
        let found = world.index(rank, peer).and_then(|index| profile.ranks.get(index));
        if found.is_none_or(|peer| peer.state != RankState::Running) {
            return OtherEnd::NotObserved;
        }
    }
    let find = |but| lonely.clone().find(|other| is_one_job(profile, end, other) && end.meets(other, but));
    if let Some(tag) = find(But::Tag).and_then(|other| other.operation.tag) {
        return OtherEnd::OtherTag(tag);
    }
    let differs_in_communicator = find(But::Communicator).and_then(|other| other.operation.communicator);
    differs_in_communicator.map_or(OtherEnd::Missing, OtherEnd::OtherCommunicator)
}

fn is_one_job(profile: &Profile, one: &End, other: &End) -> bool {
    let job = |end: &End| profile.ranks.get(end.operation.rank).map(|rank| &rank.job);
    job(one) == job(other)
}
