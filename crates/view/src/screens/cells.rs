//! Cells that several tables have.

use mpiprobe_model::{
    FunctionProfile, FunctionRow, OpenCallInfo, Profile, RankProfile, RankState,
    analyse::{Bytes, Change, is_unusually_long, longest},
};
use mpiprobe_report::present::{
    units::{bytes, count, duration, percent, rate},
    what,
};

use crate::content::{Cell, Content, SortKey, Tone};

/// A rank by its number, or by its pid where that is not known.
pub(super) fn who(rank: &RankProfile) -> String {
    rank.rank.map_or_else(|| format!("pid {}", rank.pid), |number| number.to_string())
}

pub(super) fn rank_number(rank: &RankProfile) -> Cell {
    rank.rank.map_or_else(|| Cell::unknown("?"), |number| Cell::number(number.into(), number.to_string()))
}

/// A share that may not be known.
pub(super) fn maybe_share(per_cent: Option<f64>) -> Cell {
    per_cent.map_or_else(|| Cell::unknown("?"), share)
}

/// A share as bar and number.
pub(super) fn share(per_cent: f64) -> Cell {
    let content = Content::Bar(per_cent / 100.0, format!("{:>5}", percent(per_cent)));
    Cell { content, key: SortKey::Number(per_cent), tone: Tone::Plain }
}

/// A cell that follows from times, unless there are calls (`untimed`) whose times are not known.
pub(super) fn known_unless(untimed: u64, cell: Cell) -> Cell {
    if untimed == 0 { cell } else { Cell::unknown("?") }
}

pub(super) fn number(value: u64) -> Cell {
    Cell::number(value as f64, if value == 0 { String::new() } else { count(value) })
}

/// Calls that were counted meanwhile, if they were all of a function's.
pub(super) fn counted(calls: u64, row: &FunctionRow) -> Cell {
    if row.estimated.is_none() { number(calls) } else { Cell::number(calls as f64, format!(">= {}", count(calls))) }
}

/// The same in a second, which is not known if they were not.
pub(super) fn counted_per_second(change: &Change, calls: u64, row: &FunctionRow) -> Cell {
    if row.estimated.is_none() { per_second(change, calls) } else { Cell::unknown("?") }
}

pub(super) fn per_second(change: &Change, value: u64) -> Cell {
    let value = change.per_second(value);
    Cell::number(value, if value > 0.0 { rate(value) } else { String::new() })
}

/// Bytes a second, sent and received.
pub(super) fn bandwidth(change: &Change, moved: Option<Bytes>) -> Cell {
    let Some(moved) = moved else { return Cell::unknown("?") };
    let value = change.per_second(moved.sent.saturating_add(moved.received));
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "not negative; shown with three digits"
    )]
    Cell::number(value, if value > 0.0 { bytes(value as u64) } else { String::new() })
}

/// Bytes; `at_most`: some of them are an upper bound; `unknown`: some are not counted, since nobody knows them.
pub(super) fn amount(value: u64, at_most: bool, unknown: bool) -> Cell {
    let shown = match (value, unknown) {
        (0, true) => return Cell::unknown("?"),
        (0, false) => String::new(),
        (value, _) => {
            format!("{}{}{}", if at_most { "<= " } else { "" }, bytes(value), if unknown { " + ?" } else { "" })
        }
    };
    Cell::number(value as f64, shown)
}

pub(super) fn time(ns: u64) -> Cell {
    Cell::number(ns as f64, if ns == 0 { String::new() } else { duration(ns as f64) })
}

/// A duration of completed calls: unknown without any.
pub(super) fn duration_of(calls: u64, ns: f64) -> Cell {
    if calls == 0 { Cell::unknown("-") } else { Cell::number(ns, duration(ns)) }
}

/// How much the slowest rank exceeds the average.
pub(super) fn imbalance(ratio: f64) -> Cell {
    let tone = if ratio >= 1.0 { Tone::Warning } else { Tone::Plain };
    Cell::number(ratio, format!("+{:.0} %", 100.0 * ratio)).toned(tone)
}

/// Whether a rank's present call lasts unusually long.
pub(super) fn is_stuck(profile: &Profile, rank: &RankProfile) -> bool {
    let function = |call: &OpenCallInfo| profile.functions.iter().find(|function| function.all.name == call.function);
    let is_long = |call: &OpenCallInfo| is_unusually_long(call, function(call).map(|FunctionProfile { all, .. }| all));
    rank.state == RankState::Running && longest(rank).is_some_and(is_long)
}

/// How long it has been doing that; not known of a rank that computes.
pub(super) fn since(rank: &RankProfile, is_stuck: bool) -> Cell {
    let tone = if is_stuck { Tone::Alarm } else { Tone::Plain };
    longest(rank).map_or_else(|| Cell::unknown(""), |call| time(call.open_ns).toned(tone))
}

/// What a rank does now.
pub(super) fn state(rank: &RankProfile, is_stuck: bool) -> Cell {
    let call = longest(rank).map(what);
    let (text, tone) = match (rank.state, call) {
        (RankState::Ended, call) if rank.failure.is_some() => {
            let failure = rank.failure.map(|failure| failure.to_string());
            (failure.into_iter().chain(call).collect::<Vec<_>>().join(", "), Tone::Alarm)
        }
        (RankState::Ended, call) => (call.unwrap_or_else(|| "ended".into()), Tone::Dim),
        (RankState::Execed, _) => ("went on as another program".into(), Tone::Dim),
        (RankState::Running, call) if rank.stopped => {
            (format!("stopped{}", call.map(|call| format!(" {call}")).unwrap_or_default()), Tone::Alarm)
        }
        (RankState::Running, Some(call)) if is_stuck => (call, Tone::Alarm),
        (RankState::Running, Some(call)) => (call, Tone::Plain),
        (RankState::Running, None) if rank.calls == 0 => ("no MPI call seen yet".into(), Tone::Dim),
        (RankState::Running, None) => ("computing".into(), Tone::Good),
    };
    Cell::text(text).toned(tone)
}
