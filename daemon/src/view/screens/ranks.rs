//! One row for each rank: what it does now, and how its time is spent.

use super::{
    Known,
    cells::{bandwidth, is_stuck, number, per_second, rank_number, share, since, state},
    sums::groups,
};
use crate::{
    analyse::{FunctionChange, RankChange, RankId},
    model::RankProfile,
    view::state::{Cell, Column, Content, Grid, Place, Row, RowId, SortKey, Tone},
};

const COLUMNS: &[Column] = &[
    Column::right("rank", 6, 0),
    Column::text("now", 28, 0),
    Column::right("for", 8, 0),
    Column::left("MPI %", 14, 1),
    Column::left("by group", 16, 4),
    Column::right("calls/s", 8, 2),
    Column::right("bytes/s", 8, 3),
    Column::right("calls", 14, 6),
    Column::right("pid", 8, 5),
    Column::left("host", 12, 7),
];

pub(super) fn grid(known: &Known<'_>) -> Grid {
    let rows = known.profile.ranks.iter().zip(known.ids).zip(&known.change.ranks);
    Grid {
        title: format!("{} ranks, {}", known.profile.ranks.len(), known.span()),
        columns: COLUMNS,
        rows: rows.map(|((rank, id), (change, functions))| row(known, rank, *id, *change, functions)).collect(),
        empty: "No MPI process is observed yet.",
        natural: (0, false),
    }
}

fn row(known: &Known<'_>, rank: &RankProfile, id: RankId, change: RankChange, functions: &[FunctionChange]) -> Row {
    let marked = is_stuck(known.all.profile, rank) || rank.stopped;
    let names = rank.functions.iter().map(|row| row.name);
    Row {
        id: RowId::Rank(id),
        cells: vec![
            rank_number(rank),
            state(rank, marked),
            since(rank, marked),
            share(change.mpi_percent()),
            split(change, names.zip(functions.iter().copied())),
            per_second(known.change, change.calls),
            bandwidth(known.change, change.bytes),
            number(rank.calls),
            Cell::number(rank.pid.into(), rank.pid.to_string()),
            Cell::text(known.profile.host.as_str()),
        ],
        marked,
        opens: Some(Place::Rank(id)),
    }
}

/// Shares of the groups of functions in the time of the rank's threads, as a bar.
fn split(change: RankChange, functions: impl Iterator<Item = (&'static str, FunctionChange)>) -> Cell {
    let whole = change.thread_wall_ns.max(1) as f64;
    let parts = groups(functions).into_iter().filter(|(_, ns)| *ns > 0);
    let parts = parts.map(|(group, ns)| (Tone::Group(group.index()), ns as f64 / whole)).collect();
    Cell { content: Content::Parts(parts), key: SortKey::Number(change.mpi_percent()), tone: Tone::Plain }
}
