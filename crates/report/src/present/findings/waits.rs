//! Waits of which it was found out whom they are because of, in words.

use mpiprobe_model::{Profile, WaitRow, WaitStates};

use super::{super::wait_states::wait_sentence, FindingText};
use crate::present::units::percent;

/// Share of a thread's time from which a wait is long, per cent.
const LONG_PERCENT: f64 = 10.0;
/// Share of a wait that has to be known to be because of one thread, per cent.
const BECAUSE_PERCENT: f64 = 50.0;
/// Waits that are told of.
const MOST: usize = 3;

/// The longest, with the time that they take, ns.
pub(super) fn long_waits(profile: &Profile) -> Vec<(u64, FindingText)> {
    let Some(states) = &profile.wait_states else { return Vec::new() };
    let thread_ns = states.total_ns as f64 / states.threads.len().max(1) as f64;
    let long = states.waits.iter().filter(|row| row.kind.is_waiting() && is_caused_by_one(states, row));
    let long = long.map(|row| (row, row.ns as f64 * 100.0 / thread_ns.max(1.0)));
    long.filter(|(_, share)| *share >= LONG_PERCENT)
        .take(MOST)
        .map(|(row, share)| {
            let kind = row.kind.title();
            let text = FindingText {
                name: "waits for another",
                found: format!("{}; that is {} % of a thread's time ({kind})", wait_sentence(states, row), percent(share)),
                evidence: Vec::new(),
                hangs: false,
                meaning: "The rank cannot go on before the other one has come: what that one does longer takes the time of both.",
                advice: "Give the other one less to do there, or let this one do something else meanwhile (nonblocking calls).",
            };
            (row.ns, text)
        })
        .collect()
}

fn is_caused_by_one(states: &WaitStates, row: &WaitRow) -> bool {
    let first = row.caused_by.iter().find_map(|cause| cause.thread);
    let is_known = first.is_some_and(|thread| states.threads.get(thread as usize).is_some());
    let own = row.caused_by.iter().filter(|cause| cause.thread == first).map(|cause| cause.ns);
    let own_ns = own.fold(0, u64::saturating_add);
    is_known && own_ns as f64 * 100.0 >= BECAUSE_PERCENT * row.ns as f64
}
