//! What was not counted, by cause.

use mpiprobe_common::{Loss, loss::LOSSES};
use serde::{Deserialize, Serialize};

macro_rules! declare {
    ($($(#[$doc:meta])* $loss:ident = $number:literal, $name:ident, $kind:ident, $words:literal;)*) => {
        /// Loss counters, each zero in a complete profile but for those marked as no loss of calls.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        pub struct Losses {
            $($(#[$doc])* #[serde(default)] pub $name: u64,)*
            /// Probe hits that the kernel did not pass on, because a BPF program was running on that CPU already; `null`: the
            /// kernel does not tell.
            pub missed_hits: Option<u64>,
        }

        impl Losses {
            /// From the counters of one process.
            pub fn of(counters: &[u64; LOSSES]) -> Self {
                let count = |loss: Loss| counters.get(loss as usize).copied().unwrap_or(0);
                Self { $($name: count(Loss::$loss),)* missed_hits: Some(0) }
            }

            pub fn add(&mut self, other: &Self) {
                $(self.$name = self.$name.saturating_add(other.$name);)*
                self.missed_hits = self.missed_hits.zip(other.missed_hits).map(|(a, b)| a.saturating_add(b));
            }

            /// Every counter with its kind and what it means, in words.
            fn all(&self) -> impl Iterator<Item = (Kind, u64, &'static str)> {
                let missed = "probe hits missed: a BPF program was running on that CPU";
                [(Kind::lost, self.missed_hits.unwrap_or(0), missed), $((Kind::$kind, self.$name, $words)),*].into_iter()
            }
        }
    };
}

/// What a counter that is not zero means for a profile, named as in the list.
#[derive(Clone, Copy, PartialEq, Eq)]
#[expect(non_camel_case_types, reason = "the words of the list of losses")]
enum Kind {
    /// It is incomplete.
    lost,
    /// It lacks nothing that was to be counted.
    told,
}

mpiprobe_common::losses!(declare);

impl Losses {
    /// Every counter with what it means, in words.
    pub fn described(&self) -> Vec<(u64, &'static str)> {
        self.all().map(|(_, count, what)| (count, what)).collect()
    }

    /// Those of [`Self::described`] that mean lost counts; also those that are 0.
    pub fn lost(&self) -> Vec<(u64, &'static str)> {
        self.all().filter(|(kind, ..)| *kind == Kind::lost).map(|(_, count, what)| (count, what)).collect()
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
