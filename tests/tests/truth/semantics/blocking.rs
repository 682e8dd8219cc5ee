//! Blocking messages and collectives (`tests/programs/semantics/point_to_point.c`, `collectives.c`).

use std::collections::BTreeMap;

use libtest_mimic::Failed;
use mpiprobe_tests::truth::{Amounts, Peer, ScopeKind, Snapshot};
use mpiprobe_tests::{Job, Mpi, program};

use super::{by_peer, calls, received, section, sent};

pub(super) fn messages(mpi: Mpi) -> Result<(), Failed> {
    for (rank, image) in section(mpi, "point-to-point")?.ranks {
        let [right, left, partner] = [(rank + 1) % 4, (rank + 3) % 4, rank ^ 1].map(Peer::Rank);
        let expected = [
            ("MPI_Send", vec![(right, sent(7, 40 + 8 + 4 + 44 + 13 + 16)), (Peer::Null, calls(1))]),
            ("MPI_Ssend", vec![(right, sent(1, 24))]),
            ("MPI_Bsend", vec![(right, sent(1, 5))]),
            ("MPI_Rsend", vec![(right, sent(1, 14))]),
            (
                "MPI_Recv",
                vec![
                    (
                        left,
                        Amounts {
                            calls: 7,
                            received: received(7, 40 + 24 + 5 + 8 + 4 + 44, 64 + 32 + 5 + 24 + 24 + 44 + 20),
                            ignored: received(3, 24 + 8 + 44, 32 + 24 + 44),
                            hidden: received(1, 8, 24),
                            ..Amounts::default()
                        },
                    ),
                    (Peer::Null, calls(1)),
                ],
            ),
            (
                "MPI_Irecv",
                vec![(
                    left,
                    Amounts {
                        calls: 1,
                        received: received(1, 14, 14),
                        ignored: received(1, 14, 14),
                        ..Amounts::default()
                    },
                )],
            ),
            (
                "MPI_Mrecv",
                vec![
                    (
                        left,
                        Amounts {
                            calls: 2,
                            received: received(2, 13 + 16, 20 + 16),
                            ignored: received(1, 13, 20),
                            ..Amounts::default()
                        },
                    ),
                    (Peer::Null, calls(1)),
                ],
            ),
            (
                "MPI_Sendrecv_replace",
                vec![(partner, Amounts { received: received(1, 32, 32), ignored: received(1, 32, 32), ..sent(1, 32) })],
            ),
            ("MPI_Mprobe", vec![(left, calls(1)), (Peer::Any, calls(1)), (Peer::Null, calls(1))]),
            ("MPI_Probe", vec![(Peer::Any, calls(1))]),
            ("MPI_Iprobe", vec![(Peer::Null, calls(1))]),
            ("MPI_Barrier", vec![(Peer::None, calls(3))]),
        ];
        for (function, amounts) in expected {
            let amounts = amounts.into_iter().collect::<BTreeMap<_, _>>();
            assert_eq!(by_peer(&image.traffic, function), amounts, "rank {rank}, {function}");
        }
        assert_eq!(by_peer(&image.traffic, "MPI_Sendrecv"), exchanges(rank), "rank {rank}");
        // Only the message within MPI_COMM_SELF was not in MPI_COMM_WORLD; and MPI_MESSAGE_NO_PROC is of no communicator.
        let by_scope = image.traffic.by(|key| key.scope.clone());
        let [(None, nobody), (Some(itself), own), (Some(world), _)] = by_scope.iter().collect::<Vec<_>>()[..] else {
            return Err(format!("{by_scope:?}").into());
        };
        assert_eq!(*nobody, calls(1));
        assert_eq!(
            (itself.name.as_str(), itself.kind, &*itself.members),
            ("MPI_COMM_SELF", ScopeKind::Communicator, &[Some(rank)][..])
        );
        assert_eq!(*own, Amounts { received: received(1, 8, 8), ..sent(1, 8) });
        assert_eq!((world.name.as_str(), &*world.members), ("MPI_COMM_WORLD", &[0, 1, 2, 3].map(Some)[..]));
    }
    Ok(())
}

/// Receives whose status is ignored count with what was posted, and from nobody in particular if the source is a wildcard.
pub(super) fn ignored_statuses(mpi: Mpi) -> Result<(), Failed> {
    let known = section(mpi, "point-to-point")?;
    let job = Job::builder(mpi, program::SEMANTICS).args(["point-to-point"]).semantics_with_ignored_statuses().spawn();
    let mut job = job?;
    job.wait()?.success()?;
    for (rank, image) in job.snapshot()?.ranks {
        let left = Peer::Rank((rank + 3) % 4);
        let expected = BTreeMap::from([
            (
                left,
                Amounts {
                    calls: 6,
                    received: received(6, 40 + 32 + 5 + 4 + 44, 64 + 32 + 5 + 24 + 44 + 20),
                    ignored: received(2, 32 + 44, 32 + 44),
                    ..Amounts::default()
                },
            ),
            (
                Peer::Any,
                Amounts {
                    calls: 1,
                    received: received(1, 24, 24),
                    ignored: received(1, 24, 24),
                    hidden: received(1, 24, 24),
                    ..Amounts::default()
                },
            ),
            (Peer::Null, calls(1)),
        ]);
        assert_eq!(by_peer(&image.traffic, "MPI_Recv"), expected, "rank {rank}");
        let known = known.rank(rank)?.traffic.functions();
        for (function, amounts) in image.traffic.functions() {
            let exact = known.get(function).copied().unwrap_or_default();
            // What is completed by a wait or test has a status of ours.
            let wanted = if function == "MPI_Irecv" { exact.received.bytes } else { exact.received_at_most() };
            assert_eq!(amounts.received.bytes, wanted, "rank {rank}, {function}");
        }
    }
    Ok(())
}

fn exchanges(rank: u32) -> BTreeMap<Peer, Amounts> {
    let mut expected = BTreeMap::new();
    let mut add = |peer, amounts| *expected.entry(peer).or_insert_with(Amounts::default) += amounts;
    let (right, left) = (Peer::Rank((rank + 1) % 4), Peer::Rank((rank + 3) % 4));
    add(right, sent(1, 36));
    add(left, Amounts { received: received(1, 36, 48), ..calls(1) });
    add(Peer::Null, calls(1));
    add(if rank == 3 { Peer::Null } else { right }, if rank == 3 { calls(1) } else { sent(1, 12) });
    if rank == 0 {
        add(Peer::Null, calls(1));
    } else {
        add(left, Amounts { received: received(1, 12, 20), ignored: received(1, 12, 20), ..calls(1) });
    }
    add(right, sent(1, 12));
    add(left, Amounts { received: received(1, 12, 20), ..calls(1) });
    add(Peer::Rank(rank), Amounts { received: received(1, 4, 4), ignored: received(1, 4, 4), ..sent(1, 4) });
    add(Peer::Rank(rank), Amounts { received: received(1, 8, 8), ..sent(1, 8) });
    expected
}

/// Bytes sent and received by rank, of which there are four.
pub(super) type ByRank = [(u64, u64); 4];

pub(super) fn collectives(mpi: Mpi) -> Result<(), Failed> {
    let snapshot = section(mpi, "collectives")?;
    let expected: [(&str, u64, ByRank); 18] = [
        ("MPI_Barrier", 1, [(0, 0); 4]),
        ("MPI_Bcast", 1, [(0, 20), (0, 20), (20, 0), (0, 20)]),
        // To rank 1, and in place to rank 2.
        ("MPI_Gather", 2, [(24, 0), (24, 48), (12, 48), (24, 0)]),
        ("MPI_Gatherv", 2, [(8, 0), (16, 0), (12, 40), (32, 40)]),
        // From rank 0, and in place from rank 1.
        ("MPI_Scatter", 2, [(32, 16), (32, 8), (0, 16), (0, 16)]),
        ("MPI_Scatterv", 2, [(40, 8), (40, 8), (0, 24), (0, 32)]),
        ("MPI_Reduce", 2, [(40, 0), (40, 0), (40, 0), (40, 40)]),
        ("MPI_Allgather", 2, [(8, 64); 4]),
        ("MPI_Allgatherv", 2, [(4, 80), (8, 80), (12, 80), (16, 80)]),
        ("MPI_Alltoall", 2, [(48 + 32, 48 + 32); 4]),
        ("MPI_Alltoallv", 2, [(56, 32), (56, 48), (56, 64), (56, 80)]),
        ("MPI_Alltoallw", 2, [(46, 46); 4]),
        ("MPI_Allreduce", 2, [(32, 32); 4]),
        ("MPI_Scan", 2, [(32, 32); 4]),
        ("MPI_Exscan", 2, [(32, 0), (32, 32), (32, 32), (32, 32)]),
        ("MPI_Reduce_scatter", 2, [(120, 12), (120, 24), (120, 36), (120, 48)]),
        ("MPI_Reduce_scatter_block", 2, [(96, 24); 4]),
        ("MPI_Send", 0, [(0, 0); 4]),
    ];
    expect(&snapshot, &expected)
}

/// Calls and bytes of functions that have no peers.
pub(super) fn expect(snapshot: &Snapshot, expected: &[(&str, u64, ByRank)]) -> Result<(), Failed> {
    for (function, number, by_rank) in expected {
        for (rank, (sent, bytes)) in (0..).zip(by_rank) {
            let amounts = by_peer(&snapshot.rank(rank)?.traffic, function);
            let wanted =
                Amounts { calls: *number, sent: *sent, received: received(0, *bytes, 0), ..Amounts::default() };
            let wanted = if *number > 0 { BTreeMap::from([(Peer::None, wanted)]) } else { BTreeMap::new() };
            assert_eq!(amounts, wanted, "rank {rank}, {function}");
        }
    }
    Ok(())
}
