//! What a rank's present call waits for, and what it has to offer to others.

use mpiprobe_functions::{Function, Group, Operation, Pattern, Role};

use crate::{CallArguments, OpenCallInfo, Partner, Peer, PendingRow, Profile, RankProfile, RankState};

/// A circle is one only if all its calls have lasted as long, ns: what looks like one for a moment is messages on their way.
pub(super) const CIRCLE_NS: u64 = 1_000_000_000;

/// How long a byte of a message takes at most, ns: over a network that is slow, or busy. As long as a message takes, its other end may be a
/// request that nobody has seen posted, and both go on.
const BYTE_NS: u64 = 1_000;

/// Whether a call, which began before anybody saw what others had posted, may be in the middle of its message.
pub(super) fn may_be_under_way(call: &OpenCallInfo, arguments: &CallArguments) -> bool {
    call.began_before && may_take(arguments.bytes, call.open_ns)
}

/// The same of a request that was found in the library's memory.
pub(super) fn request_may_be_under_way(row: &PendingRow) -> bool {
    row.is_of_library && (may_take(row.sent_bytes, row.age_ns) || may_take(row.received_bytes, row.age_ns))
}

fn may_take(bytes: Option<u64>, ns: u64) -> bool {
    bytes.is_some_and(|bytes| bytes.saturating_mul(BYTE_NS) > ns)
}

/// A message that a rank wants to send or to receive.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    pub(super) is_send: bool,
    /// Rank in the world of the other end; `None`: anybody's.
    pub(super) peer: Option<u32>,
    /// `None`: any.
    pub(super) tag: Option<i32>,
    /// [`CommunicatorProfile::id`](crate::CommunicatorProfile::id); `None`: not known.
    pub(super) over: Option<u32>,
}

impl Message {
    /// Whether it is the other end of `other`, which `owner` has; this one is `own`'s.
    pub(super) fn meets(&self, own: u32, other: &Self, owner: u32) -> bool {
        let is_tag = |a: Option<i32>, b: Option<i32>| a.zip(b).is_none_or(|(a, b)| a == b);
        let is_over = |a: Option<u32>, b: Option<u32>| a.zip(b).is_none_or(|(a, b)| a == b);
        self.is_send != other.is_send
            && self.peer.is_none_or(|peer| peer == owner)
            && other.peer.is_none_or(|peer| peer == own)
            && is_tag(self.tag, other.tag)
            && is_over(self.over, other.over)
    }
}

/// When calls are looked at: while a job runs, or at its end, when somebody has ended it. Who dies earlier is no part of that: the
/// others have gone on since.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    /// How long ago the last rank ended, ns; `None`: some go on.
    over_since_ns: Option<u64>,
}

impl Moment {
    /// Ranks that are ended together end within this time, ns.
    const TOGETHER_NS: u64 = 1_000_000_000;

    pub(super) fn of(profile: &Profile) -> Self {
        let is_over = profile.ranks.iter().all(|rank| rank.state != RankState::Running);
        let ends = profile.ranks.iter().filter_map(|rank| rank.ended_ago_ns);
        Self { over_since_ns: ends.min().filter(|_| is_over) }
    }

    fn is_seen(self, rank: &RankProfile) -> bool {
        match (rank.state, self.over_since_ns, rank.ended_ago_ns) {
            // One that is stopped waits for nobody but who has stopped it.
            (RankState::Running, ..) => !rank.stopped,
            (RankState::Ended, Some(last), Some(ago)) => ago.saturating_sub(last) <= Self::TOGETHER_NS,
            _ => false,
        }
    }
}

/// The calls that threads of a rank wait in at that moment. One that only asks waits if the program does nothing but ask.
pub(super) fn blocking(rank: &RankProfile, moment: Moment) -> impl Iterator<Item = (&OpenCallInfo, &'static Function)> {
    let has_ended = rank.state == RankState::Ended;
    let open = rank.open_calls.iter().filter(move |call| moment.is_seen(rank) && (has_ended || !call.ended_inside));
    let known = open.filter_map(|call| Some((call, mpiprobe_functions::by_name(call.function)?.function())));
    known.filter(|(call, function)| function.operation == Operation::Blocking && (!function.polling || call.polls))
}

/// The call that a rank has been in for longest, or was in for longest when it ended.
pub fn longest(rank: &RankProfile) -> Option<&OpenCallInfo> {
    let has_ended = rank.state == RankState::Ended;
    rank.open_calls.iter().filter(|call| has_ended || !call.ended_inside).max_by_key(|call| call.open_ns)
}

/// Messages that the call itself sends and receives, over the communicator `over`. `members`: world ranks of those in it, by rank.
pub(super) fn messages(
    arguments: &CallArguments,
    over: Option<u32>,
    members: Option<&[Option<u32>]>,
) -> impl Iterator<Item = Message> {
    let world = |peer: Peer| match peer.partner {
        Partner::AnySource => Some(None),
        Partner::Rank => {
            let member = || members?.get(usize::try_from(peer.rank?).ok()?).copied().flatten();
            peer.world_rank.or_else(member).map(Some)
        }
        Partner::Nobody | Partner::ProcNull | Partner::Unknown => None,
    };
    let send = arguments.destination.and_then(world);
    let send = send.map(|peer| Message { is_send: true, peer, tag: arguments.send_tag, over });
    let receive = arguments.source.and_then(world);
    let receive = receive.map(|peer| Message { is_send: false, peer, tag: arguments.receive_tag, over });
    send.into_iter().chain(receive)
}

/// The message of a request over the communicator `over`, if it sends or receives one.
pub(super) fn of_request(row: &PendingRow, over: Option<u32>) -> Option<Message> {
    let function = mpiprobe_functions::by_name(row.function)?.function();
    let is_send = function.position(Role::Destination).is_some();
    let peer = match row.partner {
        Partner::Rank => Some(row.peer?),
        Partner::AnySource => None,
        Partner::Nobody | Partner::ProcNull | Partner::Unknown => return None,
    };
    // The library's number for any tag is not known here; tags themselves are not negative.
    let tag = row.tag.filter(|&tag| tag >= 0);
    (is_send || function.position(Role::Source).is_some()).then_some(Message { is_send, peer, tag, over })
}

/// Whether a call of it can end only after all members of its communicator have made theirs. Of those with a root some end
/// earlier, as do those with neighbours, and those that give something else to each.
pub(super) fn needs_everybody(function: &'static Function) -> bool {
    is_collective_of_all(function)
        && function.position(Role::Root).is_none()
        && !is_of_neighbours(function)
        && !gives_to_each(function)
}

/// Whether only those have to come whom the topology of its communicator makes neighbours.
pub(super) fn is_of_neighbours(function: &'static Function) -> bool {
    function.pattern() == Some(Pattern::Neighbours)
}

/// Whether what a rank gets may be of some of the others only: it may be done before all have come.
pub(super) fn gives_to_each(function: &'static Function) -> bool {
    const TO_EACH: [&str; 12] = [
        "MPI_Scan",
        "MPI_Exscan",
        "MPI_Allgatherv",
        "MPI_Alltoallv",
        "MPI_Alltoallw",
        "MPI_Reduce_scatter",
        "MPI_Iscan",
        "MPI_Iexscan",
        "MPI_Iallgatherv",
        "MPI_Ialltoallv",
        "MPI_Ialltoallw",
        "MPI_Ireduce_scatter",
    ];
    TO_EACH.contains(&small(function).name)
}

/// The function of a request that all members of a communicator have to make, without `_c`.
pub(super) fn collective_of(row: &PendingRow) -> Option<&'static Function> {
    let function = small(mpiprobe_functions::by_name(row.function)?.function());
    let is_duplicate = matches!(function.name, "MPI_Comm_idup" | "MPI_Comm_idup_with_info");
    let is_request = function.operation != Operation::Blocking;
    let is_collective = matches!(function.group, Group::Collective | Group::Synchronisation) || is_duplicate;
    (is_request && is_collective).then_some(function)
}

/// Whether all members of a communicator or window make the call.
pub(super) fn is_meeting(function: &'static Function) -> bool {
    is_collective(function) || window_call(function) == Some(WindowCall::Collective)
}

/// A call over a window that may wait for others of its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WindowCall {
    /// All members make it.
    Collective,
    /// It needs a lock, or that others let it at the window.
    Lock,
    /// It needs `MPI_Win_post` of others.
    Exposure,
    /// It needs `MPI_Win_complete` of others.
    Access,
}

pub(super) fn window_call(function: &'static Function) -> Option<WindowCall> {
    let has_window = function.position(Role::Window).is_some();
    match small(function).name {
        "MPI_Win_fence" | "MPI_Win_free" => Some(WindowCall::Collective),
        "MPI_Win_wait" | "MPI_Win_test" => Some(WindowCall::Access),
        "MPI_Win_start" | "MPI_Win_complete" => Some(WindowCall::Exposure),
        name if name.starts_with("MPI_Win_lock") || name.starts_with("MPI_Win_unlock") => Some(WindowCall::Lock),
        name if name.starts_with("MPI_Win_flush") => Some(WindowCall::Lock),
        // Accesses may wait for the lock that has not been granted yet.
        _ if has_window && function.position(Role::Target).is_some() && function.operation == Operation::Blocking => {
            Some(WindowCall::Lock)
        }
        _ => None,
    }
}

pub(super) fn is_collective(function: &'static Function) -> bool {
    is_collective_of_all(function) && function.operation == Operation::Blocking
}

fn is_collective_of_all(function: &'static Function) -> bool {
    matches!(function.group, Group::Collective | Group::Synchronisation) || makes_objects(function)
}

/// Whether all members of a communicator have to make it, of functions that make objects, or end all of them: what those are they have to
/// agree on.
pub(super) fn makes_objects(function: &'static Function) -> bool {
    // Others of these groups are local, or concern some members only.
    const MAKERS: [&str; 19] = [
        "MPI_Cart_create",
        "MPI_Cart_sub",
        "MPI_Comm_create",
        CREATE_GROUP,
        "MPI_Comm_dup",
        "MPI_Comm_dup_with_info",
        "MPI_Comm_split",
        "MPI_Comm_split_type",
        "MPI_Dist_graph_create",
        "MPI_Dist_graph_create_adjacent",
        "MPI_Graph_create",
        "MPI_Intercomm_create",
        "MPI_Intercomm_merge",
        "MPI_Win_allocate",
        "MPI_Win_allocate_shared",
        "MPI_Win_create",
        "MPI_Win_create_dynamic",
        "MPI_File_open",
        FINALIZE,
    ];
    MAKERS.contains(&small(function).name)
}

/// Whether all who have opened a file make the call.
pub(super) fn is_on_file(function: &'static Function) -> bool {
    const OF_ALL: [&str; 7] = [
        "MPI_File_close",
        "MPI_File_preallocate",
        "MPI_File_set_atomicity",
        "MPI_File_set_info",
        "MPI_File_set_size",
        "MPI_File_set_view",
        "MPI_File_sync",
    ];
    let name = small(function).name;
    let is_by_all = || ["_all", "_ordered"].iter().any(|part| name.contains(part));
    function.group == Group::Io
        && function.position(Role::File).is_some()
        && (OF_ALL.contains(&name) || is_by_all())
        && name != "MPI_File_open"
}

/// Those of its group make it, and no other members of its communicator.
pub(super) const CREATE_GROUP: &str = "MPI_Comm_create_group";

/// Who has called it waits for all processes of the job.
pub(super) const FINALIZE: &str = "MPI_Finalize";

/// Of a large-count variant the ordinary function.
pub(super) fn small(function: &'static Function) -> &'static Function {
    match function.large_count_of() {
        Some(small) => small.function(),
        None => function,
    }
}
