//! Operations under way as text: at the end, those that were never completed.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use mpiprobe_model::{PendingRow, Profile};

use super::{
    table::{
        Column::{Left, Right},
        section, table,
    },
    units::{count, ns},
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

/// Requests that no call has said to be complete, by where they were made; empty without any.
pub(super) fn pending(profile: &Profile) -> String {
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
    let columns = [Left("function"), Right("requests"), Right("ranks"), Right("oldest"), Left("made at")];
    let mut sorted: Vec<_> = places.into_iter().collect();
    sorted.sort_by_key(|(_, place)| Reverse(place.operations));
    let row = |((function, site), place): ((&str, String), PendingSite)| {
        let ranks = count(place.ranks.len() as u64);
        vec![function.to_owned(), count(place.operations), ranks, ns(place.oldest_ns), site]
    };
    section("Requests not complete", &table(&columns, sorted.into_iter().take(SHOWN).map(row)))
}

fn site(row: &PendingRow) -> String {
    row.site.clone().unwrap_or_else(|| format!("{:#x}", row.call_site))
}
