//! The same traffic in every language, and of threads at once (`tests/programs/meaning_*`).

use std::collections::BTreeMap;

use libtest_mimic::Failed;
use mpiprobe_tests::truth::{Peer, Traffic};
use mpiprobe_tests::{Mpi, Program, program};

use super::run;

pub(super) fn use_mpi_f08(mpi: Mpi) -> Result<(), Failed> {
    expect(mpi, program::SEMANTICS_F08)
}

pub(super) fn cxx(mpi: Mpi) -> Result<(), Failed> {
    expect(mpi, program::SEMANTICS_CXX)
}

pub(super) fn mpi4py(mpi: Mpi) -> Result<(), Failed> {
    expect(mpi, program::SEMANTICS_MPI4PY)
}

/// By function, name of its communicator and peer: operations, bytes sent, bytes received, capacity. Large-count functions go
/// under the ordinary name; what persistent requests move is left when the calls that made them are taken out.
type Table = BTreeMap<(String, String, Peer), [u64; 4]>;

fn table(traffic: &Traffic) -> Table {
    let mut table = Table::new();
    for (key, amounts) in &traffic.entries {
        let function = key.function.trim_end_matches("_c").to_owned();
        if function.ends_with("_init") && key.started_by.is_none() {
            continue;
        }
        let communicator = key.scope.as_ref().map(|scope| scope.communicator().name.clone()).unwrap_or_default();
        let row = table.entry((function, communicator, key.peer)).or_default();
        let more = [amounts.calls, amounts.sent, amounts.received.bytes, amounts.received.capacity];
        *row = [row[0] + more[0], row[1] + more[1], row[2] + more[2], row[3] + more[3]];
    }
    table
}

fn expect(mpi: Mpi, program: Program) -> Result<(), Failed> {
    for (rank, image) in run(mpi, program, &[])?.ranks {
        let [right, left, opposite] = [(rank + 1) % 4, (rank + 3) % 4, (rank + 2) % 4].map(Peer::Rank);
        let own = 4 * (u64::from(rank) + 1);
        // What the roots have instead of the others.
        let at = |root: u32, there: u64, elsewhere: u64| if rank == root { there } else { elsewhere };
        let world = "MPI_COMM_WORLD";
        let rows = [
            ("MPI_Send", world, right, [4, 40 + 8 + 24 + 24, 0, 0]),
            ("MPI_Send", world, Peer::Null, [1, 0, 0, 0]),
            ("MPI_Recv", world, left, [4, 0, 40 + 8 + 24 + 24, 64 + 24 + 24 + 24]),
            ("MPI_Isend", world, right, [1, 20, 0, 0]),
            ("MPI_Irecv", world, left, [1, 0, 20, 32]),
            ("MPI_Sendrecv", "half", opposite, [1, 16, 16, 16]),
            ("MPI_Send_init", world, right, [2, 24, 0, 0]),
            ("MPI_Recv_init", world, left, [2, 0, 24, 24]),
            ("MPI_Bcast", world, Peer::None, [1, at(2, 20, 0), at(2, 0, 20), 0]),
            ("MPI_Allreduce", world, Peer::None, [1, 24, 24, 0]),
            ("MPI_Gatherv", world, Peer::None, [1, own, at(1, 40, 0), 0]),
            ("MPI_Scatter", world, Peer::None, [1, at(0, 32, 0), at(0, 0, 8), 0]),
            ("MPI_Alltoall", world, Peer::None, [1, 32, 32, 0]),
            ("MPI_Reduce_scatter", world, Peer::None, [1, 40, own, 0]),
            ("MPI_Put", world, right, [1, 12, 0, 0]),
            ("MPI_File_write_at", world, Peer::None, [1, 64, 0, 0]),
        ];
        let key = |(function, name, peer, row): (&str, &str, Peer, [u64; 4])| {
            ((function.to_owned(), name.to_owned(), peer), row)
        };
        assert_eq!(table(&image.traffic), rows.into_iter().map(key).collect::<Table>(), "rank {rank}");
    }
    Ok(())
}

pub(super) fn session(mpi: Mpi) -> Result<(), Failed> {
    for (rank, image) in run(mpi, program::SEMANTICS_SESSION, &[])?.ranks {
        // Its ranks run the other way round.
        let [next, previous] = [(rank + 3) % 4, (rank + 1) % 4].map(Peer::Rank);
        let rows = [
            ("MPI_Sendrecv", next, [1, 28, 0, 0]),
            ("MPI_Sendrecv", previous, [1, 0, 28, 28]),
            ("MPI_Allreduce", Peer::None, [1, 24, 24, 0]),
        ];
        let expected: Table = rows
            .into_iter()
            .map(|(name, peer, row)| ((name.to_owned(), "of a session".to_owned(), peer), row))
            .collect();
        assert_eq!(table(&image.traffic), expected, "rank {rank}");
    }
    Ok(())
}

pub(super) fn threads(mpi: Mpi) -> Result<(), Failed> {
    const ROUNDS: u64 = 50;
    const THREADS: u64 = 4;
    for (rank, image) in run(mpi, program::SEMANTICS_THREADS, &["4", "50"])?.ranks {
        let [right, left] = [(rank + 1) % 4, (rank + 3) % 4].map(Peer::Rank);
        let mut expected = Table::new();
        for thread in 0..THREADS {
            let name = format!("thread {thread}");
            let bytes = ROUNDS * 4 * (thread + 1);
            let mut add = |function: &str, peer, row| expected.insert((function.to_owned(), name.clone(), peer), row);
            add("MPI_Sendrecv", right, [ROUNDS, bytes, 0, 0]);
            add("MPI_Sendrecv", left, [ROUNDS, 0, bytes, ROUNDS * 128]);
            add("MPI_Allreduce", Peer::None, [ROUNDS, ROUNDS * 8, ROUNDS * 8, 0]);
            // Started in every other round.
            let (started, bytes) = (ROUNDS / 2, ROUNDS / 2 * 4 * (thread + 3));
            add("MPI_Send_init", right, [started, bytes, 0, 0]);
            add("MPI_Recv_init", left, [started, 0, bytes, started * 128]);
        }
        // Of two to five ints, by thread; of one to five ints, by round.
        let (by_thread, by_round) = (ROUNDS * 4 * (2 + 3 + 4 + 5), THREADS * ROUNDS / 5 * 4 * (1 + 2 + 3 + 4 + 5));
        let all = THREADS * ROUNDS;
        let mut add =
            |function: &str, peer, row| expected.insert((function.to_owned(), "MPI_COMM_WORLD".to_owned(), peer), row);
        add("MPI_Isend", right, [2 * all, by_thread + by_round, 0, 0]);
        add("MPI_Irecv", left, [all, 0, by_thread, all * 128]);
        add("MPI_Irecv", Peer::Any, [0; 4]);
        add("MPI_Recv", left, [all, 0, by_round, all * 32]);
        let mut told = table(&image.traffic);
        // Nothing is left of what was received from anybody.
        told.entry(("MPI_Irecv".to_owned(), "MPI_COMM_WORLD".to_owned(), Peer::Any)).or_default();
        assert_eq!(told, expected, "rank {rank}");
        assert_eq!(image.traffic.entries.values().map(|amounts| amounts.open).sum::<u64>(), 0, "rank {rank}");
    }
    Ok(())
}
