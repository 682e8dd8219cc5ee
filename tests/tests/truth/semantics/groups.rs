//! Communicators, also with two groups (`tests/programs/semantics/communicators.c`), neighbourhoods (`neighbourhoods.c`), nonblocking
//! collectives (`nonblocking_collectives.c`).

use std::collections::BTreeMap;

use libtest_mimic::Failed;
use mpiprobe_tests::Mpi;
use mpiprobe_tests::truth::{Amounts, Key, Peer, Scope, Traffic};

use super::blocking::expect;
use super::section;

/// Its name if the program has given it one: Open MPI makes names up.
fn name(scope: &Scope) -> &str {
    if scope.name.starts_with("MPI COMMUNICATOR") { "" } else { &scope.name }
}

/// Bytes sent and received by name, members and peer.
type ByCommunicator = BTreeMap<(String, Vec<u32>, Peer), (u64, u64)>;

/// The communicators that messages go round in, as lists of world ranks by rank, with the number of words.
fn rings(rank: u32) -> Vec<(&'static str, Vec<u32>, u64)> {
    let (half, pair) = (vec![rank % 2, rank % 2 + 2], vec![rank / 2 * 2, rank / 2 * 2 + 1]);
    let all = vec![0, 1, 2, 3];
    let mut rings = vec![
        ("copy", all.clone(), 1),
        (if rank % 2 == 1 { "odd" } else { "even" }, half.clone(), 2),
        ("", vec![3, 2, 1, 0], 3),
        ("grid", all.clone(), 5),
        ("", pair.clone(), 6),
        ("", all.clone(), 7),
    ];
    if rank % 2 == 1 {
        rings.push(("", vec![3, 1], 4));
    }
    for i in 0..12_u32 {
        let mut members = match i % 3 {
            0 => pair.clone(),
            1 => half.clone(),
            _ => all.clone(),
        };
        if i % 2 == 1 {
            members.reverse();
        }
        rings.push((if i % 4 == 3 { "named later" } else { "" }, members, 1 + u64::from(i % 5)));
    }
    rings.extend([("last name", all.clone(), 2), ("last name", all.clone(), 3)]);
    rings.extend([("", vec![0, 2, 1, 3], 5), ("", all, 4)]);
    rings
}

pub(super) fn communicators(mpi: Mpi) -> Result<(), Failed> {
    for (rank, image) in section(mpi, "communicators")?.ranks {
        let (mut messages, mut reductions) = (ByCommunicator::new(), ByCommunicator::new());
        for (name, ring, words) in rings(rank) {
            let place = ring.iter().position(|member| *member == rank).ok_or("not a member")?;
            let (next, previous) = ((place + 1) % ring.len(), (place + ring.len() - 1) % ring.len());
            let peer = |place: usize| ring.get(place).copied().map_or(Peer::None, Peer::Rank);
            let mut members = ring.clone();
            members.sort_unstable();
            let at = |peer| (name.to_owned(), members.clone(), peer);
            messages.entry(at(peer(next))).or_default().0 += 4 * words;
            messages.entry(at(peer(previous))).or_default().1 += 4 * words;
            let both = reductions.entry(at(Peer::None)).or_default();
            *both = (both.0 + 4 * words, both.1 + 4 * words);
        }
        assert_eq!(by_communicator(&image.traffic, "MPI_Sendrecv"), messages, "rank {rank}");
        assert_eq!(by_communicator(&image.traffic, "MPI_Allreduce"), reductions, "rank {rank}");
    }
    Ok(())
}

/// Without inter-communicators.
fn by_communicator(traffic: &Traffic, function: &str) -> ByCommunicator {
    let mut sums = ByCommunicator::new();
    for (Key { scope, peer, .. }, amounts) in traffic.entries.iter().filter(|(key, _)| key.function == function) {
        if let Some(scope) = scope.as_ref().filter(|scope| scope.remote_members.is_empty()) {
            let members = scope.members.iter().copied().flatten().collect();
            let sum = sums.entry((name(scope).to_owned(), members, *peer)).or_default();
            *sum = (sum.0 + amounts.sent, sum.1 + amounts.received.bytes);
        }
    }
    sums
}

pub(super) fn two_groups(mpi: Mpi) -> Result<(), Failed> {
    // From rank 2 to 1 and 3, from 0 and 2 to 3; then even ranks and odd ranks.
    let expected: [(&str, [(u64, u64); 4]); 12] = [
        ("MPI_Send", [(12, 0); 4]),
        ("MPI_Irecv", [(0, 12); 4]),
        ("MPI_Bcast", [(0, 0), (0, 16), (16, 0), (0, 16)]),
        ("MPI_Scatter", [(0, 0), (0, 8), (16, 0), (0, 8)]),
        ("MPI_Gather", [(20, 0), (0, 0), (20, 0), (0, 40)]),
        ("MPI_Gatherv", [(4, 0), (0, 0), (8, 0), (0, 12)]),
        ("MPI_Reduce", [(24, 0), (0, 0), (24, 0), (0, 24)]),
        ("MPI_Allgather", [(8, 24), (12, 16), (8, 24), (12, 16)]),
        ("MPI_Alltoall", [(8, 32), (32, 8), (8, 32), (32, 8)]),
        ("MPI_Allreduce", [(12, 12); 4]),
        ("MPI_Reduce_scatter_block", [(16, 8); 4]),
        ("MPI_Barrier", [(0, 0); 4]),
    ];
    for (rank, image) in section(mpi, "communicators")?.ranks {
        let mut told = BTreeMap::new();
        for (Key { function, scope, peer, .. }, amounts) in &image.traffic.entries {
            let Some(scope) = scope.as_ref().filter(|scope| !scope.remote_members.is_empty()) else { continue };
            let (own, other) = (rank % 2, 1 - rank % 2);
            assert_eq!((name(scope), scope.size()), ("bridge", 2));
            assert_eq!(scope.members, [Some(own), Some(own + 2)], "rank {rank}");
            assert_eq!(scope.remote_members, [Some(other), Some(other + 2)], "rank {rank}");
            let opposite = ["MPI_Send", "MPI_Irecv"].contains(&function.as_str());
            assert_eq!(*peer, if opposite { Peer::Rank(3 - rank) } else { Peer::None }, "rank {rank}, {function}");
            told.insert(function.as_str(), (amounts.sent, amounts.received.bytes));
        }
        let expected =
            expected.map(|(function, by_rank)| (function, by_rank.into_iter().nth(rank as usize).unwrap_or_default()));
        assert_eq!(told, BTreeMap::from(expected), "rank {rank}");
    }
    Ok(())
}

pub(super) fn neighbourhoods(mpi: Mpi) -> Result<(), Failed> {
    for (rank, image) in section(mpi, "neighbourhoods")?.ranks {
        let rank = u64::from(rank);
        let star = if rank == 0 { 3 } else { 1 };
        let end = if rank % 3 == 0 { 1 } else { 2 };
        // Sources and destinations. Beyond the ends of the line is nobody, as in two of the plane's three directions; in the other one everybody
        // has itself on both sides.
        let (line, graph, tree) = ((end, end), (star, star), (rank, 3 - rank));
        let (plane, row, alone) = ((4, 4), (3, 3), (2, 2));
        let mut variants = vec![
            ("MPI_Neighbor_", "", vec![line, line, plane, row, alone, graph, tree]),
            ("MPI_Ineighbor_", "", vec![line, plane, tree]),
        ];
        if mpi == Mpi::Mpich {
            variants.push(("MPI_Neighbor_", "_init", vec![line, plane]));
        }
        let to_any = |destinations: u64| if destinations == 0 { 0 } else { 8 };
        for (prefix, suffix, over) in variants {
            let sum = |of: &dyn Fn((u64, u64)) -> (u64, u64), over: &[(u64, u64)]| {
                over.iter().map(|degrees| of(*degrees)).fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
            };
            let told = |name| image.traffic.bytes(&format!("{prefix}{name}{suffix}"));
            assert_eq!(
                told("allgather"),
                sum(&|(from, to)| (to_any(to), 8 * from), &over),
                "rank {rank}, {prefix}{suffix}"
            );
            assert_eq!(
                told("allgatherv"),
                sum(&|(from, to)| (to_any(to), 8 * from), &over),
                "rank {rank}, {prefix}{suffix}"
            );
            assert_eq!(
                told("alltoall"),
                sum(&|(from, to)| (12 * to, 12 * from), &over),
                "rank {rank}, {prefix}{suffix}"
            );
            assert_eq!(
                told("alltoallv"),
                sum(&|(from, to)| (4 * to, 4 * from), &over),
                "rank {rank}, {prefix}{suffix}"
            );
            // Not over the tree.
            let over: Vec<_> = over.into_iter().filter(|degrees| *degrees != tree).collect();
            assert_eq!(
                told("alltoallw"),
                sum(&|(from, to)| (8 * to, 8 * from), &over),
                "rank {rank}, {prefix}{suffix}"
            );
        }
    }
    Ok(())
}

pub(super) fn nonblocking_collectives(mpi: Mpi) -> Result<(), Failed> {
    let snapshot = section(mpi, "nonblocking-collectives")?;
    expect(
        &snapshot,
        &[
            ("MPI_Ibarrier", 1, [(0, 0); 4]),
            ("MPI_Ibcast", 1, [(0, 20), (20, 0), (0, 20), (0, 20)]),
            // In place at the root the second time.
            ("MPI_Igather", 2, [(12, 48 + 32), (20, 0), (20, 0), (20, 0)]),
            ("MPI_Igatherv", 1, [(4, 0), (8, 0), (12, 0), (16, 40)]),
            ("MPI_Iscatter", 1, [(0, 8), (0, 8), (32, 8), (0, 8)]),
            ("MPI_Iscatterv", 1, [(40, 4), (0, 8), (0, 12), (0, 16)]),
            ("MPI_Iallgather", 2, [(8, 32 + 48); 4]),
            ("MPI_Iallgatherv", 1, [(4, 40), (8, 40), (12, 40), (16, 40)]),
            ("MPI_Ialltoall", 2, [(48 + 96, 48 + 96); 4]),
            ("MPI_Ialltoallv", 1, [(40, 16), (40, 32), (40, 48), (40, 64)]),
            ("MPI_Ialltoallw", 1, [(30, 30); 4]),
            ("MPI_Ireduce", 1, [(16, 0), (16, 0), (16, 0), (16, 16)]),
            ("MPI_Iallreduce", 2, [(36, 36); 4]),
            ("MPI_Iscan", 1, [(16, 16); 4]),
            ("MPI_Iexscan", 1, [(16, 0), (16, 16), (16, 16), (16, 16)]),
            ("MPI_Ireduce_scatter", 2, [(80, 8), (80, 16), (80, 24), (80, 32)]),
            ("MPI_Ireduce_scatter_block", 1, [(32, 8); 4]),
        ],
    )?;
    if mpi == Mpi::Mpich {
        // What was made moved nothing before it was started: once, and the allreduce twice.
        for (rank, image) in &snapshot.ranks {
            let by_start = image.traffic.by(|key| (key.function.clone(), key.started_by.clone()));
            let of = |function: &str, start: Option<&str>| {
                by_start.get(&(function.to_owned(), start.map(str::to_owned))).copied().unwrap_or_default()
            };
            let made = Amounts { calls: 1, ..Amounts::default() };
            assert_eq!(of("MPI_Allreduce_init", None), made, "rank {rank}");
            let mut started = Amounts { sent: 16, ..made };
            started.received.bytes = 16;
            assert_eq!(of("MPI_Allreduce_init", Some("MPI_Start")), started, "rank {rank}");
            assert_eq!(of("MPI_Allreduce_init", Some("MPI_Startall")), started, "rank {rank}");
            assert_eq!(of("MPI_Alltoallw_init", Some("MPI_Startall")).sent, 2 * (4 + 2 + 4 + 2), "rank {rank}");
            assert_eq!(of("MPI_Barrier_init", Some("MPI_Start")), made, "rank {rank}");
        }
    }
    Ok(())
}
