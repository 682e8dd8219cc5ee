//! What has to happen before a call can end, as far as its arguments tell.

use std::sync::Arc;

use mpiprobe_functions::{Function, Group, Role};

use super::{
    calls::{self, Message, WindowCall},
    world::{Over, World, requests},
};
use crate::{CallArguments, OpenCallInfo, Partner, PendingRow, RankProfile};

/// What a rank waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// A message, or that one is received.
    Message,
    /// A message of anybody.
    Anybody,
    /// Its requests.
    Requests,
    /// The same, and it is not known of whom.
    Somebody,
    /// The others' part in a collective operation that does not block.
    Operation,
    /// The others in a collective call.
    Collective,
    /// Those who speak for a group in the making of a communicator of two.
    Leader,
    /// The others in a call on a file.
    File,
    /// That somebody gives up a window, or lets it be accessed.
    Lock,
    /// That targets open a window for it: `MPI_Win_post`.
    Exposure,
    /// That those who access its window are done with it: `MPI_Win_complete`.
    Access,
    /// A call of which it is not known what it waits for.
    Unknown,
}

/// Whether it cannot go on before all those have done something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certainty {
    Certain,
    /// Before one of them has: any, or one of which it is not known who that is.
    OneOf,
    Possible,
}

/// One thing that has to happen, by the ranks that have to do it. Indices of the profile's ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Need {
    /// Each of them has its part in it.
    All(Arc<[usize]>),
    /// One of them, whoever comes first; the rank itself may be among them, which it is not in the end.
    Any(Arc<[usize]>),
    /// The same, and it is a certain one, of whom nobody knows who that is.
    OneOf(Arc<[usize]>),
}

/// One rank that waits, or one of its threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Its index among the profile's ranks.
    pub rank: usize,
    pub tid: u32,
    /// How long it has been in its call, ns.
    pub open_ns: u64,
    pub why: Why,
    /// For whom, as far as they can be named: indices of the profile's ranks.
    pub on: Arc<[usize]>,
    pub certainty: Certainty,
    /// What has to happen before it can go on: all of it. Empty: that is not certain.
    pub needs: Vec<Need>,
    /// From the first of those on, who waits for whom, as far as that goes; ends before somebody comes a second time.
    pub chain: Vec<usize>,
    /// The circle or knot that it is part of, as an index: circles come first.
    pub circle: Option<usize>,
}

/// What a call waits for.
#[derive(Clone, Debug)]
pub(super) struct Waits {
    pub(super) why: Why,
    /// Those who are named.
    pub(super) on: Arc<[usize]>,
    pub(super) certainty: Certainty,
    /// All of them have to be met. None of them is known for certain: empty.
    pub(super) needs: Vec<Need>,
}

/// The other end of a message.
enum Met {
    /// It is there.
    Yes,
    No(Need),
    /// Who that would be is not known, or not observed.
    Unknown,
}

impl Waits {
    fn unknown(why: Why) -> Self {
        Self { why, on: Arc::default(), certainty: Certainty::Possible, needs: Vec::new() }
    }

    /// Any of them ends the wait.
    fn any(why: Why, on: Arc<[usize]>) -> Self {
        let waits = Self::one_of(why, on);
        let needs = waits.needs.into_iter().map(|need| match need {
            Need::OneOf(ranks) => Need::Any(ranks),
            need => need,
        });
        Self { needs: needs.collect(), ..waits }
    }

    /// Nobody is certain to be waited for.
    fn possible(why: Why, on: Arc<[usize]>) -> Self {
        Self { on, ..Self::unknown(why) }
    }

    fn all(why: Why, on: Arc<[usize]>) -> Self {
        if on.is_empty() {
            return Self::unknown(why);
        }
        Self { why, on: Arc::clone(&on), certainty: Certainty::Certain, needs: vec![Need::All(on)] }
    }

    fn one_of(why: Why, on: Arc<[usize]>) -> Self {
        match on.len() {
            0 => Self::unknown(why),
            1 => Self::all(why, on),
            _ => Self { why, on: Arc::clone(&on), certainty: Certainty::OneOf, needs: vec![Need::OneOf(on)] },
        }
    }

    /// What an open call of a rank waits for.
    pub(super) fn of<'a>(
        world: &World<'a>,
        (index, rank): (usize, &'a RankProfile),
        call: &'a OpenCallInfo,
        function: &'static Function,
    ) -> Self {
        if calls::is_meeting(function) {
            return collective(world, (index, rank), call, function);
        }
        if calls::is_on_file(function) {
            return of_file(world, (index, rank), call);
        }
        if let Some(kind) = calls::window_call(function) {
            return of_window(world, (index, rank), call, kind);
        }
        let Some(arguments) = &call.arguments else { return Self::unknown(Why::Unknown) };
        if function.group == Group::OneSided {
            return Self::unknown(Why::Unknown);
        }
        let own: Vec<Message> = world.messages(rank, arguments).collect();
        if !own.is_empty() {
            return of_messages(world, (index, rank), (call, function), arguments, &own);
        }
        match arguments.requests {
            Some(number) => of_requests(world, (index, rank), (call, function), arguments, number),
            None => Self::unknown(Why::Unknown),
        }
    }
}

fn collective<'a>(
    world: &World<'a>,
    (index, rank): (usize, &'a RankProfile),
    call: &'a OpenCallInfo,
    function: &'static Function,
) -> Waits {
    let Some(absent) = world.absent(rank, call, function) else { return in_group(world, (index, rank), call) };
    let absent = Arc::clone(absent);
    if let (Some(leaders), true) = (call.arguments.as_ref().and_then(|arguments| arguments.leaders), absent.is_empty())
    {
        // What is missing is the other group's, which reaches it through those who speak for the groups, if its own is there and none of that
        // is missing.
        let leader = [leaders.local, leaders.remote].into_iter().map(|leader| world.index(rank, leader?));
        let leader = leader.flatten().find(|leader| *leader != index);
        let leader = leader.filter(|leader| {
            is_group_there(world, rank, call, function) && !speaks_to(world, *leader, (index, rank), function)
        });
        return leader.map_or_else(|| Waits::unknown(Why::Leader), |leader| Waits::all(Why::Leader, [leader].into()));
    }
    let over = world.over(rank, call);
    let needs_everybody = calls::needs_everybody(function);
    // What one group gets is made of what the other one gives, and it may have that before all of its own have come.
    let other_group = over.filter(|_| needs_everybody && !calls::makes_objects(function));
    let other_group = other_group.and_then(|over| world.other_group(over, rank));
    if let Some(group) = &other_group {
        let missing: Vec<usize> = group.iter().copied().filter(|member| absent.contains(member)).collect();
        if !missing.is_empty() {
            return Waits::all(Why::Collective, missing.into());
        }
    } else if needs_everybody || calls::window_call(function).is_some() {
        return Waits::all(Why::Collective, absent);
    }
    // With a root, or an amount for each, some end earlier and are not there any more: it waits for one of those who are not,
    // whichever that is. That may be one who is not observed. Of neighbours, it may wait for one that is there, and waits for another
    // one, and so on; the last of these waits for one who is not there.
    let is_whole = over.is_some_and(|over| world.is_whole(over));
    let has_root = function.position(Role::Root).is_some();
    let may_be_any =
        has_root || other_group.is_some() || calls::gives_to_each(function) || calls::is_of_neighbours(function);
    match () {
        // Some have not called what the others have, or not in this order: who is to come cannot be told.
        () if has_root && world.roots_differ(rank, call, function) => Waits::possible(Why::Collective, absent),
        () if is_whole && may_be_any => Waits::one_of(Why::Collective, absent),
        () => Waits::possible(Why::Collective, absent),
    }
}

/// Whether all of the communicator are in the call, who are all observed.
fn is_group_there<'a>(
    world: &World<'a>,
    rank: &'a RankProfile,
    call: &'a OpenCallInfo,
    function: &'static Function,
) -> bool {
    world.over(rank, call).is_some_and(|over| world.is_whole(over))
        && world.absent(rank, call, function).is_some_and(|absent| absent.is_empty())
}

/// Whether the one who speaks for the other group is in the same call with all of it, and means the one who speaks for this one.
fn speaks_to<'a>(
    world: &World<'a>,
    leader: usize,
    (index, rank): (usize, &'a RankProfile),
    function: &'static Function,
) -> bool {
    let Some(speaker) = world.profile.ranks.get(leader) else { return false };
    calls::blocking(speaker, world.moment).filter(|(_, other)| other.name == function.name).any(|(call, _)| {
        let remote = call.arguments.as_ref().and_then(|arguments| arguments.leaders?.remote);
        remote.and_then(|remote| world.index(rank, remote)) == Some(index)
            && is_group_there(world, speaker, call, function)
    })
}

/// Of a call by a group of which it is not known who is in it: they are members of its communicator.
fn in_group<'a>(world: &World<'a>, (index, rank): (usize, &'a RankProfile), call: &'a OpenCallInfo) -> Waits {
    let arguments = call.arguments.as_ref().filter(|_| call.function == calls::CREATE_GROUP);
    let over = arguments.and_then(|arguments| world.over_communicator(rank, arguments));
    let Some(over) = over.filter(|over| world.is_whole(*over)) else { return Waits::unknown(Why::Unknown) };
    Waits::one_of(Why::Collective, world.others(over, index))
}

/// Who has opened a file with the rank is not read, nor which one it is, which others may take for another one: it waits for one of the
/// others of the job. From the call alone it cannot be told whether it waits for them at all, or for the file.
fn of_file<'a>(world: &World<'a>, (index, rank): (usize, &'a RankProfile), call: &OpenCallInfo) -> Waits {
    let over = world.only_one(rank).filter(|over| call.exchanges && world.is_whole(*over));
    let Some(over) = over else { return Waits::unknown(Why::Unknown) };
    Waits::one_of(Why::File, world.others(over, index))
}

/// Whoever holds a lock or has an epoch open is not told by who waits for its end, but is a member of the window.
fn of_window<'a>(
    world: &World<'a>,
    (index, rank): (usize, &'a RankProfile),
    call: &'a OpenCallInfo,
    kind: WindowCall,
) -> Waits {
    let why = match kind {
        WindowCall::Lock => Why::Lock,
        WindowCall::Exposure => Why::Exposure,
        WindowCall::Access => Why::Access,
        WindowCall::Collective => Why::Collective,
    };
    let has_window = call.arguments.as_ref().is_some_and(|arguments| arguments.window.is_some());
    let over = world.over(rank, call).filter(|over| has_window && world.is_whole(*over));
    let group = call.arguments.as_ref().and_then(|arguments| arguments.group.as_ref());
    if let (Some(group), WindowCall::Exposure) = (group, kind) {
        let targets: Option<Vec<usize>> = group.iter().map(|member| world.index(rank, (*member)?)).collect();
        // It may be itself that it has not let at the window.
        let targets = targets.filter(|targets| has_window && !targets.contains(&index));
        return targets.map_or_else(|| Waits::unknown(why), |targets| Waits::one_of(why, distinct(&targets)));
    }
    let Some(over) = over else { return Waits::unknown(why) };
    Waits::one_of(why, world.others(over, index))
}

fn of_messages<'a>(
    world: &World<'a>,
    (index, rank): (usize, &'a RankProfile),
    (call, function): (&'a OpenCallInfo, &'static Function),
    arguments: &CallArguments,
    own: &[Message],
) -> Waits {
    let over = world.over(rank, call);
    let ends: Vec<Met> = own.iter().map(|message| met(world, (index, rank), over, message)).collect();
    let is_any = own.iter().any(|message| message.peer.is_none());
    // One that sends and receives waits for either, and may be done with the other.
    let has_both = [Role::Destination, Role::Source].into_iter().all(|role| function.position(role).is_some());
    let are_known = !has_both || arguments.destination.is_some() && arguments.source.is_some();
    let named: Vec<usize> = ends.iter().flat_map(Met::named).collect();
    let named: Arc<[usize]> = named.into();
    let why = if is_any && named.is_empty() { Why::Anybody } else { Why::Message };
    if !are_known || calls::may_be_under_way(call, arguments) || ends.iter().any(|end| matches!(end, Met::Unknown)) {
        return Waits::possible(why, named);
    }
    let mut needs: Vec<Need> = ends.into_iter().filter_map(Met::need).collect();
    let Some(first) = needs.pop() else { return Waits::unknown(why) };
    if needs.is_empty() {
        let certainty = first.certainty();
        return Waits { why, on: named, certainty, needs: vec![first] };
    }
    let mut either: Vec<usize> = needs.iter().chain([&first]).flat_map(|need| need.ranks().iter().copied()).collect();
    either.sort_unstable();
    either.dedup();
    // Both ends may be of one rank.
    let waits = Waits::one_of(why, either.into());
    Waits { on: if named.is_empty() { waits.on } else { distinct(&named) }, ..waits }
}

fn of_requests<'a>(
    world: &World<'a>,
    (index, rank): (usize, &'a RankProfile),
    (call, function): (&'a OpenCallInfo, &'static Function),
    arguments: &CallArguments,
    number: u64,
) -> Waits {
    let is_read = arguments.other_requests.is_some();
    let is_its = |row: &&PendingRow| row.is_under_way != Some(false) && (!is_read || row.awaited_by == Some(call.tid));
    let rows: Vec<&PendingRow> = requests(rank).filter(is_its).collect();
    // Where nobody has looked which requests those are, only one that is the only one is certain.
    let is_certain = is_read || number == 1 && rows.len() == 1;
    let ends: Vec<Met> = rows.iter().map(|row| of_request(world, (index, rank), row)).collect();
    let mut named: Vec<usize> = ends.iter().flat_map(Met::named).collect();
    named.sort_unstable();
    named.dedup();
    let named: Arc<[usize]> = named.into();
    if !is_certain {
        return Waits::possible(Why::Requests, named);
    }
    let waits_for_all = function.position(Role::Index).is_none();
    // Of several, those are certain of which the library says that they are under way; if it says nothing, one of them is, whichever.
    let is_only = rows.len() <= 1;
    let is_sure = |row: &PendingRow| is_only || row.is_under_way.is_some();
    if waits_for_all && (is_only || rows.iter().any(|row| is_sure(row))) {
        let sure = rows.iter().zip(ends).filter(|(row, _)| is_sure(row)).map(|(_, end)| end);
        let mut needs: Vec<Need> = sure.filter_map(Met::need).collect();
        let each: Vec<usize> = needs.iter().filter_map(Need::each).flat_map(|each| each.iter().copied()).collect();
        needs.retain(|need| need.each().is_none());
        if !each.is_empty() {
            needs.insert(0, Need::All(distinct(&each)));
        }
        let certainty = needs.first().map_or(Certainty::Possible, Need::certainty);
        let is_of_one = named.is_empty() && certainty == Certainty::OneOf;
        let why = if is_of_one { of_nobody_named(&rows) } else { Why::Requests };
        return Waits { why, on: named, certainty, needs };
    }
    // One that is not known may be the one that is complete first.
    let are_known = arguments.other_requests == Some(0) && ends.iter().all(|end| matches!(end, Met::No(_)));
    if !are_known {
        return Waits::possible(Why::Requests, named);
    }
    let any: Vec<usize> = ends.iter().filter_map(Met::ranks).flat_map(|ranks| ranks.iter().copied()).collect();
    if waits_for_all {
        return Waits::one_of(Why::Requests, distinct(&any));
    }
    Waits::any(Why::Requests, distinct(&any))
}

/// What requests wait for that name nobody.
fn of_nobody_named(rows: &[&PendingRow]) -> Why {
    let all = |is: &dyn Fn(&PendingRow) -> bool| rows.iter().all(|row| is(row));
    match () {
        () if all(&|row| row.partner == Partner::AnySource) => Why::Anybody,
        () if all(&|row| calls::collective_of(row).is_some()) => Why::Operation,
        () => Why::Somebody,
    }
}

/// What a request waits for.
fn of_request<'a>(world: &World<'a>, (index, rank): (usize, &'a RankProfile), row: &PendingRow) -> Met {
    if let Some(message) = world.message(rank, row) {
        if calls::request_may_be_under_way(row) {
            return Met::Unknown;
        }
        let over = world.over_of_request(rank, row);
        // Its own one is no other end.
        return met(world, (index, rank), over, &message);
    }
    if row.is_of_library {
        // Which of them all it is, nobody knows; but somebody has not done his part.
        let over = world.over_of_request(rank, row).or_else(|| world.only_one(rank));
        let over = over.filter(|over| world.is_whole(*over));
        return over.map_or(Met::Unknown, |over| Met::No(Need::OneOf(world.members(over))));
    }
    let Some(function) = calls::collective_of(row) else { return Met::Unknown };
    let Some(absent) = world.absent_of_request(rank, index, row) else { return Met::Unknown };
    match () {
        () if absent.is_empty() => Met::Unknown,
        () if calls::needs_everybody(function) => Met::No(Need::All(absent)),
        () if world.over_of_request(rank, row).is_some_and(|over| world.is_whole(over)) => Met::No(Need::OneOf(absent)),
        () => Met::Unknown,
    }
}

/// Whether somebody does something about the other end of a message, and else who has to.
fn met<'a>(
    world: &World<'a>,
    (index, rank): (usize, &'a RankProfile),
    over: Option<Over<'a>>,
    message: &Message,
) -> Met {
    let Some(own) = rank.rank else { return Met::Unknown };
    let Some(peer) = message.peer else {
        if world.is_met(message, (index, own), None) {
            return Met::Yes;
        }
        let over = over.filter(|over| world.is_whole(*over));
        return over.map_or(Met::Unknown, |over| Met::No(Need::Any(world.senders(over, rank))));
    };
    let Some(place) = world.index(rank, peer) else { return Met::Unknown };
    if world.is_met(message, (index, own), Some((place, peer))) { Met::Yes } else { Met::No(Need::All([place].into())) }
}

fn distinct(ranks: &[usize]) -> Arc<[usize]> {
    let mut ranks = ranks.to_vec();
    ranks.sort_unstable();
    ranks.dedup();
    ranks.into()
}

impl Need {
    pub(super) fn ranks(&self) -> &Arc<[usize]> {
        let (Self::All(ranks) | Self::Any(ranks) | Self::OneOf(ranks)) = self;
        ranks
    }

    /// Whether what one of them does is enough.
    pub(super) const fn is_of_one(&self) -> bool {
        matches!(self, Self::Any(_) | Self::OneOf(_))
    }

    fn each(&self) -> Option<&Arc<[usize]>> {
        if let Self::All(ranks) = self { Some(ranks) } else { None }
    }

    fn certainty(&self) -> Certainty {
        if self.each().is_some() { Certainty::Certain } else { Certainty::OneOf }
    }
}

impl Met {
    fn ranks(&self) -> Option<&Arc<[usize]>> {
        if let Self::No(need) = self { Some(need.ranks()) } else { None }
    }

    fn need(self) -> Option<Need> {
        if let Self::No(need) = self { Some(need) } else { None }
    }

    /// Those who are not just anybody.
    fn named(&self) -> Vec<usize> {
        match self {
            Self::No(Need::All(ranks)) => ranks.to_vec(),
            _ => Vec::new(),
        }
    }
}
