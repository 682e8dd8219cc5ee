//! The profile as text.

use std::{borrow::Cow, cmp::Reverse, fmt::Write as _};

use mpiprobe_model::{
    EndReason, FunctionProfile, Profile, RankProfile, SaturatingSum as _, Spread,
    filter::{Filter, apply},
};

use super::{
    call_sites::call_sites,
    findings::FindingText,
    layers::layers,
    open_calls::{began_before, inner_calls, open_calls},
    phases::phases,
    ranks::{efficiencies, ranks},
    remarks::{completeness, remarks},
    table::{Column, RANKS, RANKS_SHOWN, TextOptions, left, paragraph, right, section, table},
    threads::threads,
    traffic::traffic,
    transfers::{transfers, volume},
    units::{UNKNOWN, bytes, calls, count, duration, ns, or_unknown, percent, rate, sum_of_calls, time_unless, unless},
    unmatched::unmatched,
    wait_states::wait_states_of_profile,
    waiting::waits,
};

/// Functions that are shown, of those with most time.
const FUNCTIONS: usize = 40;

/// A profile for people. Of its rows, those that the filter keeps; sums, findings and who waits for whom are of everything.
pub fn profile(options: &TextOptions, all: &Profile, findings: &[FindingText], filter: Option<&Filter>) -> String {
    if all.ranks.is_empty() {
        // Nobody reads empty tables.
        return format!("{}\nNo MPI call was counted.\n{}", header(options, all), completeness(all));
    }
    let profile = &*filtered(all, filter);
    let sections = [
        header(options, profile),
        filter.map(|filter| format!("Filter: {}; sums are of everything\n", filter.text())).unwrap_or_default(),
        self::findings(options, findings),
        efficiencies(options, profile),
        ranks(options, profile),
        groups(options, profile),
        functions(options, &profile.functions),
        functions_of_ranks(options, profile),
        call_sites(options, profile),
        traffic(options, profile),
        phases(options, profile),
        transfers(options, profile),
        threads(options, profile),
        layers(options, profile),
        inner_calls(options, profile),
        open_calls(options, profile),
        began_before(options, profile),
        waits(options, all),
        unmatched(options, all),
        all.wait_states.as_ref().map_or_else(String::new, |states| wait_states_of_profile(states, options)),
        remarks(options, profile),
    ];
    let shown: Vec<String> = sections.into_iter().filter(|section| !section.is_empty()).collect();
    shown.join("\n")
}

/// The rows that a filter keeps.
pub fn filtered<'a>(profile: &'a Profile, filter: Option<&Filter>) -> Cow<'a, Profile> {
    let Some(filter) = filter else { return Cow::Borrowed(profile) };
    Cow::Owned(apply(filter, profile).profile)
}

/// What is probably wrong, and what to do about it: of several of a kind, the latter is said once.
fn findings(options: &TextOptions, findings: &[FindingText]) -> String {
    if findings.is_empty() {
        return String::new();
    }
    let mut text = String::new();
    for of_kind in findings.chunk_by(|one, other| one.name == other.name) {
        for finding in of_kind {
            text += &paragraph(options, 0, &format!("{}: {}", finding.name, finding.found));
            for line in &finding.evidence {
                text += &paragraph(options, 4, line);
            }
        }
        text += &of_kind.first().map(|finding| paragraph(options, 4, &finding.advised())).unwrap_or_default();
    }
    section("Findings", &text)
}

pub(super) fn header(options: &TextOptions, profile: &Profile) -> String {
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
    match options.width {
        Some(_) => text.lines().map(|line| paragraph(options, 0, line)).collect(),
        None => text,
    }
}

/// Maximum over mean, as a surplus.
fn ratio(spread: &Spread) -> String {
    format!("+{:.0} %", 100.0 * spread.imbalance)
}

fn groups(options: &TextOptions, profile: &Profile) -> String {
    if profile.groups.is_empty() {
        return String::new();
    }
    let mut columns = vec![
        left("group"),
        right("calls"),
        right("calls/s").spare(),
        right("time"),
        right("wall %").spare(),
        right("MPI %"),
        right("imbalance").spare(),
    ];
    if profile.groups.iter().any(|group| group.all.traffic.is_some()) {
        columns
            .extend([right("sent"), right("a second"), right("received"), right("a second")].map(Column::spare_first));
    }
    let untimed = profile.ranks.iter().map(|rank| rank.untimed_calls).saturating_sum();
    let of_group = |group: &'static str| {
        profile.functions.iter().map(|function| &function.all).filter(move |row| row.group == group)
    };
    let rows = profile.groups.iter().map(|group| {
        let all = &group.all;
        let mut row = vec![
            all.group.into(),
            sum_of_calls(all.calls, of_group(all.group)),
            if of_group(all.group).any(|row| row.estimated.is_some()) {
                UNKNOWN.into()
            } else {
                rate(all.rates.calls_per_s)
            },
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
    section("Groups, all ranks", &table(options, &columns, rows))
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

pub(super) fn functions(options: &TextOptions, functions: &[FunctionProfile]) -> String {
    if functions.is_empty() {
        return String::new();
    }
    let mut columns = vec![
        left("function"),
        right("calls"),
        right("open").spare(),
        right("time"),
        right("mean"),
        right("min").spare_first(),
        right("p50").spare(),
        right("p99").spare(),
        right("max"),
        right("wall %").spare(),
        right("MPI %"),
        right("imbalance"),
    ];
    if functions.iter().any(|function| function.all.traffic.is_some()) {
        columns.extend([right("sent"), right("each"), right("received"), right("each")].map(Column::spare_first));
        columns.push(right("bytes unknown").spare_first());
    }
    let untimed = functions.iter().map(|function| function.all.untimed_calls).saturating_sum();
    let mut rows: Vec<&FunctionProfile> = functions.iter().collect();
    if let Some(by) = options.by {
        rows.sort_by_key(|function| Reverse(by.of_function(&function.all)));
    }
    let shown = options.rows(FUNCTIONS);
    let row = |function: &&FunctionProfile| {
        let all = &function.all;
        let completed = |ns: f64| if all.calls == all.untimed_calls { "-".into() } else { duration(ns) };
        let mut row = vec![
            all.name.into(),
            calls(all),
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
    };
    let text = table(options, &columns, rows.iter().take(shown).map(row));
    section("Functions, all ranks", &(text + &options.more(shown, rows.len(), "functions")))
}

/// Each rank's functions, where the ranks are few enough to be read.
fn functions_of_ranks(options: &TextOptions, profile: &Profile) -> String {
    if profile.ranks.len() < 2 || profile.functions.is_empty() {
        return String::new();
    }
    let is_numbered = profile.ranks.iter().zip(RANKS).all(|(rank, number)| or_unknown(rank.rank) == number);
    if profile.ranks.len() > RANKS_SHOWN || !is_numbered {
        return format!("Functions by rank: see --json ({} ranks)\n", profile.ranks.len());
    }
    let mut columns = vec![left("time (calls)")];
    columns.extend(RANKS.iter().take(profile.ranks.len()).map(|number| right(number).spare()));
    let rows = profile.functions.iter().take(options.rows(FUNCTIONS)).map(|function| {
        let cell = |rank: &RankProfile| {
            let row = rank.functions.iter().find(|row| row.name == function.all.name);
            row.map_or_else(String::new, |row| {
                format!("{} ({})", time_unless(row.untimed_calls, row.spent_ns()), calls(row))
            })
        };
        let mut cells = vec![function.all.name.to_owned()];
        cells.extend(profile.ranks.iter().map(cell));
        cells
    });
    section("Functions by rank", &table(options, &columns, rows))
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
        let text = profile(&TextOptions::default(), &nobody, &[], None);
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
        let text = profile(&TextOptions::default(), &all, &[], None);
        assert!(text.contains("parallel efficiency: unknown; ranks may be inside calls"), "{text}");
        let row = text.lines().find(|line| line.contains(" 4000 ")).unwrap();
        assert_eq!(row.split_whitespace().filter(|cell| *cell == "?").count(), 2, "{row}");
    }
}
