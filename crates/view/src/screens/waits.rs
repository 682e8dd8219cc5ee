//! One row for each rank that waits, and for whom.

use std::collections::HashSet;

use mpiprobe_model::analyse::{RankId, Wait, waiting};
use mpiprobe_report::present::{chain, circle, waiting_in, waits_for, what};

use super::{
    TableData,
    cells::{rank_number, time},
};
use crate::content::{Cell, Column, Grid, Location, Row, RowId, Tone};

const COLUMNS: &[Column] = &[
    Column::right("rank", 6, 0),
    Column::left("", 8, 1),
    Column::right("for", 8, 0),
    Column::text("in", 20, 2),
    Column::text("waits for", 16, 0),
    Column::text("who wait for", 14, 3),
];

pub(super) fn grid(data: &TableData<'_>) -> Grid {
    // Who waits for whom is of everything; a filter chooses whose rows are shown.
    let all = &data.unfiltered();
    let kept: HashSet<&RankId> = data.ids.iter().collect();
    let is_kept = |row: &Row| matches!(&row.id, RowId::Rank(id) if kept.contains(id));
    let waiting = waiting(all.profile);
    // Of several threads of a rank the one that has waited longest comes first, and stands for them.
    let mut seen = HashSet::new();
    let of_ranks: Vec<&Wait> = waiting.waits.iter().filter(|wait| seen.insert(wait.rank)).collect();
    let mut title = format!("{} ranks have waited for longer than 100 ms", of_ranks.len());
    if let Some(first) = waiting.circles.first() {
        let round = circle(all.profile, first);
        let more = waiting.circles.len() - 1;
        let more = if more > 0 { format!(", and {more} more such circles") } else { String::new() };
        title = format!("DEADLOCK: {round}{more}; {title}");
    }
    Grid {
        title,
        columns: COLUMNS,
        rows: of_ranks.into_iter().filter_map(|wait| row(all, wait)).filter(is_kept).collect(),
        empty: "Nobody waits for long.",
        // Those in circles are together at the top.
        natural: (1, true),
    }
}

fn row(data: &TableData<'_>, wait: &Wait) -> Option<Row> {
    let profile = data.profile;
    let (rank, id) = (profile.ranks.get(wait.rank)?, *data.ids.get(wait.rank)?);
    let call = waiting_in(profile, wait)?;
    let tone = if wait.circle.is_some() { Tone::Alarm } else { Tone::Plain };
    // The largest first: circles in their order, before everybody else.
    let in_circle = wait
        .circle
        .map_or_else(|| Cell::unknown(""), |number| Cell::number(-(number as f64), format!("circle {}", number + 1)));
    Some(Row {
        id: RowId::Rank(id),
        cells: vec![
            rank_number(rank),
            in_circle.toned(tone),
            time(wait.open_ns),
            Cell::text(what(call)),
            Cell::text(waits_for(profile, wait)).toned(tone),
            Cell::text(chain(profile, wait)),
        ],
        marked: wait.circle.is_some(),
        opens: Some(Location::Rank(id)),
    })
}
