//! Operations with requests as text: how long they were under way, and those that were never completed.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use mpiprobe_model::{PendingRow, Profile};

use super::{
    table::{TextOptions, left, right, section, table},
    units::{count, duration, ns, percent},
};

/// Places in the program shown, of those with most operations.
const SHOWN: usize = 20;

/// Operations posted at one place and not complete.
#[derive(Debug, Default)]
struct PendingSite {
    operations: u64,
    ranks: BTreeSet<Option<u32>>,
    oldest_ns: u64,
}

/// Operations of one function.
#[derive(Clone, Copy, Debug, Default)]
struct Completed {
    operations: u64,
    pending_ns: u64,
    waited_ns: u64,
}

/// Requests, of which it is known when they were complete, and those that no call has said to be complete, by where they were made; empty
/// without any.
pub(super) fn pending(options: &TextOptions, profile: &Profile) -> String {
    let sections = [completed(options, profile), not_complete(options, profile)];
    let shown: Vec<String> = sections.into_iter().filter(|section| !section.is_empty()).collect();
    shown.join("\n")
}

fn completed(options: &TextOptions, profile: &Profile) -> String {
    let mut functions: BTreeMap<&str, Completed> = BTreeMap::new();
    for flow in profile.ranks.iter().flat_map(|rank| &rank.traffic).flat_map(|traffic| &traffic.flows) {
        if flow.completed > 0 {
            let all = functions.entry(flow.function).or_default();
            all.operations = all.operations.saturating_add(flow.completed);
            all.pending_ns = all.pending_ns.saturating_add(flow.pending_ns);
            all.waited_ns = all.waited_ns.saturating_add(flow.waited_ns);
        }
    }
    if functions.is_empty() {
        return String::new();
    }
    let columns = [
        left("function"),
        right("completed"),
        right("under way, mean"),
        right("waited for"),
        right("mean").spare(),
        right("waited %"),
    ];
    let mut rows: Vec<(&str, Completed)> = functions.into_iter().collect();
    rows.sort_by_key(|(_, all)| Reverse((all.waited_ns, all.operations)));
    let row = |(function, all): (&str, Completed)| {
        let each = |ns: u64| duration(ns as f64 / all.operations.max(1) as f64);
        // What they were waited for is a part of it; of a recording it may be anything.
        let all_ns = all.pending_ns.max(all.waited_ns);
        let share = if all_ns == 0 { "-".into() } else { percent(100.0 * all.waited_ns as f64 / all_ns as f64) };
        let (under_way, waited) = (each(all.pending_ns), each(all.waited_ns));
        vec![function.to_owned(), count(all.operations), under_way, ns(all.waited_ns), waited, share]
    };
    section("Requests completed, all ranks", &table(options, &columns, rows.into_iter().map(row)))
}

fn not_complete(options: &TextOptions, profile: &Profile) -> String {
    let mut places: BTreeMap<(&str, String), PendingSite> = BTreeMap::new();
    for rank in &profile.ranks {
        for row in rank.traffic.iter().flat_map(|traffic| &traffic.pending) {
            let place = places.entry((row.function, site(row))).or_default();
            place.operations += 1;
            place.ranks.insert(rank.rank);
            place.oldest_ns = place.oldest_ns.max(row.age_ns);
        }
    }
    if places.is_empty() {
        return String::new();
    }
    let columns = [left("function"), right("requests"), right("ranks"), right("oldest"), left("made at")];
    let mut sorted: Vec<_> = places.into_iter().collect();
    sorted.sort_by_key(|(_, place)| Reverse(place.operations));
    let (shown, of) = (options.rows(SHOWN), sorted.len());
    let row = |((function, site), place): ((&str, String), PendingSite)| {
        let ranks = count(place.ranks.len() as u64);
        vec![function.to_owned(), count(place.operations), ranks, ns(place.oldest_ns), site]
    };
    let text = table(options, &columns, sorted.into_iter().take(shown).map(row)) + &options.more(shown, of, "places");
    section("Requests not complete", &text)
}

fn site(row: &PendingRow) -> String {
    row.site.clone().unwrap_or_else(|| format!("{:#x}", row.call_site))
}
