//! One row for each request that is under way.

use super::{
    Known,
    cells::{amount, rank_number, time},
    sites::NO_TRAFFIC,
};
use crate::{
    analyse::RankId,
    model::{Partner, PendingRow, RankProfile, RankState},
    view::state::{Cell, Column, Grid, Place, Row, RowId, Tone},
};

/// A request that has been under way for longer than this stands out, ns.
const OLD_NS: u64 = 10_000_000_000;

const COLUMNS: &[Column] = &[
    Column::right("rank", 6, 0),
    Column::right("age", 8, 0),
    Column::left("made by", 18, 0),
    Column::right("partner", 8, 0),
    Column::right("tag", 8, 2),
    Column::right("sends", 8, 3),
    Column::right("receives", 9, 3),
    Column::text("communicator", 14, 4),
    Column::text("call site", 20, 1),
    Column::text("", 4, 5),
];

pub(super) fn grid(known: &Known<'_>) -> Grid {
    let rows: Vec<Row> =
        known.profile.ranks.iter().zip(known.ids).flat_map(|(rank, id)| rows(known, rank, *id)).collect();
    Grid {
        title: format!("{} requests that no call has said to be complete", rows.len()),
        columns: COLUMNS,
        rows,
        empty: if known.profile.traffic.is_some() { "No request is under way." } else { NO_TRAFFIC },
        natural: (1, true),
    }
}

fn rows<'a>(known: &'a Known<'_>, rank: &'a RankProfile, id: RankId) -> impl Iterator<Item = Row> + 'a {
    let pending = rank.traffic.iter().flat_map(|traffic| &traffic.pending);
    (0..).zip(pending).map(move |(number, pending)| row(known, rank, id, number, pending))
}

fn row(known: &Known<'_>, rank: &RankProfile, id: RankId, number: u32, pending: &PendingRow) -> Row {
    let has_ended = rank.state != RankState::Running;
    let marked = has_ended || pending.age_ns >= OLD_NS;
    let tone = if marked { Tone::Alarm } else { Tone::Plain };
    let bytes = |bytes: Option<u64>| bytes.map_or_else(|| Cell::unknown(""), |bytes| amount(bytes, false, false));
    let remark = match (has_ended, pending.started_by) {
        (true, _) => "never completed".into(),
        (false, Some(by)) => format!("started by {by}"),
        (false, None) => String::new(),
    };
    let site = pending.site.as_deref().map_or_else(|| Cell::unknown("?"), Cell::text);
    Row {
        id: RowId::Request(id, number),
        cells: vec![
            rank_number(rank),
            time(pending.age_ns).toned(tone),
            Cell::text(pending.function),
            partner(pending),
            pending.tag.map_or_else(|| Cell::unknown(""), |tag| Cell::number(tag.into(), tag.to_string())),
            bytes(pending.sent_bytes),
            bytes(pending.received_bytes),
            known
                .communicator(rank, pending.communicator)
                .map_or_else(|| Cell::unknown("?"), |of| Cell::text(of.name.as_str())),
            site,
            Cell::text(remark).toned(tone),
        ],
        marked,
        opens: Some(Place::Rank(id)),
    }
}

fn partner(pending: &PendingRow) -> Cell {
    match (pending.partner, pending.peer) {
        (Partner::Rank, Some(peer)) => Cell::number(peer.into(), peer.to_string()),
        (Partner::AnySource, _) => Cell::text("any"),
        (Partner::ProcNull, _) => Cell::text("nobody"),
        (Partner::Nobody, _) => Cell::unknown(""),
        (Partner::Rank | Partner::Unknown, _) => Cell::unknown("?"),
    }
}
