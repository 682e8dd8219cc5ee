//! Phases as text.

use mpiprobe_model::{FunctionRow, PhaseProfile, Profile, SaturatingSum as _};

use super::{
    table::{RANKS, TextOptions, left, right, section, table},
    units::{bytes, count, duration, or_unknown, time_unless, unless},
};

/// Phases that are shown, and functions of each, of those with most time.
const PHASES: usize = 20;
const FUNCTIONS: usize = 20;

/// What was called in each phase, and by which rank; empty without phases.
pub(super) fn phases(options: &TextOptions, profile: &Profile) -> String {
    if profile.phases.is_empty() {
        return String::new();
    }
    let columns = [
        left("phase"),
        right("level"),
        left("function"),
        right("opened").spare(),
        right("wall, mean").spare(),
        right("calls"),
        right("time"),
        right("mean").spare(),
        right("sent").spare_first(),
        right("received").spare_first(),
    ];
    let (phases, functions) = (options.rows(PHASES), options.rows(FUNCTIONS));
    let shown = profile.phases.iter().take(phases);
    let rows =
        shown.flat_map(|phase| std::iter::once(whole(phase)).chain(phase.functions.iter().take(functions).map(row)));
    let more = options.more(phases, profile.phases.len(), "phases");
    section("Phases, all ranks: calls in the innermost one open", &(table(options, &columns, rows) + &more))
        + &by_rank(options, profile)
}

fn whole(phase: &PhaseProfile) -> Vec<String> {
    vec![
        phase.name.clone(),
        phase.level.to_string(),
        String::new(),
        count(phase.opened),
        duration(phase.wall_over_ranks_ns.mean),
        count(phase.calls),
        time_unless(untimed(&phase.functions), phase.mpi_ns),
    ]
}

/// Calls whose times are not known.
fn untimed(functions: &[FunctionRow]) -> u64 {
    functions.iter().map(|function| function.untimed_calls).saturating_sum()
}

fn row(function: &FunctionRow) -> Vec<String> {
    let mut row = vec![String::new(); 2];
    row.extend([function.name.into(), String::new(), String::new()]);
    let time = time_unless(function.untimed_calls, function.time_ns);
    row.extend([count(function.calls), time, unless(function.untimed_calls, duration(function.mean_ns))]);
    if let Some(traffic) = &function.traffic {
        let upper = if traffic.received_at_most_bytes > 0 { "<= " } else { "" };
        row.extend([bytes(traffic.sent.bytes), format!("{upper}{}", bytes(traffic.received.bytes))]);
    }
    row
}

/// Time and calls of each rank in each phase, where the ranks are few enough to be read.
fn by_rank(options: &TextOptions, profile: &Profile) -> String {
    let is_numbered = profile.ranks.iter().zip(RANKS).all(|(rank, number)| or_unknown(rank.rank) == number);
    if profile.ranks.len() < 2 || profile.ranks.len() > RANKS.len() || !is_numbered {
        return String::new();
    }
    let mut columns = vec![left("time (calls)")];
    columns.extend(RANKS.iter().take(profile.ranks.len()).map(|number| right(number)));
    let rows = profile.phases.iter().take(options.rows(PHASES)).map(|phase| {
        let cells = profile.ranks.iter().map(|rank| {
            let own = rank.phases.iter().find(|own| (&own.name, own.level) == (&phase.name, phase.level));
            own.map_or_else(String::new, |own| {
                format!("{} ({})", time_unless(untimed(&own.functions), own.mpi_ns), count(own.calls))
            })
        });
        std::iter::once(phase.name.clone()).chain(cells).collect()
    });
    format!("\n{}", section("Phases by rank", &table(options, &columns, rows)))
}
