//! One row for each rank that waits, and for whom; where that is found out, of all waits in the span too, and why.

use std::collections::{BTreeMap, HashSet};

use mpiprobe_model::{
    WaitRow, WaitStates,
    analyse::{ByProcess, RankId, Wait, WaitChange, Waited, wait_id, waiting},
};
use mpiprobe_report::present::{
    chain, circle, knot,
    units::{count, ns},
    wait_causes, wait_place, waiting_in, waiting_thread, waits_for, what,
};

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

/// With those that are over.
const COLUMNS_OF_ALL: &[Column] = &[
    Column::right("rank", 6, 0),
    Column::left("waits by", 22, 1),
    Column::right("for", 8, 0),
    Column::right("times", 9, 3),
    Column::text("in", 20, 0),
    Column::text("because", 24, 0),
    Column::text("who wait for", 14, 4),
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
    let circles = waiting.circles.iter().map(|ranks| circle(all.profile, ranks));
    let mut deadlocks = circles.chain(waiting.knots.iter().map(|ranks| knot(all.profile, ranks)));
    if let Some(first) = deadlocks.next() {
        let more = match deadlocks.count() {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        title = format!("DEADLOCK: {first}{more}; {title}");
    }
    let mut rows: Vec<Row> =
        of_ranks.into_iter().filter_map(|wait| row(all, waiting.circles.len(), wait)).filter(is_kept).collect();
    if let (Some(states), Some(change)) = (&all.profile.wait_states, &all.change.waits) {
        for row in &mut rows {
            // "now" and its circle, then how often.
            if let Some(cell) = row.cells.get_mut(1).filter(|cell| cell.plain().is_empty()) {
                *cell = Cell::text("now");
            }
            row.cells.insert(3, Cell::unknown(""));
        }
        let ranks = data.profile.ranks.iter().zip(data.ids);
        let ids = ByProcess::of(ranks.map(|(rank, id)| (rank.rank, rank.host.as_str(), rank.pid, *id)));
        rows.extend(
            states.waits.iter().zip(&change.rows).filter_map(|(row, waited)| of_all(states, row, *waited, &ids)),
        );
        let waited = sum_by_kind(states, change);
        let span = if states.is_short { format!("last {}", ns(states.span_ns())) } else { all.span() };
        return Grid {
            title: format!("{title}; {span}, {}{}", waited, pending(states)),
            columns: COLUMNS_OF_ALL,
            rows,
            empty: "Nobody has waited for anybody.",
            natural: (2, true),
        };
    }
    Grid {
        title,
        columns: COLUMNS,
        rows,
        empty: "Nobody waits for long. With --waits all waits are listed, by kind and place, and why.",
        // Those in circles are together at the top.
        natural: (1, true),
    }
}

/// "12.3 % waiting: late sender 1.20 s, wait at barrier 300 ms"
fn sum_by_kind(states: &WaitStates, change: &WaitChange) -> String {
    let mut kinds: BTreeMap<_, u64> = BTreeMap::new();
    for (row, waited) in states.waits.iter().zip(&change.rows).filter(|(row, _)| row.kind.is_waiting()) {
        let sum = kinds.entry(row.kind).or_default();
        *sum = sum.saturating_add(waited.ns);
    }
    let mut kinds: Vec<_> = kinds.into_iter().filter(|(_, ns)| *ns > 0).collect();
    kinds.sort_by_key(|&(kind, ns)| (u64::MAX - ns, kind));
    let shown = kinds.iter().take(2).map(|(kind, ns)| format!("{} {}", kind.title(), time(*ns).plain()));
    let shown: Vec<_> = shown.collect();
    if shown.is_empty() { "nobody has waited".into() } else { shown.join(", ") }
}

fn pending(states: &WaitStates) -> String {
    let pending = states.pending;
    let all = pending.sends.saturating_add(pending.receives);
    let all = all.saturating_add(pending.collective_calls).saturating_add(pending.calls);
    if all > 0 { format!("; {} not matched yet", count(all)) } else { String::new() }
}

/// A kind of waits that are over, of a thread at a place.
fn of_all(states: &WaitStates, row: &WaitRow, waited: Waited, ids: &ByProcess<RankId>) -> Option<Row> {
    let thread = states.threads.get(row.thread as usize)?;
    let (id, rank) = (*ids.get(thread.rank, &thread.host, thread.pid)?, thread.rank);
    if waited.ns == 0 || !row.kind.is_waiting() {
        return None;
    }
    let shown = waiting_thread(states, row);
    Some(Row {
        id: RowId::Waits(wait_id(states, row)),
        cells: vec![
            rank.map_or_else(|| Cell::unknown("?"), |rank| Cell::number(rank.into(), shown)),
            Cell::text(row.kind.title()),
            time(waited.ns),
            Cell::number(waited.count as f64, count(waited.count)),
            Cell::text(wait_place(states, row)),
            Cell::text(wait_causes(states, row)),
            Cell::text(""),
        ],
        marked: false,
        opens: Some(Location::Rank(id)),
    })
}

/// `circles`: how many there are.
fn row(data: &TableData<'_>, circles: usize, wait: &Wait) -> Option<Row> {
    let profile = data.profile;
    let (rank, id) = (profile.ranks.get(wait.rank)?, *data.ids.get(wait.rank)?);
    let call = waiting_in(profile, wait)?;
    let tone = if wait.circle.is_some() { Tone::Alarm } else { Tone::Plain };
    // The largest first: circles and knots in their order, before everybody else.
    let in_circle = wait.circle.map_or_else(
        || Cell::unknown(""),
        |place| {
            let name = match place.checked_sub(circles) {
                None => format!("circle {}", place + 1),
                Some(knot) => format!("knot {}", knot + 1),
            };
            Cell::number(-(place as f64), name)
        },
    );
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

#[cfg(test)]
mod tests {
    use mpiprobe_model::{
        Activity, CauseRow, DelayRow, PendingEnds, Profile, WaitKind, WaitSite, WaitingThread,
        analyse::{Change, Look, identify},
        sample::{SECOND, profile, ranks},
    };

    use super::*;
    use crate::{
        content::Span,
        screens::{Rows, ranks as of_ranks},
    };

    /// Two ranks, of which one has waited so long for the other one, and in a barrier.
    fn job(seconds: u64, waited_ns: u64) -> Profile {
        let mut profile = profile(ranks(2));
        profile.observed_ns = seconds * SECOND;
        let pids: Vec<u32> = profile.ranks.iter().map(|rank| rank.pid).collect();
        for rank in &mut profile.ranks {
            (rank.wall_ns, rank.thread_wall_ns) = (seconds * SECOND, seconds * SECOND);
        }
        let site = |function: &str, line| WaitSite {
            function: function.into(),
            site: Some(format!("halo.c:{line} in exchange")),
            file: Some("halo.c".into()),
            line: Some(line),
        };
        let computing = Activity::Computing { after: Some(1), before: Some(0) };
        let row = |kind, ns, caused_by| WaitRow {
            kind,
            thread: 1,
            site: u32::from(kind == WaitKind::Barrier),
            count: ns / 1_000_000,
            ns,
            longest_ns: ns,
            longest_at_ns: 0,
            wrong_order_same_source_ns: 0,
            wrong_order_other_source_ns: 0,
            early_fence_ns: 0,
            late_complete_ns: 0,
            caused_by,
            unexplained_ns: 0,
        };
        let cause = CauseRow { thread: Some(0), activity: Some(computing), ns: waited_ns };
        profile.wait_states = Some(WaitStates {
            threads: (0u32..)
                .zip(pids)
                .map(|(rank, pid)| WaitingThread { rank: Some(rank), pid, tid: pid, ..WaitingThread::default() })
                .collect(),
            call_sites: vec![site("MPI_Recv", 91), site("MPI_Barrier", 40)],
            waits: vec![
                row(WaitKind::LateSender, waited_ns, vec![cause]),
                row(WaitKind::Barrier, 100_000_000, Vec::new()),
            ],
            delays: vec![DelayRow { thread: 0, activity: computing, direct_ns: waited_ns as f64, indirect_ns: 0.0 }],
            pending: PendingEnds { sends: 3, ..PendingEnds::default() },
            ..WaitStates::default()
        });
        profile
    }

    fn shown(grid: &Grid) -> Vec<String> {
        assert!(grid.rows.iter().all(|row| row.cells.len() == grid.columns.len()));
        grid.rows.iter().map(|row| row.cells.iter().map(Cell::plain).collect::<Vec<_>>().join("|")).collect()
    }

    #[test]
    fn waits_of_the_span_are_listed_with_where_and_why() {
        let (before, now) = (job(10, SECOND), job(20, 3 * SECOND));
        let change = Change::since(Some(&Look::of(&before)), &now);
        let ids: Vec<_> = identify(&now.ranks).collect();
        let rows = Rows { profile: &now, change: &change, ids: &ids };
        let data = TableData::new(rows, rows, Span::Recent, None);
        let grid = grid(&data);
        // Nobody has waited in the barrier since.
        let found = shown(&grid);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].starts_with("1|late sender|2.00 s|2,000|MPI_Recv at halo.c:91|rank 0, which computes longer"),
            "{found:?}"
        );
        assert!(grid.title.ends_with("last 10.0 s, late sender 2.00 s; 3 not matched yet"), "{}", grid.title);

        let of_ranks = of_ranks::grid(&data);
        let column = |title: &str| of_ranks.columns.iter().position(|column| column.title == title).unwrap();
        let cell = |row: usize, title: &str| of_ranks.rows[row].cells[column(title)].plain();
        assert_eq!(
            ["waits %", "mostly by", "caused"].map(|title| cell(1, title).trim().to_owned()),
            ["20.0", "late sender", ""]
        );
        assert_eq!(
            ["waits %", "mostly by", "caused"].map(|title| cell(0, title).trim().to_owned()),
            ["0.0", "", "2.00 s"]
        );
        shown(&of_ranks);
    }

    #[test]
    fn of_several_nodes_what_is_left_of_the_calls_is_told_with_its_time() {
        let mut now = job(20, 3 * SECOND);
        now.ranks[1].host = "another node".into();
        let ids: Vec<_> = identify(&now.ranks).collect();
        let of_all = |now: &Profile| {
            let change = Change::since(Some(&Look::of(&job(10, SECOND))), now);
            let rows = Rows { profile: now, change: &change, ids: &ids };
            let data = TableData::new(rows, rows, Span::Recent, None);
            (grid(&data), of_ranks::grid(&data))
        };
        let waits = |(_, ranks): &(Grid, Grid)| -> Vec<String> {
            let column = ranks.columns.iter().position(|column| column.title == "waits %").unwrap();
            assert_eq!(shown(ranks).len(), 2);
            ranks.rows.iter().map(|row| row.cells[column].plain().trim().to_owned()).collect()
        };
        assert_eq!(waits(&of_all(&now)), ["0.0", "20.0"]);
        let states = now.wait_states.as_mut().unwrap();
        (states.is_short, states.from_ns, states.until_ns) = (true, SECOND, 5 * SECOND);
        let short = of_all(&now);
        assert_eq!(waits(&short), ["?", "?"]);
        assert!(short.0.title.contains("last 4.00 s, late sender 3.00 s"), "{}", short.0.title);
    }

    #[test]
    fn without_them_it_is_said_which_option_finds_them() {
        let profile = Profile { wait_states: None, ..job(10, SECOND) };
        let change = Change::since(None, &profile);
        let ids: Vec<_> = identify(&profile.ranks).collect();
        let rows = Rows { profile: &profile, change: &change, ids: &ids };
        let grid = grid(&TableData::new(rows, rows, Span::Start, None));
        assert!(grid.rows.is_empty() && grid.empty.contains("--waits"), "{}", grid.empty);
    }
}
