//! What observing has cost and lost, as text.

use std::{fmt::Write as _, time::Duration};

use mpiprobe_model::{Budget, OwnCost, Profile, SaturatingSum as _};

use unicode_width::UnicodeWidthStr as _;

use super::{
    table::{TextOptions, paragraph},
    units::{count, duration, ns, or_unknown},
};

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

/// What the rank pays that pays most, and what was reduced for that.
fn limit(budget: &Budget, profile: &Profile) -> String {
    let mut text = String::new();
    let limit = budget.max_overhead.map_or_else(|| "no limit".into(), |most| limit_of(most, budget.period_ns));
    if let Some(spent) = &budget.spent {
        let dearest = spent
            .function
            .map_or_else(String::new, |function| format!(", {:.2} % of it now for {function}", spent.function_percent));
        let _ = writeln!(
            text,
            "of which rank {} pays most: {:.2} % of a minute's time{dearest} ({limit})",
            or_unknown(spent.rank),
            spent.minute_percent
        );
    }
    for reduced in &budget.levels {
        let for_how_long = [("by entry alone", reduced.entries_ns), ("in samples", reduced.sampled_ns)];
        let how: Vec<String> = for_how_long
            .into_iter()
            .filter(|(_, time_ns)| *time_ns > 0)
            .map(|(how, time_ns)| format!("{how} for {}", ns(time_ns)))
            .collect();
        let row = profile.functions.iter().find(|function| function.all.name == reduced.function);
        let estimate = row.and_then(|function| function.all.estimated).map_or_else(String::new, |estimate| {
            let low = count(estimate.calls_low);
            estimate.calls_high.map_or_else(
                || format!(": at least {low} calls; how many more cannot be said"),
                |high| format!(": {low} to {} calls, with a confidence of 95 %", count(high)),
            )
        });
        let _ = writeln!(
            text,
            "{} was counted with less care from {} on ({}){estimate}",
            reduced.function,
            ns(reduced.since_ns),
            how.join(", ")
        );
    }
    if let Some(since_ns) = budget.traffic_until_ns {
        let (since, paused) = (ns(since_ns), ns(budget.traffic_paused_ns));
        let _ = if budget.traffic_is_back {
            writeln!(text, "what calls move was not found out for {paused}, from {since} on")
        } else {
            writeln!(text, "what calls move was found out until {since} only")
        };
    }
    if budget.has_reduced() {
        text.push_str("that keeps the limit; --max-overhead off counts everything, --functions leaves functions out\n");
    }
    text
}

/// As it is typed, per cent and ns.
fn limit_of(most: f64, period_ns: Option<u64>) -> String {
    let period = period_ns.map(|ns| humantime::format_duration(Duration::from_nanos(ns)).to_string().replace(' ', ""));
    period.map_or_else(|| format!("--max-overhead {most}"), |period| format!("--max-overhead {most}/{period}"))
}

/// Losses, own cost, completeness.
pub(super) fn remarks(options: &TextOptions, profile: &Profile) -> String {
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
    text.push_str(&profile.budget.as_ref().map_or_else(String::new, |budget| limit(budget, profile)));
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
    text.push_str(&slow_probes(options, profile));
    text.push_str(&completeness(profile));
    fitted(options, &text)
}

/// On a terminal, no line is wider than that; where there is none, a sentence stays on its line.
fn fitted(options: &TextOptions, text: &str) -> String {
    let Some(width) = options.width else { return text.to_owned() };
    let line = |line: &str| if line.width() > width { paragraph(options, 0, line) } else { format!("{line}\n") };
    text.lines().map(line).collect()
}

pub(super) fn completeness(profile: &Profile) -> String {
    if profile.complete {
        return "complete: nothing was lost\n".into();
    }
    format!("INCOMPLETE: {}\n", profile.incomplete_because.join("; "))
}

/// Functions whose probes are dear: those that were called. What was not called has cost nothing.
fn slow_probes(options: &TextOptions, profile: &Profile) -> String {
    let mut text = String::new();
    for library in profile.engine.libraries.iter().filter(|library| !library.slow.is_empty()) {
        let calls =
            |name: &str| profile.functions.iter().find(|row| row.all.name == name).map_or(0, |row| row.all.calls);
        let called = library.slow.iter().filter(|site| options.all || calls(site.function) > 0);
        let names: Vec<String> =
            called.map(|site| format!("{} ({} calls)", site.function, count(calls(site.function)))).collect();
        if !names.is_empty() {
            let _ = writeln!(text, "slow probes (single-stepped by the kernel): {}", names.join(", "));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use mpiprobe_model::{Estimate, Level, LibraryInfo, Reduction, SlowSite, Spending, sample};

    use super::*;

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

    #[test]
    fn what_was_reduced_is_said() {
        let mut profile = sample::profile(sample::ranks(1));
        profile.functions = vec![sample::function("MPI_Iprobe", 7, 10)];
        let estimate = Estimate { calls: 900, calls_low: 800, calls_high: Some(1000), windows: 30 };
        profile.functions[0].all.estimated = Some(estimate);
        let budget = Budget {
            max_overhead: Some(2.0),
            period_ns: Some(600_000_000_000),
            spent: Some(Spending {
                rank: Some(3),
                pid: 77,
                percent: 1.0,
                minute_percent: 1.5,
                function: Some("MPI_Iprobe"),
                function_percent: 0.9,
            }),
            levels: vec![Reduction {
                function: "MPI_Iprobe",
                level: Level::Sampled,
                since_ns: 2_000_000_000,
                entries_ns: 500_000_000,
                sampled_ns: 30_000_000_000,
            }],
            traffic_until_ns: Some(1_000_000_000),
            traffic_paused_ns: 3_000_000_000,
            traffic_is_back: false,
        };
        let back = limit(&Budget { traffic_is_back: true, ..budget.clone() }, &profile);
        assert!(back.contains("what calls move was not found out for 3.00 s, from 1.00 s on\n"), "{back}");
        assert_eq!(
            limit(&budget, &profile),
            "of which rank 3 pays most: 1.50 % of a minute's time, 0.90 % of it now for MPI_Iprobe (--max-overhead 2/10m)\n\
             MPI_Iprobe was counted with less care from 2.00 s on (by entry alone for 500 ms, in samples for 30.0 s): 800 to \
             1,000 calls, with a confidence of 95 %\n\
             what calls move was found out until 1.00 s only\n\
             that keeps the limit; --max-overhead off counts everything, --functions leaves functions out\n"
        );
    }

    #[test]
    fn no_remark_is_wider_than_the_terminal() {
        let mut profile = sample::profile(sample::ranks(1));
        profile.incomplete_because = vec!["rank 7 is on a node on which nobody has observed anything at all".into(); 3];
        profile.complete = false;
        let narrow = remarks(&TextOptions { width: Some(60), ..TextOptions::default() }, &profile);
        assert!(narrow.lines().all(|line| line.width() <= 60), "{narrow}");
        let whole = remarks(&TextOptions::default(), &profile);
        assert_eq!(narrow.split_whitespace().collect::<Vec<_>>(), whole.split_whitespace().collect::<Vec<_>>());
        assert!(whole.lines().any(|line| line.starts_with("INCOMPLETE: ") && line.width() > 200));
    }

    #[test]
    fn dear_probes_that_nobody_has_hit_are_no_news() {
        let mut profile = sample::profile(sample::ranks(1));
        profile.functions = vec![sample::function("MPI_Waitall", 7, 10)];
        let slow = |function| SlowSite { function, reason: "mov".into() };
        profile.engine.libraries = vec![LibraryInfo {
            path: "/lib/libmpi.so".into(),
            implementation: "MPI".into(),
            build_id: None,
            functions: 3,
            slow: vec![slow("MPI_Waitall"), slow("MPI_File_read")],
            not_probed: Vec::new(),
        }];
        let shown = |options: TextOptions| slow_probes(&options, &profile);
        assert_eq!(
            shown(TextOptions::default()),
            "slow probes (single-stepped by the kernel): MPI_Waitall (7 calls)\n"
        );
        assert!(shown(TextOptions { all: true, ..TextOptions::default() }).contains("MPI_File_read (0 calls)"));
        profile.functions.clear();
        assert_eq!(slow_probes(&TextOptions::default(), &profile), "");
    }
}
