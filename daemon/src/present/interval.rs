//! What happened since the last look, as text.

use std::fmt::Write as _;

use super::{
    doing::doing,
    profile::{filtered, functions, header, section},
    table::{
        Column::{Left, Right},
        table,
    },
    units::{or_unknown, percent, rate},
    unmatched::unmatched,
    waiting::waits,
};
use crate::{
    filter::Filter,
    model::{Profile, RankProfile, RankState},
};

/// Functions shown of those that took most time.
const FUNCTIONS_SHOWN: usize = 12;

/// One turn of the refreshed table: what ranks did since `before`, and functions since the beginning.
pub fn interval(all: &Profile, before: Option<&Profile>, filter: Option<&Filter>) -> String {
    let now = &*filtered(all, filter);
    let columns = [Right("rank"), Right("pid"), Right("MPI %"), Right("calls/s"), Right("calls"), Left("now")];
    let rows = now.ranks.iter().map(|rank| {
        let earlier = before.and_then(|before| before.ranks.iter().find(|earlier| earlier.pid == rank.pid));
        row(rank, earlier)
    });
    let mut ranks = table(&columns, rows);
    if !now.complete {
        let _ = writeln!(ranks, "INCOMPLETE: {}", now.incomplete_because.join("; "));
    }
    let shown = now.functions.get(..FUNCTIONS_SHOWN).unwrap_or(&now.functions);
    let mut sections = vec![header(now), section("Ranks, since the last table", &ranks), functions(shown)];
    sections.extend([waits(all), unmatched(all)].into_iter().filter(|section| !section.is_empty()));
    sections.join("\n") + "\n"
}

fn row(rank: &RankProfile, earlier: Option<&RankProfile>) -> Vec<String> {
    let since = |value: fn(&RankProfile) -> u64| value(rank).saturating_sub(earlier.map_or(0, value)) as f64;
    let wall = since(|rank| rank.wall_ns);
    let thread_wall = since(|rank| rank.thread_wall_ns);
    let share = if thread_wall > 0.0 { 100.0 * since(|rank| rank.mpi_ns) / thread_wall } else { 0.0 };
    let calls = if wall > 0.0 { since(|rank| rank.calls) / (wall / 1e9) } else { 0.0 };
    let doing = match rank.open_calls.first() {
        Some(call) => doing(call),
        None if rank.calls == 0 => "no MPI call seen yet".into(),
        None => "outside MPI".into(),
    };
    vec![
        or_unknown(rank.rank),
        rank.pid.to_string(),
        percent(share),
        rate(calls),
        super::units::count(rank.calls),
        match rank.state {
            RankState::Running if rank.stopped => format!("stopped {doing}"),
            RankState::Running => doing,
            RankState::Ended | RankState::Execed => "ended".into(),
        },
    ]
}
