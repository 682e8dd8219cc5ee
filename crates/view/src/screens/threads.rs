//! The threads of one rank.

use mpiprobe_model::{OtherThreads, RankProfile, RankState, ThreadLife, ThreadProfile, analyse::RankId};
use mpiprobe_report::present::{share_of_life, units::count, what};

use super::{
    TableData,
    cells::{known_unless, number, share, time, who},
};
use crate::content::{Cell, Column, Grid, Row, RowId, SortKey, Tone};

const COLUMNS: &[Column] = &[
    Column::right("thread", 12, 0),
    Column::text("now", 20, 0),
    Column::left("MPI %", 14, 1),
    Column::right("time", 8, 0),
    Column::right("calls", 13, 0),
    Column::right("life", 8, 2),
];

pub(super) fn grid(data: &TableData<'_>, id: RankId) -> Grid {
    let Some(rank) = data.rank(id) else {
        return Grid { title: "This rank".into(), empty: "It is not there any more.", ..Grid::default() };
    };
    let threads = rank.threads.iter().map(|thread| row(rank, id, thread));
    Grid {
        title: format!("Rank {}: {} threads in MPI, since the beginning", who(rank), count(rank.threads_in_mpi)),
        columns: COLUMNS,
        rows: threads.chain(rank.other_threads.map(|others| others_of(rank, id, &others))).collect(),
        empty: "No thread has called MPI yet.",
        natural: (3, true),
    }
}

fn row(rank: &RankProfile, id: RankId, thread: &ThreadProfile) -> Row {
    let open = rank.open_calls.iter().find(|call| call.tid == thread.tid).map(what);
    let is_over = rank.state != RankState::Running || thread.state == ThreadLife::Ended;
    let now = match (open, is_over) {
        (Some(call), true) => Cell::text(call).toned(Tone::Dim),
        (Some(call), false) => Cell::text(call),
        (None, true) => Cell::text("ended").toned(Tone::Dim),
        (None, false) => Cell::text("outside MPI").toned(Tone::Good),
    };
    let tid = Cell::number(thread.tid.into(), thread.tid.to_string());
    let figures = figures(rank, thread.calls, thread.mpi_ns, thread.wall_ns);
    let cells = [tid, now].into_iter().chain(figures).collect();
    Row { id: RowId::Thread(id, Some(thread.tid)), cells, marked: false, opens: None }
}

/// Those that are not remembered one by one.
fn others_of(rank: &RankProfile, id: RankId, others: &OtherThreads) -> Row {
    let name = Cell { key: SortKey::Unknown, ..Cell::text(format!("{} others", count(others.threads))) };
    let figures = figures(rank, others.calls, others.mpi_ns, others.wall_ns);
    let cells = [name, Cell::text("ended").toned(Tone::Dim)].into_iter().chain(figures).collect();
    Row { id: RowId::Thread(id, None), cells, marked: false, opens: None }
}

fn figures(rank: &RankProfile, calls: u64, mpi_ns: u64, wall_ns: u64) -> [Cell; 4] {
    let part = share_of_life(mpi_ns, wall_ns).map_or_else(|| Cell::unknown("-"), share);
    let untimed = rank.untimed_calls;
    [known_unless(untimed, part), known_unless(untimed, time(mpi_ns)), number(calls), time(wall_ns)]
}
