//! Places in the program that call MPI, as text.

use std::cmp::Reverse;

use mpiprobe_model::Profile;

use super::{
    table::{TextOptions, left, right, section, table},
    traffic::amounts,
    units::{duration, ns, or_unknown, percent},
};
use crate::sites::{Site, sites};

/// Places shown, of those with most time.
const SHOWN: usize = 20;

/// Where MPI is called; empty without `--traffic`. Where the compiler has put the calling function into others, those are named too.
pub(super) fn call_sites(options: &TextOptions, profile: &Profile) -> String {
    let mut sites = sites(profile);
    if sites.is_empty() {
        return String::new();
    }
    if let Some(by) = options.by {
        sites.sort_by_key(|site| Reverse(by.of_amounts(&site.all)));
    }
    let columns = [
        left("function"),
        left("called at"),
        right("calls"),
        right("time"),
        right("mean"),
        right("MPI %"),
        right("imbalance"),
        right("slowest rank").spare(),
        right("its time").spare(),
        right("sent").spare_first(),
        right("received").spare_first(),
    ];
    let mpi_ns = profile.totals.mpi_ns.sum;
    let row = |site: &Site| {
        let [calls, time, sent, received] = amounts(&site.all);
        let called = match site.started_by {
            Some(start) => format!("{start} ({})", site.function),
            None => site.function.to_owned(),
        };
        let (slowest, its_ns) = site.slowest().unwrap_or_default();
        let rank = profile.ranks.get(slowest).and_then(|rank| rank.rank);
        vec![
            called,
            site.place.text.clone(),
            calls,
            time,
            duration(site.all.time_ns as f64 / site.all.calls.max(1) as f64),
            if mpi_ns > 0.0 { percent(100.0 * site.all.time_ns as f64 / mpi_ns) } else { "-".into() },
            format!("+{:.0} %", 100.0 * site.time_over_ranks_ns.imbalance),
            or_unknown(rank),
            ns(its_ns),
            sent,
            received,
        ]
    };
    let shown = options.rows(SHOWN);
    let text = table(options, &columns, sites.iter().take(shown).map(row));
    section("Call sites, all ranks", &(text + &options.more(shown, sites.len(), "call sites")))
}
