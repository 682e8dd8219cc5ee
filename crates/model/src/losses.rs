//! What was not counted, by cause.

use mpiprobe_common::{Loss, loss::LOSSES};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! declare {
    ($($(#[$doc:meta])* $loss:ident = $number:literal, $name:ident, $kind:ident, $words:literal;)*) => {
        /// Loss counters, each zero in a complete profile but for those marked as no loss of calls.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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

    /// Whether nothing was lost.
    pub fn are_none(&self) -> bool {
        self.lost().iter().all(|(count, _)| *count == 0)
    }

    /// Why the counts are not complete, in words; empty if they are. What to do about a full table depends on the tables.
    pub fn incomplete_because(&self, room: TableRoom) -> Vec<String> {
        let lost = self.lost().into_iter().filter(|(count, _)| *count > 0);
        lost.map(|(count, what)| format!("{count} {}", room.loss(what))).collect()
    }
}

/// What decides how much there is room for in tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableRoom {
    /// Options.
    Options,
    /// They have the size that they have.
    Fixed,
    /// They are files, which grow as long as there is room where they are.
    Files,
}

impl TableRoom {
    /// A text of [`Losses::described`] as it is for such tables: no option is advised that cannot be typed, and no table is said to be
    /// full that may have found no room.
    pub fn loss(self, what: &str) -> String {
        let Some((before, after)) = what.split_once(" (--max-").filter(|_| self != Self::Options) else {
            return what.to_owned();
        };
        let after = after.split_once(')').map_or("", |(_, after)| after);
        let but = if self == Self::Files {
            ", or no room for more of it (disk or memory full, or the file cut short)"
        } else {
            ""
        };
        format!("{before}{but}{after}")
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
            assert_eq!(losses.incomplete_because(TableRoom::Options).len(), 1, "{losses:?}");
        }
        let no_loss =
            Losses { returns_without_entry: 1, stack_unreadable: 1, phase_table_full: 1, events_dropped: 1, ..none() };
        assert!(no_loss.incomplete_because(TableRoom::Options).is_empty());
    }

    #[test]
    fn options_are_named_only_where_they_can_be_typed() {
        let losses = Losses { stats_table_full: 2, ..Losses::default() };
        let [(_, typed)] = [(0, losses.incomplete_because(TableRoom::Options))];
        assert!(typed.iter().any(|why| why.contains("(--max-stats)")), "{typed:?}");
        for room in [TableRoom::Fixed, TableRoom::Files] {
            let why = losses.incomplete_because(room).concat();
            assert!(!why.contains("--max") && why.contains("disk") == (room == TableRoom::Files), "{why}");
            for (_, what) in losses.described() {
                assert!(!room.loss(what).contains("--max"), "{what}");
            }
        }
    }
}
