//! The last calls of processes, taken out of their rings before they are overwritten.

use std::collections::{BTreeMap, HashMap};

use mpiprobe_common::{
    RecentCall,
    recent::{RECENT_CALLS, entry_of},
};

/// Calls that are kept of a process, and of all together if there are many.
const MOST_KEPT: usize = 512;
const MOST_TOGETHER: usize = 1 << 16;

/// What was taken out of all rings since they have been written to.
#[derive(Debug, Default)]
pub struct RecentLog {
    by_process: HashMap<u32, Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    /// Number of the first call that was written since.
    from: u64,
    /// By number.
    calls: BTreeMap<u64, RecentCall>,
}

impl RecentLog {
    /// A process's calls from this number on are of interest: those before were written when somebody else looked.
    pub fn begin(&mut self, process: u32, from: u64) {
        self.by_process.insert(process, Kept { from, calls: BTreeMap::new() });
    }

    /// Whether [`Self::begin`] has been called for a process.
    pub fn has(&self, process: u32) -> bool {
        self.by_process.contains_key(&process)
    }

    /// Takes out what is new: `written` is the number of the next call, `read` gives an entry's copy if it is whole.
    ///
    /// All that the ring may have is looked at every time, because a call may be written later than those that follow it.
    pub fn take(&mut self, process: u32, written: u64, mut read: impl FnMut(u64) -> Option<RecentCall>) {
        let most = (MOST_TOGETHER / self.by_process.len().max(1)).clamp(RECENT_CALLS as usize, MOST_KEPT);
        let kept = self.by_process.entry(process).or_default();
        for number in kept.from.max(written.saturating_sub(RECENT_CALLS.into()))..written {
            if !kept.calls.contains_key(&number)
                && let Some(call) = read(number).filter(|call| call.number() == Some(number))
            {
                kept.calls.insert(number, call);
            }
        }
        while kept.calls.len() > most {
            kept.calls.pop_first();
        }
    }

    /// The calls kept of a process, in the order of their numbers. Numbers between that are missing were not seen.
    pub fn calls(&self, process: u32) -> Vec<RecentCall> {
        self.by_process.get(&process).map_or_else(Vec::new, |kept| kept.calls.values().copied().collect())
    }
}

/// A copy of a whole ring, made while its process may write to it.
#[derive(Debug, Default)]
pub struct RecentRing(Vec<RecentCall>);

impl RecentRing {
    /// Two copies, one made after the other: what is the same in both was not being written.
    pub(super) fn of(first: Vec<RecentCall>, second: &[RecentCall]) -> Self {
        let same =
            |(first, second): (RecentCall, &RecentCall)| if first == *second { first } else { RecentCall::default() };
        Self(first.into_iter().zip(second).map(same).collect())
    }

    /// The call of a number, if it is there and whole.
    pub fn call(&self, number: u64) -> Option<RecentCall> {
        self.0.get(entry_of(number) as usize).copied().filter(|call| call.number() == Some(number))
    }
}

#[cfg(test)]
mod tests {
    use mpiprobe_common::recent::WRITING;

    use super::*;

    const RING: u64 = RECENT_CALLS as u64;

    /// A ring into which so many calls were written.
    struct Ring(Vec<RecentCall>);

    impl Ring {
        fn of(written: u64) -> Self {
            let mut ring = Self(vec![RecentCall::default(); RECENT_CALLS as usize]);
            (0..written).for_each(|number| ring.set(number, number + 1));
            ring
        }

        fn set(&mut self, number: u64, state: u64) {
            self.0[entry_of(number) as usize] = RecentCall { state, ns: number, ..RecentCall::default() };
        }

        fn read(&self, number: u64) -> Option<RecentCall> {
            self.0.get(entry_of(number) as usize).copied()
        }
    }

    fn numbers(log: &RecentLog) -> Vec<u64> {
        log.calls(1).iter().filter_map(RecentCall::number).collect()
    }

    #[test]
    fn the_last_calls_are_there_in_order() {
        let (mut log, ring) = (RecentLog::default(), Ring::of(RING + 10));
        log.take(1, RING + 10, |number| ring.read(number));
        assert_eq!(numbers(&log), (10..RING + 10).collect::<Vec<_>>());
        assert!(log.calls(1).iter().all(|call| Some(call.ns) == call.number()));
        assert!(log.calls(2).is_empty());
    }

    #[test]
    fn looks_add_up_and_what_was_overwritten_between_is_missing() {
        let mut log = RecentLog::default();
        for written in [5, RING, 3 * RING] {
            let ring = Ring::of(written);
            log.take(1, written, |number| ring.read(number));
        }
        assert_eq!(numbers(&log), (0..RING).chain(2 * RING..3 * RING).collect::<Vec<_>>());
    }

    #[test]
    fn what_is_overwritten_or_written_now_is_not_believed() {
        let (mut log, mut ring) = (RecentLog::default(), Ring::of(4));
        // Overwritten since the number of calls was read, being written, and not written yet.
        ring.set(0, RING + 1);
        ring.set(1, WRITING | 2);
        ring.set(2, 0);
        log.take(1, 4, |number| ring.read(number));
        assert_eq!(numbers(&log), [3]);
        ring.set(1, 2);
        log.take(1, 4, |number| ring.read(number));
        assert_eq!(numbers(&log), [1, 3]);
    }

    #[test]
    fn torn_copies_are_left_out() {
        let (mut log, ring) = (RecentLog::default(), Ring::of(3));
        log.take(1, 3, |number| ring.read(number).filter(|_| number != 1));
        assert_eq!(numbers(&log), [0, 2]);
    }

    #[test]
    fn a_copy_made_while_an_entry_was_written_has_all_but_that() {
        let (before, mut after) = (Ring::of(RING), Ring::of(RING));
        after.set(5, RING + 6);
        after.0[6].arguments[0] = 1;
        let ring = RecentRing::of(before.0, &after.0);
        let missing: Vec<u64> = (0..RING).filter(|&number| ring.call(number).is_none()).collect();
        assert_eq!(missing, [5, 6]);
        assert_eq!(RecentRing::default().call(0), None);
    }

    #[test]
    fn what_somebody_else_has_looked_at_is_left_out() {
        let (mut log, ring) = (RecentLog::default(), Ring::of(12));
        log.begin(1, 9);
        assert!(log.has(1) && !log.has(2));
        log.take(1, 12, |number| ring.read(number));
        assert_eq!(numbers(&log), [9, 10, 11]);
    }

    #[test]
    fn only_so_many_are_kept() {
        let mut log = RecentLog::default();
        let last = MOST_KEPT as u64 + 3 * RING;
        for written in (1..=last).filter(|written| written.is_multiple_of(RING)) {
            let ring = Ring::of(written);
            log.take(1, written, |number| ring.read(number));
        }
        assert_eq!(numbers(&log), (last - MOST_KEPT as u64..last).collect::<Vec<_>>());
    }
}
