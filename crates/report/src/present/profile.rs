//! The profile as text.

use std::{borrow::Cow, fmt::Write as _};

use mpiprobe_model::{
    BeganBeforeRow, Efficiency, EndReason, FunctionProfile, OpenCallInfo, OwnCost, Profile, RankProfile, RankState,
    SaturatingSum as _, Spread, Volume,
    filter::{Filter, apply},
};

use super::{
    doing::called,
    findings::FindingText,
    layers::layers,
    phases::phases,
    table::{
        Column::{Left, Right},
        RANKS, RANKS_SHOWN, section, table,
    },
    threads::threads,
    traffic::traffic,
    units::{bytes, count, duration, maybe_percent, ns, or_unknown, percent, rate, time_unless, unless},
    unmatched::unmatched,
    waiting::waits,
};

/// The final profile. Of its rows, those that the filter keeps; sums, findings and who waits for whom are of everything.
pub fn profile(all: &Profile, findings: &[FindingText], filter: Option<&Filter>) -> String {
    if all.ranks.is_empty() {
        // Nobody reads empty tables.
        return format!("{}\nNo MPI call was counted.\n{}", header(all), completeness(all));
    }
    let profile = &*filtered(all, filter);
    let sections = [
        header(profile),
        filter.map(|filter| format!("Filter: {}; sums are of everything\n", filter.text())).unwrap_or_default(),
        self::findings(findings),
        ranks(profile),
        groups(profile),
        functions(&profile.functions),
        functions_of_ranks(profile),
        threads(profile),
        phases(profile),
        layers(profile),
        traffic(profile),
        inner_calls(profile),
        open_calls(profile),
        began_before(profile),
        waits(all),
        unmatched(all),
        remarks(profile),
    ];
    let shown: Vec<String> = sections.into_iter().filter(|section| !section.is_empty()).collect();
    shown.join("\n")
}

/// The rows that a filter keeps.
pub fn filtered<'a>(profile: &'a Profile, filter: Option<&Filter>) -> Cow<'a, Profile> {
    let Some(filter) = filter else { return Cow::Borrowed(profile) };
    Cow::Owned(apply(filter, profile).profile)
}

/// What is probably wrong, and what to do about it.
fn findings(findings: &[FindingText]) -> String {
    if findings.is_empty() {
        return String::new();
    }
    let mut text = String::new();
    for finding in findings {
        let _ = writeln!(text, "{}: {}", finding.name, finding.found);
        for line in &finding.evidence {
            let _ = writeln!(text, "    {line}");
        }
        let _ = writeln!(text, "    {}", finding.advised());
    }
    section("Findings", &text)
}

pub(super) fn header(profile: &Profile) -> String {
    let engine = &profile.engine;
    let mut text = String::new();
    let end = match profile.end {
        None => "",
        Some(EndReason::TargetsEnded) => ", until all targets had ended",
        Some(EndReason::Duration) => ", as long as asked for",
        Some(EndReason::Interrupted) => ", until interrupted",
    };
    let jobs = profile.jobs.iter().map(|job| match job.size {
        Some(size) => format!("job {}: {} of {size} ranks", job.id, job.ranks),
        None => format!("job {}: {} ranks of an unknown number", job.id, job.ranks),
    });
    let jobs = jobs.collect::<Vec<_>>().join("; ");
    let jobs = if jobs.is_empty() { "no MPI process".to_owned() } else { jobs };
    let _ = writeln!(text, "mpiprobe {} on {}: {jobs}", profile.mpiprobe_version, profile.host);
    let _ = writeln!(text, "observed {} from {}{end}", ns(profile.observed_ns), profile.began);
    for library in &engine.libraries {
        let slow =
            if library.slow.is_empty() { String::new() } else { format!(", {} of them slow", library.slow.len()) };
        let _ = writeln!(
            text,
            "{} ({}), {} functions probed{slow}, engine {} by {}",
            library.implementation, library.path, library.functions, engine.engine, engine.attached_by
        );
    }
    for tool in &engine.tools {
        let _ = writeln!(text, "tool {} ({}), {} functions probed", tool.name, tool.path, tool.functions);
    }
    text
}

fn ranks(profile: &Profile) -> String {
    let mut columns = vec![
        Right("rank"),
        Right("pid"),
        Right("wall"),
        Right("MPI time"),
        Right("MPI %"),
        Right("calls"),
        Right("threads"),
        Left("state"),
    ];
    let has_hosts = profile.ranks.windows(2).any(|pair| matches!(pair, [a, b] if a.host != b.host));
    if has_hosts {
        columns.push(Left("host"));
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
            count(rank.calls),
            rank.threads_in_mpi.to_string(),
            state(rank).into(),
        ];
        cells.extend(has_hosts.then(|| rank.host.clone()));
        cells
    };
    let totals = &profile.totals;
    let untimed = profile.ranks.iter().map(|rank| rank.untimed_calls).saturating_sum();
    let spread = |name: &str, pick: fn(&Spread) -> f64| {
        let all = name == "sum";
        let any = profile.ranks.iter().any(|rank| rank.mpi_percent.is_some());
        let share = if all { totals.mpi_percent_of_all } else { any.then(|| pick(&totals.mpi_percent)) };
        let calls = if all { count(totals.calls) } else { String::new() };
        let (wall, mpi) = (duration(pick(&totals.wall_ns)), duration(pick(&totals.mpi_ns)));
        vec![name.into(), String::new(), wall, unless(untimed, mpi), unless(untimed, maybe_percent(share)), calls]
    };
    let imbalance = vec![
        "imbalance".into(),
        String::new(),
        ratio(&totals.wall_ns),
        unless(untimed, ratio(&totals.mpi_ns)),
        unless(untimed, ratio(&totals.mpi_percent)),
    ];
    let over_ranks = [
        spread("sum", |spread| spread.sum),
        spread("mean", |spread| spread.mean),
        spread("min", |spread| spread.min),
        spread("max", |spread| spread.max),
        imbalance,
    ];
    let rows = profile.ranks.iter().map(row).chain(if profile.ranks.len() > 1 { over_ranks.to_vec() } else { vec![] });
    let table = table(&columns, rows);
    section("Ranks", &(table + &efficiency(profile, totals.efficiency)))
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
pub const UNTIMED: &str = "calls are counted at their entry only (--returns)";

/// Of time in MPI, the part that was seen.
fn at_least(seen_ns: u64) -> String {
    if seen_ns == 0 { "?".into() } else { format!(">= {}", ns(seen_ns)) }
}

fn state(rank: &RankProfile) -> &'static str {
    match rank.state {
        RankState::Running if rank.calls == 0 && rank.open_calls.is_empty() => "running; no MPI call seen",
        RankState::Running => "running",
        RankState::Ended => "ended",
        RankState::Execed => "exec'ed",
    }
}

/// Maximum over mean, as a surplus.
fn ratio(spread: &Spread) -> String {
    format!("+{:.0} %", 100.0 * spread.imbalance)
}

fn groups(profile: &Profile) -> String {
    let mut columns = vec![
        Left("group"),
        Right("calls"),
        Right("calls/s"),
        Right("time"),
        Right("wall %"),
        Right("MPI %"),
        Right("imbalance"),
    ];
    if profile.groups.iter().any(|group| group.all.traffic.is_some()) {
        columns.extend([Right("sent"), Right("a second"), Right("received"), Right("a second")]);
    }
    let untimed = profile.ranks.iter().map(|rank| rank.untimed_calls).saturating_sum();
    let rows = profile.groups.iter().map(|group| {
        let all = &group.all;
        let mut row = vec![
            all.group.into(),
            count(all.calls),
            rate(all.rates.calls_per_s),
            time_unless(all.untimed_calls, all.time_ns),
            unless(all.untimed_calls, percent(all.wall_percent)),
            unless(untimed, percent(all.mpi_percent)),
            unless(all.untimed_calls, ratio(&group.time_over_ranks_ns)),
        ];
        if let Some(traffic) = &all.traffic {
            row.extend(amount(traffic.sent_bytes, 0, all.rates.sent_bytes_per_s));
            row.extend(amount(traffic.received_bytes, traffic.received_at_most_bytes, all.rates.received_bytes_per_s));
        }
        row
    });
    section("Groups, all ranks", &table(&columns, rows))
}

/// Bytes, and how many of them in a second; `<=` if some of them are an upper bound.
fn amount(moved: u64, at_most: u64, per_s: f64) -> [String; 2] {
    if moved == 0 {
        return [String::new(), String::new()];
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bytes in a second, never negative")]
    let each_second = per_s.round() as u64;
    [format!("{}{}", if at_most > 0 { "<= " } else { "" }, bytes(moved)), bytes(each_second)]
}

pub(super) fn functions(functions: &[FunctionProfile]) -> String {
    let mut columns = vec![
        Left("function"),
        Right("calls"),
        Right("open"),
        Right("time"),
        Right("mean"),
        Right("min"),
        Right("p50"),
        Right("p99"),
        Right("max"),
        Right("wall %"),
        Right("MPI %"),
        Right("imbalance"),
    ];
    if functions.iter().any(|function| function.all.traffic.is_some()) {
        columns.extend([Right("sent"), Right("each"), Right("received"), Right("each"), Right("bytes unknown")]);
    }
    let untimed = functions.iter().map(|function| function.all.untimed_calls).saturating_sum();
    let rows = functions.iter().map(|function| {
        let all = &function.all;
        let completed = |ns: f64| if all.calls == all.untimed_calls { "-".into() } else { duration(ns) };
        let mut row = vec![
            all.name.into(),
            count(all.calls),
            if all.open_calls == 0 { String::new() } else { count(all.open_calls) },
            time_unless(all.untimed_calls, all.spent_ns()),
            completed(all.mean_ns),
            completed(all.min_ns as f64),
            completed(all.p50_ns as f64),
            completed(all.p99_ns as f64),
            completed(all.max_ns as f64),
            unless(all.untimed_calls, percent(all.wall_percent)),
            unless(untimed, percent(all.mpi_percent)),
            unless(all.untimed_calls, ratio(&function.time_over_ranks_ns)),
        ];
        if let Some(traffic) = &all.traffic {
            let unknown = traffic.calls_of_unknown_bytes;
            row.extend(volume(&traffic.sent, 0));
            row.extend(volume(&traffic.received, traffic.received_at_most_bytes));
            row.push(if unknown == 0 { String::new() } else { count(unknown) });
        }
        row
    });
    section("Functions, all ranks", &table(&columns, rows))
}

/// Bytes that went one way, and how many in a call; `<=` if some of them are an upper bound.
fn volume(volume: &Volume, at_most: u64) -> [String; 2] {
    if volume.messages == 0 {
        return [String::new(), String::new()];
    }
    let sign = if at_most > 0 { "<= " } else { "" };
    [format!("{sign}{}", bytes(volume.bytes)), bytes(volume.bytes / volume.messages)]
}

/// Each rank's functions, where the ranks are few enough to be read.
fn functions_of_ranks(profile: &Profile) -> String {
    if profile.ranks.len() < 2 {
        return String::new();
    }
    let is_numbered = profile.ranks.iter().zip(RANKS).all(|(rank, number)| or_unknown(rank.rank) == number);
    if profile.ranks.len() > RANKS_SHOWN || !is_numbered {
        return format!("Functions by rank: see --json ({} ranks)\n", profile.ranks.len());
    }
    let mut columns = vec![Left("time (calls)")];
    columns.extend(RANKS.iter().take(profile.ranks.len()).map(|number| Right(number)));
    let rows = profile.functions.iter().map(|function| {
        let cell = |rank: &RankProfile| {
            let row = rank.functions.iter().find(|row| row.name == function.all.name);
            row.map_or_else(String::new, |row| {
                format!("{} ({})", time_unless(row.untimed_calls, row.spent_ns()), count(row.calls))
            })
        };
        let mut cells = vec![function.all.name.to_owned()];
        cells.extend(profile.ranks.iter().map(cell));
        cells
    });
    section("Functions by rank", &table(&columns, rows))
}

fn inner_calls(profile: &Profile) -> String {
    let Some(inner) = &profile.inner_calls else { return String::new() };
    let columns = [Left("inside"), Left("function"), Right("calls"), Right("time")];
    let rows =
        inner.iter().map(|calls| vec![calls.outer.into(), calls.inner.into(), count(calls.calls), ns(calls.time_ns)]);
    section("Calls made by MPI inside MPI (not in the tables above)", &table(&columns, rows))
}

fn open_calls(profile: &Profile) -> String {
    let columns = [Right("rank"), Right("pid"), Left("function"), Right("open for"), Left("called at"), Left("")];
    let row = |rank: &RankProfile, call: &OpenCallInfo| {
        let remark = match (call.ended_inside, call.began_before) {
            (true, _) => "ended inside",
            (false, true) => "began before attach",
            (false, false) => "",
        };
        let site = call.site.as_deref().unwrap_or("?");
        vec![or_unknown(rank.rank), rank.pid.to_string(), called(call), ns(call.open_ns), site.into(), remark.into()]
    };
    let rows: Vec<_> =
        profile.ranks.iter().flat_map(|rank| rank.open_calls.iter().map(move |call| row(rank, call))).collect();
    if rows.is_empty() { String::new() } else { section("Calls still open", &table(&columns, rows)) }
}

/// Of those that are still open it is said there.
fn began_before(profile: &Profile) -> String {
    let columns = [Right("rank"), Right("pid"), Left("function"), Right("since attach"), Left("called at")];
    let row = |rank: &RankProfile, call: &BeganBeforeRow| {
        let site = call.site.as_deref().unwrap_or("?");
        vec![or_unknown(rank.rank), rank.pid.to_string(), call.function.into(), ns(call.time_ns), site.into()]
    };
    let of_rank = |rank: &'_ RankProfile| -> Vec<Vec<String>> {
        rank.began_before.iter().filter(|call| !call.is_open).map(|call| row(rank, call)).collect()
    };
    let rows: Vec<_> = profile.ranks.iter().flat_map(of_rank).collect();
    if rows.is_empty() { String::new() } else { section("Calls that began before attach", &table(&columns, rows)) }
}

/// What of the own cost is in measured times, and that it is not in the tables.
fn self_cost(cost: &OwnCost) -> String {
    match cost.inside_ns {
        Some(inside) => format!(
            "self cost subtracted: {} per call, total {}; min, max and percentiles are as measured\n",
            duration(inside),
            ns(cost.subtracted_ns)
        ),
        None => "self cost subtracted: none, since what of it is in measured times could not be calibrated\n".into(),
    }
}

/// Losses, own cost, completeness.
fn remarks(profile: &Profile) -> String {
    let mut text = String::new();
    let cost = &profile.own_cost;
    let _ = writeln!(
        text,
        "mpiprobe's own cost: {} a call × {} calls = {} ({:.2} % of wall time)",
        duration(cost.per_call_ns),
        count(cost.calls),
        duration(cost.total_ns),
        cost.percent_of_wall,
    );
    text.push_str(&self_cost(cost));
    let inner: u64 = profile.ranks.iter().map(|rank| rank.inner_calls).saturating_sum();
    if inner > 0 && profile.inner_calls.is_none() {
        let _ =
            writeln!(text, "{} calls made by MPI inside MPI, not counted above (--nested shows them)", count(inner));
    }
    let unseen = profile.ranks.iter().map(|rank| (rank.unseen_ns, rank.rank)).filter(|(ns, _)| *ns > 0);
    if let Some((longest, rank)) = unseen.max() {
        let _ = writeln!(
            text,
            "it is not known whether ranks were inside calls that began before attach: for up to {} (rank {})",
            ns(longest),
            or_unknown(rank)
        );
    }
    let silent = profile
        .ranks
        .iter()
        .filter(|rank| rank.calls == 0 && rank.began_before.is_empty() && rank.open_calls.is_empty())
        .count();
    if silent > 0 {
        let _ = writeln!(
            text,
            "{silent} ranks made no MPI call that was seen: they computed, or were inside a call that began before attach"
        );
    }
    let unseen: u64 = profile.ranks.iter().map(|rank| rank.inner_calls_of_unseen).saturating_sum();
    if unseen > 0 {
        let _ = writeln!(text, "{} calls inside a call that began before attach, not counted", count(unseen));
    }
    let off: u64 = profile.ranks.iter().map(|rank| rank.calls_while_off).saturating_sum();
    if profile.ranks.iter().any(|rank| rank.off_ns > 0) {
        let longest = profile.ranks.iter().map(|rank| rank.off_ns).max().unwrap_or(0);
        let _ = writeln!(
            text,
            "counting switched off by the program (MPI_Pcontrol) for up to {} of a rank: {} calls not observed, time not in wall",
            ns(longest),
            count(off)
        );
    }
    for (number, what) in profile.losses.described().into_iter().filter(|(number, _)| *number > 0) {
        let what = profile.engine.table_room().loss(what);
        let _ = writeln!(text, "{} {what}", count(number));
    }
    if profile.losses.missed_hits.is_none() {
        text.push_str("probe hits missed: unknown, this kernel does not tell\n");
    }
    for library in profile.engine.libraries.iter().filter(|library| !library.slow.is_empty()) {
        let names: Vec<&str> = library.slow.iter().map(|site| site.function).collect();
        let _ = writeln!(text, "slow probes (single-stepped by the kernel): {}", names.join(", "));
    }
    text + &completeness(profile)
}

fn completeness(profile: &Profile) -> String {
    if profile.complete {
        return "complete: nothing was lost\n".into();
    }
    format!("INCOMPLETE: {}\n", profile.incomplete_because.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use mpiprobe_model::sample;

    #[test]
    fn of_nobody_there_are_no_empty_tables() {
        let nobody = Profile {
            complete: false,
            incomplete_because: vec!["nothing was counted".into()],
            ..sample::profile(Vec::new())
        };
        let text = profile(&nobody, &[], None);
        assert!(text.ends_with("No MPI call was counted.\nINCOMPLETE: nothing was counted\n"), "{text}");
        assert!(!text.contains("Ranks") && text.contains("no MPI process"), "{text}");
    }

    #[test]
    fn time_in_a_call_that_nobody_saw_begin_is_not_told_as_computing() {
        let mut all = sample::profile(sample::ranks(2));
        for rank in &mut all.ranks {
            (rank.mpi_percent, rank.unseen_ns) = (None, rank.wall_ns);
        }
        all.totals.mpi_percent_of_all = None;
        let text = profile(&all, &[], None);
        assert!(text.contains("parallel efficiency: unknown; ranks may be inside calls"), "{text}");
        let row = text.lines().find(|line| line.contains(" 4000 ")).unwrap();
        assert_eq!(row.split_whitespace().filter(|cell| *cell == "?").count(), 2, "{row}");
    }

    #[test]
    fn what_was_subtracted_is_said_and_that_nothing_was() {
        let cost = OwnCost::new(1600.0, Some(700.0), 2_000, 1_000_000_000).subtracted(1_400_000);
        assert_eq!(
            self_cost(&cost),
            "self cost subtracted: 700 ns per call, total 1.40 ms; min, max and percentiles are as measured\n"
        );
        let unknown = OwnCost::new(0.0, None, 2_000, 1_000_000_000);
        assert!(self_cost(&unknown).starts_with("self cost subtracted: none, since "), "{}", self_cost(&unknown));
    }
}
