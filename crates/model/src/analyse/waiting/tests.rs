//! Who waits for whom, by the calls that they are in.

use super::{Certainty, OtherEnd, Posted, Wait, Waiting, Why, operations, unmatched_rows, waiting};
use crate::{
    BeganBeforeRow, CallArguments, CommunicatorArgument, CommunicatorProfile, CommunicatorRow, OpenCallInfo,
    OtherEndSeen, Peer, PendingRow, Profile, RankProfile, RankState, ThreadLife, ThreadProfile, WindowArgument,
    sample::{self, SECOND, anybody, open, over_world, peer, pending, ranks, receive, send},
};

/// So many ranks, of which some are in calls, and have posted requests.
fn job(number: u32, calls: Vec<(usize, OpenCallInfo)>, requests: Vec<(usize, PendingRow)>) -> Profile {
    let mut ranks = ranks(number);
    for (rank, call) in calls {
        ranks[rank].open_calls.push(call);
    }
    for (rank, request) in requests {
        requests_of(&mut ranks[rank]).push(request);
    }
    sample::profile(ranks)
}

fn requests_of(rank: &mut RankProfile) -> &mut Vec<PendingRow> {
    &mut rank.traffic.as_mut().unwrap().pending
}

fn wait_of(waiting: &Waiting, rank: usize) -> &Wait {
    waiting.waits.iter().find(|wait| wait.rank == rank).unwrap()
}

fn thread(tid: u32, state: ThreadLife) -> ThreadProfile {
    ThreadProfile { tid, state, calls: 1, mpi_ns: 0, wall_ns: 0 }
}

/// Why a rank waits, for whom, how surely.
fn edge(profile: &Profile, rank: usize) -> (Why, Vec<usize>, Certainty) {
    let waiting = waiting(profile);
    let wait = wait_of(&waiting, rank);
    (wait.why, wait.on.to_vec(), wait.certainty)
}

fn collective(function: &'static str) -> OpenCallInfo {
    open(function, over_world())
}

#[test]
fn a_receive_waits_for_its_sender_and_a_send_for_its_receiver() {
    let profile = job(4, vec![(0, receive(2, 7)), (1, send(3, 7))], vec![]);
    assert_eq!(edge(&profile, 0), (Why::Message, vec![2], Certainty::Certain));
    assert_eq!(edge(&profile, 1), (Why::Message, vec![3], Certainty::Certain));
    assert!(waiting(&profile).circles.is_empty());
}

#[test]
fn who_has_the_other_end_is_not_waited_for() {
    let met = job(2, vec![(0, receive(1, 7)), (1, send(0, 7))], vec![]);
    assert_eq!(edge(&met, 0), (Why::Message, vec![], Certainty::Possible));
    let posted = job(2, vec![(0, receive(1, 7))], vec![(1, pending("MPI_Isend", Some(0), 7))]);
    assert_eq!(edge(&posted, 0).1, Vec::<usize>::new());
    let other_tag = job(2, vec![(0, receive(1, 7)), (1, send(0, 8))], vec![]);
    assert_eq!(edge(&other_tag, 0).1, [1]);
    assert_eq!(waiting(&other_tag).circles, [vec![0, 1]], "neither can go on");
}

#[test]
fn a_message_to_oneself_nobody_else_can_send() {
    let profile = job(2, vec![(0, receive(0, 7)), (1, collective("MPI_Barrier"))], vec![]);
    assert_eq!(edge(&profile, 0), (Why::Message, vec![0], Certainty::Certain));
    assert_eq!(waiting(&profile).circles, [vec![0]]);
    let sent = job(2, vec![(0, receive(0, 7))], vec![(0, pending("MPI_Isend", Some(0), 7))]);
    assert!(waiting(&sent).circles.is_empty(), "it is on its way");
    // Another thread may send it.
    let mut threads = job(2, vec![(0, receive(0, 7))], vec![]);
    threads.ranks[0].threads = vec![thread(threads.ranks[0].open_calls[0].tid, ThreadLife::Running)];
    assert_eq!(waiting(&threads).circles, [vec![0]]);
    threads.ranks[0].threads.push(thread(4711, ThreadLife::Running));
    assert!(waiting(&threads).circles.is_empty());
    // And so may one that waits for somebody.
    let mut both = job(2, vec![(0, receive(0, 7)), (0, OpenCallInfo { tid: 4711, ..receive(1, 7) })], vec![]);
    assert!(waiting(&both).circles.is_empty());
    both.ranks[1].open_calls.push(receive(0, 7));
    assert_eq!(waiting(&both).circles, [vec![0, 1]]);
}

/// The other end may be a request that was posted before anybody looked.
#[test]
fn of_a_long_message_that_nobody_saw_begin_it_is_not_known_whether_it_goes_on() {
    let of = |bytes, began_before| {
        let call = receive(1, 7);
        let arguments = CallArguments { bytes: Some(bytes), ..call.arguments.clone().unwrap() };
        let call = OpenCallInfo { arguments: Some(arguments), began_before, ..call };
        waiting(&job(2, vec![(0, call), (1, receive(0, 8))], vec![])).circles
    };
    assert_eq!(of(1 << 30, true), Vec::<Vec<usize>>::new());
    assert_eq!(of(1 << 30, false), [vec![0, 1]]);
    assert_eq!(of(1 << 20, true), [vec![0, 1]]);
    // Over a slow network it may take some seconds.
    assert_eq!(of(20_000_000, true), Vec::<Vec<usize>>::new());
}

#[test]
fn short_calls_are_no_waiting_and_circles_take_a_second() {
    let of = |ns| {
        let call = |from| OpenCallInfo { open_ns: ns, ..receive(from, 1) };
        waiting(&job(2, vec![(0, call(1)), (1, call(0))], vec![]))
    };
    assert_eq!(of(SECOND / 10 - 1), Waiting::default());
    assert_eq!((of(SECOND - 1).waits.len(), of(SECOND - 1).circles.len()), (2, 0));
    assert_eq!(of(SECOND).circles, [vec![0, 1]]);
}

#[test]
fn a_circle_has_its_ranks_in_order_and_chains_lead_into_it() {
    let profile = job(5, vec![(1, receive(3, 1)), (3, receive(2, 1)), (2, receive(1, 1)), (4, receive(2, 1))], vec![]);
    let waiting = waiting(&profile);
    assert_eq!(waiting.circles, [vec![1, 3, 2]]);
    assert_eq!(wait_of(&waiting, 3).circle, Some(0));
    assert_eq!((wait_of(&waiting, 4).circle, &wait_of(&waiting, 4).chain), (None, &vec![2, 1, 3]));
}

#[test]
fn a_message_of_anybody_is_of_one_of_all() {
    let call = || open("MPI_Recv", CallArguments { source: Some(anybody()), any_tag: true, ..over_world() });
    let profile = job(3, vec![(0, call()), (1, receive(0, 1))], vec![]);
    assert_eq!(edge(&profile, 0), (Why::Anybody, vec![], Certainty::OneOf));
    assert!(waiting(&profile).circles.is_empty(), "rank 2 may send");
    let profile = job(3, vec![(0, call()), (1, receive(0, 1)), (2, receive(1, 1))], vec![]);
    assert_eq!(waiting(&profile).circles, [vec![0, 1]], "nobody can");
    assert_eq!(waiting(&job(3, vec![(0, call()), (1, call()), (2, call())], vec![])).circles, [vec![0, 1]]);
    // What is sent with another tag is none of these.
    let of_tag =
        |tag| open("MPI_Recv", CallArguments { source: Some(anybody()), receive_tag: Some(tag), ..over_world() });
    let profile = |tag| job(2, vec![(0, of_tag(tag)), (1, send(0, 4))], vec![]);
    assert_eq!(waiting(&profile(5)).circles, [vec![0, 1]]);
    assert_eq!(edge(&profile(4), 0), (Why::Anybody, vec![], Certainty::Possible), "on its way");
    // Somebody who is not observed may send.
    let mut some = job(2, vec![(0, call()), (1, receive(0, 1))], vec![]);
    some.ranks.iter_mut().for_each(|rank| rank.size = Some(3));
    assert_eq!(edge(&some, 0).2, Certainty::Possible);
    // Whoever has ended does not.
    let mut ended = job(3, vec![(0, call()), (1, receive(0, 1))], vec![]);
    ended.ranks[2].state = RankState::Ended;
    assert_eq!(waiting(&ended).circles, [vec![0, 1]]);
    ended.ranks[1].open_calls.clear();
    assert!(waiting(&ended).circles.is_empty());
}

/// A thread that waits for nothing may do what others wait for.
#[test]
fn of_several_threads_all_have_to_wait() {
    let second = OpenCallInfo { tid: 2, ..receive(1, 8) };
    let mut profile = job(2, vec![(0, receive(1, 7)), (0, second), (1, receive(0, 1))], vec![]);
    assert_eq!(
        waiting(&profile).waits.iter().map(|wait| (wait.rank, wait.tid)).collect::<Vec<_>>(),
        [(0, 1), (0, 2), (1, 1)]
    );
    assert_eq!(waiting(&profile).circles, [vec![0, 1]]);
    profile.ranks[0].threads = vec![thread(1, ThreadLife::Running), thread(3, ThreadLife::Ended)];
    assert_eq!(waiting(&profile).circles, [vec![0, 1]]);
    profile.ranks[0].threads.push(thread(4, ThreadLife::Running));
    assert!(waiting(&profile).circles.is_empty());
    // Nothing was seen of another one but the end of a call that had begun before.
    let before =
        BeganBeforeRow { function: "MPI_Init", tid: 4, time_ns: 7, is_open: false, call_site: None, site: None };
    profile.ranks[0].threads.pop();
    profile.ranks[0].began_before = vec![BeganBeforeRow { tid: 1, ..before.clone() }];
    profile.ranks[0].pid = 1;
    assert_eq!(waiting(&profile).circles, [vec![0, 1]]);
    profile.ranks[0].pid = 9;
    assert!(waiting(&profile).circles.is_empty(), "the first thread may do anything");
    profile.ranks[0].pid = 1;
    profile.ranks[0].began_before.push(before);
    assert!(waiting(&profile).circles.is_empty());
    // One of them gets what it waits for.
    let second = OpenCallInfo { tid: 2, ..receive(2, 8) };
    let other = job(3, vec![(0, receive(1, 7)), (0, second), (1, receive(0, 1))], vec![]);
    assert!(waiting(&other).circles.is_empty());
    let polls = OpenCallInfo { tid: 2, ..open("MPI_Test", CallArguments::default()) };
    assert!(waiting(&job(2, vec![(0, receive(1, 7)), (0, polls), (1, receive(0, 1))], vec![])).circles.is_empty());
}

fn over_window(members: Option<Vec<Option<u32>>>, context: u64) -> CallArguments {
    let size = members.as_ref().map_or(3, |members: &Vec<_>| u32::try_from(members.len()).unwrap());
    let window = WindowArgument { handle: 7, name: None, context: Some(context), size: Some(size), members };
    CallArguments { window: Some(window), ..CallArguments::default() }
}

#[test]
fn a_fence_waits_for_all_who_have_the_window() {
    let fence = |context| open("MPI_Win_fence", over_window(None, context));
    let profile = job(3, vec![(0, fence(1)), (1, receive(0, 1))], vec![]);
    assert_eq!(edge(&profile, 0), (Why::Collective, vec![1, 2], Certainty::Certain));
    assert_eq!(waiting(&profile).circles, [vec![0, 1]]);
    let of_another = job(3, vec![(0, fence(1)), (1, fence(2)), (2, fence(1))], vec![]);
    assert_eq!(waiting(&of_another).circles, [vec![0, 1]]);
    let of_two = open("MPI_Win_fence", over_window(Some(vec![Some(2), Some(0)]), 1));
    assert_eq!(edge(&job(3, vec![(0, of_two)], vec![]), 0), (Why::Collective, vec![2], Certainty::Certain));
}

#[test]
fn who_accesses_a_window_waits_for_those_of_its_group() {
    let start = |group: &[u32]| {
        let group = Some(group.iter().copied().map(Some).collect());
        open("MPI_Win_start", CallArguments { group, ..over_window(None, 1) })
    };
    let profile = job(3, vec![(0, start(&[1])), (1, start(&[0]))], vec![]);
    assert_eq!(edge(&profile, 0), (Why::Exposure, vec![1], Certainty::Certain));
    assert_eq!(waiting(&profile).circles, [vec![0, 1]]);
    let of_two = job(3, vec![(0, start(&[1, 2])), (1, receive(0, 1))], vec![]);
    assert_eq!(edge(&of_two, 0), (Why::Exposure, vec![1, 2], Certainty::OneOf));
    assert!(waiting(&of_two).circles.is_empty(), "rank 2 may not have let it at the window");
    for unknown in [start(&[0, 1]), start(&[7])] {
        assert_eq!(edge(&job(3, vec![(0, unknown)], vec![]), 0), (Why::Exposure, vec![], Certainty::Possible));
    }
}

#[test]
fn a_lock_is_one_of_the_others() {
    for (function, why) in [
        ("MPI_Win_lock", Why::Lock),
        ("MPI_Win_unlock", Why::Lock),
        ("MPI_Put", Why::Lock),
        ("MPI_Win_wait", Why::Access),
        ("MPI_Win_start", Why::Exposure),
    ] {
        let wants = || open(function, over_window(None, 1));
        let profile = job(3, vec![(0, wants()), (1, receive(0, 1))], vec![]);
        assert_eq!(edge(&profile, 0), (why, vec![1, 2], Certainty::OneOf), "{function}");
        assert!(waiting(&profile).circles.is_empty());
        let all = job(3, vec![(0, wants()), (1, receive(0, 1)), (2, receive(0, 1))], vec![]);
        let waiting = waiting(&all);
        assert_eq!((waiting.circles.len(), waiting.knots), (0, vec![vec![0, 1, 2]]), "{function}: it may be either");
    }
    let unknown = WindowArgument { handle: 7, name: None, context: None, size: None, members: None };
    let call = open("MPI_Win_lock", CallArguments { window: Some(unknown), ..CallArguments::default() });
    assert_eq!(edge(&job(2, vec![(0, call)], vec![]), 0), (Why::Lock, vec![], Certainty::Possible));
}

#[test]
fn collectives_that_do_not_block_wait_when_they_are_waited_for() {
    let row = || PendingRow { awaited_by: Some(1), communicator: Some(5), ..collective_request("MPI_Ibarrier") };
    let of = |requests| with_pair(job(4, vec![(2, wait_for(1, 0)), (3, receive(2, 1))], requests));
    assert_eq!(edge(&of(vec![(2, row())]), 2), (Why::Requests, vec![3], Certainty::Certain));
    assert_eq!(waiting(&of(vec![(2, row())])).circles, [vec![2, 3]]);
    // Rank 3 has begun one, and rank 2 a second.
    assert_eq!(edge(&of(vec![(2, row()), (3, row())]), 2).1, Vec::<usize>::new());
    assert_eq!(edge(&of(vec![(2, row()), (2, row()), (3, row())]), 2).1, [3]);
    // Which function it was is not known: one of the members has not done its part.
    let found = || PendingRow { is_of_library: true, ..row() };
    assert_eq!(edge(&of(vec![(2, found()), (3, found())]), 2).2, Certainty::OneOf);
    assert_eq!(waiting(&of(vec![(2, found())])).circles, [vec![2, 3]]);
}

fn collective_request(function: &'static str) -> PendingRow {
    PendingRow { partner: crate::Partner::Nobody, ..pending(function, None, 0) }
}

/// `MPI_Waitall` for so many requests, of which so many are not known.
fn wait_for(requests: u64, others: u64) -> OpenCallInfo {
    let arguments =
        CallArguments { requests: Some(requests), other_requests: Some(others), ..CallArguments::default() };
    open("MPI_Waitall", arguments)
}

#[test]
fn with_an_amount_for_each_some_are_done_earlier() {
    for function in ["MPI_Scan", "MPI_Alltoallv", "MPI_Allgatherv"] {
        let profile = job(3, vec![(0, collective(function)), (1, receive(0, 1))], vec![]);
        assert_eq!(edge(&profile, 0), (Why::Collective, vec![1, 2], Certainty::OneOf), "{function}");
    }
    assert_eq!(edge(&job(3, vec![(0, collective("MPI_Alltoall"))], vec![]), 0).2, Certainty::Certain);
}

#[test]
fn a_rank_that_is_stopped_or_gone_waits_for_nobody_and_can_be_waited_for() {
    let mut profile = job(2, vec![(0, receive(1, 1)), (1, receive(0, 1))], vec![]);
    profile.ranks[1].stopped = true;
    assert_eq!(waiting(&profile).waits.len(), 1);
    assert_eq!(edge(&profile, 0).1, [1]);
    profile.ranks[1].stopped = false;
    profile.ranks[1].state = RankState::Ended;
    assert_eq!(edge(&profile, 0).1, [1]);
    assert!(waiting(&profile).circles.is_empty());
}

#[test]
fn ranks_that_are_not_observed_are_not_named() {
    let profile = job(2, vec![(0, receive(9, 1))], vec![]);
    assert_eq!(edge(&profile, 0), (Why::Message, vec![], Certainty::Possible));
}

#[test]
fn waitall_waits_for_all_of_its_requests_and_waitany_for_one() {
    let waits = |function, requests, other_requests| {
        open(function, CallArguments { requests: Some(requests), other_requests, ..CallArguments::default() })
    };
    let awaited = |peer| PendingRow { awaited_by: Some(1), is_under_way: Some(true), ..pending("MPI_Irecv", peer, 1) };
    let posted = || vec![(0, awaited(Some(1))), (0, awaited(Some(2)))];
    let profile = job(3, vec![(0, waits("MPI_Waitall", 2, Some(0)))], posted());
    assert_eq!(edge(&profile, 0), (Why::Requests, vec![1, 2], Certainty::Certain));
    // The library says of one that it is complete: its message was sent by a call that is over.
    let is_done = PendingRow { is_under_way: Some(false), ..awaited(Some(1)) };
    let profile = job(3, vec![(0, waits("MPI_Waitall", 2, Some(0)))], vec![(0, is_done), (0, awaited(Some(2)))]);
    assert_eq!(edge(&profile, 0), (Why::Requests, vec![2], Certainty::Certain));
    assert_eq!(operations(&profile).len(), 1, "no other end is missed");
    // Of those of which it says nothing, one at least is not.
    let unsaid = |peer| PendingRow { is_under_way: None, ..awaited(peer) };
    let waitall = || vec![(0, waits("MPI_Waitall", 2, Some(0)))];
    let profile = job(3, waitall(), vec![(0, unsaid(Some(1))), (0, unsaid(Some(2)))]);
    assert_eq!(edge(&profile, 0), (Why::Requests, vec![1, 2], Certainty::OneOf));
    let both = |of: OpenCallInfo| vec![(0, of), (1, receive(0, 9)), (2, receive(0, 9))];
    let of_both = |of, posted| {
        let waiting = waiting(&job(3, both(of), posted));
        (waiting.circles, waiting.knots)
    };
    let unsaid_both = || vec![(0, unsaid(Some(1))), (0, unsaid(Some(2)))];
    assert_eq!(of_both(waits("MPI_Waitall", 2, Some(0)), unsaid_both()), (vec![], vec![vec![0, 1, 2]]));
    assert_eq!(of_both(waits("MPI_Waitany", 2, Some(0)), unsaid_both()), (vec![vec![0, 1]], vec![]), "either would do");
    let profile = job(3, waitall(), vec![(0, unsaid(Some(1))), (0, awaited(Some(2)))]);
    assert_eq!(edge(&profile, 0).2, Certainty::Certain);
    assert_eq!(wait_of(&waiting(&profile), 0).needs.len(), 1);
    // A third one that nobody knows is one more.
    let profile = job(3, vec![(0, waits("MPI_Waitall", 3, Some(1)))], posted());
    assert_eq!(edge(&profile, 0).2, Certainty::Certain);
    let profile = job(3, vec![(0, waits("MPI_Waitany", 2, Some(0)))], posted());
    assert_eq!(edge(&profile, 0), (Why::Requests, vec![1, 2], Certainty::OneOf));
    for function in ["MPI_Waitany", "MPI_Waitsome"] {
        let profile = job(3, vec![(0, waits(function, 3, Some(1)))], posted());
        assert_eq!(edge(&profile, 0), (Why::Requests, vec![1, 2], Certainty::Possible));
    }
    // Nobody has looked which they are: one of those posted may not be among them, and not all of them may be requests.
    let unread = || vec![(0, pending("MPI_Irecv", Some(1), 1)), (0, pending("MPI_Irecv", Some(2), 1))];
    for (function, requests) in [("MPI_Wait", 1), ("MPI_Waitall", 2)] {
        let profile = job(3, vec![(0, waits(function, requests, None))], unread());
        assert_eq!(edge(&profile, 0), (Why::Requests, vec![1, 2], Certainty::Possible));
    }
    let profile = job(3, vec![(0, waits("MPI_Waitall", 2, Some(0))), (2, send(0, 1))], posted());
    assert_eq!(edge(&profile, 0), (Why::Requests, vec![1], Certainty::Certain));
    // What others have posted is none of its business.
    let mut other = posted();
    other[1].1.awaited_by = Some(9);
    let profile = job(3, vec![(0, waits("MPI_Waitall", 1, Some(0)))], other);
    assert_eq!(edge(&profile, 0), (Why::Requests, vec![1], Certainty::Certain));
    // One of anybody, and one of rank 1.
    let any = vec![(0, awaited(None)), (0, awaited(Some(1)))];
    let over_all = |row: PendingRow| PendingRow { communicator: Some(5), ..row };
    let profile = with_pair(job(
        4,
        vec![(2, waits("MPI_Waitall", 2, Some(0))), (3, receive(2, 1))],
        vec![(2, over_all(any[0].1.clone()))],
    ));
    assert_eq!((edge(&profile, 2).2, waiting(&profile).circles), (Certainty::OneOf, vec![vec![2, 3]]));
    let both_of = waits("MPI_Waitall", 2, Some(0));
    let both = job(3, vec![(0, both_of), (1, receive(0, 9))], any);
    assert_eq!(
        edge(&both, 0),
        (Why::Requests, vec![1], Certainty::Certain),
        "over which communicator anybody is, is not known"
    );
    // Nothing is known of its requests: of a job without --traffic, for example.
    let profile = job(3, vec![(0, waits("MPI_Waitall", 2, Some(2)))], vec![]);
    assert_eq!(edge(&profile, 0), (Why::Requests, vec![], Certainty::Possible));
}

#[test]
fn requests_in_a_circle_are_a_deadlock() {
    let wait = || open("MPI_Wait", CallArguments { requests: Some(1), ..CallArguments::default() });
    // Of one request there is no question which it is.
    let posted = vec![(0, pending("MPI_Irecv", Some(1), 1)), (1, pending("MPI_Irecv", Some(0), 1))];
    assert_eq!(waiting(&job(2, vec![(0, wait()), (1, wait())], posted)).circles, [vec![0, 1]]);
}

/// What is asked again and again waits for nobody: the program can do something else meanwhile.
#[test]
fn polling_and_nonblocking_calls_do_not_wait() {
    let calls = vec![(0, collective("MPI_Ibarrier")), (1, open("MPI_Test", CallArguments::default()))];
    assert!(waiting(&job(2, calls, vec![])).waits.is_empty());
}

/// Unless the program is known to do nothing but ask: then it waits as in the call that blocks.
#[test]
fn who_does_nothing_but_ask_waits_as_in_the_call_that_blocks() {
    let of = |polls, function, arguments: CallArguments, posted: &[u32]| {
        let call = OpenCallInfo { polls, ..open(function, arguments) };
        let row =
            |peer| PendingRow { awaited_by: Some(1), is_under_way: Some(true), ..pending("MPI_Irecv", Some(peer), 1) };
        let posted = posted.iter().map(|peer| (0, row(*peer))).collect();
        job(3, vec![(0, call), (1, receive(0, 9)), (2, receive(0, 9))], posted)
    };
    let requests =
        |number| CallArguments { requests: Some(number), other_requests: Some(0), ..CallArguments::default() };
    let message = |source| CallArguments { source: Some(source), receive_tag: Some(2), ..over_world() };
    for (function, blocks, arguments, posted) in [
        ("MPI_Test", "MPI_Wait", requests(1), &[1][..]),
        ("MPI_Request_get_status", "MPI_Wait", requests(1), &[1]),
        ("MPI_Testall", "MPI_Waitall", requests(2), &[1, 2]),
        ("MPI_Testany", "MPI_Waitany", requests(2), &[1, 2]),
        ("MPI_Testsome", "MPI_Waitsome", requests(2), &[1, 2]),
        ("MPI_Iprobe", "MPI_Probe", message(peer(1)), &[]),
        ("MPI_Iprobe", "MPI_Probe", message(anybody()), &[]),
        ("MPI_Improbe", "MPI_Mprobe", message(peer(1)), &[]),
    ] {
        let asks = of(true, function, arguments.clone(), posted);
        let waits = of(false, blocks, arguments.clone(), posted);
        assert_eq!(edge(&asks, 0), edge(&waits, 0), "{function}");
        assert_eq!(waiting(&asks).circles, [vec![0, 1]], "{function}");
        let may_do_more = of(false, function, arguments, posted);
        assert!(waiting(&may_do_more).circles.is_empty(), "{function}");
    }
}

#[test]
fn a_collective_waits_for_those_that_are_not_in_it() {
    let profile = job(4, vec![(0, collective("MPI_Barrier")), (2, collective("MPI_Barrier"))], vec![]);
    assert_eq!(edge(&profile, 0), (Why::Collective, vec![1, 3], Certainty::Certain));
    let all = job(2, vec![(0, collective("MPI_Barrier")), (1, collective("MPI_Barrier"))], vec![]);
    assert_eq!(edge(&all, 0), (Why::Collective, vec![], Certainty::Possible));
}

#[test]
fn different_collectives_of_one_communicator_are_a_circle() {
    let profile = job(2, vec![(0, collective("MPI_Barrier")), (1, collective("MPI_Allreduce"))], vec![]);
    assert_eq!(waiting(&profile).circles, [vec![0, 1]]);
}

#[test]
fn with_a_root_it_is_one_of_those_who_are_not_there() {
    let rooted = |function| open(function, CallArguments { root: Some(peer(0)), ..over_world() });
    for function in ["MPI_Bcast", "MPI_Reduce", "MPI_Gather"] {
        let profile = job(3, vec![(0, rooted(function)), (1, receive(0, 1))], vec![]);
        assert_eq!(edge(&profile, 0), (Why::Collective, vec![1, 2], Certainty::OneOf), "{function}");
        assert!(waiting(&profile).circles.is_empty(), "{function}: some go on earlier");
    }
}

/// Who is no neighbour may be the one that is not there, as may one that has done its part.
#[test]
fn with_neighbours_it_is_one_of_those_who_are_not_there() {
    for function in ["MPI_Neighbor_allgather", "MPI_Neighbor_alltoallw"] {
        let two = job(2, vec![(0, collective(function)), (1, receive(0, 1))], vec![]);
        assert_eq!(edge(&two, 0), (Why::Collective, vec![1], Certainty::Certain), "{function}");
        let calls = [(0, collective(function)), (1, receive(0, 1)), (2, collective(function))];
        let four = |last: Option<OpenCallInfo>| {
            let last = last.map(|call| (3, call));
            job(4, calls.iter().cloned().chain(last).collect(), vec![])
        };
        assert_eq!(edge(&four(None), 0), (Why::Collective, vec![1, 3], Certainty::OneOf), "{function}");
        assert!(waiting(&four(None)).knots.is_empty(), "{function}: rank 3 may be the one");
        assert_eq!(waiting(&four(Some(collective("MPI_Barrier")))).knots, [vec![0, 1, 2, 3]], "{function}");
        let mut some = four(None);
        some.ranks.truncate(3);
        assert_eq!(edge(&some, 0).2, Certainty::Possible, "{function}: not all are observed");
    }
}

#[test]
fn a_receive_and_a_barrier_may_wait_for_each_other() {
    let profile =
        job(3, vec![(0, collective("MPI_Barrier")), (1, receive(0, 1)), (2, collective("MPI_Barrier"))], vec![]);
    assert_eq!(waiting(&profile).circles, [vec![0, 1]]);
}

/// A communicator of ranks 2 and 3, which are 0 and 1 in it.
fn with_pair(mut profile: Profile) -> Profile {
    let row = CommunicatorRow {
        number: 5,
        id: Some(9),
        context: 1,
        rank: None,
        size: Some(2),
        remote_size: None,
        freed: false,
    };
    for rank in &mut profile.ranks {
        rank.traffic.as_mut().unwrap().communicators.push(row.clone());
    }
    let communicator = CommunicatorProfile {
        id: 9,
        name: "pair".into(),
        is_named: true,
        job: Some("job".into()),
        context: 1,
        size: Some(2),
        remote_size: None,
        members: Some(vec![Some(2), Some(3)]),
        remote_members: None,
        parent: None,
        made_by: None,
        ranks: 2,
        freed: false,
        amounts: crate::Amounts::default(),
        functions: Vec::new(),
    };
    profile.traffic.as_mut().unwrap().communicators.push(communicator);
    profile
}

fn over_pair() -> CallArguments {
    let pair = CommunicatorArgument { handle: 2, number: Some(5), name: Some("pair".into()), size: Some(2) };
    CallArguments { communicator: Some(pair), ..CallArguments::default() }
}

/// Which file it is, and who else has it, is not known, and from the call alone not whether it waits for anybody.
#[test]
fn in_calls_on_files_it_is_one_of_the_others_if_stacks_say_so() {
    for function in ["MPI_File_close", "MPI_File_set_view", "MPI_File_write_at_all", "MPI_File_read_ordered_end"] {
        let of = |exchanges| {
            let call = || OpenCallInfo { exchanges, ..open(function, CallArguments::default()) };
            job(3, vec![(0, call()), (1, call()), (2, receive(0, 1))], vec![])
        };
        assert_eq!(edge(&of(true), 0), (Why::File, vec![1, 2], Certainty::OneOf), "{function}");
        assert_eq!(waiting(&of(true)).knots, [vec![0, 1, 2]], "{function}");
        assert_eq!(edge(&of(false), 0), (Why::Unknown, vec![], Certainty::Possible), "{function}");
    }
    let alone = OpenCallInfo { exchanges: true, ..open("MPI_File_write_at", CallArguments::default()) };
    assert_eq!(edge(&job(2, vec![(0, alone)], vec![]), 0).0, Why::Unknown);
}

/// Inter-communicator of ranks 0 and 1, and of 2 and 3: each of them is 0 or 1 in its own group.
fn with_two_groups(profile: Profile) -> Profile {
    let mut profile = with_pair(profile);
    for rank in &mut profile.ranks {
        let row = &mut rank.traffic.as_mut().unwrap().communicators[0];
        (row.size, row.remote_size) = (Some(2), Some(2));
    }
    let communicator = &mut profile.traffic.as_mut().unwrap().communicators[0];
    (communicator.size, communicator.remote_size) = (Some(2), Some(2));
    communicator.members = Some(vec![Some(0), Some(1)]);
    communicator.remote_members = Some(vec![Some(2), Some(3)]);
    profile
}

fn between(source: Peer) -> OpenCallInfo {
    let source = Some(Peer { world_rank: None, ..source });
    open("MPI_Recv", CallArguments { source, receive_tag: Some(1), ..over_pair() })
}

#[test]
fn between_two_groups_ranks_are_those_of_the_other_one() {
    for (own, given, meant) in [(0, 0, 2), (0, 1, 3), (1, 1, 3), (2, 0, 0), (3, 1, 1)] {
        let profile = with_two_groups(job(4, vec![(own, between(peer(given)))], vec![]));
        assert_eq!(edge(&profile, own), (Why::Message, vec![meant], Certainty::Certain), "{own} from {given}");
    }
    let circle = vec![(0, between(peer(1))), (3, between(peer(0)))];
    assert_eq!(waiting(&with_two_groups(job(4, circle, vec![]))).circles, [vec![0, 3]]);
    // One that is in neither group as far as is known.
    let mut unknown = with_two_groups(job(4, vec![(0, between(peer(0)))], vec![]));
    unknown.traffic.as_mut().unwrap().communicators[0].members = Some(vec![None, Some(1)]);
    assert_eq!(edge(&unknown, 0).0, Why::Unknown);
}

#[test]
fn between_two_groups_anybody_is_of_the_other_one() {
    let others = |last: Option<OpenCallInfo>| {
        let last = last.map(|call| (3, call));
        let calls = [(0, between(anybody())), (2, receive(0, 9))];
        with_two_groups(job(4, calls.into_iter().chain(last).collect(), vec![]))
    };
    assert!(waiting(&others(None)).circles.is_empty(), "rank 3 may send");
    // Rank 1 is in its own group.
    assert_eq!(waiting(&others(Some(receive(0, 9)))).circles, [vec![0, 2]]);
}

#[test]
fn between_two_groups_the_other_one_is_certain_to_be_waited_for() {
    let of = |function, calls: &[usize]| {
        let call = || open(function, over_pair());
        with_two_groups(job(4, calls.iter().map(|rank| (*rank, call())).collect(), vec![]))
    };
    assert_eq!(edge(&of("MPI_Barrier", &[0, 2]), 0), (Why::Collective, vec![3], Certainty::Certain));
    assert_eq!(edge(&of("MPI_Barrier", &[0]), 0), (Why::Collective, vec![2, 3], Certainty::Certain));
    // The other one is there: it is its own.
    assert_eq!(edge(&of("MPI_Barrier", &[0, 2, 3]), 0), (Why::Collective, vec![1], Certainty::Certain));
    assert_eq!(edge(&of("MPI_Intercomm_merge", &[0, 2]), 0), (Why::Collective, vec![1, 3], Certainty::Certain));
}

#[test]
fn who_makes_a_communicator_of_two_groups_waits_for_its_own_and_then_for_the_other_one() {
    let make = |own: u32| {
        let leaders = crate::Leaders {
            local: Some(if own < 2 { 0 } else { 2 }),
            remote: [Some(2), None, Some(0), None][usize::try_from(own).unwrap()],
        };
        let name = if own < 2 { "lower" } else { "upper" };
        let number = Some(if own < 2 { 5 } else { 6 });
        let pair = CommunicatorArgument { handle: 2, number, name: Some(name.into()), size: Some(2) };
        let arguments = CallArguments { communicator: Some(pair), leaders: Some(leaders), ..CallArguments::default() };
        open("MPI_Intercomm_create", arguments)
    };
    let of = |there: &[u32]| {
        let calls = there.iter().map(|own| (usize::try_from(*own).unwrap(), make(*own)));
        let mut profile = with_pair(job(4, calls.collect(), vec![]));
        let upper = CommunicatorProfile { id: 10, ..profile.traffic.as_ref().unwrap().communicators[0].clone() };
        let lower = CommunicatorProfile { members: Some(vec![Some(0), Some(1)]), ..upper.clone() };
        profile.traffic.as_mut().unwrap().communicators = vec![CommunicatorProfile { id: 9, ..lower }, upper];
        for rank in &mut profile.ranks {
            let rows = &mut rank.traffic.as_mut().unwrap().communicators;
            rows.push(CommunicatorRow { number: 6, id: Some(10), ..rows[0].clone() });
        }
        profile
    };
    assert_eq!(edge(&of(&[0]), 0), (Why::Collective, vec![1], Certainty::Certain));
    assert_eq!(edge(&of(&[0, 1]), 0), (Why::Leader, vec![2], Certainty::Certain));
    assert_eq!(edge(&of(&[0, 1]), 1), (Why::Leader, vec![0], Certainty::Certain));
    assert_eq!(edge(&of(&[0, 1, 2]), 0), (Why::Leader, vec![2], Certainty::Certain));
    assert_eq!(edge(&of(&[0, 1, 2]), 2), (Why::Collective, vec![3], Certainty::Certain));
    // All are there: it goes on.
    for leader in [0, 2] {
        assert_eq!(edge(&of(&[0, 1, 2, 3]), leader), (Why::Leader, vec![], Certainty::Possible));
    }
    // Whoever is not observed may be what is missing.
    let mut lacks_one = of(&[0, 1, 2]);
    lacks_one.ranks.truncate(3);
    assert_eq!(edge(&lacks_one, 0), (Why::Leader, vec![2], Certainty::Certain));
    assert_eq!(edge(&lacks_one, 2), (Why::Leader, vec![], Certainty::Possible));
}

#[test]
fn who_makes_a_communicator_of_a_group_waits_for_those_in_it() {
    let make = |group: Option<&[u32]>| {
        let group = group.map(|group| group.iter().copied().map(Some).collect());
        open("MPI_Comm_create_group", CallArguments { group, ..over_world() })
    };
    let group: Option<&[u32]> = Some(&[0, 2]);
    assert_eq!(edge(&job(3, vec![(0, make(group))], vec![]), 0), (Why::Collective, vec![2], Certainty::Certain));
    let both = job(3, vec![(0, make(group)), (2, make(group))], vec![]);
    assert_eq!(edge(&both, 0), (Why::Collective, vec![], Certainty::Possible));
    let of_others = job(4, vec![(0, make(group)), (2, make(Some(&[2, 3])))], vec![]);
    assert_eq!(edge(&of_others, 0).1, [2]);
    // Who is in it is not known: somebody of the communicator, whether he is there or not.
    let unknown = job(3, vec![(0, make(None)), (2, make(None))], vec![]);
    assert_eq!(edge(&unknown, 0), (Why::Collective, vec![1, 2], Certainty::OneOf));
}

#[test]
fn ranks_of_other_communicators_are_translated() {
    let source = Some(Peer { world_rank: None, ..peer(1) });
    let call = open("MPI_Recv", CallArguments { source, receive_tag: Some(1), ..over_pair() });
    assert_eq!(edge(&with_pair(job(4, vec![(2, call.clone())], vec![])), 2).1, [3]);
    // Without its members, nobody can be named.
    assert_eq!(edge(&job(4, vec![(2, call)], vec![]), 2).0, Why::Unknown);
}

#[test]
fn collectives_are_of_the_members_of_their_communicator() {
    let barrier = open("MPI_Barrier", over_pair());
    let profile = with_pair(job(4, vec![(2, barrier.clone()), (0, collective("MPI_Barrier"))], vec![]));
    assert_eq!(edge(&profile, 2), (Why::Collective, vec![3], Certainty::Certain));
    assert_eq!(edge(&profile, 0).1, [1, 2, 3], "rank 2 is in a barrier of another communicator");
    assert_eq!(edge(&job(4, vec![(2, barrier)], vec![]), 2).0, Why::Unknown);
}

#[test]
fn of_a_call_that_tells_nothing_it_is_not_known() {
    let call = OpenCallInfo { arguments: None, ..receive(1, 1) };
    assert_eq!(edge(&job(2, vec![(0, call)], vec![]), 0), (Why::Unknown, vec![], Certainty::Possible));
    let window = open("MPI_Win_fence", CallArguments::default());
    assert_eq!(edge(&job(2, vec![(0, window)], vec![]), 0).0, Why::Unknown);
}

/// Numbers are those of one job only.
#[test]
fn jobs_are_told_apart() {
    let mut profile = job(2, vec![(0, receive(1, 1))], vec![]);
    profile.ranks[1].job = Some("other".into());
    assert_eq!(edge(&profile, 0).1, Vec::<usize>::new());
}

/// What is seen of the other ends, in the order of ranks and the oldest first.
fn other_ends(profile: &Profile) -> Vec<(usize, OtherEnd)> {
    operations(profile).into_iter().map(|operation| (operation.rank, operation.other_end)).collect()
}

#[test]
fn ends_meet_by_ranks_and_tag() {
    let met = job(2, vec![(0, receive(1, 7))], vec![(1, pending("MPI_Isend", Some(0), 7))]);
    assert_eq!(other_ends(&met), [(0, OtherEnd::Posted(1)), (1, OtherEnd::Posted(0))]);
    let found = operations(&met);
    assert_eq!(
        (found[0].posted, found[0].is_send, found[0].peer, found[0].tag),
        (Posted::Call(0), false, Some(1), Some(7))
    );
    assert_eq!((found[1].posted, found[1].is_send), (Posted::Request(0), true));
    let third = job(3, vec![(0, receive(1, 7)), (1, send(2, 7))], vec![]);
    assert_eq!(other_ends(&third), [(0, OtherEnd::Missing), (1, OtherEnd::Missing)]);
}

#[test]
fn a_tag_that_differs_is_told_on_both_sides() {
    let profile = job(4, vec![(2, receive(3, 7))], vec![(3, pending("MPI_Isend", Some(2), 8))]);
    assert_eq!(other_ends(&profile), [(2, OtherEnd::OtherTag(8)), (3, OtherEnd::OtherTag(7))]);
    // One that has its end is not meant for another.
    let profile = job(4, vec![(2, receive(3, 7)), (3, send(2, 8))], vec![(2, pending("MPI_Irecv", Some(3), 8))]);
    assert_eq!(other_ends(&profile), [(2, OtherEnd::Missing), (2, OtherEnd::Posted(3)), (3, OtherEnd::Posted(2))]);
}

#[test]
fn wildcards_take_the_earliest() {
    let any = open("MPI_Recv", CallArguments { source: Some(anybody()), any_tag: true, ..over_world() });
    let of = |age_ns, tag| PendingRow { age_ns, ..pending("MPI_Isend", Some(0), tag) };
    let profile = job(3, vec![(0, any)], vec![(1, of(10, 1)), (2, of(20, 2))]);
    assert_eq!(other_ends(&profile), [(0, OtherEnd::Posted(2)), (1, OtherEnd::Missing), (2, OtherEnd::Posted(0))]);
    // The library's number for any tag.
    let profile = job(2, vec![(1, send(0, 5))], vec![(0, pending("MPI_Irecv", None, -2))]);
    assert_eq!(other_ends(&profile)[0].1, OtherEnd::Posted(1));
}

#[test]
fn each_end_meets_one_other_and_earlier_ones_first() {
    let of = |age_ns| PendingRow { age_ns, ..pending("MPI_Irecv", Some(1), 1) };
    let profile = job(2, vec![(1, send(0, 1))], vec![(0, of(10)), (0, of(20))]);
    assert_eq!(other_ends(&profile), [(0, OtherEnd::Posted(1)), (0, OtherEnd::Missing), (1, OtherEnd::Posted(0))]);
    assert_eq!(operations(&profile)[0].age_ns, 20, "the older one was posted first");
}

#[test]
fn communicators_have_to_agree_where_they_are_known() {
    let over = |row: PendingRow| PendingRow { communicator: Some(5), ..row };
    let receive = open("MPI_Recv", CallArguments { source: Some(peer(3)), receive_tag: Some(1), ..over_pair() });
    let job = |send| with_pair(job(4, vec![(2, receive.clone())], vec![(3, send)]));
    assert_eq!(other_ends(&job(over(pending("MPI_Isend", Some(2), 1))))[0].1, OtherEnd::Posted(3));
    assert_eq!(other_ends(&job(pending("MPI_Isend", Some(2), 1)))[0].1, OtherEnd::Posted(3), "not known: perhaps");
    assert_eq!(
        other_ends(&over_two_communicators()),
        [(2, OtherEnd::OtherCommunicator(1)), (3, OtherEnd::OtherCommunicator(9))]
    );
}

/// A send of rank 3 to rank 2 over the world, whose id is 1, which rank 2 waits for over the pair, whose id is 9.
fn over_two_communicators() -> Profile {
    let receive = open("MPI_Recv", CallArguments { source: Some(peer(3)), receive_tag: Some(1), ..over_pair() });
    let send = PendingRow { communicator: Some(6), ..pending("MPI_Isend", Some(2), 1) };
    let mut profile = with_pair(job(4, vec![(2, receive)], vec![(3, send)]));
    let traffic = profile.ranks[3].traffic.as_mut().unwrap();
    traffic.communicators.push(CommunicatorRow { number: 6, id: Some(1), ..traffic.communicators[0].clone() });
    let world = CommunicatorProfile { id: 1, ..profile.traffic.as_ref().unwrap().communicators[0].clone() };
    profile.traffic.as_mut().unwrap().communicators.push(world);
    profile
}

#[test]
fn a_message_over_another_communicator_is_none_that_is_waited_for() {
    let mut profile = over_two_communicators();
    assert_eq!(edge(&profile, 2), (Why::Message, vec![3], Certainty::Certain));
    profile.ranks[3].traffic.as_mut().unwrap().pending[0].communicator = Some(5);
    assert_eq!(edge(&profile, 2).1, Vec::<usize>::new(), "over the same");
    profile.ranks[3].traffic.as_mut().unwrap().pending[0].communicator = None;
    assert_eq!(edge(&profile, 2).1, Vec::<usize>::new(), "not known: perhaps the same");
}

#[test]
fn what_has_no_other_end_is_printed_with_what_differs() {
    let rows = unmatched_rows(&over_two_communicators());
    let told: Vec<_> =
        rows.iter().map(|row| (row.rank, row.function, row.is_request, row.is_send, row.communicator)).collect();
    assert_eq!(told, [(Some(2), "MPI_Recv", false, false, Some(9)), (Some(3), "MPI_Isend", true, true, Some(1))]);
    let ends: Vec<_> = rows.iter().map(|row| (row.other_end, row.other_communicator, row.other_tag)).collect();
    assert_eq!(
        ends,
        [(OtherEndSeen::OtherCommunicator, Some(1), None), (OtherEndSeen::OtherCommunicator, Some(9), None)]
    );
    let tags = unmatched_rows(&job(2, vec![(0, receive(1, 7)), (1, send(0, 8))], vec![]));
    assert_eq!((tags[0].other_end, tags[0].other_tag), (OtherEndSeen::OtherTag, Some(8)));
    // What is young, has its end, or is of a rank that is not observed.
    let young = OpenCallInfo { open_ns: SECOND - 1, ..receive(1, 7) };
    assert!(unmatched_rows(&job(2, vec![(0, young)], vec![])).is_empty());
    assert!(unmatched_rows(&job(2, vec![(0, receive(1, 7)), (1, send(0, 7))], vec![])).is_empty());
    assert!(unmatched_rows(&job(2, vec![(0, receive(9, 7))], vec![])).is_empty());
}

#[test]
fn of_ranks_that_are_not_observed_nothing_is_said() {
    assert_eq!(other_ends(&job(2, vec![(0, receive(9, 1))], vec![])), [(0, OtherEnd::NotObserved)]);
    let mut gone = job(2, vec![(0, receive(1, 1))], vec![]);
    gone.ranks[1].state = RankState::Ended;
    assert_eq!(other_ends(&gone), [(0, OtherEnd::NotObserved)]);
    let mut other_job = job(2, vec![(0, receive(1, 1)), (1, send(0, 1))], vec![]);
    other_job.ranks[1].job = Some("other".into());
    assert_eq!(other_ends(&other_job)[0].1, OtherEnd::NotObserved);
}

/// Of persistent requests made before mpiprobe came nothing is known, and of a receive over a communicator that was freed not from whom.
#[test]
fn what_is_not_known_of_requests_is_not_guessed() {
    let all = wait_for(2, 0);
    let unknown = PendingRow { partner: crate::Partner::Unknown, awaited_by: Some(1), ..pending("MPI_Irecv", None, 1) };
    let of = |requests| job(3, vec![(0, all.clone()), (1, send(0, 1))], requests);
    assert_eq!(edge(&of(vec![]), 0), (Why::Requests, vec![], Certainty::Possible));
    assert_eq!(edge(&of(vec![(0, unknown.clone())]), 0), (Why::Requests, vec![], Certainty::Possible));
    assert_eq!(other_ends(&of(vec![(0, unknown.clone())])), [(1, OtherEnd::Missing)], "it is not what rank 1 sends to");
    let second = PendingRow { awaited_by: Some(1), is_under_way: Some(true), ..pending("MPI_Irecv", Some(2), 1) };
    let known = vec![(0, unknown), (0, second)];
    assert_eq!(
        edge(&of(known), 0),
        (Why::Requests, vec![2], Certainty::Certain),
        "the other one is certain all the same"
    );
}

/// All ranks ended, so long before the profile, inside their calls.
fn ended(mut profile: Profile, ago_ns: [u64; 2]) -> Profile {
    for (rank, ago_ns) in profile.ranks.iter_mut().zip(ago_ns) {
        (rank.state, rank.ended_ago_ns) = (RankState::Ended, Some(ago_ns));
        rank.open_calls.iter_mut().for_each(|call| call.ended_inside = true);
    }
    profile
}

#[test]
fn a_job_that_was_ended_waits_as_it_did_at_its_end() {
    let circle = || job(2, vec![(0, receive(1, 7)), (1, receive(0, 7))], vec![]);
    assert_eq!(waiting(&ended(circle(), [5 * SECOND, 5 * SECOND + SECOND / 2])).circles, [vec![0, 1]]);
    // One had died before: the other one went on, perhaps to another call.
    let apart = ended(circle(), [0, 2 * SECOND]);
    assert_eq!((edge(&apart, 0).1, waiting(&apart).waits.len(), waiting(&apart).circles.len()), (vec![1], 1, 0));
    let mut one = ended(circle(), [0, 0]);
    one.ranks[0].state = RankState::Running;
    one.ranks[0].open_calls[0].ended_inside = false;
    assert!(waiting(&one).circles.is_empty(), "rank 0 goes on");
}

#[test]
fn collectives_and_nobody_have_no_other_end() {
    let mut request = pending("MPI_Ibcast", None, 0);
    request.partner = crate::Partner::Nobody;
    assert!(other_ends(&job(2, vec![(0, collective("MPI_Barrier"))], vec![(1, request)])).is_empty());
}
