//! Ranks, and how well they use their processors, as text.

use std::cmp::Reverse;

use mpiprobe_model::{Efficiency, Profile, RankProfile, RankState, SaturatingSum as _, Spread};

use super::{
    table::{TextOptions, left, right, section, table},
    units::{UNKNOWN, count, duration, maybe_percent, ns, or_unknown, percent, sum_of_calls, time_unless, unless},
};
use crate::By;

/// More ranks are not shown one by one.
const SHOWN: usize = 32;

/// The ranks, or, of many, those with most time in MPI and those with least; then what there is over all of them.
pub(super) fn ranks(options: &TextOptions, profile: &Profile) -> String {
    let mut columns = vec![
        right("rank"),
        right("pid").spare_first(),
        right("wall").spare(),
        right("MPI time"),
        right("MPI %"),
        right("calls"),
        right("threads").spare_first(),
        left("state").spare(),
    ];
    let has_hosts = profile.ranks.windows(2).any(|pair| matches!(pair, [a, b] if a.host != b.host));
    if has_hosts {
        columns.push(left("host").spare());
    }
    let row = |rank: &RankProfile| {
        let mut cells = vec![
            or_unknown(rank.rank),
            rank.pid.to_string(),
            ns(rank.wall_ns),
            if rank.untimed_calls == 0 && rank.mpi_percent.is_none() {
                at_least(rank.mpi_ns)
            } else {
                time_unless(rank.untimed_calls, rank.mpi_ns)
            },
            unless(rank.untimed_calls, maybe_percent(rank.mpi_percent)),
            sum_of_calls(rank.calls, &rank.functions),
            rank.threads_in_mpi.to_string(),
            state(rank),
        ];
        cells.extend(has_hosts.then(|| rank.host.clone()));
        cells
    };
    let totals = &profile.totals;
    let untimed = profile.ranks.iter().map(|rank| rank.untimed_calls).saturating_sum();
    let is_any_known = profile.ranks.iter().any(|rank| rank.mpi_percent.is_some());
    let spread = |name: &str, pick: fn(&Spread) -> f64| {
        let all = name == "sum";
        let share = if all { totals.mpi_percent_of_all } else { is_any_known.then(|| pick(&totals.mpi_percent)) };
        let calls = if all {
            sum_of_calls(totals.calls, profile.functions.iter().map(|function| &function.all))
        } else {
            String::new()
        };
        let (wall, mpi) = (duration(pick(&totals.wall_ns)), duration(pick(&totals.mpi_ns)));
        vec![name.into(), String::new(), wall, unless(untimed, mpi), unless(untimed, maybe_percent(share)), calls]
    };
    let imbalance = vec![
        "imbalance".into(),
        String::new(),
        ratio(&totals.wall_ns),
        unless(untimed, ratio(&totals.mpi_ns)),
        unless(untimed, if is_any_known { ratio(&totals.mpi_percent) } else { UNKNOWN.to_owned() }),
    ];
    let over_ranks = [
        spread("sum", |spread| spread.sum),
        spread("mean", |spread| spread.mean),
        spread("min", |spread| spread.min),
        spread("max", |spread| spread.max),
        imbalance,
    ];
    let (shown, left_out) = shown(options, profile);
    let rows = shown.into_iter().map(row).chain(if profile.ranks.len() > 1 { over_ranks.to_vec() } else { vec![] });
    let more = if left_out == 0 {
        String::new()
    } else {
        format!("{} ranks between these: -v, --top N, or see --json\n", count(left_out as u64))
    };
    section("Ranks", &(table(options, &columns, rows) + &more))
}

/// Those that are shown, and how many are not.
fn shown<'a>(options: &TextOptions, profile: &'a Profile) -> (Vec<&'a RankProfile>, usize) {
    let most = options.rows(SHOWN);
    let mut ranks: Vec<&RankProfile> = profile.ranks.iter().collect();
    if ranks.len() <= most && options.by.is_none() {
        return (ranks, 0);
    }
    ranks.sort_by_key(|rank| Reverse(options.by.unwrap_or(By::Time).of_rank(rank)));
    let left_out = ranks.len().saturating_sub(most);
    if left_out == 0 {
        return (ranks, 0);
    }
    // Whoever has least time in MPI is waited for.
    let least = ranks.split_off(ranks.len() - most / 2);
    ranks.truncate(most - most / 2);
    ranks.extend(least);
    (ranks, left_out)
}

/// How well processors are used.
pub(super) fn efficiencies(options: &TextOptions, profile: &Profile) -> String {
    let Some(found) = profile.totals.efficiency.filter(|_| profile.ranks.len() > 1) else {
        return efficiency(profile, profile.totals.efficiency);
    };
    let columns = [left(""), right("%"), left("").spare()];
    let row = |name: &str, share: f64, meaning: &str| vec![name.into(), percent(100.0 * share), meaning.into()];
    let rows = [
        row("parallel efficiency", found.parallel, "load balance x communication efficiency"),
        row("  load balance", found.load_balance, "mean over maximum of the time outside MPI"),
        row(
            "  communication efficiency",
            found.communication,
            "time outside MPI of the rank with most, of the run time",
        ),
    ];
    section("Efficiency", &table(options, &columns, rows))
}

/// One line, where there are several ranks to compare.
pub(super) fn efficiency(profile: &Profile, found: Option<Efficiency>) -> String {
    if profile.ranks.len() < 2 {
        return String::new();
    }
    let Some(found) = found else {
        let is_untimed = profile.ranks.iter().any(|rank| rank.untimed_calls > 0);
        let why = if is_untimed { UNTIMED } else { UNSEEN };
        let is_unknown = profile.ranks.iter().any(|rank| rank.mpi_percent.is_none());
        return if is_unknown { format!("parallel efficiency: unknown; {why}\n") } else { String::new() };
    };
    format!(
        "parallel efficiency {} % = load balance {} % x communication efficiency {} %\n",
        percent(100.0 * found.parallel),
        percent(100.0 * found.load_balance),
        percent(100.0 * found.communication)
    )
}

/// Why shares of a rank's time are not known.
pub const UNSEEN: &str = "ranks may be inside calls that began before attach";

/// The same, where nobody sees them return.
pub const UNTIMED: &str = "of some calls nobody knows the time (--returns, --max-overhead)";

/// Of time in MPI, the part that was seen.
fn at_least(seen_ns: u64) -> String {
    if seen_ns == 0 { "?".into() } else { format!(">= {}", ns(seen_ns)) }
}

fn state(rank: &RankProfile) -> String {
    if let Some(failure) = rank.failure {
        return failure.to_string();
    }
    let state = match rank.state {
        RankState::Running if rank.calls == 0 && rank.open_calls.is_empty() => "running; no MPI call seen",
        RankState::Running => "running",
        RankState::Ended => "ended",
        RankState::Execed => "exec'ed",
    };
    state.to_owned()
}

/// Maximum over mean, as a surplus.
fn ratio(spread: &Spread) -> String {
    format!("+{:.0} %", 100.0 * spread.imbalance)
}
