//! Who has waited for whom, and why, in words.

use std::fmt::Write as _;

use mpiprobe_model::{
    Activity, CauseRow, ClockQuality, CriticalPath, PendingEnds, UnmatchedEnds, WaitKind, WaitRow, WaitSite, WaitStates,
};

use super::{
    table::{TextOptions, left, right, section, table},
    units::{count, duration, ns, or_unknown, percent},
};

/// Causes of a wait that are named.
const CAUSES: usize = 2;
/// A share of a wait that is worth a word.
const LEAST_SHARE: f64 = 0.05;

/// Rows of a table that most readers want.
const ROWS: usize = 16;

/// Wait states as tables.
pub fn wait_states(states: &WaitStates, options: &TextOptions) -> String {
    let mut text = summary(states);
    let parts = [
        ("\nWaiting, by kind", kinds(states, options)),
        ("\nWho waits, where and why", waits(states, options)),
        ("\nWhat others wait for", delays(states, options)),
        (
            "\nThe critical path",
            states.critical_path.as_ref().map_or_else(String::new, |path| critical_path(states, path, options)),
        ),
        ("\nClocks of the nodes", clocks(&states.clocks, options)),
    ];
    for (title, body) in parts {
        if !body.is_empty() {
            text += &section(title, &body);
        }
    }
    text + &pending(states) + &notes(&states.unmatched, &states.clocks) + &own_cost(states)
}

/// The same as part of a profile.
pub(super) fn wait_states_of_profile(states: &WaitStates, options: &TextOptions) -> String {
    section("Wait states", &wait_states(states, options))
}

fn summary(states: &WaitStates) -> String {
    let ends = &states.unmatched;
    let matched = ends.matched_messages.saturating_mul(2).saturating_add(ends.matched_collective_calls);
    let unmatched = ends.unmatched_ends();
    let is_any_at_most = states.waits.iter().any(|row| row.kind.is_at_most());
    let waited =
        states.waits.iter().filter(|row| row.kind.is_waiting()).fold(0u64, |sum, row| sum.saturating_add(row.ns));
    let mut text = format!(
        "{} calls in {}{}; {}{} waiting for others, which is {} of the time and {} of the time in MPI\n",
        count(states.calls),
        if states.is_short { "the last " } else { "" },
        ns(states.span_ns()),
        if unmatched > 0 && !is_any_at_most { "at least " } else { "" },
        ns(waited),
        share(waited, states.total_ns),
        share(waited, states.mpi_ns),
    );
    if unmatched > 0 {
        _ = writeln!(
            text,
            "{} of {} ends of messages and calls of collectives were matched; what the others have waited for is not known.",
            count(matched),
            count(matched.saturating_add(unmatched)),
        );
    }
    if states.open_calls > 0 {
        _ = writeln!(
            text,
            "{} calls have not returned: what they have waited for is not known. `mpiprobe hang` says it of a job that runs.",
            count(states.open_calls),
        );
    }
    if states.waits.is_empty() {
        text += match (matched, unmatched) {
            (_, 0) if states.calls == 0 => "No call was recorded.\n",
            _ if states.calls == states.open_calls => "",
            (_, 0) => "Nobody has waited for anybody.\n",
            (0, _) => "",
            _ => "Those that were matched have waited for nobody.\n",
        };
    }
    text
}

fn share(part: u64, whole: u64) -> String {
    if whole == 0 { "?".into() } else { format!("{} %", percent(part as f64 * 100.0 / whole as f64)) }
}

fn kinds(states: &WaitStates, options: &TextOptions) -> String {
    let rows = WaitKind::ALL.into_iter().flat_map(|kind| {
        let of_kind = || states.waits.iter().filter(move |row| row.kind == kind);
        let sum = |of: fn(&WaitRow) -> u64| of_kind().map(of).fold(0, u64::saturating_add);
        let row = |name: &str, times: String, time: u64, longest: String| {
            vec![name.to_owned(), times, ns(time), share(time, states.total_ns), longest]
        };
        let longest = of_kind().map(|row| row.longest_ns).max().unwrap_or(0);
        let main =
            of_kind().next().map(|_| row(kind.title(), count(sum(|row| row.count)), sum(|row| row.ns), ns(longest)));
        let parts = [
            ("  of that wrong order, same source", sum(|row| row.wrong_order_same_source_ns)),
            ("  of that wrong order, other sources", sum(|row| row.wrong_order_other_source_ns)),
            ("  of that early fence", sum(|row| row.early_fence_ns)),
            ("  of that late complete", sum(|row| row.late_complete_ns)),
        ];
        let parts = parts.into_iter().filter(|&(_, time)| time > 0);
        main.into_iter()
            .chain(parts.map(|(name, time)| row(name, String::new(), time, String::new())))
            .collect::<Vec<_>>()
    });
    let rows: Vec<_> = rows.collect();
    if rows.is_empty() {
        return String::new();
    }
    table(options, &[left("kind"), right("times"), right("time"), right("of all"), right("longest")], rows)
}

fn waits(states: &WaitStates, options: &TextOptions) -> String {
    let most = options.rows(ROWS);
    let waiting = || states.waits.iter().filter(|row| row.kind.is_waiting());
    let rows: Vec<_> = waiting()
        .take(most)
        .map(|row| {
            vec![
                thread(states, row.thread),
                row.kind.title().to_owned(),
                call(states, row.site),
                count(row.count),
                ns(row.ns),
                ns(row.longest_ns),
                causes(states, row),
            ]
        })
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    let columns =
        [left("rank"), left("waits by"), left("in"), right("times"), right("time"), right("longest"), left("because")];
    table(options, &columns, rows) + &more(waiting().count(), most)
}

fn more(all: usize, most: usize) -> String {
    match all.saturating_sub(most) {
        0 => String::new(),
        left => format!("and {left} more (--top, --json)\n"),
    }
}

/// A wait and what it is due to, in a sentence: "rank 3's 4.10 s in MPI_Recv at halo.c:91 are caused by rank 2, which computes longer at
/// flux.c:40-88".
pub fn wait_sentence(states: &WaitStates, row: &WaitRow) -> String {
    let whose = format!("{}'s {} in {}", rank(states, row.thread), ns(row.ns), call(states, row.site));
    match causes(states, row) {
        causes if causes.is_empty() => whose,
        causes => format!("{whose} are caused by {causes}"),
    }
}

/// What a wait is due to: "rank 2, which computes longer at flux.c:40-88"; empty: not known.
pub fn wait_causes(states: &WaitStates, row: &WaitRow) -> String {
    causes(states, row)
}

/// In which call somebody waits: "MPI_Recv at halo.c:91".
pub fn wait_place(states: &WaitStates, row: &WaitRow) -> String {
    call(states, row.site)
}

/// Who waits: "3", or "3/1234" of a thread of several.
pub fn waiting_thread(states: &WaitStates, row: &WaitRow) -> String {
    thread(states, row.thread)
}

/// "rank 2, which computes longer at flux.c:40-88"; with its share if that is not nearly all.
fn causes(states: &WaitStates, row: &WaitRow) -> String {
    let part = |cause: &CauseRow| cause.ns as f64 / row.ns.max(1) as f64;
    let known = row.caused_by.iter().filter(|cause| part(cause) >= LEAST_SHARE);
    let known = known.filter_map(|cause| Some((cause, cause.thread?, cause.activity?)));
    let texts = known.take(CAUSES).map(|(cause, thread, activity)| {
        let text = format!("{}, which {}", rank(states, thread), does(states, activity));
        let part = part(cause);
        if part > 0.9 { text } else { format!("{text} ({} %)", percent(part * 100.0)) }
    });
    texts.collect::<Vec<_>>().join("; ")
}

/// What a thread does longer than others.
fn does(states: &WaitStates, activity: Activity) -> String {
    match activity {
        Activity::Computing { after, before } => format!("computes longer {}", between(states, after, before)),
        Activity::Calling { site } => format!("is longer in {}", call(states, site)),
        Activity::NotRecorded { after, before } => {
            format!("takes longer for what was not recorded {}", between(states, after, before))
        }
        Activity::Waiting { site } => format!("waits itself in {}", call(states, site)),
    }
}

/// The same as a name.
fn activity(states: &WaitStates, activity: Activity) -> String {
    match activity {
        Activity::Computing { after, before } => format!("computing {}", between(states, after, before)),
        Activity::Calling { site } => call(states, site),
        Activity::NotRecorded { after, before } => format!("not recorded {}", between(states, after, before)),
        Activity::Waiting { site } => format!("waiting in {}", call(states, site)),
    }
}

/// "at flux.c:40-88", or what else is known of where something lies.
fn between(states: &WaitStates, after: Option<u32>, before: Option<u32>) -> String {
    let of = |index: Option<u32>| index.and_then(|index| states.call_sites.get(index as usize));
    let name = |site: &WaitSite| site.site.clone().unwrap_or_else(|| site.function.clone());
    match (of(after), of(before)) {
        (Some(after), Some(before)) => match (place(after), place(before)) {
            (Some((file, first)), Some((other, last))) if file == other && first <= last => {
                format!("at {}:{first}-{last}", base_name(file))
            }
            (Some((file, first)), Some((other, last))) => {
                format!("between {}:{first} and {}:{last}", base_name(file), base_name(other))
            }
            _ => format!("between {} and {}", name(after), name(before)),
        },
        (Some(after), None) => format!("after {}", name(after)),
        (None, Some(before)) => format!("before {}", name(before)),
        (None, None) => "somewhere".into(),
    }
}

fn place(site: &WaitSite) -> Option<(&str, u32)> {
    Some((site.file.as_deref()?, site.line?))
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// "MPI_Recv at halo.c:91".
fn call(states: &WaitStates, site: u32) -> String {
    let Some(site) = states.call_sites.get(site as usize) else { return "?".into() };
    let at = match (place(site), &site.site) {
        (Some((file, line)), _) => format!("{}:{line}", base_name(file)),
        (None, Some(text)) => text.clone(),
        (None, None) => return site.function.clone(),
    };
    format!("{} at {at}", site.function)
}

/// "3", or "3/1234" of a thread of several.
fn thread(states: &WaitStates, index: u32) -> String {
    let Some(thread) = states.threads.get(index as usize) else { return "?".into() };
    let rank = or_unknown(thread.rank);
    if thread.is_one_of_several { format!("{rank}/{}", thread.tid) } else { rank }
}

fn rank(states: &WaitStates, index: u32) -> String {
    match states.threads.get(index as usize) {
        Some(of) if of.is_one_of_several => format!("thread {} of rank {}", of.tid, or_unknown(of.rank)),
        Some(of) => format!("rank {}", or_unknown(of.rank)),
        None => "rank ?".into(),
    }
}

fn delays(states: &WaitStates, options: &TextOptions) -> String {
    let most = options.rows(ROWS);
    let rows: Vec<_> = states
        .delays
        .iter()
        .take(most)
        .map(|row| {
            vec![
                thread(states, row.thread),
                activity(states, row.activity),
                duration(row.direct_ns),
                duration(row.indirect_ns),
            ]
        })
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    let columns = [left("rank"), left("what it does longer"), right("costs directly"), right("indirectly")];
    table(options, &columns, rows) + &more(states.delays.len(), most)
}

fn critical_path(states: &WaitStates, path: &CriticalPath, options: &TextOptions) -> String {
    let most = options.rows(ROWS);
    let parts = path.parts.iter().take(most).map(|row| {
        vec![thread(states, row.thread), activity(states, row.activity), ns(row.ns), share(row.ns, path.length_ns)]
    });
    let columns = [left("rank"), left("what it does"), right("time"), right("of the path")];
    let mut text = format!("{} long\n", ns(path.length_ns));
    text += &table(options, &columns, parts.collect::<Vec<_>>());
    text += &more(path.parts.len(), most);
    let imbalance = path.imbalance.iter().filter(|row| row.imbalance_ns >= 0.01 * path.length_ns as f64);
    let rows: Vec<_> = imbalance
        .take(most)
        .map(|row| {
            let what = match row.activity {
                // Ranks go from there to different calls.
                Activity::Computing { after, .. } => format!("computing {}", between(states, after, None)),
                other => activity(states, other),
            };
            vec![what, ns(row.path_ns), duration(row.mean_ns), duration(row.imbalance_ns), duration(row.impact_ns)]
        })
        .collect();
    if rows.is_empty() {
        return text;
    }
    let columns = [
        left("what all ranks do"),
        right("on the path"),
        right("on average"),
        right("imbalance"),
        right("others lose"),
    ];
    _ = write!(text, "\nImbalance on it\n{}", table(options, &columns, rows));
    text
}

fn clocks(clocks: &ClockQuality, options: &TextOptions) -> String {
    if clocks.nodes.len() < 2 {
        return String::new();
    }
    let rows = clocks.nodes.iter().map(|node| {
        let within = node
            .within_ns
            .map_or_else(|| "not known: nothing compares it".into(), |within| format!("± {}", ns(within)));
        vec![
            node.host.clone(),
            format!("{} ns", node.offset_ns),
            format!("{:.0}", node.drift_ns_per_s),
            within,
            count(node.evidence),
        ]
    });
    let columns = [left("node"), right("offset"), right("ns/s"), left("true to"), right("messages that tell")];
    table(options, &columns, rows)
}

/// What may come into the figures yet.
fn pending(states: &WaitStates) -> String {
    let PendingEnds { sends, receives, collective_calls, calls } = states.pending;
    let all = [
        (sends, "messages that nobody has received"),
        (receives, "receives that have got nothing"),
        (collective_calls, "collective calls that others have not made"),
        (calls, "calls that are over, where it is not known what others have done meanwhile"),
    ];
    let mut text = String::new();
    for (number, what) in all.into_iter().filter(|&(number, _)| number > 0) {
        if text.is_empty() {
            text += "\nNot matched yet\n";
        }
        _ = writeln!(text, "{:>12} {what}", count(number));
    }
    text
}

/// What it has taken to find this out while the job ran.
fn own_cost(states: &WaitStates) -> String {
    let span_ns = states.until_ns.saturating_sub(states.from_ns);
    states.own_cpu_ns.map_or_else(String::new, |own_ns| {
        format!("\nFinding this out took {} of a processor, {} of the time\n", ns(own_ns), share(own_ns, span_ns))
    })
}

/// What the figures do not have.
fn notes(ends: &UnmatchedEnds, clocks: &ClockQuality) -> String {
    let all = [
        (ends.sends, "sends whose receive is not in the trace"),
        (ends.receives, "receives whose send is not in the trace"),
        (ends.outside, "sends and receives with processes that were not recorded"),
        (ends.of_unknown_source, "receives from anybody that do not say from whom they were (MPI_STATUS_IGNORE)"),
        (
            ends.of_unknown_request,
            "requests that were started or completed, and had been made or posted before, or by calls that were lost",
        ),
        (
            ends.completed_unseen,
            "requests that no recorded call has completed: functions that do were not to be recorded (--functions)",
        ),
        (
            ends.unsure,
            "sends and receives whose order was not sure: calls are missing, or messages may have been on their way when recording \
             began, and no waiting has told which belong together",
        ),
        (ends.contradictions, "pairs of sends and receives that do not fit together"),
        (
            ends.of_partial_groups,
            "collective calls over communicators whose members are not all recorded, or not known",
        ),
        (ends.incomplete_collective_calls, "collective calls that others have not made, or not been seen to make"),
        (
            ends.epochs,
            "epochs of one-sided communication in which nobody was seen to access anything, or whose other side is not there",
        ),
        (ends.unknown_neighbours, "collective calls over neighbourhoods that are not known"),
        (ends.lost_calls, "calls that are missing in the trace"),
        (ends.left_out_calls, "calls that were not to be recorded"),
        (ends.between_clocks, "messages and collective calls between nodes whose clocks nothing compares"),
        (clocks.unsure_waits, "waits between nodes that are shorter than their clocks may be off"),
        (ends.causes_cut_off, "waits whose indirect causes were not followed to their end, for want of room"),
        (clocks.violations, "times that cannot be true: something was over before what it needed had begun"),
    ];
    let mut text = String::new();
    for (number, what) in all.into_iter().filter(|&(number, _)| number > 0) {
        if text.is_empty() {
            text += "\nNot in these figures\n";
        }
        _ = writeln!(text, "{:>12} {what}", count(number));
    }
    if clocks.violations > 0 {
        _ = writeln!(text, "{:>12} at most", ns(clocks.worst_violation_ns));
    }
    text
}

#[cfg(test)]
mod tests {
    use mpiprobe_model::{DelayRow, PathRow, WaitingThread};

    use super::*;

    #[test]
    fn where_nothing_has_returned_nobody_is_said_to_have_waited_for_nobody() {
        let summary = |calls, open_calls| {
            let states =
                WaitStates { calls, open_calls, waits: Vec::new(), unmatched: UnmatchedEnds::default(), ..sample() };
            summary(&states)
        };
        assert!(summary(5, 0).contains("Nobody has waited"), "{}", summary(5, 0));
        assert!(summary(0, 0).contains("No call was recorded."), "{}", summary(0, 0));
        assert!(
            !summary(2, 2).contains("Nobody") && summary(2, 2).contains("2 calls have not returned"),
            "{}",
            summary(2, 2)
        );
        assert!(summary(9, 2).contains("Nobody has waited") && summary(9, 2).contains("2 calls have not returned"));
    }

    fn site(function: &str, file: &str, line: u32) -> WaitSite {
        WaitSite {
            function: function.into(),
            site: Some(format!("{file}:{line} in f")),
            file: Some(format!("/home/me/{file}")),
            line: Some(line),
        }
    }

    fn sample() -> WaitStates {
        let row = |thread, ns, caused_by| WaitRow {
            kind: WaitKind::LateSender,
            thread,
            site: 2,
            count: 10,
            ns,
            longest_ns: ns / 4,
            longest_at_ns: 0,
            wrong_order_same_source_ns: 0,
            wrong_order_other_source_ns: 1_000_000_000,
            early_fence_ns: 0,
            late_complete_ns: 0,
            caused_by,
            unexplained_ns: 0,
        };
        let computing = Activity::Computing { after: Some(0), before: Some(1) };
        WaitStates {
            is_short: false,
            from_ns: 0,
            until_ns: 10_000_000_000,
            calls: 12_345,
            open_calls: 0,
            total_ns: 40_000_000_000,
            mpi_ns: 20_000_000_000,
            complete: false,
            threads: (0..4).map(|rank| WaitingThread { rank: Some(rank), ..WaitingThread::default() }).collect(),
            call_sites: vec![
                site("MPI_Bcast", "flux.c", 40),
                site("MPI_Send", "flux.c", 88),
                site("MPI_Recv", "halo.c", 91),
            ],
            waits: vec![row(
                3,
                4_100_000_000,
                vec![CauseRow { thread: Some(2), activity: Some(computing), ns: 4_000_000_000 }],
            )],
            delays: vec![DelayRow { thread: 2, activity: computing, direct_ns: 4e9, indirect_ns: 0.0 }],
            critical_path: Some(CriticalPath {
                length_ns: 10_000_000_000,
                parts: vec![PathRow { thread: 2, activity: computing, ns: 10_000_000_000 }],
                imbalance: Vec::new(),
            }),
            unmatched: UnmatchedEnds { sends: 2, ..UnmatchedEnds::default() },
            pending: PendingEnds { receives: 3, calls: 1, ..PendingEnds::default() },
            clocks: ClockQuality::default(),
            own_cpu_ns: Some(50_000_000),
        }
    }

    #[test]
    fn causes_are_told_in_words() {
        let states = sample();
        assert_eq!(
            wait_sentence(&states, &states.waits[0]),
            "rank 3's 4.10 s in MPI_Recv at halo.c:91 are caused by rank 2, which computes longer at flux.c:40-88"
        );
    }

    #[test]
    fn a_profile_has_them_if_they_were_found_out() {
        let without = mpiprobe_model::sample::profile(mpiprobe_model::sample::ranks(4));
        let text =
            |profile: &mpiprobe_model::Profile| crate::present::profile(&TextOptions::default(), profile, &[], None);
        assert!(!text(&without).contains("Wait states"));
        let has_finding = |profile: &mpiprobe_model::Profile| {
            let found = crate::present::findings(profile).into_iter().filter(|one| one.name == "waits for another");
            found.map(|one| one.found).collect::<Vec<_>>()
        };
        assert!(has_finding(&without).is_empty());
        let with = mpiprobe_model::Profile { wait_states: Some(sample()), ..without };
        assert_eq!(
            has_finding(&with),
            [
                "rank 3's 4.10 s in MPI_Recv at halo.c:91 are caused by rank 2, which computes longer at flux.c:40-88; that is 41.0 % of a \
              thread's time (late sender)"
            ]
        );
        assert!(text(&with).contains("\nWait states\n12,345 calls in 10.0 s; "), "{}", text(&with));
    }

    #[test]
    fn tables_say_what_is_missing() {
        let text = wait_states(&sample(), &TextOptions::default());
        for line in [
            "12,345 calls in 10.0 s; at least 4.10 s waiting for others, which is 10.2 % of the time and 20.5 % of the time in MPI",
            "0 of 2 ends of messages and calls of collectives were matched; what the others have waited for is not known.",
            "  of that wrong order, other sources",
            "           2 sends whose receive is not in the trace",
            "Not matched yet\n           3 receives that have got nothing\n           1 calls that are over",
            "Finding this out took 50.0 ms of a processor, 0.5 % of the time",
        ] {
            assert!(text.contains(line), "{text}");
        }
    }
}
