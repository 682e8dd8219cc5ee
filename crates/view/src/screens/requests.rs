//! One row for each request that is under way, and for calls that have waited for a while to send or receive.

use std::collections::HashMap;

use mpiprobe_model::{
    Partner, PendingRow, RankProfile, RankState,
    analyse::{Operation, OtherEnd, Posted, RankId, operations},
};
use mpiprobe_report::present::other_end;

use super::{
    TableData,
    cells::{amount, rank_number, time},
    sites::NO_TRAFFIC,
};
use crate::content::{Cell, Column, Grid, Location, Row, RowId, Tone};

/// A request that has been under way for longer than this stands out, ns.
const OLD_NS: u64 = 10_000_000_000;

const COLUMNS: &[Column] = &[
    Column::right("rank", 6, 0),
    Column::right("age", 8, 0),
    Column::left("made by", 14, 0),
    Column::right("partner", 8, 0),
    Column::text("other end", 16, 1),
    Column::right("tag", 8, 3),
    Column::right("sends", 8, 4),
    Column::right("receives", 9, 4),
    Column::text("communicator", 14, 5),
    Column::text("call site", 20, 2),
    Column::text("", 4, 6),
];

/// Blocking calls shorter than this are not shown, ns: they come and go.
const SHORTEST_NS: u64 = 100_000_000;

pub(super) fn grid(data: &TableData<'_>) -> Grid {
    // Ends meet whatever the filter: it chooses whose rows are shown.
    let operations = operations(data.all.profile);
    let kept: HashMap<&RankId, &RankProfile> = data.ids.iter().zip(&data.profile.ranks).collect();
    let ends: HashMap<(usize, u32), &Operation> =
        operations.iter().filter_map(|end| Some((request(end)?, end))).collect();
    let all = data.all.profile.ranks.iter().zip(data.all.ids).enumerate();
    let mut rows: Vec<Row> = all
        .filter_map(|(index, (rank, id))| Some((index, rank, id, *kept.get(id)?)))
        .flat_map(|(index, rank, id, kept)| rows(data, (rank, kept), *id, index, &ends))
        .collect();
    let requests = rows.len();
    let blocking = operations.iter().filter(|operation| operation.age_ns >= SHORTEST_NS);
    rows.extend((0..).zip(blocking).filter_map(|(number, operation)| {
        let id = *data.all.ids.get(operation.rank)?;
        kept.contains_key(&id).then(|| call(data, id, number, operation)).flatten()
    }));
    let calls = rows.len() - requests;
    let calls = if calls > 0 { format!(", and {calls} sends and receives that wait") } else { String::new() };
    Grid {
        title: format!("{requests} requests that no call has said to be complete{calls}"),
        columns: COLUMNS,
        rows,
        empty: if data.profile.traffic.is_some() { "No request is under way." } else { NO_TRAFFIC },
        natural: (1, true),
    }
}

/// By rank and place, of an operation that is a request.
fn request(operation: &Operation) -> Option<(usize, u32)> {
    match operation.posted {
        Posted::Request(place) => Some((operation.rank, u32::try_from(place).ok()?)),
        Posted::Call(_) => None,
    }
}

/// Those requests of a rank that the filter has kept. `rank`: with all of them, and with those.
fn rows<'a>(
    data: &'a TableData<'_>,
    (rank, kept): (&'a RankProfile, &'a RankProfile),
    id: RankId,
    index: usize,
    ends: &'a HashMap<(usize, u32), &Operation>,
) -> impl Iterator<Item = Row> + 'a {
    let pending = |rank: &'a RankProfile| rank.traffic.iter().flat_map(|traffic| &traffic.pending);
    // In the same order: what is like one that was kept was kept, too.
    let mut kept = pending(kept).peekable();
    (0..)
        .zip(pending(rank))
        .filter(move |(_, pending)| kept.next_if_eq(pending).is_some())
        .map(move |(number, pending)| row(data, rank, id, number, pending, ends.get(&(index, number)).copied()))
}

/// Nothing of what is no message.
fn other_end_cell(data: &TableData<'_>, operation: Option<&Operation>) -> Cell {
    let Some(operation) = operation else { return Cell::unknown("") };
    let tone = match operation.other_end {
        OtherEnd::Posted(_) | OtherEnd::NotObserved => Tone::Dim,
        OtherEnd::Missing => Tone::Plain,
        OtherEnd::OtherTag(_) | OtherEnd::OtherCommunicator(_) => Tone::Warning,
    };
    Cell::text(other_end(data.all.profile, operation)).toned(tone)
}

/// A call that itself sends or receives.
fn call(data: &TableData<'_>, id: RankId, number: u32, operation: &Operation) -> Option<Row> {
    let Posted::Call(place) = operation.posted else { return None };
    let rank = data.all.profile.ranks.get(operation.rank)?;
    let call = rank.open_calls.get(place)?;
    let arguments = call.arguments.as_ref()?;
    let bytes = arguments.bytes.map_or_else(|| Cell::unknown(""), |bytes| amount(bytes, false, false));
    let (sends, receives) = if operation.is_send { (bytes, Cell::unknown("")) } else { (Cell::unknown(""), bytes) };
    let of = data.communicator(rank, arguments.communicator.as_ref().and_then(|communicator| communicator.number));
    let integer =
        |number: Option<f64>, none| number.map_or_else(|| Cell::text(none), |n| Cell::number(n, n.to_string()));
    Some(Row {
        id: RowId::OpenCall(id, number),
        cells: vec![
            rank_number(rank),
            time(operation.age_ns),
            Cell::text(call.function),
            integer(operation.peer.map(f64::from), "any"),
            other_end_cell(data, Some(operation)),
            integer(operation.tag.map(f64::from), "any"),
            sends,
            receives,
            of.map_or_else(|| Cell::unknown("?"), |of| Cell::text(of.name.as_str())),
            call.site.as_deref().map_or_else(|| Cell::unknown("?"), Cell::text),
            Cell::text("waits in it"),
        ],
        marked: false,
        opens: Some(Location::Rank(id)),
    })
}

fn row(
    data: &TableData<'_>,
    rank: &RankProfile,
    id: RankId,
    number: u32,
    pending: &PendingRow,
    end: Option<&Operation>,
) -> Row {
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
            other_end_cell(data, end),
            pending.tag.map_or_else(|| Cell::unknown(""), |tag| Cell::number(tag.into(), tag.to_string())),
            bytes(pending.sent_bytes),
            bytes(pending.received_bytes),
            data.communicator(rank, pending.communicator)
                .map_or_else(|| Cell::unknown("?"), |of| Cell::text(of.name.as_str())),
            site,
            Cell::text(remark).toned(tone),
        ],
        marked,
        opens: Some(Location::Rank(id)),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        content::{Content, Span},
        screens::Rows,
    };
    use mpiprobe_model::analyse::{Change, identify};
    use mpiprobe_model::filter::apply;
    use mpiprobe_model::{
        Profile,
        sample::{pending, profile, ranks, send},
    };

    /// Rank, function and other end of the rows that are shown.
    fn shown(all: &Profile, filter: &str) -> Vec<[String; 3]> {
        let filter = filter.parse().unwrap();
        let kept = apply(&filter, all);
        let ids = |profile: &Profile| identify(&profile.ranks).collect::<Vec<_>>();
        let changes = [all, &kept.profile].map(|profile| Change::since(None, profile));
        let (all_ids, kept_ids) = (ids(all), ids(&kept.profile));
        let rows = Rows { profile: &kept.profile, change: &changes[1], ids: &kept_ids };
        let everything = Rows { profile: all, change: &changes[0], ids: &all_ids };
        let grid = grid(&TableData::new(rows, everything, Span::Start, Some(&filter)));
        let text = |cell: &Cell| if let Content::Text(text) = &cell.content { text.clone() } else { String::new() };
        grid.rows.iter().map(|row| [0, 2, 4].map(|column| text(&row.cells[column]))).collect()
    }

    fn row(rank: &str, function: &str, other_end: &str) -> [String; 3] {
        [rank, function, other_end].map(ToOwned::to_owned)
    }

    #[test]
    fn who_is_not_known_is_shown_as_unknown() {
        let of = |partner, peer| partner_text(&PendingRow { partner, peer, ..pending("MPI_Irecv", Some(1), 9) });
        let shown =
            [(Partner::Unknown, None), (Partner::Rank, None), (Partner::AnySource, None), (Partner::Rank, Some(3))];
        assert_eq!(shown.map(|(partner, peer)| of(partner, peer)), ["?", "?", "any", "3"]);
    }

    fn partner_text(row: &PendingRow) -> String {
        partner(row).plain()
    }

    #[test]
    fn a_filter_takes_no_other_end_away() {
        let mut ranks = ranks(2);
        ranks[1].open_calls.push(send(0, 7));
        let requests = [pending("MPI_Irecv", Some(1), 9), pending("MPI_Irecv", Some(1), 7)];
        ranks[0].traffic.as_mut().unwrap().pending.extend(requests);
        let all = profile(ranks);
        let of_rank_0 = [row("0", "MPI_Irecv", "no send seen"), row("0", "MPI_Irecv", "posted")];
        assert_eq!(shown(&all, "rank == 0"), of_rank_0);
        assert_eq!(shown(&all, "rank == 0 and tag == 7"), of_rank_0[1..]);
        assert_eq!(shown(&all, "rank == 1"), [row("1", "MPI_Ssend", "posted")]);
    }
}
