//! What was not counted, by cause. Nothing is lost without one of these counters going up.

/// Gives the macro `$with` the list of losses, the only one there is: number, names, meaning, words, and whether a profile with such a
/// loss is incomplete (`lost`) or lacks nothing that was to be counted (`told`). In the order in which they are told.
#[macro_export]
macro_rules! losses {
    ($with:ident) => {
        $with! {
            /// Calls not counted: too many live threads for the thread table.
            ThreadTableFull = 0, thread_table_full, lost,
                "calls not counted: thread table full (--max-threads)";
            /// Calls not counted: too many (process, function) pairs for the statistics table.
            StatsTableFull = 1, stats_table_full, lost,
                "calls not counted: statistics table full (--max-stats)";
            /// Processes that matched but were not observed: too many for the process table. Counted in the calibration's slot.
            ProcessTableFull = 7, process_table_full, lost,
                "processes not observed: process table full (--max-processes)";
            /// Inner calls not timed: more than eight open at once, or on another stack than the open one.
            InnerTooDeep = 5, inner_too_deep, lost,
                "inner calls not timed: nested too deep, or on another stack";
            /// Inner calls not counted: the table of inner calls was full.
            InnerTableFull = 6, inner_table_full, lost,
                "inner calls not counted: table full (--max-stats)";
            /// Calls that are in no flow: the table of flows was full.
            FlowTableFull = 9, flow_table_full, lost,
                "calls in no flow: flow table full (--max-flows)";
            /// Calls over communicators for which there was no room in their table.
            CommunicatorTableFull = 10, communicator_table_full, lost,
                "calls over communicators without room: table full (--max-communicators)";
            /// Operations that were not followed to their completion: the table of requests was full.
            RequestTableFull = 11, request_table_full, lost,
                "operations not followed to their completion: table full (--max-requests)";
            /// Calls whose requests were not followed, or not all: more than 16,384 of them, or they could not be read.
            RequestsNotFollowed = 12, requests_not_followed, lost,
                "calls whose requests were not all followed: too many, or not readable";
            /// Calls of which it is not known what they moved, with whom or over which communicator, or which requests they completed,
            /// because the layout of the process's MPI library was not known, or not yet.
            LayoutUnknown = 15, layout_unknown, lost,
                "calls whose bytes, partners or requests are unknown: the layout of the MPI library was not known (yet)";
            /// Calls of tools not timed at their entry: more than four open in one another, too many functions for the table, on
            /// another stack than the open one, or of a process whose calls are counted at their entry (`--returns`).
            ToolCallLost = 14, tool_calls_lost, lost,
                "calls of tools not timed at their entry: too deep in one another, on another stack, without return probes (--returns), or table full (--max-stats)";
            /// Entries whose frame was left by other ways than a return (`longjmp`, an exception): such a call has no duration and is
            /// not counted as completed, so that figures are lower bounds.
            EntryWithoutReturn = 3, entries_without_return, lost,
                "calls not counted: left without a return (longjmp, exception)";
            /// Phases whose calls are counted in the one they were opened in: more than 1,024 phases, or more than 16 open at once.
            PhaseTableFull = 13, phase_table_full, told,
                "phases not told apart from the one they were opened in: too many, or too many open";
            /// Notices of exec or exit that were dropped: the counters that they would announce are right all the same.
            EventDropped = 8, events_dropped, told,
                "notices of exec or exit dropped";
            /// Returns without an entry: calls that began before attach. No loss: such a call is outside what was observed.
            ReturnWithoutEntry = 2, returns_without_entry, told,
                "returns of calls that began before attach";
            /// Calls whose call site or stack arguments could not be read (the page was not in memory). They are counted.
            StackUnreadable = 4, stack_unreadable, told,
                "calls whose call site could not be read";
        }
    };
}

macro_rules! declare {
    ($($(#[$doc:meta])* $loss:ident = $number:literal, $name:ident, $kind:ident, $words:literal;)*) => {
        /// Cause of a loss; the value is the index into [`crate::ProcessCounters::losses`].
        #[repr(u32)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Loss {
            $($(#[$doc])* $loss = $number,)*
        }

        /// Number of loss counters.
        pub const LOSSES: usize = [$($number),*].len();

        impl Loss {
            pub const ALL: [Self; LOSSES] = [$(Self::$loss),*];
        }
    };
}

losses!(declare);

#[cfg(test)]
mod tests {
    extern crate std;

    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_loss_has_a_counter_of_its_own() {
        let counters: BTreeSet<usize> = Loss::ALL.iter().map(|loss| *loss as usize).collect();
        assert!(counters.into_iter().eq(0..LOSSES));
    }
}
