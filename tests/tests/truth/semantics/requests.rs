//! Operations that complete later (`tests/programs/semantics/requests.c`), types (`datatypes.c`), large amounts (`large.c`).

use std::collections::BTreeMap;

use libtest_mimic::Failed;
use mpiprobe_tests::Mpi;
use mpiprobe_tests::truth::{Peer, Snapshot, Traffic};

use super::section;

/// Function, what started it, peer; calls, sends, bytes sent, receives, bytes received, capacity.
type Row = (&'static str, Option<&'static str>, Peer, [u64; 6]);

/// Compares all entries of the functions that the rows are about. Which of several receives had its status ignored depends on
/// the order in which they were complete.
fn expect(traffic: &Traffic, rank: u32, rows: &[Row]) {
    let sums = traffic.by(|key| (key.function.clone(), key.started_by.clone(), key.peer));
    let of_these = sums.into_iter().filter(|((function, ..), _)| rows.iter().any(|(wanted, ..)| wanted == function));
    let told: BTreeMap<_, _> = of_these
        .map(|(key, amounts)| {
            let received = amounts.received;
            assert_eq!(amounts.open, 0, "rank {rank}, {key:?}");
            let row =
                [amounts.calls, amounts.sends, amounts.sent, received.messages, received.bytes, received.capacity];
            (key, row)
        })
        .collect();
    let key = |row: &Row| (row.0.to_owned(), row.1.map(str::to_owned), row.2);
    assert_eq!(told, rows.iter().map(|row| (key(row), row.3)).collect(), "rank {rank}");
}

fn for_each_rank(snapshot: &Snapshot, rows: impl Fn(Peer, Peer, Peer) -> Vec<Row>) {
    for (rank, image) in &snapshot.ranks {
        let [right, left, partner] = [(rank + 1) % 4, (rank + 3) % 4, rank ^ 1].map(Peer::Rank);
        expect(&image.traffic, *rank, &rows(right, left, partner));
    }
}

pub(super) fn requests(mpi: Mpi) -> Result<(), Failed> {
    const START: Option<&str> = Some("MPI_Start");
    const STARTALL: Option<&str> = Some("MPI_Startall");
    for_each_rank(&section(mpi, "requests")?, |right, left, _| {
        vec![
            // One by one, seven times four at once, a hundred, and over the communicator that is freed; two are given up.
            ("MPI_Irecv", None, left, [135, 0, 0, 133, 72 + 7 * 40 + 400 + 8, 4 * 64 + 7 * 256 + 400 + 64]),
            ("MPI_Irecv", None, Peer::Null, [2, 0, 0, 0, 0, 0]),
            ("MPI_Issend", None, right, [1, 1, 32, 0, 0, 0]),
            ("MPI_Isend", None, right, [132, 132, 12 + 7 * 40 + 400 + 24 + 8 + 12, 0, 0, 0]),
            ("MPI_Isend", None, Peer::Null, [1, 0, 0, 0, 0, 0]),
            ("MPI_Ibsend", None, right, [1, 1, 8, 0, 0, 0]),
            ("MPI_Irsend", None, right, [1, 1, 20, 0, 0, 0]),
            ("MPI_Imrecv", None, left, [1, 0, 0, 1, 24, 64]),
            ("MPI_Recv_init", None, Peer::Any, [2, 0, 0, 0, 0, 0]),
            ("MPI_Recv_init", None, Peer::Null, [1, 0, 0, 0, 0, 0]),
            ("MPI_Recv_init", None, left, [3, 0, 0, 0, 0, 0]),
            ("MPI_Recv_init", START, Peer::Null, [1, 0, 0, 0, 0, 0]),
            ("MPI_Recv_init", START, left, [10, 0, 0, 10, 4 * (32 + 24) + 24 + 28, 8 * 40 + 2 * 64]),
            ("MPI_Recv_init", STARTALL, left, [4, 0, 0, 4, 2 * (32 + 24), 4 * 40]),
            ("MPI_Send_init", None, right, [2, 0, 0, 0, 0, 0]),
            ("MPI_Send_init", START, right, [2, 2, 2 * 32, 0, 0, 0]),
            ("MPI_Send_init", STARTALL, right, [4, 4, 4 * 32, 0, 0, 0]),
            ("MPI_Ssend_init", None, right, [2, 0, 0, 0, 0, 0]),
            ("MPI_Ssend_init", START, right, [2, 2, 2 * 24, 0, 0, 0]),
            ("MPI_Ssend_init", STARTALL, right, [4, 4, 4 * 24, 0, 0, 0]),
            ("MPI_Bsend_init", None, right, [1, 0, 0, 0, 0, 0]),
            ("MPI_Bsend_init", START, right, [1, 1, 24, 0, 0, 0]),
            ("MPI_Rsend_init", None, right, [1, 0, 0, 0, 0, 0]),
            ("MPI_Rsend_init", START, right, [1, 1, 28, 0, 0, 0]),
        ]
    });
    Ok(())
}

pub(super) fn datatypes(mpi: Mpi) -> Result<(), Failed> {
    // Two of each derived type, twice; three of each predefined one; a type per message; packed, partial.
    let sent = 2 * 2 * 298 + 3 * 258 + (630 + 2 * 590 + 4 * 610) + 12 + 12;
    let capacity = 2 * 3 * 298 + 3 * 258 + (630 + 2 * 590 + 4 * 610) + 4096 + 4 * 8;
    for_each_rank(&section(mpi, "datatypes")?, |right, left, _| {
        vec![
            ("MPI_Send", None, right, [127, 127, sent, 0, 0, 0]),
            ("MPI_Recv", None, left, [127, 0, 0, 127, sent, capacity]),
            ("MPI_Isend", None, right, [1, 1, 80, 0, 0, 0]),
            ("MPI_Irecv", None, left, [1, 0, 0, 1, 80, 80]),
            ("MPI_Allreduce", None, Peer::None, [1, 0, 12, 0, 12, 0]),
        ]
    });
    Ok(())
}

pub(super) fn large(mpi: Mpi) -> Result<(), Failed> {
    const GIGA: u64 = 1 << 30;
    const STARTALL: Option<&str> = Some("MPI_Startall");
    let snapshot = section(mpi, "large")?;
    for_each_rank(&snapshot, |_, _, _| {
        vec![
            ("MPI_Bcast", None, Peer::None, [1, 0, 5 * GIGA, 0, 0, 0]),
            ("MPI_Allreduce", None, Peer::None, [1, 0, 4 * GIGA, 0, 4 * GIGA, 0]),
        ]
    });
    if mpi == Mpi::OpenMpi {
        return Ok(());
    }
    for_each_rank(&snapshot, |right, left, partner| {
        vec![
            ("MPI_Send_c", None, right, [1, 1, 40, 0, 0, 0]),
            ("MPI_Ssend_c", None, right, [1, 1, 12, 0, 0, 0]),
            ("MPI_Recv_c", None, left, [2, 0, 0, 2, 52, 80]),
            ("MPI_Sendrecv_c", None, right, [1, 1, 20, 0, 0, 0]),
            ("MPI_Sendrecv_c", None, left, [1, 0, 0, 1, 20, 24]),
            ("MPI_Sendrecv_replace_c", None, partner, [1, 1, 20, 1, 20, 20]),
            ("MPI_Irecv_c", None, left, [1, 0, 0, 1, 28, 64]),
            ("MPI_Isend_c", None, right, [2, 2, 28 + 24, 0, 0, 0]),
            ("MPI_Recv_init_c", None, left, [1, 0, 0, 0, 0, 0]),
            ("MPI_Recv_init_c", STARTALL, left, [2, 0, 0, 2, 64, 128]),
            ("MPI_Send_init_c", None, right, [1, 0, 0, 0, 0, 0]),
            ("MPI_Send_init_c", STARTALL, right, [2, 2, 64, 0, 0, 0]),
            ("MPI_Mrecv_c", None, left, [1, 0, 0, 1, 24, 24]),
            ("MPI_Sendrecv", None, right, [1, 1, 24, 0, 0, 0]),
            ("MPI_Sendrecv", None, left, [1, 0, 0, 1, 24, 30]),
            ("MPI_Put_c", None, right, [1, 1, 16, 0, 0, 0]),
            ("MPI_Get_c", None, left, [1, 0, 0, 1, 12, 0]),
            ("MPI_Psend_init", None, right, [1, 0, 0, 0, 0, 0]),
            ("MPI_Psend_init", STARTALL, right, [2, 2, 2 * 48, 0, 0, 0]),
            ("MPI_Precv_init", None, left, [1, 0, 0, 0, 0, 0]),
            ("MPI_Precv_init", STARTALL, left, [2, 0, 0, 2, 2 * 48, 2 * 48]),
        ]
    });
    let by_rank: [(&str, u64, super::blocking::ByRank); 8] = [
        ("MPI_Reduce_c", 1, [(12, 0), (12, 12), (12, 0), (12, 0)]),
        ("MPI_Gatherv_c", 1, [(4, 0), (8, 0), (12, 0), (16, 40)]),
        ("MPI_Scatterv_c", 1, [(40, 4), (0, 8), (0, 12), (0, 16)]),
        ("MPI_Allgather_c", 1, [(8, 32); 4]),
        ("MPI_Allgatherv_c", 1, [(4, 40), (8, 40), (12, 40), (16, 40)]),
        ("MPI_Alltoallw_c", 1, [(32, 32); 4]),
        ("MPI_Reduce_scatter_c", 1, [(40, 4), (40, 8), (40, 12), (40, 16)]),
        ("MPI_Ialltoallv_c", 1, [(32, 32); 4]),
    ];
    super::blocking::expect(&snapshot, &by_rank)
}

pub(super) fn one_sided(mpi: Mpi) -> Result<(), Failed> {
    let snapshot = section(mpi, "one-sided")?;
    for_each_rank(&snapshot, |right, left, partner| {
        vec![
            ("MPI_Put", None, right, [3, 3, 32 + 16 + 4, 0, 0, 0]),
            ("MPI_Put", None, Peer::Null, [1, 0, 0, 0, 0, 0]),
            ("MPI_Get", None, right, [1, 0, 0, 1, 12, 0]),
            ("MPI_Get", None, Peer::Null, [1, 0, 0, 0, 0, 0]),
            ("MPI_Accumulate", None, left, [1, 1, 20, 0, 0, 0]),
            ("MPI_Get_accumulate", None, partner, [2, 1, 8, 2, 8 + 16, 0]),
            ("MPI_Fetch_and_op", None, Peer::Rank(0), [2, 1, 8, 2, 16, 0]),
            ("MPI_Compare_and_swap", None, right, [1, 1, 4, 1, 4, 0]),
            ("MPI_Rput", None, right, [1, 1, 8, 0, 0, 0]),
            ("MPI_Raccumulate", None, right, [1, 1, 12, 0, 0, 0]),
            ("MPI_Rget", None, left, [1, 0, 0, 1, 16, 0]),
            ("MPI_Rget_accumulate", None, right, [1, 1, 4, 1, 4, 0]),
        ]
    });
    for (rank, image) in &snapshot.ranks {
        let over = image.traffic.by(|key| key.scope.as_ref().map(|scope| scope.communicator().name.clone()));
        let told = over.get(&Some("reversed".to_owned())).map(|amounts| (amounts.calls, amounts.sent));
        assert_eq!(told, Some((1, 4)), "rank {rank}: {over:?}");
    }
    Ok(())
}

pub(super) fn input_output(mpi: Mpi) -> Result<(), Failed> {
    let reads = [
        ("MPI_File_read_at", [3, 0, 0, 3, 64 + 12, 3 * 64]),
        ("MPI_File_read_at_all", [1, 0, 0, 1, 40, 40]),
        ("MPI_File_read_at_all_begin", [1, 0, 0, 1, 36, 36]),
        ("MPI_File_iread_at", [1, 0, 0, 1, 32, 32]),
        ("MPI_File_iread_at_all", [1, 0, 0, 1, 28, 28]),
        ("MPI_File_read", [1, 0, 0, 1, 24, 24]),
        ("MPI_File_read_all", [1, 0, 0, 1, 20, 20]),
        ("MPI_File_read_all_begin", [1, 0, 0, 1, 16, 16]),
        ("MPI_File_iread", [1, 0, 0, 1, 12, 12]),
        ("MPI_File_iread_all", [1, 0, 0, 1, 8, 8]),
        ("MPI_File_read_ordered", [1, 0, 0, 1, 16, 16]),
        ("MPI_File_read_ordered_begin", [1, 0, 0, 1, 12, 12]),
        ("MPI_File_read_shared", [1, 0, 0, 1, 8, 8]),
        ("MPI_File_iread_shared", [1, 0, 0, 1, 4, 4]),
    ];
    let writes = [
        ("MPI_File_write_at", 2, 64),
        ("MPI_File_write_at_all", 1, 40),
        ("MPI_File_write_at_all_begin", 1, 36),
        ("MPI_File_iwrite_at", 1, 32),
        ("MPI_File_iwrite_at_all", 1, 28),
        ("MPI_File_write_all", 1, 32),
        ("MPI_File_write_all_begin", 1, 16),
        ("MPI_File_iwrite", 1, 12),
        ("MPI_File_iwrite_all", 1, 8),
        ("MPI_File_write_ordered", 1, 16),
        ("MPI_File_write_ordered_begin", 1, 12),
        ("MPI_File_write_shared", 1, 8),
        ("MPI_File_iwrite_shared", 1, 4),
    ];
    for (rank, image) in section(mpi, "input-output")?.ranks {
        let writes = writes.map(|(name, calls, sent)| (name, None, Peer::None, [calls, calls, sent, 0, 0, 0]));
        let alone = ("MPI_File_write", None, Peer::None, [2, 2, 24 + 4 * (u64::from(rank) + 1), 0, 0, 0]);
        let reads = reads.map(|(name, row)| (name, None, Peer::None, row));
        expect(&image.traffic, rank, &[&writes[..], &reads[..], &[alone]].concat());
    }
    Ok(())
}
