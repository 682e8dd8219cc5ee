//! What Scalasca 2.5 finds in the same traces, to the nanosecond; and what it does not look for.

use mpiprobe_model::{Activity, PathRow, WaitKind, WaitStates};
use mpiprobe_trace::{
    Bytes, Call, Change, CommunicatorId, Event, File, FileId, HandMade, Lock, Neighbours, Object, PhaseChange,
    ProcessId, Root, Span, Window, WindowId, call,
};

use super::{Analysis, Limits, analyse};
use crate::{clock::Clocks, slices::Slices};

/// Ranks that are initialised at 10 to 20.
fn begun(ranks: u32) -> HandMade {
    let mut made = HandMade::of_ranks(ranks);
    (0..ranks).for_each(|rank| made.add(rank, call("MPI_Init", 10, 20)));
    made
}

/// Calls of ranks, which all come to the end at 20,000.
fn ended<const N: usize>(calls: [Vec<Call>; N]) -> HandMade {
    let mut made = begun(u32::try_from(N).unwrap());
    for (rank, calls) in (0..).zip(calls) {
        for call in calls {
            made.add(rank, call);
        }
        made.add(rank, call("MPI_Finalize", 20_000, 20_100));
    }
    made
}

fn analysed(made: &HandMade) -> WaitStates {
    let one = analyse(made, &Clocks::same(), Span::ALL, 1, |_| {}).unwrap();
    let two = analyse(made, &Clocks::same(), Span::ALL, 3, |_| {}).unwrap();
    assert_eq!(one.waits, two.waits, "however many threads look");
    assert_eq!(one.delays, two.delays);
    one
}

/// (rank, ns) of a kind.
fn of(states: &WaitStates, kind: WaitKind) -> Vec<(u32, u64)> {
    let mut rows: Vec<_> = states.waits.iter().filter(|row| row.kind == kind).map(|row| (row.thread, row.ns)).collect();
    rows.sort_unstable();
    rows
}

/// What there is besides waits that every program has.
fn all(made: &HandMade) -> Vec<(WaitKind, u32, u64)> {
    let states = analysed(made);
    let mut rows: Vec<_> = states.waits.iter().map(|row| (row.kind, row.thread, row.ns)).collect();
    rows.sort_unstable();
    rows
}

/// Rank that has caused most of a rank's time in a kind of wait.
fn cause(states: &WaitStates, kind: WaitKind, rank: u32) -> Option<u32> {
    let row = states.waits.iter().find(|row| row.kind == kind && row.thread == rank)?;
    row.caused_by.first()?.thread
}

#[test]
fn late_senders() {
    let made =
        ended([vec![call("MPI_Send", 2000, 2500).to(1, 0, 8)], vec![call("MPI_Recv", 1500, 2600).from(0, 0, 8)]]);
    assert_eq!(all(&made), [(WaitKind::LateSender, 1, 500)]);
    assert_eq!(cause(&analysed(&made), WaitKind::LateSender, 1), Some(0));
    for (name, expected) in
        [("Wait", Some(500)), ("Waitany", Some(500)), ("Waitsome", Some(500)), ("Test", None), ("Testall", None)]
    {
        let posted = call("MPI_Irecv", 1000, 1010).from(0, 0, 8).posts(1);
        let wait = call(&format!("MPI_{name}"), 1500, 2600).completes(&posted);
        let made = ended([vec![call("MPI_Send", 2000, 2500).to(1, 0, 8)], vec![posted, wait]]);
        let expected: Vec<_> = expected.map(|ns| (WaitKind::LateSender, 1, ns)).into_iter().collect();
        assert_eq!(all(&made), expected, "{name}");
    }
}

#[test]
fn of_many_messages_the_last_one_counts() {
    let posted: Vec<_> =
        (1..4).map(|rank| call("MPI_Irecv", 1000, 1010).from(rank, 0, 8).posts(u64::from(rank))).collect();
    let wait = posted.iter().fold(call("MPI_Waitall", 1500, 5200), Call::completes);
    let receiver = [posted, vec![wait]].concat();
    let sender = |at| vec![call("MPI_Send", at, at + 100).to(0, 0, 8)];
    let made = ended([receiver, sender(2000), sender(5000), sender(3000)]);
    assert_eq!(all(&made), [(WaitKind::LateSender, 0, 3500)]);
    assert_eq!(cause(&analysed(&made), WaitKind::LateSender, 0), Some(2));
}

#[test]
fn late_receivers() {
    for (return_ns, expected) in [(5000, Some(3000)), (4001, Some(3000)), (1100, None)] {
        let made = ended([
            vec![call("MPI_Send", 1000, return_ns).to(1, 0, 8)],
            vec![call("MPI_Recv", 4000, 5100).from(0, 0, 8)],
        ]);
        let expected: Vec<_> = expected.map(|ns| (WaitKind::LateReceiver, 0, ns)).into_iter().collect();
        assert_eq!(all(&made), expected, "until {return_ns}");
    }
    for (name, can_wait) in [("Ssend", true), ("Bsend", false), ("Rsend", false)] {
        let made = ended([
            vec![call(&format!("MPI_{name}"), 1000, 5000).to(1, 0, 8)],
            vec![call("MPI_Recv", 4000, 5100).from(0, 0, 8)],
        ]);
        assert_eq!(!all(&made).is_empty(), can_wait, "{name}");
    }
}

#[test]
fn late_receivers_of_sends_that_did_not_block() {
    let send = call("MPI_Isend", 1000, 1010).to(1, 0, 8).posts(1);
    let wait = call("MPI_Wait", 2000, 5000).completes(&send);
    let sender = vec![send, wait];
    let made = ended([sender.clone(), vec![call("MPI_Recv", 4000, 5100).from(0, 0, 8)]]);
    assert_eq!(all(&made), [(WaitKind::LateReceiver, 0, 2000)]);
    let posted = call("MPI_Irecv", 3000, 3010).from(0, 0, 8).posts(1);
    let wait = call("MPI_Wait", 6000, 6100).completes(&posted);
    let made = ended([sender, vec![posted, wait]]);
    assert_eq!(all(&made), [(WaitKind::LateReceiver, 0, 1000)]);
    let sends = [1, 2].map(|rank| call("MPI_Isend", 1000, 1010).to(rank, 0, 8).posts(u64::from(rank)));
    let wait = sends.iter().fold(call("MPI_Waitall", 2000, 6000), Call::completes);
    let [one, two] = sends;
    let made = ended([
        vec![one, two, wait],
        vec![call("MPI_Recv", 4000, 5100).from(0, 0, 8)],
        vec![call("MPI_Recv", 5500, 6100).from(0, 0, 8)],
    ]);
    assert_eq!(all(&made), [(WaitKind::LateReceiver, 0, 3500)]);
    assert_eq!(cause(&analysed(&made), WaitKind::LateReceiver, 0), Some(2));
}

#[test]
fn messages_received_in_another_order() {
    let made = ended([
        vec![call("MPI_Send", 1000, 1100).to(1, 1, 8), call("MPI_Send", 5000, 5100).to(1, 2, 8)],
        vec![call("MPI_Recv", 2000, 5200).from(0, 2, 8), call("MPI_Recv", 5300, 5400).from(0, 1, 8)],
    ]);
    let wrong = |made: &HandMade, rank: u32| {
        let states = analysed(made);
        let late: Vec<_> = states.waits.iter().filter(|row| row.kind == WaitKind::LateSender).collect();
        let [row] = late.as_slice() else { panic!("{late:?}") };
        assert_eq!(row.thread, rank);
        [row.ns, row.wrong_order_same_source_ns, row.wrong_order_other_source_ns]
    };
    assert_eq!(wrong(&made, 1), [3000, 3000, 0]);
    let made = ended([
        vec![call("MPI_Send", 5000, 5100).to(2, 0, 8)],
        vec![call("MPI_Send", 1000, 1100).to(2, 0, 8)],
        vec![call("MPI_Recv", 2000, 5200).from(0, 0, 8), call("MPI_Recv", 5300, 5400).from(1, 0, 8)],
    ]);
    assert_eq!(wrong(&made, 2), [3000, 0, 3000]);
}

#[test]
fn exchanges_wait_as_receivers() {
    let exchange =
        |rank, from_ns, until_ns| vec![call("MPI_Sendrecv", from_ns, until_ns).to(rank, 0, 8).from(rank, 0, 8)];
    let made = ended([exchange(1, 1000, 4500), exchange(0, 4000, 4400)]);
    assert_eq!(all(&made), [(WaitKind::LateSender, 0, 3000)]);
    // And as senders, if nothing else keeps them.
    let made = ended([
        vec![call("MPI_Sendrecv", 1000, 4500).to(1, 0, 8).from(2, 0, 8)],
        vec![call("MPI_Recv", 4000, 4600).from(0, 0, 8)],
        vec![call("MPI_Send", 500, 600).to(0, 0, 8)],
    ]);
    assert_eq!(all(&made), [(WaitKind::LateReceiver, 0, 3000)]);
}

fn together(name: &str, times: [(u64, u64); 3], moves: [(u64, u64); 3]) -> [Vec<Call>; 3] {
    [0, 1, 2].map(|rank| {
        let ((from_ns, until_ns), (sent, received)) = (times[rank], moves[rank]);
        let one = call(name, from_ns, until_ns);
        vec![if name == "MPI_Barrier" { one.over(HandMade::WORLD) } else { one.moves(sent, received) }]
    })
}

const STAGGERED: [(u64, u64); 3] = [(1000, 4500), (2000, 4600), (4000, 4700)];

#[test]
fn all_wait_for_the_last_one() {
    let barrier = (WaitKind::Barrier, WaitKind::BarrierCompletion);
    let all_to_all = (WaitKind::AllToAll, WaitKind::AllToAllCompletion);
    for (name, (waiting, completion)) in
        [("MPI_Barrier", barrier), ("MPI_Allreduce", all_to_all), ("MPI_Reduce_scatter_block", all_to_all)]
    {
        let made = ended(together(name, STAGGERED, [(8, 8); 3]));
        let states = analysed(&made);
        assert_eq!(of(&states, waiting), [(0, 3000), (1, 2000)], "{name}");
        assert_eq!(of(&states, completion), [(1, 100), (2, 200)], "{name}");
        assert_eq!(states.waits.len(), 4);
        let costs: Vec<_> = states.delays.iter().map(|row| (row.thread, row.direct_ns, row.indirect_ns)).collect();
        assert_eq!(costs, [(2, 5000.0, 0.0)], "{name}");
        assert!(states.complete, "{:?}", states.unmatched);
    }
}

#[test]
fn who_sends_or_receives_nothing_is_not_waited_for() {
    let made = ended(together("MPI_Allgatherv", STAGGERED, [(8, 16), (8, 16), (0, 16)]));
    let expected = [(WaitKind::AllToAll, 0, 1000), (WaitKind::AllToAllCompletion, 1, 100)];
    assert_eq!(all(&made), expected);
}

/// What came before has its causes all the same, however the trace is cut.
#[test]
fn where_nothing_is_sent_nobody_meets() {
    let [first, second, third] = together("MPI_Alltoall", [(5000, 5010), (5100, 5110), (5200, 5210)], [(0, 0); 3]);
    let (send, receive) = (call("MPI_Send", 2000, 2500).to(0, 0, 8), call("MPI_Recv", 1500, 2600).from(1, 0, 8));
    let made = ended([[vec![receive], first].concat(), [vec![send], second].concat(), third]);
    assert_eq!(all(&made), [(WaitKind::LateSender, 0, 500)]);
    for aim in [1, 4, 8, 1 << 20] {
        let states = sliced(&made, aim, 1, Limits::default());
        assert_eq!(cause(&states, WaitKind::LateSender, 0), Some(1), "slices of {aim}");
    }
}

#[test]
fn of_varying_amounts_the_wait_is_known_at_most() {
    let made = ended(together("MPI_Alltoallv", STAGGERED, [(8, 8); 3]));
    assert_eq!(all(&made), [(WaitKind::AllToAllVarying, 0, 3000), (WaitKind::AllToAllVarying, 1, 2000)]);
    // Who has left before somebody came has needed nothing of it.
    let made = ended(together("MPI_Alltoallw", [(1000, 2500), (2000, 4600), (4000, 4700)], [(8, 8); 3]));
    assert_eq!(all(&made), [(WaitKind::AllToAllVarying, 0, 1000), (WaitKind::AllToAllVarying, 1, 2000)]);
    assert_eq!(analysed(&made).clocks.violations, 0);
}

fn rooted(name: &str, root: u32, times: [(u64, u64); 3], bytes: u64) -> HandMade {
    ended(
        together(name, times, [(bytes, bytes); 3])
            .map(|calls| calls.into_iter().map(|call| call.rooted(root)).collect::<Vec<_>>()),
    )
}

#[test]
fn roots_wait_for_the_first_sender() {
    for name in ["MPI_Reduce", "MPI_Gather", "MPI_Gatherv"] {
        let made = rooted(name, 0, [(1000, 4500), (2000, 2600), (4000, 4100)], 8);
        assert_eq!(all(&made), [(WaitKind::EarlyReduce, 0, 1000)], "{name}");
    }
}

#[test]
fn others_wait_for_the_root() {
    for name in ["MPI_Bcast", "MPI_Scatter", "MPI_Scatterv"] {
        let made = rooted(name, 0, [(4000, 4100), (1000, 4200), (2000, 4300)], 8);
        assert_eq!(all(&made), [(WaitKind::LateBroadcast, 1, 3000), (WaitKind::LateBroadcast, 2, 2000)], "{name}");
        assert_eq!(analysed(&made).clocks.violations, 0);
    }
    let made = rooted("MPI_Bcast", 0, [(4000, 4100), (1000, 3500), (2000, 4300)], 8);
    assert_eq!(all(&made), [(WaitKind::LateBroadcast, 1, 2500), (WaitKind::LateBroadcast, 2, 2000)]);
    let clocks = analysed(&made).clocks;
    assert_eq!((clocks.violations, clocks.worst_violation_ns), (1, 500));
    assert_eq!(all(&rooted("MPI_Bcast", 0, [(4000, 4100), (1000, 4200), (2000, 4300)], 0)), []);
}

/// Ranks 0 and 1 on one side of an inter-communicator, 2 and 3 on the other one. Of a rooted collective, the first one is the root.
fn between(name: &str, times: [(u64, u64); 4], moves: [(u64, u64); 4]) -> HandMade {
    let mut made = begun(4);
    let between = made.communicator("between", &[0, 1]);
    made.definitions.communicators[between.index()].remote_members = vec![Some(2), Some(3)];
    let is_rooted = matches!(name, "MPI_Bcast" | "MPI_Reduce");
    for (rank, ((from_ns, until_ns), (sent, received))) in (0..).zip(times.into_iter().zip(moves)) {
        let mut one = call(name, from_ns, until_ns).over(between);
        one = if name == "MPI_Barrier" { one } else { one.moves(sent, received) };
        let root = match rank {
            0 => Root::Own,
            1 => Root::Null,
            _ => Root::Rank(0),
        };
        one.operation.root = is_rooted.then_some(root);
        made.add(rank, one);
        made.add(rank, call("MPI_Finalize", 20_000, 20_100));
    }
    made
}

#[test]
fn between_two_groups_each_waits_for_the_other_one() {
    // All were in it at one moment.
    for (name, kind) in [("MPI_Barrier", WaitKind::Barrier), ("MPI_Allgather", WaitKind::AllToAll)] {
        let made = between(name, [(1000, 4500), (4000, 4500), (2000, 4500), (3000, 4500)], [(8, 8); 4]);
        assert_eq!(all(&made), [(kind, 0, 3000), (kind, 2, 2000), (kind, 3, 1000)], "{name}");
        assert_eq!(cause(&analysed(&made), kind, 0), Some(1));
        assert!(analysed(&made).complete);
        // Rank 0 has left before the other one of its group came.
        let made = between(name, [(1000, 3500), (4000, 4500), (2000, 4500), (3000, 4500)], [(8, 8); 4]);
        let waits = [(kind, 0, 2000), (kind, 2, 2000), (kind, 3, 1000)];
        assert_eq!(all(&made).into_iter().filter(|wait| wait.0 == kind).collect::<Vec<_>>(), waits, "{name}");
        assert_eq!(analysed(&made).clocks.violations, 0);
    }
    let made =
        between("MPI_Bcast", [(3000, 3100), (100, 110), (1000, 3200), (2000, 3200)], [(8, 0), (0, 0), (0, 8), (0, 8)]);
    assert_eq!(all(&made), [(WaitKind::LateBroadcast, 2, 2000), (WaitKind::LateBroadcast, 3, 1000)]);
    let made =
        between("MPI_Reduce", [(1000, 4500), (100, 110), (2000, 2600), (4000, 4100)], [(0, 8), (0, 0), (8, 0), (8, 0)]);
    assert_eq!(all(&made), [(WaitKind::EarlyReduce, 0, 1000)]);
}

#[test]
fn scans_wait_for_lower_ranks() {
    for name in ["MPI_Scan", "MPI_Exscan"] {
        let made = ended(together(name, [(3000, 3100), (1000, 3200), (2000, 3300)], [(8, 8); 3]));
        assert_eq!(all(&made), [(WaitKind::EarlyScan, 1, 2000), (WaitKind::EarlyScan, 2, 1000)], "{name}");
    }
}

#[test]
fn the_beginning_and_the_end() {
    let mut made = HandMade::of_ranks(3);
    for (rank, (init, enter)) in (0..).zip([(20, 1000), (25, 3000), (40, 7000)]) {
        made.add(rank, call("MPI_Init_thread", 10, init));
        made.add(rank, call("MPI_Finalize", enter, 7100));
    }
    let states = analysed(&made);
    assert_eq!(of(&states, WaitKind::InitCompletion), [(1, 5), (2, 20)]);
    assert_eq!(of(&states, WaitKind::Finalize), [(0, 6000), (1, 4000)]);
}

/// The chain whose indirect causes are known: `work`, `B` and `C` are what lies between the calls.
fn chain() -> HandMade {
    let mut made = begun(3);
    made.add(0, call("MPI_Send", 10_000, 10_100).to(1, 0, 8));
    made.add(1, call("MPI_Recv", 2000, 10_200).from(0, 0, 8));
    made.add(1, call("MPI_Send", 11_200, 11_300).to(2, 0, 8));
    made.add(2, call("MPI_Recv", 3000, 11_400).from(1, 0, 8));
    for (rank, entry) in [(0, 11_000), (1, 12_000), (2, 15_000)] {
        made.add(rank, call("MPI_Finalize", entry, 20_100));
    }
    made
}

#[test]
fn causes_are_followed_to_where_they_come_from() {
    let states = analysed(&chain());
    assert_eq!(of(&states, WaitKind::LateSender), [(1, 8000), (2, 8200)]);
    let site = |name: &str| {
        states.call_sites.iter().position(|site| site.function == name).map(|at| u32::try_from(at).unwrap())
    };
    let [init, send, receive] = ["MPI_Init", "MPI_Send", "MPI_Recv"].map(site);
    // Without the ends of the run, for which all wait.
    let cost = |thread: u32, wanted: Activity| {
        let row = states.delays.iter().find(|row| row.thread == thread && row.activity == wanted).unwrap();
        let round = |ns: f64| (ns * 10.0).round() / 10.0;
        (round(row.direct_ns), round(row.indirect_ns))
    };
    let work = Activity::Computing { after: init, before: send };
    let b = Activity::Computing { after: receive, before: send };
    // What the ends cost is charged to what rank 2 does last.
    assert_eq!(cost(0, work), (8000.0, 7130.4));
    assert_eq!(cost(1, b), (891.3, 0.0));
    assert_eq!(cost(1, Activity::Calling { site: receive.unwrap() }), (178.3, 0.0));
    let late = states.waits.iter().find(|row| row.thread == 2 && row.kind == WaitKind::LateSender).unwrap();
    let indirect =
        late.caused_by.iter().find(|cause| cause.activity == Some(Activity::Waiting { site: receive.unwrap() }));
    assert_eq!(indirect.map(|cause| (cause.thread, cause.ns)), Some((Some(1), 7130)));
}

#[test]
fn the_critical_path_leads_from_the_last_to_the_first() {
    let states = analysed(&chain());
    let path = states.critical_path.unwrap();
    assert_eq!(path.length_ns, 15_000 - 10, "from the beginning to the last entry of the end");
    let mut parts: Vec<_> = path.parts.iter().map(|row| (row.thread, row.ns)).collect();
    parts.sort_unstable();
    assert_eq!(parts, [(0, 10), (0, 9980), (1, 200), (1, 1000), (2, 200), (2, 3600)]);
}

#[test]
fn collectives_that_do_not_block_wait_where_they_are_completed() {
    for (name, expected) in [
        ("MPI_Iallreduce", vec![(WaitKind::AllToAll, 0, 1500), (WaitKind::AllToAll, 1, 1000)]),
        ("MPI_Ibarrier", vec![(WaitKind::Barrier, 0, 1500), (WaitKind::Barrier, 1, 1000)]),
        ("MPI_Ibcast", vec![(WaitKind::LateBroadcast, 0, 1500), (WaitKind::LateBroadcast, 1, 1000)]),
        ("MPI_Ireduce", vec![]),
    ] {
        let calls = [(1000, 2500), (2000, 3000), (4000, 4500)].map(|(at, wait_ns)| {
            let posted = call(name, at, at + 10).moves(8, 8).rooted(2).posts(1);
            let wait = call("MPI_Wait", wait_ns, 5000).completes(&posted);
            vec![posted, wait]
        });
        assert_eq!(all(&ended(calls)), expected, "{name}");
    }
    // The root needs all, and waits for the last.
    let calls = [(1000, 2500), (2000, 3000), (4000, 4500)].map(|(at, wait_ns)| {
        let posted = call("MPI_Ireduce", at, at + 10).moves(8, 8).rooted(0).posts(1);
        vec![posted.clone(), call("MPI_Wait", wait_ns, 5000).completes(&posted)]
    });
    assert_eq!(all(&ended(calls)), [(WaitKind::EarlyReduce, 0, 1500)]);
    // Whoever only asks does not wait.
    let calls = [1000, 2000, 4000].map(|at| {
        let posted = call("MPI_Iallreduce", at, at + 10).moves(8, 8).posts(1);
        vec![posted.clone(), call("MPI_Test", 4500, 4600).completes(&posted)]
    });
    assert_eq!(all(&ended(calls)), []);
}

#[test]
fn neighbours_wait_for_those_they_need_something_of() {
    let made = |known: bool| {
        let mut made = ended(together("MPI_Neighbor_alltoall", STAGGERED, [(8, 8); 3]));
        if known {
            let of = |sources: &[u32]| Neighbours { sources: sources.to_vec(), destinations: Vec::new() };
            let neighbours = [(0, of(&[1])), (1, of(&[0, 2])), (2, of(&[1]))];
            made.definitions.communicators[0].neighbours = neighbours.into();
        }
        made
    };
    assert_eq!(all(&made(true)), [(WaitKind::Neighbours, 0, 1000), (WaitKind::Neighbours, 1, 2000)]);
    let states = analysed(&made(false));
    assert_eq!((states.waits.len(), states.unmatched.unknown_neighbours), (0, 3));
    assert!(!states.complete);
}

#[test]
fn persistent_requests_are_posted_where_they_are_started() {
    let receive = call("MPI_Recv_init", 100, 110).from(0, 0, 8).posts(1);
    let send = call("MPI_Send_init", 100, 110).to(1, 0, 8).posts(7);
    let sender = vec![
        send.clone(),
        call("MPI_Start", 2000, 2010).starts(&send),
        call("MPI_Wait", 2020, 2030).completes(&send),
        call("MPI_Start", 6000, 6010).starts(&send),
        call("MPI_Wait", 6020, 6030).completes(&send),
    ];
    let receiver = vec![
        receive.clone(),
        call("MPI_Start", 1000, 1010).starts(&receive),
        call("MPI_Wait", 1500, 2600).completes(&receive),
        call("MPI_Start", 3000, 3010).starts(&receive),
        call("MPI_Wait", 5000, 6100).completes(&receive),
    ];
    let states = analysed(&ended([sender, receiver]));
    assert_eq!(of(&states, WaitKind::LateSender), [(1, 500 + 1000)]);
    assert!(states.complete, "{:?}", states.unmatched);
}

#[test]
fn partitioned_messages_are_sent_when_the_last_part_is_ready() {
    let receive = call("MPI_Precv_init", 100, 110).from(0, 0, 8).posts(1);
    let send = call("MPI_Psend_init", 100, 110).to(1, 0, 8).posts(7);
    let ready = |from_ns| call("MPI_Pready", from_ns, from_ns + 10).changes(&send, Change::Ready);
    let sender = vec![
        send.clone(),
        call("MPI_Start", 900, 910).starts(&send),
        ready(1200),
        ready(4000),
        call("MPI_Wait", 4100, 4200).completes(&send),
    ];
    let receiver = vec![
        receive.clone(),
        call("MPI_Start", 1000, 1010).starts(&receive),
        call("MPI_Wait", 1500, 4300).completes(&receive),
    ];
    let made = ended([sender, receiver]);
    assert_eq!(all(&made), [(WaitKind::LateSender, 1, 2500)]);
    assert!(analysed(&made).complete, "{:?}", analysed(&made).unmatched);
}

#[test]
fn probes_wait_until_a_message_is_sent() {
    let send = || vec![call("MPI_Send", 2000, 2500).to(1, 3, 8)];
    let probe = call("MPI_Probe", 1500, 2600).from(0, 3, 8);
    let made = ended([send(), vec![probe, call("MPI_Recv", 2700, 2800).from(0, 3, 8)]]);
    assert_eq!(all(&made), [(WaitKind::LateSender, 1, 500)]);
    let found = call("MPI_Mprobe", 1500, 2600).from(0, 3, 8).posts(9);
    let receive = call("MPI_Mrecv", 2700, 2800).from(0, 3, 8).completes(&found);
    let made = ended([send(), vec![found, receive]]);
    assert_eq!(all(&made), [(WaitKind::LateSender, 1, 500)]);
    assert!(analysed(&made).complete, "{:?}", analysed(&made).unmatched);
}

#[test]
fn receives_from_anybody_take_their_place_when_it_is_known() {
    // Posted first, the receive from anybody has taken the first message.
    let any = call("MPI_Irecv", 1000, 1010).from_any(8).posts(1);
    let own = call("MPI_Irecv", 1020, 1030).from(0, 0, 8).posts(2);
    let mut taken = call("MPI_Wait", 7000, 7100).from(0, 0, 8).from_any(8).posts(1);
    taken.operation.function = any.operation.function;
    let made = ended([
        vec![call("MPI_Send", 2000, 2100).to(1, 0, 8), call("MPI_Send", 5000, 5100).to(1, 0, 8)],
        vec![
            any,
            own.clone(),
            call("MPI_Wait", 3000, 5200).completes(&own),
            call("MPI_Wait", 7000, 7100).completes(&taken),
        ],
    ]);
    assert_eq!(all(&made), [(WaitKind::LateSender, 1, 2000)]);
    assert!(analysed(&made).complete, "{:?}", analysed(&made).unmatched);
}

#[test]
fn threads_of_one_process_send_and_receive_in_their_common_order() {
    let mut made = begun(2);
    let second = made.thread(ProcessId(0), 2000).0;
    made.add(0, call("MPI_Send", 3000, 3100).to(1, 0, 8));
    made.add(second, call("MPI_Send", 2000, 2100).to(1, 0, 8));
    made.add(1, call("MPI_Recv", 1500, 2600).from(0, 0, 8));
    made.add(1, call("MPI_Recv", 2800, 3600).from(0, 0, 8));
    (0..2).for_each(|rank| made.add(rank, call("MPI_Finalize", 20_000, 20_100)));
    let states = analysed(&made);
    assert_eq!(of(&states, WaitKind::LateSender), [(1, 500 + 200)]);
    let threads: Vec<_> = states.threads.iter().map(|thread| (thread.rank, thread.is_one_of_several)).collect();
    assert_eq!(threads, [(Some(0), true), (Some(1), false), (Some(0), true)]);
}

#[test]
fn what_has_no_other_end_is_counted_and_no_wait() {
    let made = ended([
        vec![call("MPI_Send", 2000, 2100).to(1, 0, 8), call("MPI_Recv", 3000, 3100).from(1, 9, 8)],
        vec![call("MPI_Barrier", 1000, 1100).over(HandMade::WORLD)],
    ]);
    let states = analysed(&made);
    let ends = states.unmatched;
    assert_eq!((ends.sends, ends.receives, ends.incomplete_collective_calls), (1, 1, 1));
    assert!(states.waits.is_empty() && !states.complete);
}

#[test]
fn after_a_loss_nothing_is_matched_until_waiting_tells_what_belongs_together() {
    let mut made = begun(2);
    made.definitions.locations[0].losses.lost = 1;
    let mut lost = call("MPI_Send", 2000, 2100).to(1, 0, 8);
    // The call before it is missing, which was another send.
    lost.number = 1;
    made.add(0, lost);
    made.add(1, call("MPI_Recv", 900, 1100).from(0, 0, 8));
    made.add(1, call("MPI_Recv", 1500, 2200).from(0, 0, 8));
    (0..2).for_each(|rank| made.add(rank, call("MPI_Barrier", 3000, 3100).over(HandMade::WORLD)));
    (0..2).for_each(|rank| made.add(rank, call("MPI_Barrier", 4000, 4100).over(HandMade::WORLD)));
    late_ones(&mut made);
    (0..2).for_each(|rank| made.add(rank, call("MPI_Finalize", 20_000, 20_100)));
    let states = analysed(&made);
    // The second receive says as well which message it has waited for.
    assert_eq!(of(&states, WaitKind::LateSender), [(1, 500 + 3 * 1000)]);
    assert_eq!((states.unmatched.unsure, states.unmatched.matched_messages), (1, 4));
    assert!(!states.complete);
}

#[test]
fn what_was_under_way_when_recording_began_is_not_matched_with_what_came_later() {
    let mut made = HandMade::of_ranks(2);
    made.definitions.processes.iter_mut().for_each(|process| process.began_before = true);
    // A message that was sent before, which the first receive has got.
    made.add(1, call("MPI_Recv", 900, 950).from(0, 0, 8));
    made.add(0, call("MPI_Send", 1000, 1100).to(1, 0, 8));
    made.add(1, call("MPI_Recv", 1200, 1300).from(0, 0, 8));
    (0..2).for_each(|rank| made.add(rank, call("MPI_Allreduce", 3000, 3100).moves(8, 8)));
    late_ones(&mut made);
    let states = analysed(&made);
    assert_eq!(of(&states, WaitKind::LateSender), [(1, 3 * 1000)]);
    assert_eq!((states.unmatched.unsure, states.unmatched.matched_messages), (3, 3));
}

/// Three messages that rank 1 waits for.
fn late_ones(made: &mut HandMade) {
    for at in [6000, 8000, 10_000] {
        made.add(0, call("MPI_Send", at, at + 100).to(1, 0, 8));
        made.add(1, call("MPI_Recv", at - 1000, at + 200).from(0, 0, 8));
    }
}

/// Steps that end in a barrier, of which nobody knows what was before: the sender's and the receiver's calls.
fn steps(sends: impl Fn(u64) -> Vec<Call>, receives: impl Fn(u64) -> Vec<Call>) -> WaitStates {
    let mut made = HandMade::of_ranks(2);
    made.definitions.processes.iter_mut().for_each(|process| process.began_before = true);
    for step in 1..=40u64 {
        let at = 10_000 * step;
        for (rank, calls) in [(0, sends(step)), (1, receives(step))] {
            for call in calls {
                made.add(rank, call);
            }
        }
        (0..2).for_each(|rank| made.add(rank, call("MPI_Barrier", at + 9000, at + 9100).over(HandMade::WORLD)));
    }
    analysed(&made)
}

fn sent(entry_ns: u64, return_ns: u64) -> Vec<Call> {
    vec![call("MPI_Send", entry_ns, return_ns).to(1, 0, 8)]
}

fn received(entry_ns: u64, return_ns: u64) -> Vec<Call> {
    vec![call("MPI_Recv", entry_ns, return_ns).from(0, 0, 8)]
}

#[test]
fn what_is_always_under_way_when_all_meet_is_not_matched() {
    // Each step's message was sent in the step before; the receiver comes first, or last.
    for at in [1000, 8000] {
        let states = steps(
            |step| sent(10_000 * step + 5000, 10_000 * step + 5100),
            |step| received(10_000 * step + at, 10_000 * step + at + 100),
        );
        assert_eq!((of(&states, WaitKind::LateSender), states.unmatched.matched_messages), (vec![], 0), "{at}");
        assert_eq!(states.unmatched.unsure, 80);
    }
    // What is sent in a step takes the sender's next call to arrive.
    let posted = |step: u64| call("MPI_Isend", 10_000 * step + 5000, 10_000 * step + 5100).to(1, 0, 8).posts(step);
    let states = steps(
        |step| {
            let before = step.checked_sub(1).filter(|&step| step > 0);
            let wait = |before| call("MPI_Wait", 10_000 * step + 5200, 10_000 * step + 5300).completes(&posted(before));
            [posted(step)].into_iter().chain(before.map(wait)).collect()
        },
        |step| received(10_000 * step + 1000, 10_000 * step + 5200),
    );
    // The first one is the only one of which nobody knows that another is under way.
    assert_eq!((of(&states, WaitKind::LateSender), states.unmatched.matched_messages), (vec![], 0));
}

#[test]
fn receives_that_are_always_posted_a_step_before_get_what_they_wait_for() {
    let posted = |step: u64| call("MPI_Irecv", 10_000 * step + 500, 10_000 * step + 600).from(0, 0, 8).posts(step);
    let states = steps(
        |step| sent(10_000 * step + 5000, 10_000 * step + 5100),
        |step| {
            let wait = call("MPI_Wait", 10_000 * step + 1000, 10_000 * step + 5200);
            // What was posted before recording began is complete in the first step.
            let wait = if step > 1 { wait.completes(&posted(step - 1)) } else { wait };
            vec![posted(step), wait]
        },
    );
    assert_eq!(of(&states, WaitKind::LateSender), [(1, 39 * 4000)]);
    assert_eq!((states.unmatched.matched_messages, states.unmatched.contradictions), (39, 0));
}

#[test]
fn barriers_that_come_one_behind_the_other_are_told_apart_by_who_was_outside_between() {
    let mut made = HandMade::of_ranks(3);
    made.definitions.processes.iter_mut().for_each(|process| process.began_before = true);
    // Rank 2 was in the first barrier when recording began; ranks 0 and 1 come to the next ones before others have left the one before.
    let of_ranks = [
        vec![(70, 345), (352, 688), (690, 8011)],
        vec![(171, 394), (397, 700), (702, 8012)],
        vec![(507, 657), (792, 8005)],
    ];
    for (rank, barriers) in (0..).zip(of_ranks) {
        if rank == 2 {
            made.add(rank, call("MPI_Send", 380, 390).to(0, 0, 8));
        }
        for (entry, leave) in barriers {
            made.add(rank, call("MPI_Barrier", entry, leave).over(HandMade::WORLD));
        }
    }
    let ends = analysed(&made).unmatched;
    assert_eq!((ends.matched_collective_calls, ends.incomplete_collective_calls), (6, 2), "{ends:?}");
}

#[test]
fn messages_that_wait_for_their_receives_tell_which_they_are() {
    let states = steps(
        |step| sent(10_000 * step + 1000, 10_000 * step + 5100),
        |step| received(10_000 * step + 5000, 10_000 * step + 5200),
    );
    assert_eq!((states.unmatched.matched_messages, states.unmatched.unsure), (40, 0));
    // However late it is known, the senders are told what they have waited for.
    assert_eq!(of(&states, WaitKind::LateReceiver), [(0, 40 * 4000)]);
}

#[test]
fn what_a_call_has_waited_for_is_told_once_however_late_it_is_known() {
    let mut made = HandMade::of_ranks(3);
    made.definitions.processes.iter_mut().for_each(|process| process.began_before = true);
    for step in 1..=20u64 {
        let at = 10_000 * step;
        let posted =
            |source: u32| call("MPI_Irecv", at, at + 10).from(source, 0, 8).posts(2 * step + u64::from(source));
        for source in 0..2 {
            made.add(2, posted(source));
            made.add(source, call("MPI_Send", at + 3000 + 1000 * u64::from(source), at + 4900).to(2, 0, 8));
        }
        let wait = call("MPI_Waitall", at + 1000, at + 4500);
        made.add(2, wait.completes(&posted(0)).completes(&posted(1)));
    }
    let states = analysed(&made);
    // The last message of each step is rank 1's. Those of rank 0 are over long before the call is, and tell nothing.
    assert_eq!(of(&states, WaitKind::LateSender), [(2, 20 * 3000)], "{:?}", states.unmatched);
    assert_eq!(cause(&states, WaitKind::LateSender, 2), Some(1));
}

#[test]
fn what_threads_send_at_once_over_one_channel_is_not_told_apart() {
    let made = |second_ns: (u64, u64)| {
        let mut made = begun(2);
        let second = made.thread(ProcessId(0), 2000).0;
        made.add(0, call("MPI_Send", 2000, 2500).to(1, 0, 8));
        made.add(second, call("MPI_Send", second_ns.0, second_ns.1).to(1, 0, 8));
        made.add(0, call("MPI_Send", 6000, 6100).to(1, 0, 8));
        for (entry_ns, return_ns) in [(1500, 2600), (2800, 3600), (5000, 6100)] {
            made.add(1, call("MPI_Recv", entry_ns, return_ns).from(0, 0, 8));
        }
        (0..2).for_each(|rank| made.add(rank, call("MPI_Finalize", 20_000, 20_100)));
        let states = analysed(&made);
        (of(&states, WaitKind::LateSender), states.unmatched.matched_messages, states.unmatched.unsure)
    };
    assert_eq!(made((3000, 3100)), (vec![(1, 500 + 200 + 1000)], 3, 0));
    assert_eq!(made((2400, 2450)), (vec![(1, 1000)], 1, 4));
    // The same of receives.
    let mut made = begun(2);
    let second = made.thread(ProcessId(1), 2000).0;
    for at in [2000, 3000, 6000] {
        made.add(0, call("MPI_Send", at, at + 100).to(1, 0, 8));
    }
    made.add(1, call("MPI_Recv", 1500, 2600).from(0, 0, 8));
    made.add(second, call("MPI_Recv", 1600, 3600).from(0, 0, 8));
    made.add(1, call("MPI_Recv", 5000, 6100).from(0, 0, 8));
    (0..2).for_each(|rank| made.add(rank, call("MPI_Finalize", 20_000, 20_100)));
    let states = analysed(&made);
    assert_eq!((of(&states, WaitKind::LateSender), states.unmatched.unsure), (vec![(1, 1000)], 4));
}

#[test]
fn what_is_started_that_was_made_before_the_recording_is_counted() {
    let made = ended([vec![call("MPI_Start", 2000, 2100), call("MPI_Wait", 2200, 2300)], vec![]]);
    let states = analysed(&made);
    assert_eq!((states.unmatched.of_unknown_request, states.complete), (1, false));
}

/// Cut into slices of so many events.
fn sliced(made: &HandMade, aim: u64, threads: usize, limits: Limits) -> WaitStates {
    let clocks = Clocks::same();
    let slices = Slices::new(made, &clocks, made.definitions.location_ids(), Span::ALL, threads).aim(aim);
    Analysis::new(&made.definitions, &clocks, false, threads, limits).take_all(slices, &mut |_| {}).unwrap()
}

#[test]
fn however_a_trace_is_cut_into_slices_the_same_is_found() {
    let made = HandMade::halo(8, 60);
    let whole = sliced(&made, 1 << 20, 1, Limits::default());
    assert!(whole.complete, "{:?}", whole.unmatched);
    assert_eq!(whole.clocks.violations, 0);
    assert!(!of(&whole, WaitKind::LateSender).is_empty() && !of(&whole, WaitKind::AllToAll).is_empty());
    let explained: u64 = whole.waits.iter().flat_map(|row| &row.caused_by).map(|cause| cause.ns).sum();
    assert!(explained > 0);
    for (aim, threads) in [(20, 1), (64, 3), (1000, 2), (5000, 8)] {
        let parts = sliced(&made, aim, threads, Limits::default());
        assert_eq!(parts.waits, whole.waits, "slices of {aim}");
        assert_eq!(parts.delays, whole.delays, "slices of {aim}");
        assert_eq!(parts.critical_path, whole.critical_path, "slices of {aim}");
        assert_eq!(parts.unmatched, whole.unmatched);
    }
}

/// Messages go round and round, and nothing else brings the ranks together.
fn ring(rounds: u64) -> HandMade {
    let mut made = begun(3);
    let mut now = 100;
    for round in 0..rounds {
        for rank in 0..3u32 {
            now += 500 + round * 37 % 400;
            made.add(rank, call("MPI_Send", now, now + 50).to((rank + 1) % 3, 0, 8));
            let from_ns = now.saturating_sub(round * 7 % 300);
            made.add((rank + 1) % 3, call("MPI_Recv", from_ns, now + 80).from(rank, 0, 8));
            now += 80;
        }
    }
    made
}

#[test]
fn memory_is_bounded_and_what_is_forgotten_is_said() {
    let made = ring(400);
    let whole = sliced(&made, 100, 1, Limits::default());
    let bounded = sliced(&made, 100, 1, Limits { spells: 300, waits: 50 });
    let sums = |states: &WaitStates| states.waits.iter().map(|row| (row.thread, row.kind, row.ns)).collect::<Vec<_>>();
    assert_eq!(sums(&bounded), sums(&whole));
    assert_eq!(bounded.critical_path, whole.critical_path, "the critical path is known all the same");
    assert_eq!(whole.unmatched.causes_cut_off, 0);
    assert!(bounded.unmatched.causes_cut_off > 0);
    let path = whole.critical_path.unwrap();
    assert_eq!(path.length_ns, whole.until_ns - whole.from_ns);
}

/// Each process has a number of its own for what all have made together, and one may be behind.
#[test]
fn windows_and_files_are_those_that_were_made_together() {
    const WORLD: Option<CommunicatorId> = Some(HandMade::WORLD);
    let window = |number| Object::Window(WindowId(number));
    let file = |number| Object::File(FileId(number));
    // Two windows at one time, which the second rank uses in another order with others: theirs, and nobody else's.
    let calls = |[one, other, opened]: [Object; 3], [entry, late]: [u64; 2]| {
        vec![
            call("MPI_Win_create", 1000, 1100).over(HandMade::WORLD).on(one),
            call("MPI_Win_create", 1200, 1300).over(HandMade::WORLD).on(other),
            call("MPI_Win_fence", entry, 5100).over(HandMade::WORLD).on(other),
            call("MPI_Win_fence", 5200, 5300).over(HandMade::WORLD).on(one),
            call("MPI_Win_free", 5400, 5500).over(HandMade::WORLD).on(other),
            call("MPI_Win_create", 5600, 5700).over(HandMade::WORLD).on(window(4)),
            call("MPI_File_open", 5800, 5900).over(HandMade::WORLD).on(opened),
            call("MPI_File_write_all", late, 7100).over(HandMade::WORLD).on(opened),
            call("MPI_File_close", 7200, 7300).over(HandMade::WORLD).on(opened),
        ]
    };
    let mut made = ended([
        calls([window(0), window(1), file(1)], [2000, 7000]),
        calls([window(3), window(2), file(0)], [5000, 6000]),
    ]);
    made.definitions.windows = vec![Window { communicator: WORLD }; 5];
    made.definitions.files = vec![File { communicator: WORLD, path: None }; 2];
    let found = all(&made);
    let of_kinds: Vec<_> =
        found.iter().filter(|(kind, ..)| matches!(kind, WaitKind::Window | WaitKind::Common)).collect();
    assert_eq!(of_kinds, [&(WaitKind::Common, 1, 1000), &(WaitKind::Window, 0, 3000)], "{found:?}");
    let states = analysed(&made);
    assert_eq!(cause(&states, WaitKind::Window, 0), Some(1));
    assert_eq!(cause(&states, WaitKind::Common, 1), Some(0));
    assert_eq!(states.unmatched.incomplete_collective_calls, 0, "{:?}", states.unmatched);
}

/// A window of all ranks, and what each calls over it. Rank 0 exposes it.
fn with_window<const N: usize>(calls: [Vec<Call>; N]) -> HandMade {
    let mut number = 0;
    let mut made = ended(calls.map(|calls| {
        let own = Object::Window(WindowId(number));
        number += 1;
        let all = [call("MPI_Win_create", 100, 200)].into_iter().chain(calls);
        all.map(|call| call.over(HandMade::WORLD).on(own)).collect()
    }));
    made.definitions.windows = vec![Window { communicator: Some(HandMade::WORLD) }; N];
    made
}

/// An access epoch with rank 0: its start, the access and the completion.
fn epoch(start: (u64, u64), access: (u64, u64), complete: (u64, u64)) -> [Call; 3] {
    [
        call("MPI_Win_start", start.0, start.1),
        call("MPI_Put", access.0, access.1).to(0, 0, 8),
        call("MPI_Win_complete", complete.0, complete.1),
    ]
}

fn exposure(post: (u64, u64), wait: (u64, u64)) -> [Call; 2] {
    [call("MPI_Win_post", post.0, post.1), call("MPI_Win_wait", wait.0, wait.1)]
}

#[test]
fn epochs_wait_for_their_other_side() {
    // Whichever call it is that the library waits in.
    for (start, access, complete) in [
        ((1000, 3100), (3200, 3210), (3300, 3400)),
        ((900, 910), (1000, 3100), (3300, 3400)),
        ((900, 910), (920, 930), (1000, 3400)),
    ] {
        let made = with_window([
            exposure((3000, 3010), (3100, 5100)).into(),
            epoch(start, access, complete).into(),
            epoch((3050, 3060), (3070, 3080), (5000, 5050)).into(),
        ]);
        let states = analysed(&made);
        assert_eq!(of(&states, WaitKind::LatePost), [(1, 2000)]);
        assert_eq!(of(&states, WaitKind::EarlyWait), [(0, 1900)]);
        assert_eq!((cause(&states, WaitKind::LatePost, 1), cause(&states, WaitKind::EarlyWait, 0)), (Some(0), Some(2)));
        assert!(states.complete, "{:?}", states.unmatched);
        let cut = sliced(&made, 1, 2, Limits::default());
        assert_eq!((of(&cut, WaitKind::LatePost), of(&cut, WaitKind::EarlyWait)), (vec![(1, 2000)], vec![(0, 1900)]));
    }
}

#[test]
fn each_epoch_belongs_to_another_exposure() {
    // The second one is complete before the first exposure has ended, and waits for the next one.
    let made = with_window([
        [exposure((1000, 1010), (1100, 1300)), exposure((4000, 4010), (4100, 4200))].concat(),
        [epoch((1020, 1030), (1040, 1050), (1150, 1200)), epoch((1210, 1215), (1220, 1225), (1230, 4050))].concat(),
    ]);
    let states = analysed(&made);
    assert_eq!(of(&states, WaitKind::LatePost), [(1, 2770)]);
    assert_eq!(of(&states, WaitKind::EarlyWait), [(0, 50)]);
    assert_eq!(states.unmatched.epochs, 0);
    // Who accesses nothing says of nobody that it waits for him.
    let [post, wait] = exposure((1000, 1010), (1100, 1300));
    let [start, _, complete] = epoch((1020, 1030), (1040, 1050), (1250, 1260));
    let states = analysed(&with_window([vec![post, wait], vec![start, complete]]));
    assert_eq!((of(&states, WaitKind::EarlyWait), states.unmatched.epochs), (vec![], 2));
}

#[test]
fn what_comes_after_the_last_access_is_a_late_complete() {
    let made = with_window([
        exposure((1000, 1010), (1100, 5100)).into(),
        epoch((1020, 1030), (1040, 1500), (4000, 4100)).into(),
        epoch((1020, 1030), (2900, 3000), (5000, 5050)).into(),
    ]);
    let states = analysed(&made);
    let [row] = states.waits.iter().filter(|row| row.kind == WaitKind::EarlyWait).collect::<Vec<_>>()[..] else {
        panic!("{:?}", states.waits)
    };
    assert_eq!((row.ns, row.late_complete_ns), (3900, 2000));
}

#[test]
fn fences_are_early_until_the_last_access_is_over() {
    let fence = |entry, leave| call("MPI_Win_fence", entry, leave);
    let put = |to, entry, leave| call("MPI_Put", entry, leave).to(to, 0, 8);
    let made = with_window([
        vec![fence(1000, 1100), fence(2000, 6100), fence(7000, 9100)],
        vec![fence(1000, 1100), put(0, 3500, 4000), put(2, 1200, 1300), fence(6000, 6100), fence(9000, 9100)],
        vec![fence(1000, 1100), fence(1500, 6100), put(0, 7500, 7600), fence(8000, 9100)],
    ]);
    for states in [analysed(&made), sliced(&made, 1, 1, Limits::default())] {
        let of_rank = |rank| {
            let rows = states.waits.iter().filter(move |row| row.kind == WaitKind::Window && row.thread == rank);
            rows.map(|row| (row.ns, row.early_fence_ns)).collect::<Vec<_>>()
        };
        // Until 4000 and 7600; what rank 2 has got was there before it came.
        assert_eq!(of_rank(0), [(4000 + 2000, 2000 + 600)], "{:?}", states.waits);
        assert_eq!(of_rank(2), [(4500 + 1000, 0)]);
    }
}

/// A lock of rank 0's part of the window, an access, and the unlock.
fn locked(how: Lock, lock: (u64, u64), access: (u64, u64), unlock: (u64, u64)) -> [Call; 3] {
    [
        call("MPI_Win_lock", lock.0, lock.1).about(0, Some(how)),
        call("MPI_Put", access.0, access.1).to(0, 0, 8),
        call("MPI_Win_unlock", unlock.0, unlock.1).about(0, None),
    ]
}

#[test]
fn locks_wait_for_those_who_have_them() {
    use Lock::{Exclusive, Shared};
    let of_holder = |how| locked(how, (1000, 1010), (1100, 1200), (5000, 5100));
    // Whichever call it is that the library waits in.
    for (lock, access, unlock) in [
        ((2000, 5120), (5200, 5300), (5400, 5500)),
        ((1900, 1910), (2000, 5120), (5400, 5500)),
        ((1800, 1810), (1900, 1910), (2000, 5500)),
    ] {
        for (holder, how, waited) in [
            (Exclusive, Exclusive, vec![(2, 3000)]),
            (Exclusive, Shared, vec![(2, 3000)]),
            (Shared, Exclusive, vec![(2, 3000)]),
            (Shared, Shared, vec![]),
        ] {
            // Rank 0 does nothing until all is over.
            let made = with_window([vec![], of_holder(holder).into(), locked(how, lock, access, unlock).into()]);
            for states in [analysed(&made), sliced(&made, 1, 2, Limits::default())] {
                assert_eq!(of(&states, WaitKind::LockContention), waited, "{holder:?} {how:?}");
                assert_eq!(of(&states, WaitKind::Progress), []);
                assert_eq!(cause(&states, WaitKind::LockContention, 2), waited.first().map(|_| 1));
            }
        }
    }
    // Another part of the window, and somebody who asks for it when it was given up.
    let [lock, put, unlock] = locked(Exclusive, (2000, 5120), (5200, 5300), (5400, 5500));
    let other = [lock.about(1, Some(Exclusive)), put.to(1, 0, 8), unlock.about(1, None)];
    let later = locked(Exclusive, (5050, 5120), (5200, 5300), (5400, 5500));
    let made = with_window([later.into(), of_holder(Exclusive).into(), other.into()]);
    assert_eq!(of(&analysed(&made), WaitKind::LockContention), []);
    // Of all parts, shared.
    let all = [
        call("MPI_Win_lock_all", 2000, 2010),
        call("MPI_Get", 2100, 5200).to(0, 0, 8),
        call("MPI_Win_flush", 5300, 5310).about(0, None),
        call("MPI_Win_unlock_all", 6000, 6010),
    ];
    let made = with_window([vec![], of_holder(Exclusive).into(), all.into()]);
    assert_eq!(of(&analysed(&made), WaitKind::LockContention), [(2, 2900)]);
}

#[test]
fn nobody_has_a_lock_before_it_has_asked_for_it() {
    // Until then it is the target, the same process, that the library waits for.
    let own = locked(Lock::Exclusive, (10_000, 10_010), (10_100, 10_200), (11_000, 11_100));
    let waits = locked(Lock::Exclusive, (1000, 1010), (1100, 1200), (2000, 11_200));
    let states = analysed(&with_window([own.into(), waits.into()]));
    assert_eq!(of(&states, WaitKind::LockContention), [(1, 1000)]);
    assert_eq!(of(&states, WaitKind::Progress), [(1, 8000)]);
    // One holder after the other.
    let first = locked(Lock::Exclusive, (1500, 1510), (1600, 1700), (4000, 4100));
    let second = locked(Lock::Exclusive, (4500, 4510), (4600, 4700), (6000, 6100));
    let waits = locked(Lock::Exclusive, (2000, 6200), (6300, 6400), (6500, 6600));
    let states = analysed(&with_window([vec![], [first, second].concat(), waits.into()]));
    assert_eq!(of(&states, WaitKind::LockContention), [(2, 2000 + 1500)]);
    // Of a window whose parts nobody knows, locks are counted.
    let mut made = with_window([vec![], locked(Lock::Shared, (100, 110), (120, 130), (140, 150)).into()]);
    made.definitions.windows.iter_mut().for_each(|window| window.communicator = None);
    for at in [1000, 2000] {
        let mut lock = call("MPI_Win_lock", at, at + 10).about(0, Some(Lock::Exclusive));
        lock.operation.communicator = None;
        made.add(1, lock.on(Object::Window(WindowId(7))));
    }
    assert_eq!(analysed(&made).unmatched.epochs, 2);
}

#[test]
fn one_sided_calls_wait_until_their_target_calls_mpi() {
    let barrier = |entry, leave| call("MPI_Barrier", entry, leave).over(HandMade::WORLD);
    let all = [
        call("MPI_Win_lock_all", 1000, 1010),
        call("MPI_Put", 1100, 1200).to(0, 0, 8),
        call("MPI_Win_flush", 2000, 4100).about(0, None),
        call("MPI_Win_unlock_all", 4200, 4210),
    ];
    // It is in MPI for a moment between.
    let target = [call("MPI_Iprobe", 2500, 2600).from_any(0), barrier(4000, 6000)];
    let made = with_window([target.into(), all.into_iter().chain([barrier(5000, 6000)]).collect()]);
    for states in [analysed(&made), sliced(&made, 1, 2, Limits::default())] {
        assert_eq!(of(&states, WaitKind::Progress), [(1, 500 + 1400)]);
        assert_eq!(cause(&states, WaitKind::Progress, 1), Some(0));
    }
}

/// Who comes as late as the last one to where all meet has waited for nobody: its own way to there is not forgotten.
#[test]
fn the_critical_path_is_whole_where_two_are_the_last_ones() {
    let mut made = begun(3);
    for round in 1..40u64 {
        let at = 1000 * round;
        for rank in 0..3u32 {
            let entry = at + if rank == 2 { 100 } else { 400 };
            made.add(rank, call("MPI_Barrier", entry, at + 500).over(HandMade::WORLD));
        }
        made.add(0, call("MPI_Send", at + 700, at + 710).to(1, 0, 8));
        made.add(1, call("MPI_Recv", at + 600, at + 720).from(0, 0, 8));
    }
    (0..3).for_each(|rank| made.add(rank, call("MPI_Finalize", 50_000, 50_100)));
    for aim in [1, 7, 1 << 20] {
        let path = sliced(&made, aim, 1, Limits::default()).critical_path.unwrap();
        let length: u64 = path.parts.iter().map(|row| row.ns).sum();
        assert_eq!(length, 50_000 - 10, "slices of {aim}");
    }
}

/// Ranks that send round and meet, of which only what happens in windows was recorded.
fn in_windows(windows: u64) -> HandMade {
    let mut made = begun(2);
    for window in 0..windows {
        for step in 0..4u64 {
            let at = 1000 + window * 10_000 + step * 1000;
            for rank in 0..2u32 {
                let (entry, missing) = (at + u64::from(rank) * 10, u64::from(window > 0 && step == 0) * 100);
                let mut meets = call("MPI_Barrier", entry, at + 200).over(HandMade::WORLD);
                meets.number = missing;
                made.add(rank, meets);
            }
            made.add(0, call("MPI_Send", at + 500, at + 550).to(1, 0, 8));
            made.add(1, call("MPI_Recv", at + 400, at + 550).from(0, 0, 8));
        }
    }
    for location in &mut made.definitions.locations {
        location.losses.left_out.by_time = 100 * (windows - 1);
    }
    made
}

#[test]
fn between_gaps_everything_is_matched_however_a_trace_is_cut() {
    let made = in_windows(3);
    for (aim, threads) in [(1, 1), (7, 2), (1 << 20, 1), (1 << 20, 3)] {
        let states = sliced(&made, aim, threads, Limits::default());
        assert_eq!(of(&states, WaitKind::LateSender), [(1, 12 * 100)], "slices of {aim}");
        let ends = states.unmatched;
        assert_eq!((ends.matched_messages, ends.matched_collective_calls), (12, 2 + 2 * 12), "slices of {aim}");
        assert_eq!((ends.unsure, ends.incomplete_collective_calls), (0, 0), "slices of {aim}");
    }
}

/// Each step has a message and a barrier; rank 0 has switched counting off for the steps from 2 to 4.
fn switched_off() -> HandMade {
    let mut made = begun(2);
    let phase = |at_ns, is_on| Event::Phase(PhaseChange { at_ns, phase: None, is_on });
    for step in 0..8u64 {
        let at = 1000 * (step + 1);
        match step {
            2 => made.push(0, phase(at + 10, false)),
            5 => made.push(0, phase(at + 10, true)),
            _ => {}
        }
        if !(2..5).contains(&step) {
            made.add(0, call("MPI_Send", at + 150, at + 160).to(1, 0, 8));
            made.add(0, call("MPI_Barrier", at + 300, at + 400).over(HandMade::WORLD));
        }
        made.add(1, call("MPI_Recv", at + 50, at + 200).from(0, 0, 8));
        made.add(1, call("MPI_Barrier", at + 310, at + 400).over(HandMade::WORLD));
    }
    made
}

#[test]
fn what_a_rank_calls_while_counting_is_off_is_in_the_place_of_nothing_else() {
    let made = switched_off();
    for (aim, threads) in [(1, 1), (5, 2), (1 << 20, 1)] {
        let states = sliced(&made, aim, threads, Limits::default());
        assert_eq!(of(&states, WaitKind::LateSender), [(1, 5 * 100)], "slices of {aim}");
        let ends = states.unmatched;
        assert_eq!((ends.matched_messages, ends.contradictions), (5, 0), "slices of {aim}: {ends:?}");
        assert_eq!(
            (ends.matched_collective_calls, ends.incomplete_collective_calls),
            (2 + 2 * 5, 3),
            "slices of {aim}"
        );
        let is_unknown = |row: &PathRow| matches!(row.activity, Activity::NotRecorded { .. });
        let path = states.critical_path.unwrap();
        let unknown: Vec<_> = path.parts.iter().filter(|row| is_unknown(row)).map(|row| (row.thread, row.ns)).collect();
        assert_eq!(unknown, [(0, 3750)], "nobody knows whether it has computed, slices of {aim}");
    }
}

#[test]
fn calls_that_have_not_returned_are_counted() {
    let mut made = begun(2);
    made.add(0, call("MPI_Send", 100, 110).to(1, 1, 8));
    for (rank, began_before) in [(0, false), (1, true)] {
        let open = Call { has_returned: false, began_before, ..call("MPI_Recv", 200, 900) };
        made.add(rank, open.from(1 - rank, 0, 8));
    }
    let states = analysed(&made);
    assert_eq!((states.calls, states.open_calls, states.waits.len()), (5, 2, 0));
}

/// Each of three rounds has two messages and a barrier; in the first one, what has come first is too long for its receive.
fn truncated(takes: impl Fn(&mut HandMade, u64)) -> WaitStates {
    let mut made = begun(2);
    for round in 0..3u64 {
        let at = 1000 * (round + 1);
        made.add(0, call("MPI_Send", at + 100, at + 110).to(1, 0, if round == 0 { 40 } else { 8 }));
        made.add(0, call("MPI_Send", at + 300, at + 310).to(1, 0, 8));
        if round == 0 {
            takes(&mut made, at);
        } else {
            made.add(1, call("MPI_Recv", at + 50, at + 120).from(0, 0, 8));
        }
        made.add(1, call("MPI_Recv", at + 200, at + 320).from(0, 0, 8));
        for rank in 0..2 {
            made.add(rank, call("MPI_Barrier", at + 400, at + 500).over(HandMade::WORLD));
        }
    }
    sliced(&made, 1, 1, Limits::default())
}

#[test]
fn what_a_receive_has_taken_that_has_failed_is_not_given_to_the_next_one() {
    let failed = |mut call: Call| {
        call.result = 15;
        call
    };
    let by_receive = truncated(|made, at| made.add(1, failed(call("MPI_Recv", at + 50, at + 120).from(0, 0, 8))));
    let by_wait = truncated(|made, at| {
        let posted = call("MPI_Irecv", at + 40, at + 50).from(0, 0, 8).posts(1);
        let wait = call("MPI_Wait", at + 60, at + 120).changes(&posted, Change::Failed);
        made.add(1, posted);
        made.add(1, failed(wait));
    });
    for states in [by_receive, by_wait] {
        assert_eq!(of(&states, WaitKind::LateSender), [(1, 2 * 50 + 3 * 100)]);
        let ends = states.unmatched;
        assert_eq!((ends.matched_messages, ends.contradictions), (5, 0), "{ends:?}");
        assert!(ends.unsure > 0, "{ends:?}");
    }
}

#[test]
fn a_collective_that_has_failed_in_one_rank_is_not_told_from_the_next_one() {
    let mut made = begun(2);
    for round in 0..3u64 {
        let at = 1000 * (round + 1);
        for rank in 0..2u32 {
            let mut broadcast = call("MPI_Bcast", at + 100, at + 200).over(HandMade::WORLD).rooted(0);
            broadcast.result = i32::from(round == 0 && rank == 1);
            made.add(rank, broadcast);
            made.add(rank, call("MPI_Bcast", at + 300, at + 310).over(HandMade::WORLD).rooted(0));
            made.add(rank, call("MPI_Barrier", at + 400, at + 500).over(HandMade::WORLD));
        }
    }
    let ends = sliced(&made, 1, 1, Limits::default()).unmatched;
    assert_eq!((ends.matched_collective_calls, ends.contradictions), (2 + 2 * 7, 0), "{ends:?}");
    assert_eq!(ends.incomplete_collective_calls, 3, "{ends:?}");
}

#[test]
fn what_was_posted_before_a_gap_is_matched_and_what_comes_after_is_not() {
    let mut made = begun(2);
    made.definitions.locations[1].losses.lost = 1;
    made.add(0, call("MPI_Send", 2000, 2100).to(1, 0, 8));
    made.add(1, call("MPI_Recv", 1500, 2200).from(0, 0, 8));
    // A receive is missing, which has got the second message.
    made.add(0, call("MPI_Send", 3000, 3100).to(1, 0, 8));
    made.add(0, call("MPI_Send", 5000, 5100).to(1, 0, 8));
    let mut after = call("MPI_Recv", 4000, 5200).from(0, 0, 8);
    after.number = 1;
    made.add(1, after);
    for aim in [1, 1 << 20] {
        let states = sliced(&made, aim, 1, Limits::default());
        assert_eq!(of(&states, WaitKind::LateSender), [(1, 500)], "slices of {aim}");
        assert_eq!((states.unmatched.matched_messages, states.unmatched.unsure), (1, 3), "slices of {aim}");
    }
}

#[test]
fn a_communicator_that_was_seen_to_be_made_has_had_no_earlier_calls() {
    let matched = |was_made: bool| {
        let mut made = HandMade::of_ranks(3);
        made.definitions.processes.iter_mut().for_each(|process| process.began_before = true);
        let all = made.communicator("all", &[0, 1, 2]);
        made.definitions.communicators[all.index()].was_made = was_made;
        for rank in 0..3 {
            let at = u64::from(rank) * 100 + 1000;
            made.add(rank, call("MPI_Bcast", at, at + 50).over(all).moves(8, 8).rooted(0));
        }
        analysed(&made).unmatched.matched_collective_calls
    };
    assert_eq!((matched(true), matched(false)), (3, 0));
}

/// What ranks 0 and 1 call over a communicator that was there before recording began: of what came before a barrier of all, rank 1's was seen.
/// Gives how many of their calls were matched.
fn behind_a_barrier(change: impl Fn(&mut HandMade)) -> u64 {
    let mut made = HandMade::of_ranks(3);
    made.definitions.processes.iter_mut().for_each(|process| process.began_before = true);
    let some = made.communicator("some", &[0, 1]);
    let bcast = |at, until| call("MPI_Bcast", at, until).over(some).moves(8, 8).rooted(0);
    // Nobody is in a call that was not seen when the first one comes to the barrier.
    (0..3).for_each(|rank| made.add(rank, call("MPI_Comm_rank", 50, 60)));
    made.add(1, bcast(100, 900));
    for rank in 0..3 {
        let at = 1000 + u64::from(rank) * 10;
        made.add(rank, call("MPI_Barrier", at, 1050).over(HandMade::WORLD));
    }
    change(&mut made);
    for at in [2000, 3000] {
        made.add(0, bcast(at + 500, at + 600));
        made.add(1, bcast(at, at + 600));
    }
    let states = analysed(&made);
    let matched = states.unmatched.matched_collective_calls;
    let waits = if matched == 7 { vec![(1, 1000)] } else { vec![] };
    assert_eq!(of(&states, WaitKind::LateBroadcast), waits);
    for aim in [1, 3] {
        assert_eq!(sliced(&made, aim, 2, Limits::default()).unmatched, states.unmatched, "slices of {aim}");
    }
    matched - 3
}

#[test]
fn what_all_have_called_tells_what_some_call_afterwards() {
    assert_eq!(behind_a_barrier(|_| ()), 4);
    // Another thread may have called it before.
    let several = |made: &mut HandMade| {
        made.thread(ProcessId(0), 2000);
    };
    assert_eq!(behind_a_barrier(several), 0);
    // What does not block need not have come in that order: the other one may have called it before.
    let nonblocking = |made: &mut HandMade| {
        made.add(0, call("MPI_Ibcast", 1100, 1110).over(CommunicatorId(1)).moves(8, 8).rooted(0).posts(7));
    };
    assert_eq!(behind_a_barrier(nonblocking), 0);
}

/// Rank 0 is late, and its call is still going on when rank 1 is in the next one. Times alone do not tell which of the two calls of rank 1 that
/// are at the time of one of rank 0 is the same one; later, between two of them, both are elsewhere.
#[test]
fn who_is_in_the_next_call_already_is_not_in_the_same_one() {
    for first in [0, 1] {
        let mut made = HandMade::of_ranks(2);
        made.definitions.processes.iter_mut().for_each(|process| process.began_before = true);
        let all = |at, until| call("MPI_Allreduce", at, until).moves(8, 8);
        for step in 0..4 {
            let at = 5000 + step * 5000;
            made.add(0, all(at, at + 200));
            // The first of them was not seen, or was.
            if step >= first {
                made.add(1, all(at - 4850, at + 100));
            }
        }
        made.add(1, all(25_000, 30_100));
        made.add(0, all(30_000, 30_200));
        let states = analysed(&made);
        let unmatched = states.unmatched;
        assert_eq!(of(&states, WaitKind::AllToAll), [(1, 5000)], "{unmatched:?}");
        assert_eq!(of(&states, WaitKind::AllToAllCompletion), [(0, 100)]);
        assert_eq!((unmatched.matched_collective_calls, unmatched.contradictions), (2, 0));
    }
}

/// A receiver's calls, and messages of rank 0 with tag 3: one at the beginning, if there is one, and three that are late after all have met.
fn before_a_late_one(calls: Vec<Call>, is_sent: bool) -> HandMade {
    let barrier = || call("MPI_Barrier", 5000, 5100).over(HandMade::WORLD);
    let early = is_sent.then(|| call("MPI_Send", 1000, 1050).to(1, 3, 8));
    let late = [7000, 9000, 11_000];
    let sends = late.map(|at| call("MPI_Send", at, at + 100).to(1, 3, 8));
    let waits = late.map(|at| call("MPI_Recv", at - 1000, at + 200).from(0, 3, 8));
    let sender = early.into_iter().chain([barrier()]).chain(sends);
    let receiver = calls.into_iter().chain([barrier()]).chain(waits);
    ended([sender.collect(), receiver.collect()])
}

/// The same of whom it is from and how much it is, as whoever wants no status knows it.
fn without_status(mut posted: Call) -> Call {
    if let Some(receive) = &mut posted.operation.receive {
        receive.bytes = Bytes::AtMost(400);
    }
    posted
}

/// Any message of rank 0.
fn of_any_tag(mut posted: Call) -> Call {
    if let Some(receive) = &mut posted.operation.receive {
        (receive.tag, receive.any_tag) = (None, true);
    }
    posted
}

#[test]
fn messages_that_a_probe_has_found_are_those_that_whoever_receives_them_says() {
    let probes = [
        of_any_tag(call("MPI_Mprobe", 1500, 1600).from(0, 3, 8).posts(1)),
        call("MPI_Mprobe", 1500, 1600).from_any(8).posts(1),
    ];
    for found in probes {
        let received = call("MPI_Mrecv", 1700, 1800).from(0, 3, 8).completes(&found);
        let mut posted = without_status(of_any_tag(call("MPI_Imrecv", 1700, 1800).from(0, 3, 8)));
        posted = posted.completes(&found).posts(2);
        let mut complete = call("MPI_Wait", 1900, 2000).completes(&posted);
        complete.requests[0].operation.receive = received.operation.receive;
        for calls in [vec![found.clone(), received], vec![found.clone(), posted, complete]] {
            let states = analysed(&before_a_late_one(calls, true));
            assert_eq!(of(&states, WaitKind::LateSender), [(1, 3 * 1000)]);
            assert_eq!((states.unmatched.matched_messages, states.complete), (4, true), "{:?}", states.unmatched);
        }
    }
    // If nobody says it, any of them may be it until all have met.
    let found = call("MPI_Mprobe", 1500, 1600).from_any(8).posts(1);
    let received = call("MPI_Mrecv", 1700, 1800).from_any(8).completes(&found);
    let states = analysed(&before_a_late_one(vec![found, received], true));
    assert_eq!(of(&states, WaitKind::LateSender), [(1, 3 * 1000)]);
    let ends = states.unmatched;
    assert_eq!((ends.matched_messages, ends.of_unknown_source, ends.unsure), (3, 1, 1), "{ends:?}");
}

#[test]
fn what_a_probe_has_named_need_not_be_said_again() {
    let found = call("MPI_Mprobe", 1500, 1600).from(0, 3, 8).posts(1);
    let posted = without_status(of_any_tag(call("MPI_Imrecv", 1700, 1800).from(0, 3, 8)));
    let posted = posted.completes(&found).posts(2);
    let complete = call("MPI_Wait", 1900, 2000).completes(&posted);
    let states = analysed(&before_a_late_one(vec![found, posted, complete], true));
    assert_eq!(of(&states, WaitKind::LateSender), [(1, 3 * 1000)]);
    assert_eq!((states.unmatched.matched_messages, states.complete), (4, true), "{:?}", states.unmatched);
}

#[test]
fn whether_a_receive_was_cancelled_is_not_guessed() {
    let posted = without_status(call("MPI_Irecv", 1000, 1010).from(0, 3, 8)).posts(1);
    let cancel = call("MPI_Cancel", 1100, 1110);
    let ends = [
        call("MPI_Wait", 1200, 1210).completes(&posted),
        call("MPI_Request_free", 1200, 1210).changes(&posted, Change::Released),
    ];
    for end in ends {
        let made = before_a_late_one(vec![posted.clone(), cancel.clone(), end.clone()], false);
        let states = analysed(&made);
        assert_eq!(of(&states, WaitKind::LateSender), [(1, 3 * 1000)]);
        assert_eq!((states.unmatched.matched_messages, states.unmatched.unsure), (3, 1), "{:?}", states.unmatched);
        // What was posted later was not cancelled.
        let earlier = call("MPI_Cancel", 900, 910);
        let made = before_a_late_one(vec![earlier, posted.clone(), end], true);
        assert_eq!(analysed(&made).unmatched.matched_messages, 4);
    }
}

#[test]
fn receives_that_are_given_up_get_their_messages() {
    let posted = call("MPI_Irecv", 1000, 1010).from(0, 3, 8).posts(1);
    let released = call("MPI_Request_free", 1200, 1210).changes(&posted, Change::Released);
    for (aim, is_sent) in [(1, true), (1 << 20, true), (1, false)] {
        let made = before_a_late_one(vec![posted.clone(), released.clone()], is_sent);
        let states = sliced(&made, aim, 1, Limits::default());
        assert_eq!(states.unmatched.matched_messages, 3 + u64::from(is_sent), "{:?}", states.unmatched);
        assert_eq!(states.unmatched.receives, u64::from(!is_sent));
    }
}
