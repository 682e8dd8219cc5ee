//! The ranks of a profile by their numbers, and where they meet.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use mpiprobe_functions::Function;

use super::calls::{self, CIRCLE_NS, Message, Moment, of_request};
use crate::{CallArguments, CommunicatorProfile, OpenCallInfo, Partner, PendingRow, Profile, RankProfile};

/// One communicator, as far as it can be told which.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Over<'a> {
    /// The whole job.
    World(Option<&'a str>),
    /// [`CommunicatorProfile::id`](crate::CommunicatorProfile::id)
    Id(u32),
    /// A window of a job: the library's number for it, and its members, if those are not all ranks.
    Window(Option<&'a str>, Option<u64>, Option<&'a [Option<u32>]>),
    /// A group of a job.
    Group(Option<&'a str>, &'a [Option<u32>]),
}

/// A collective call over one communicator. Several at once, if they do not block.
type Meeting<'a> = (Over<'a>, &'static str);

/// Who has come to a collective call, and who has not.
#[derive(Debug, Default)]
struct Present {
    /// How often, of calls that do not block.
    times: HashMap<usize, usize>,
    /// `None`: a root that is not known.
    roots: HashSet<Option<usize>>,
}

#[derive(Debug)]
pub(super) struct World<'a> {
    pub(super) profile: &'a Profile,
    pub(super) moment: Moment,
    indices: HashMap<(Option<&'a str>, u32), usize>,
    communicators: HashMap<u32, &'a CommunicatorProfile>,
    blocking: HashMap<Meeting<'a>, Present>,
    /// Of those who are in none of the same calls; in order.
    absent: HashMap<Meeting<'a>, Arc<[usize]>>,
    /// Of requests under way.
    nonblocking: HashMap<Meeting<'a>, Present>,
    members: RefCell<HashMap<Over<'a>, Arc<[usize]>>>,
    /// Messages in calls and requests, by index of rank: those that are sent to it, each with the number of who sends, and those
    /// that it receives.
    sent_to: HashMap<usize, Vec<(u32, Message)>>,
    received_by: HashMap<usize, Vec<Message>>,
}

impl<'a> World<'a> {
    pub(super) fn of(profile: &'a Profile) -> Self {
        let numbered = (0..).zip(&profile.ranks).filter_map(|(index, rank)| Some((rank, rank.rank?, index)));
        // A later image of the same rank takes its place.
        let indices = numbered.map(|(rank, number, index)| ((rank.job.as_deref(), number), index)).collect();
        let known = profile.traffic.iter().flat_map(|traffic| &traffic.communicators);
        let communicators = known.map(|communicator| (communicator.id, communicator)).collect();
        let mut world = Self {
            profile,
            moment: Moment::of(profile),
            indices,
            communicators,
            blocking: HashMap::new(),
            absent: HashMap::new(),
            nonblocking: HashMap::new(),
            members: RefCell::default(),
            sent_to: HashMap::new(),
            received_by: HashMap::new(),
        };
        let mut blocking: HashMap<Meeting<'_>, Present> = HashMap::new();
        let mut nonblocking: HashMap<Meeting<'_>, Present> = HashMap::new();
        for (index, rank) in profile.ranks.iter().enumerate() {
            for (call, function) in calls::blocking(rank, world.moment) {
                if calls::is_meeting(function)
                    && let Some(over) = world.over(rank, call)
                {
                    let root = call.arguments.as_ref().and_then(|arguments| world.root(rank, arguments));
                    let present = blocking.entry((over, calls::small(function).name)).or_default();
                    present.times.insert(index, 1);
                    present.roots.insert(root);
                }
            }
            for row in requests(rank).filter(|row| !row.is_of_library) {
                if let Some(function) = calls::collective_of(row)
                    && let Some(over) = world.over_of_request(rank, row)
                {
                    let present = nonblocking.entry((over, function.name)).or_default();
                    *present.times.entry(index).or_default() += 1;
                }
            }
        }
        let absent = blocking.iter().map(|(&meeting, present)| {
            let members = world.members(meeting.0);
            (meeting, members.iter().copied().filter(|index| !present.times.contains_key(index)).collect())
        });
        world.absent = absent.collect();
        (world.blocking, world.nonblocking) = (blocking, nonblocking);
        for (index, rank) in profile.ranks.iter().enumerate() {
            let Some(number) = rank.rank else { continue };
            let open = calls::blocking(rank, world.moment).filter_map(|(call, _)| call.arguments.as_ref());
            let in_calls = open.flat_map(|arguments| world.messages(rank, arguments));
            let messages: Vec<Message> = in_calls.chain(world.pending(rank).map(|(.., message)| message)).collect();
            for message in messages {
                if !message.is_send {
                    world.received_by.entry(index).or_default().push(message);
                } else if let Some(to) = message.peer.and_then(|peer| world.index(rank, peer)) {
                    world.sent_to.entry(to).or_default().push((number, message));
                }
            }
        }
        world
    }

    /// Whether somebody does something about the other end of a message of the rank at `index`, whose number is `own`; `peer`: the
    /// index of whom it is to be, if that is not just anybody.
    pub(super) fn is_met(&self, message: &Message, (index, own): (usize, u32), peer: Option<(usize, u32)>) -> bool {
        match (message.is_send, peer) {
            (true, Some((place, number))) => {
                let received = self.received_by.get(&place).into_iter().flatten();
                received.into_iter().any(|offer| message.meets(own, offer, number))
            }
            (true, None) => false,
            (false, _) => {
                let sent = self.sent_to.get(&index).into_iter().flatten();
                sent.into_iter().any(|(owner, offer)| message.meets(own, offer, *owner))
            }
        }
    }

    /// The observed members that are not in the same collective call; `None` if it is not known who they are.
    pub(super) fn absent(
        &self,
        rank: &'a RankProfile,
        call: &'a OpenCallInfo,
        function: &'static Function,
    ) -> Option<&Arc<[usize]>> {
        self.absent.get(&(self.over(rank, call)?, calls::small(function).name))
    }

    /// The observed members that have not begun a collective operation as often as the rank has; `None` if that is not known.
    pub(super) fn absent_of_request(
        &self,
        rank: &'a RankProfile,
        index: usize,
        row: &PendingRow,
    ) -> Option<Arc<[usize]>> {
        let function = calls::collective_of(row)?;
        let over = self.over_of_request(rank, row)?;
        let times = &self.nonblocking.get(&(over, function.name))?.times;
        let own = times.get(&index)?;
        let members = self.members(over);
        Some(members.iter().copied().filter(|member| times.get(member).is_none_or(|times| times < own)).collect())
    }

    /// Whether others who are in the same call mean another root than this rank, or one that is not known.
    pub(super) fn roots_differ(
        &self,
        rank: &'a RankProfile,
        call: &'a OpenCallInfo,
        function: &'static Function,
    ) -> bool {
        let meeting = self.over(rank, call).map(|over| (over, calls::small(function).name));
        let roots = meeting.and_then(|meeting| self.blocking.get(&meeting)).map(|present| &present.roots);
        roots.is_none_or(|roots| roots.len() != 1 || roots.contains(&None))
    }

    /// Sets of ranks that are in one collective call, all members of its communicator, and mean different roots.
    pub(super) fn different_roots(&self) -> Vec<Vec<usize>> {
        let mut found: BTreeMap<Vec<usize>, (BTreeSet<usize>, usize)> = BTreeMap::new();
        for rank in &self.profile.ranks {
            for (call, function) in calls::blocking(rank, self.moment) {
                if call.open_ns >= CIRCLE_NS
                    && let Some(over) = self.over(rank, call)
                    && self.absent(rank, call, function).is_some_and(|absent| absent.is_empty())
                    && let Some(root) = call.arguments.as_ref().and_then(|arguments| self.root(rank, arguments))
                    && self.is_whole(over)
                {
                    let (roots, there) = found.entry(self.members(over).to_vec()).or_default();
                    roots.insert(root);
                    *there += 1;
                }
            }
        }
        let differ =
            |ranks: &[usize], (roots, there): &(BTreeSet<usize>, usize)| roots.len() > 1 && *there == ranks.len();
        found.into_iter().filter(|(ranks, seen)| differ(ranks, seen)).map(|(ranks, _)| ranks).collect()
    }

    /// Whether all members are observed.
    pub(super) fn is_whole(&self, over: Over<'a>) -> bool {
        let size = match over {
            Over::World(job) | Over::Window(job, _, None) => {
                let of_job = self.profile.ranks.iter().find(|rank| rank.job.as_deref() == job);
                of_job.and_then(|rank| rank.size)
            }
            Over::Window(.., Some(members)) | Over::Group(_, members) => u32::try_from(members.len()).ok(),
            Over::Id(id) => self
                .communicators
                .get(&id)
                .and_then(|communicator| communicator.size?.checked_add(communicator.remote_size.unwrap_or(0))),
        };
        size.and_then(|size| usize::try_from(size).ok()) == Some(self.members(over).len())
    }

    pub(super) fn index(&self, of: &RankProfile, number: u32) -> Option<usize> {
        self.indices.get(&(of.job.as_deref(), number)).copied()
    }

    pub(super) fn over(&self, rank: &'a RankProfile, call: &'a OpenCallInfo) -> Option<Over<'a>> {
        if call.function == calls::FINALIZE {
            return Some(Over::World(rank.job.as_deref()));
        }
        let arguments = call.arguments.as_ref()?;
        if let Some(window) = &arguments.window {
            let members = window.members.as_deref();
            let is_known = members.is_some() || window.size.is_some() && window.size == rank.size;
            return is_known.then_some(Over::Window(rank.job.as_deref(), window.context, members));
        }
        if call.function == calls::CREATE_GROUP {
            return Some(Over::Group(rank.job.as_deref(), arguments.group.as_deref()?));
        }
        self.over_communicator(rank, arguments)
    }

    /// The communicator that a call was given, if it was one.
    pub(super) fn over_communicator(&self, rank: &'a RankProfile, arguments: &'a CallArguments) -> Option<Over<'a>> {
        let communicator = arguments.communicator.as_ref()?;
        if communicator.name.as_deref() == Some(WORLD) {
            return Some(Over::World(rank.job.as_deref()));
        }
        Some(of_id(rank, self.communicator(rank, communicator.number?)?))
    }

    /// The communicator of a request.
    pub(super) fn over_of_request(&self, rank: &'a RankProfile, row: &PendingRow) -> Option<Over<'a>> {
        Some(of_id(rank, self.communicator(rank, row.communicator?)?))
    }

    /// The job of a rank, if it has communicators with no other one's processes.
    pub(super) fn only_one(&self, rank: &'a RankProfile) -> Option<Over<'a>> {
        let traffic = rank.traffic.as_ref()?;
        let mut known = traffic.communicators.iter().map(|row| self.communicators.get(&row.id?));
        let is_own = |members: &Option<Vec<Option<u32>>>| members.iter().flatten().all(Option::is_some);
        let all = known.all(|one| one.is_some_and(|one| is_own(&one.members) && is_own(&one.remote_members)));
        all.then_some(Over::World(rank.job.as_deref()))
    }

    pub(super) fn communicator(&self, rank: &RankProfile, number: u32) -> Option<&'a CommunicatorProfile> {
        let row = rank.traffic.as_ref()?.communicators.iter().find(|row| row.number == number)?;
        self.communicators.get(&row.id?).copied()
    }

    /// World ranks of those that a call's ranks mean, where that is not the world itself.
    fn translation(&self, rank: &RankProfile, arguments: &CallArguments) -> Option<&'a [Option<u32>]> {
        let communicator = self.communicator(rank, arguments.communicator.as_ref()?.number?)?;
        match communicator.remote_size {
            None => communicator.members.as_deref(),
            Some(_) => other_group(communicator, rank),
        }
    }

    /// The observed ranks of the other one of two groups, in order; `None` if the communicator has only one, or it is not known which
    /// group the rank is in.
    pub(super) fn other_group(&self, over: Over<'a>, rank: &RankProfile) -> Option<Arc<[usize]>> {
        let Over::Id(id) = over else { return None };
        let communicator = self.communicators.get(&id).filter(|communicator| communicator.remote_size.is_some())?;
        let members = other_group(communicator, rank)?;
        let mut members: Vec<usize> = members.iter().filter_map(|member| self.index(rank, (*member)?)).collect();
        members.sort_unstable();
        Some(members.into())
    }

    /// Those that may send what a rank receives from anybody over a communicator.
    pub(super) fn senders(&self, over: Over<'a>, rank: &RankProfile) -> Arc<[usize]> {
        self.other_group(over, rank).unwrap_or_else(|| self.members(over))
    }

    /// The observed ranks in a communicator, in order.
    pub(super) fn members(&self, over: Over<'a>) -> Arc<[usize]> {
        if let Some(known) = self.members.borrow().get(&over) {
            return Arc::clone(known);
        }
        let mut members: Vec<usize> = match over {
            Over::World(job) | Over::Window(job, _, None) => {
                self.indices.iter().filter(|((of, _), _)| *of == job).map(|(_, &index)| index).collect()
            }
            Over::Window(job, _, Some(members)) | Over::Group(job, members) => {
                members.iter().filter_map(|rank| self.indices.get(&(job, (*rank)?)).copied()).collect()
            }
            Over::Id(id) => {
                let communicator = self.communicators.get(&id);
                let job = communicator.and_then(|communicator| communicator.job.as_deref());
                let both = communicator.into_iter().flat_map(|of| of.members.iter().chain(&of.remote_members));
                both.flatten().filter_map(|rank| self.indices.get(&(job, (*rank)?)).copied()).collect()
            }
        };
        members.sort_unstable();
        let members: Arc<[usize]> = members.into();
        self.members.borrow_mut().insert(over, Arc::clone(&members));
        members
    }

    /// The same without one of them.
    pub(super) fn others(&self, over: Over<'a>, index: usize) -> Arc<[usize]> {
        self.members(over).iter().copied().filter(|member| *member != index).collect()
    }

    pub(super) fn messages(&self, rank: &RankProfile, arguments: &CallArguments) -> impl Iterator<Item = Message> {
        let number = arguments.communicator.as_ref().and_then(|communicator| communicator.number);
        calls::messages(arguments, self.id(rank, number), self.translation(rank, arguments))
    }

    /// Messages of its requests that are under way; each with its place among them.
    pub(super) fn pending<'b>(
        &'b self,
        rank: &'a RankProfile,
    ) -> impl Iterator<Item = (usize, &'a PendingRow, Message)> + use<'a, 'b> {
        let requests = requests(rank).enumerate();
        let under_way = requests.filter(|(_, row)| row.is_under_way != Some(false));
        under_way.filter_map(|(place, row)| Some((place, row, self.message(rank, row)?)))
    }

    pub(super) fn message(&self, rank: &RankProfile, row: &PendingRow) -> Option<Message> {
        of_request(row, self.id(rank, row.communicator))
    }

    fn id(&self, rank: &RankProfile, number: Option<u32>) -> Option<u32> {
        Some(self.communicator(rank, number?)?.id)
    }

    /// The root of a call, as an index of ranks.
    fn root(&self, rank: &RankProfile, arguments: &CallArguments) -> Option<usize> {
        let root = arguments.root?;
        // `MPI_ROOT`
        if root.partner == Partner::Nobody {
            return self.index(rank, rank.rank?);
        }
        let member = || {
            let members = self.translation(rank, arguments)?;
            members.get(usize::try_from(root.rank?).ok()?).copied().flatten()
        };
        self.index(rank, root.world_rank.or_else(member)?)
    }
}

/// World ranks of the group of an inter-communicator that a rank is not in.
fn other_group<'a>(communicator: &'a CommunicatorProfile, rank: &RankProfile) -> Option<&'a [Option<u32>]> {
    let (one, other) = (communicator.members.as_deref()?, communicator.remote_members.as_deref()?);
    let is_in = |group: &[Option<u32>]| rank.rank.is_some() && group.contains(&rank.rank);
    match (is_in(one), is_in(other)) {
        (true, false) => Some(other),
        (false, true) => Some(one),
        _ => None,
    }
}

/// The world has a number, too.
fn of_id<'a>(rank: &'a RankProfile, communicator: &CommunicatorProfile) -> Over<'a> {
    let is_world = communicator.name == "world" && !communicator.is_named;
    if is_world { Over::World(rank.job.as_deref()) } else { Over::Id(communicator.id) }
}

/// Requests of the rank that are under way: posted, and nobody has said them to be complete.
pub(super) fn requests(rank: &RankProfile) -> impl Iterator<Item = &PendingRow> {
    rank.traffic.iter().flat_map(|traffic| &traffic.pending)
}

/// What the standard calls the communicator of all ranks.
const WORLD: &str = "MPI_COMM_WORLD";
