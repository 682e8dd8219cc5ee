//! One row for each place that calls a function, over all ranks; and one such place in each rank.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use mpiprobe_model::{Amounts, FlowRow, Spread};
use mpiprobe_report::present::units::duration;

use super::{
    TableData,
    cells::{amount, imbalance, number, rank_number, share, time},
};
use crate::content::{Cell, Column, Grid, Location, Row, RowId};

const COLUMNS: &[Column] = &[
    Column::text("call site", 26, 0),
    Column::text("function", 16, 0),
    Column::left("wall %", 14, 2),
    Column::right("time", 8, 0),
    Column::right("calls", 13, 1),
    Column::right("mean", 8, 4),
    Column::right("sent", 10, 3),
    Column::right("received", 10, 3),
    Column::right("waited", 8, 5),
    Column::right("ranks", 6, 6),
    Column::right("imbalance", 10, 7),
];

const RANK_COLUMNS: &[Column] = &[
    Column::right("rank", 6, 0),
    Column::left("wall %", 14, 1),
    Column::right("time", 8, 0),
    Column::right("calls", 13, 0),
    Column::right("mean", 8, 4),
    Column::right("sent", 10, 2),
    Column::right("received", 10, 2),
    Column::right("waited", 8, 3),
    Column::right("partners", 9, 5),
];

/// Said where nobody has asked what calls move.
pub(super) const NO_TRAFFIC: &str = "Known only with --traffic.";

/// Flows of one place and function.
#[derive(Debug, Default)]
struct Site<'a> {
    amounts: Amounts,
    waited_ns: u64,
    /// By rank, ns.
    times: Vec<f64>,
    partners: usize,
    flow: Option<&'a FlowRow>,
}

impl<'a> Site<'a> {
    fn add(&mut self, flow: &'a FlowRow) {
        self.amounts.add(&flow.amounts);
        self.waited_ns = self.waited_ns.saturating_add(flow.waited_ns);
        self.partners += usize::from(flow.peer.is_some());
        self.flow = Some(flow);
    }

    /// Share of so much wall time, time, calls, mean, bytes sent and received, time waited.
    fn cells(&self, wall_ns: f64) -> [Cell; 7] {
        let [sent, received] = moved(&self.amounts);
        [
            share(100.0 * self.amounts.time_ns as f64 / wall_ns),
            time(self.amounts.time_ns),
            number(self.amounts.calls),
            self.mean(),
            sent,
            received,
            time(self.waited_ns),
        ]
    }

    fn mean(&self) -> Cell {
        if self.amounts.calls == 0 {
            return Cell::unknown("-");
        }
        let mean = self.amounts.time_ns as f64 / self.amounts.calls as f64;
        Cell::number(mean, duration(mean))
    }
}

/// The same place for all ranks that run the same program.
fn id(flow: &FlowRow) -> u64 {
    let mut hasher = DefaultHasher::new();
    (flow.function, &flow.site, flow.site.is_none().then_some(flow.call_site)).hash(&mut hasher);
    hasher.finish()
}

fn place(flow: &FlowRow) -> String {
    flow.site.as_deref().map_or_else(|| format!("{:#x}", flow.call_site), ToOwned::to_owned)
}

fn wall_ns(data: &TableData<'_>) -> f64 {
    data.profile.ranks.iter().map(|rank| rank.thread_wall_ns as f64).sum::<f64>().max(1.0)
}

pub(super) fn grid(data: &TableData<'_>) -> Grid {
    let mut sites: HashMap<u64, Site<'_>> = HashMap::new();
    for rank in &data.profile.ranks {
        let mut of_rank: HashMap<u64, u64> = HashMap::new();
        for flow in rank.traffic.iter().flat_map(|traffic| &traffic.flows) {
            sites.entry(id(flow)).or_default().add(flow);
            let sum = of_rank.entry(id(flow)).or_default();
            *sum = sum.saturating_add(flow.amounts.time_ns);
        }
        for (site, time_ns) in of_rank {
            sites.entry(site).or_default().times.push(time_ns as f64);
        }
    }
    let wall = wall_ns(data);
    let ranks = data.profile.ranks.len();
    let mut rows: Vec<Row> = sites.into_iter().filter_map(|(id, site)| row(id, site, wall, ranks)).collect();
    // So that those that sorting takes for equal do not change places.
    rows.sort_by_key(|row| row.cells.first().map(Cell::plain));
    Grid {
        title: "Call sites, all ranks, since the beginning".into(),
        columns: COLUMNS,
        rows,
        empty: if data.profile.traffic.is_some() { "No call has been completed yet." } else { NO_TRAFFIC },
        natural: (3, true),
    }
}

fn row(id: u64, mut site: Site<'_>, wall_ns: f64, ranks: usize) -> Option<Row> {
    let flow = site.flow?;
    let callers = site.times.len();
    // A rank without a call counts as 0.
    site.times.resize(ranks.max(callers), 0.0);
    let spread = Spread::of(std::mem::take(&mut site.times)).unwrap_or_default();
    let mut cells = vec![Cell::text(place(flow)), Cell::text(flow.function)];
    cells.extend(site.cells(wall_ns));
    cells.extend([number(callers as u64), imbalance(spread.imbalance)]);
    Some(Row { id: RowId::Site(id), cells, marked: false, opens: Some(Location::Site(id)) })
}

/// Bytes sent and received.
pub(super) fn moved(amounts: &Amounts) -> [Cell; 2] {
    let unknown = amounts.calls_of_unknown_bytes > 0;
    [
        amount(amounts.sent_bytes, false, unknown),
        amount(amounts.received_bytes, amounts.received_at_most_bytes > 0, unknown),
    ]
}

/// One place: what it is in each rank.
pub(super) fn of_ranks(data: &TableData<'_>, wanted: u64) -> Grid {
    let mut title = None;
    let rows = data.profile.ranks.iter().zip(data.ids).filter_map(|(rank, rank_id)| {
        let mut site = Site::default();
        for flow in rank.traffic.iter().flat_map(|traffic| &traffic.flows).filter(|flow| id(flow) == wanted) {
            site.add(flow);
        }
        let flow = site.flow?;
        title.get_or_insert_with(|| format!("{} at {}, since the beginning", flow.function, place(flow)));
        let mut cells = vec![rank_number(rank)];
        cells.extend(site.cells(rank.thread_wall_ns.max(1) as f64));
        cells.push(number(site.partners as u64));
        Some(Row { id: RowId::Rank(*rank_id), cells, marked: false, opens: Some(Location::Rank(*rank_id)) })
    });
    let rows = rows.collect();
    Grid {
        title: title.unwrap_or_else(|| "This call site".into()),
        columns: RANK_COLUMNS,
        rows,
        empty: "No rank has called it.",
        natural: (2, true),
    }
}
