//! What was not counted, by cause.

use mpiprobe_common::{Loss, loss::LOSSES};
use serde::{Deserialize, Serialize};

/// Loss counters, each zero in a complete profile but for those marked as no loss of calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Losses {
    /// Calls not counted: too many live threads for the thread table.
    pub thread_table_full: u64,
    /// Calls not counted: too many (process, function) pairs for the statistics table.
    pub stats_table_full: u64,
    /// Processes that matched but were not observed: too many for the process table.
    pub process_table_full: u64,
    /// Probe hits that the kernel did not pass on, because a BPF program was running on that CPU already; `null`: the
    /// kernel does not tell.
    pub missed_hits: Option<u64>,
    /// Returns without an entry: calls that began before attach. No loss: such a call is outside what was observed.
    pub returns_without_entry: u64,
    /// Entries whose frame was left by other ways than a return (`longjmp`, an exception): such a call has no duration and is not
    /// counted as completed, so that figures are lower bounds.
    pub entries_without_return: u64,
    /// Calls whose call site or stack arguments could not be read. They are counted.
    pub stack_unreadable: u64,
    /// Inner calls not timed: more than eight open at once, or on another stack than the open one.
    pub inner_too_deep: u64,
    /// Inner calls not counted: the table of inner calls was full.
    pub inner_table_full: u64,
    /// Notices of exec or exit that were dropped.
    pub events_dropped: u64,
    /// Calls that are in no flow: the table of flows was full.
    pub flow_table_full: u64,
    /// Calls over communicators for which there was no room in their table.
    pub communicator_table_full: u64,
    /// Operations that were not followed to their completion: the table of requests was full.
    pub request_table_full: u64,
    /// Calls whose requests were not followed, or not all: more than 1,024 of them, or they could not be read.
    pub requests_not_followed: u64,
    /// Phases whose calls are counted in the one they were opened in: more than 1,024 phases, or more than 16 open at once.
    pub phase_table_full: u64,
    /// Calls of tools not timed at their entry: more than four open in one another, too many functions for the table, on another stack
    /// than the open one, or of a process whose calls are counted at their entry (`--returns`).
    #[serde(default)]
    pub tool_calls_lost: u64,
    /// Calls of which it is not known what they moved, with whom or over which communicator, or which requests they completed,
    /// because the layout of the process's MPI library was not known, or not yet.
    #[serde(default)]
    pub layout_unknown: u64,
}

impl Losses {
    /// From the counters of one process.
    pub fn of(counters: &[u64; LOSSES]) -> Self {
        let count = |loss: Loss| counters.get(loss as usize).copied().unwrap_or(0);
        Self {
            thread_table_full: count(Loss::ThreadTableFull),
            stats_table_full: count(Loss::StatsTableFull),
            process_table_full: count(Loss::ProcessTableFull),
            missed_hits: Some(0),
            returns_without_entry: count(Loss::ReturnWithoutEntry),
            entries_without_return: count(Loss::EntryWithoutReturn),
            stack_unreadable: count(Loss::StackUnreadable),
            inner_too_deep: count(Loss::InnerTooDeep),
            inner_table_full: count(Loss::InnerTableFull),
            events_dropped: count(Loss::EventDropped),
            flow_table_full: count(Loss::FlowTableFull),
            communicator_table_full: count(Loss::CommunicatorTableFull),
            request_table_full: count(Loss::RequestTableFull),
            requests_not_followed: count(Loss::RequestsNotFollowed),
            phase_table_full: count(Loss::PhaseTableFull),
            tool_calls_lost: count(Loss::ToolCallLost),
            layout_unknown: count(Loss::LayoutUnknown),
        }
    }

    pub fn add(&mut self, other: &Self) {
        self.thread_table_full = self.thread_table_full.saturating_add(other.thread_table_full);
        self.stats_table_full = self.stats_table_full.saturating_add(other.stats_table_full);
        self.process_table_full = self.process_table_full.saturating_add(other.process_table_full);
        self.missed_hits = self.missed_hits.zip(other.missed_hits).map(|(a, b)| a.saturating_add(b));
        self.returns_without_entry = self.returns_without_entry.saturating_add(other.returns_without_entry);
        self.entries_without_return = self.entries_without_return.saturating_add(other.entries_without_return);
        self.stack_unreadable = self.stack_unreadable.saturating_add(other.stack_unreadable);
        self.inner_too_deep = self.inner_too_deep.saturating_add(other.inner_too_deep);
        self.inner_table_full = self.inner_table_full.saturating_add(other.inner_table_full);
        self.events_dropped = self.events_dropped.saturating_add(other.events_dropped);
        self.flow_table_full = self.flow_table_full.saturating_add(other.flow_table_full);
        self.communicator_table_full = self.communicator_table_full.saturating_add(other.communicator_table_full);
        self.request_table_full = self.request_table_full.saturating_add(other.request_table_full);
        self.requests_not_followed = self.requests_not_followed.saturating_add(other.requests_not_followed);
        self.phase_table_full = self.phase_table_full.saturating_add(other.phase_table_full);
        self.tool_calls_lost = self.tool_calls_lost.saturating_add(other.tool_calls_lost);
        self.layout_unknown = self.layout_unknown.saturating_add(other.layout_unknown);
    }

    /// Every counter with what it means, in words.
    pub fn described(&self) -> Vec<(u64, &'static str)> {
        vec![
            (self.thread_table_full, "calls not counted: thread table full (--max-threads)"),
            (self.stats_table_full, "calls not counted: statistics table full (--max-stats)"),
            (self.process_table_full, "processes not observed: process table full (--max-processes)"),
            (self.missed_hits.unwrap_or(0), "probe hits missed: a BPF program was running on that CPU"),
            (self.inner_too_deep, "inner calls not timed: nested too deep, or on another stack"),
            (self.inner_table_full, "inner calls not counted: table full (--max-stats)"),
            (self.flow_table_full, "calls in no flow: flow table full (--max-flows)"),
            (self.communicator_table_full, "calls over communicators without room: table full (--max-communicators)"),
            (self.request_table_full, "operations not followed to their completion: table full (--max-requests)"),
            (self.requests_not_followed, "calls whose requests were not all followed: too many, or not readable"),
            (
                self.layout_unknown,
                "calls whose bytes, partners or requests are unknown: the layout of the MPI library was not known (yet)",
            ),
            (
                self.tool_calls_lost,
                "calls of tools not timed at their entry: too deep in one another, on another stack, without return probes (--returns), or table full (--max-stats)",
            ),
            (self.entries_without_return, "calls not counted: left without a return (longjmp, exception)"),
            (
                self.phase_table_full,
                "phases not told apart from the one they were opened in: too many, or too many open",
            ),
            (self.events_dropped, "notices of exec or exit dropped"),
            (self.returns_without_entry, "returns of calls that began before attach"),
            (self.stack_unreadable, "calls whose call site could not be read"),
        ]
    }

    /// Those of [`Self::described`] that mean lost counts, which come first; also those that are 0.
    pub fn lost(&self) -> Vec<(u64, &'static str)> {
        const COUNTS_LOST: usize = 13;
        let mut described = self.described();
        described.truncate(COUNTS_LOST);
        described
    }

    /// Why the counts are not complete, in words; empty if they are. Options that make tables larger are named where there are any.
    pub fn incomplete_because(&self, has_options: bool) -> Vec<String> {
        let lost = self.lost().into_iter().filter(|(count, _)| *count > 0);
        lost.map(|(count, what)| format!("{count} {}", without_options(what, has_options))).collect()
    }
}

/// A text of [`Losses::described`] as it is where tables have the size they have: what cannot be typed is not advised.
pub fn without_options(what: &str, has_options: bool) -> String {
    match what.split_once(" (--max-") {
        Some((before, option)) if !has_options => {
            let after = option.split_once(')').map_or("", |(_, after)| after);
            format!("{before}{after}")
        }
        _ => what.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As docs/metrics.md has it.
    #[test]
    fn what_is_lost_makes_a_profile_incomplete_and_nothing_else_does() {
        let none = Losses::default;
        let lost = [
            Losses { thread_table_full: 1, ..none() },
            Losses { stats_table_full: 1, ..none() },
            Losses { process_table_full: 1, ..none() },
            Losses { missed_hits: Some(1), ..none() },
            Losses { inner_too_deep: 1, ..none() },
            Losses { inner_table_full: 1, ..none() },
            Losses { flow_table_full: 1, ..none() },
            Losses { communicator_table_full: 1, ..none() },
            Losses { request_table_full: 1, ..none() },
            Losses { requests_not_followed: 1, ..none() },
            Losses { tool_calls_lost: 1, ..none() },
            Losses { entries_without_return: 1, ..none() },
            Losses { layout_unknown: 1, ..none() },
        ];
        for losses in lost {
            assert_eq!(losses.incomplete_because(true).len(), 1, "{losses:?}");
        }
        let no_loss =
            Losses { returns_without_entry: 1, stack_unreadable: 1, phase_table_full: 1, events_dropped: 1, ..none() };
        assert!(no_loss.incomplete_because(true).is_empty());
    }

    #[test]
    fn options_are_named_only_where_they_can_be_typed() {
        let losses = Losses { stats_table_full: 2, ..Losses::default() };
        let [(_, typed)] = [(0, losses.incomplete_because(true))];
        assert!(typed.iter().any(|why| why.contains("(--max-stats)")), "{typed:?}");
        assert!(!losses.incomplete_because(false).iter().any(|why| why.contains("--max")));
        for (_, what) in losses.described() {
            assert!(!without_options(what, false).contains("--max"), "{what}");
        }
    }
}
