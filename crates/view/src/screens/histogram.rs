//! How long the calls of a function have lasted, and how much each has moved: in one rank, or in all.

use mpiprobe_model::{
    FunctionRow, SaturatingSum as _, Volume,
    analyse::{RankId, percentile_bounds},
};
use mpiprobe_report::present::units::{binary, count, duration};

use super::{
    TableData,
    cells::{number, share, who},
};
use crate::content::{Cell, Column, Grid, Location, Row, RowId, SortKey, Tone};

const COLUMNS: &[Column] = &[
    Column::left("of", 12, 0),
    Column::right("from", 8, 0),
    Column::right("to", 8, 0),
    Column::right("calls", 11, 0),
    Column { fills: true, ..Column::left("share %", 16, 0) },
];

/// Lines with figures are numbered from here on, those of buckets from 0.
const FIGURES: u32 = 1000;

/// Something that calls have more or less of.
struct Quantity<'a> {
    /// Its place on the screen.
    place: u8,
    name: &'static str,
    /// Calls by the number of bits of it.
    buckets: &'a [u64],
    /// Names, and the least and the most that each can be.
    figures: Vec<(&'static str, (u64, u64))>,
    shown: fn(u64) -> String,
}

pub(super) fn grid(data: &TableData<'_>, name: &'static str, of: Option<RankId>) -> Grid {
    let (whose, function) = match of {
        None => {
            let all = data.profile.functions.iter().map(|function| &function.all);
            ("all ranks".into(), all.into_iter().find(|row| row.name == name))
        }
        Some(id) => {
            let rank = data.rank(id);
            let row = rank.and_then(|rank| rank.functions.iter().find(|row| row.name == name));
            (rank.map_or_else(|| "a rank".into(), |rank| format!("rank {}", who(rank))), row)
        }
    };
    let opens = of.map(Location::Rank);
    Grid {
        title: function.map_or_else(|| format!("{name}, {whose}"), |row| title(row, &whose)),
        columns: COLUMNS,
        rows: function.map(quantities).unwrap_or_default().iter().flat_map(|of| rows(of, opens)).collect(),
        empty: "No call of it has been completed yet.",
        natural: (0, false),
    }
}

fn title(row: &FunctionRow, whose: &str) -> String {
    let sizes = match &row.traffic {
        None => "; sizes are known with --traffic".into(),
        Some(traffic) if traffic.calls_of_unknown_bytes > 0 => {
            format!("; {} calls of unknown size", count(traffic.calls_of_unknown_bytes))
        }
        Some(traffic) if traffic.received_at_most_bytes > 0 => "; sizes received are upper bounds".into(),
        Some(_) => String::new(),
    };
    format!("{}, {whose}, {} calls since the beginning{sizes}", row.name, count(row.calls))
}

fn quantities(row: &FunctionRow) -> Vec<Quantity<'_>> {
    let mut found = Vec::new();
    if row.calls > row.untimed_calls {
        let bounds = |ns| percentile_bounds(ns, row.min_ns, row.max_ns);
        found.push(Quantity {
            place: 0,
            name: "duration",
            buckets: &row.durations,
            figures: vec![
                ("min", (row.min_ns, row.min_ns)),
                ("p50", bounds(row.p50_ns)),
                ("p90", bounds(row.p90_ns)),
                ("p99", bounds(row.p99_ns)),
                ("max", (row.max_ns, row.max_ns)),
            ],
            shown: |ns| duration(ns as f64),
        });
    }
    let volumes =
        row.traffic.iter().flat_map(|traffic| [(1, "sent", &traffic.sent), (2, "received", &traffic.received)]);
    let moved = volumes.filter(|(_, _, volume)| volume.messages > 0);
    found.extend(moved.map(|(place, name, volume)| Quantity {
        place,
        name,
        buckets: &volume.sizes,
        figures: vec![
            ("min", (volume.min_bytes, volume.min_bytes)),
            ("p50", size(volume, 0.50)),
            ("p90", size(volume, 0.90)),
            ("p99", size(volume, 0.99)),
            ("max", (volume.max_bytes, volume.max_bytes)),
        ],
        shown: binary,
    }));
    found
}

/// The smallest and largest value of a bucket.
fn ends(bits: usize) -> (u64, u64) {
    let bits = u32::try_from(bits).unwrap_or(0).min(63);
    if bits == 0 { (0, 0) } else { (1 << (bits - 1), (1 << bits) - 1) }
}

/// What a share of the messages does not exceed, as near as their sizes are known.
fn size(volume: &Volume, share: f64) -> (u64, u64) {
    let mut seen = 0_u64;
    let is_reached = |&(_, messages): &(usize, &u64)| {
        seen = seen.saturating_add(*messages);
        seen as f64 >= share * volume.messages as f64
    };
    let bucket = volume.sizes.iter().enumerate().find(is_reached).map_or(0, |(bits, _)| bits);
    let (low, high) = ends(bucket);
    let last = if bucket + 1 == volume.sizes.len() { volume.max_bytes } else { high };
    (low.max(volume.min_bytes).min(last), last)
}

/// Figures, then buckets from the first to the last that is not empty.
fn rows(of: &Quantity<'_>, opens: Option<Location>) -> Vec<Row> {
    let all: u64 = of.buckets.iter().copied().saturating_sum();
    let line = |number, cells: Vec<Cell>| Row { id: RowId::Bucket(of.place, number), cells, marked: false, opens };
    let name = |text: String| Cell { key: SortKey::Number(of.place.into()), ..Cell::text(text) };
    let value = |value: u64| Cell::number(value as f64, (of.shown)(value));
    let figure = |(number, (figure, (low, high))): (u32, &(&str, (u64, u64)))| {
        let name = name(format!("{} {figure}", of.name)).toned(Tone::Title);
        line(FIGURES + number, vec![name, value(*low), value(*high), Cell::unknown(""), Cell::unknown("")])
    };
    let first = of.buckets.iter().position(|&calls| calls > 0).unwrap_or(0);
    let bucket = |(number, (bits, &calls)): (u32, (usize, &u64))| {
        let (from, to) = ends(bits);
        let per_cent = 100.0 * calls as f64 / all.max(1) as f64;
        line(number, vec![name(of.name.into()), value(from), value(to), self::number(calls), share(per_cent)])
    };
    let figures = (0..).zip(&of.figures).map(figure);
    figures.chain((0..).zip(of.buckets.iter().enumerate().skip(first)).map(bucket)).collect()
}
