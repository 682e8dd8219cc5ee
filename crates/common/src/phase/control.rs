//! What a call of `MPI_Pcontrol` changes (MPI-3.1, section 14.2.4).
#![expect(clippy::inline_always, reason = "BPF programs have 512 bytes of stack and pay for calls")]

use super::{PHASE_DEPTH, Phase, current, level};
use crate::ProcessCounters;

/// The phases that are known, and what else a call needs of its surroundings.
pub trait Phases {
    /// Number plus one of the phase with this level and the name that the call was given, made on first use; 0: there is no room.
    fn find_or_make(&mut self, level: i32) -> u64;

    /// The phase of a number plus one.
    fn get(&mut self, phase_plus_1: u64) -> Option<&mut Phase>;

    /// At which depth the innermost open phase of this level is; `u64::MAX`: there is none.
    fn find_open(&mut self, counters: &mut ProcessCounters, level: i32) -> u64
    where
        Self: Sized,
    {
        find_open(self, counters, level)
    }

    /// A phase was opened that is not told apart.
    fn count_loss(&mut self);

    /// The program wants results to be written out.
    fn notify(&mut self);

    /// A number such that whatever it is compared with holds for its later uses: BPF's verifier knows numbers by registers.
    fn settled(number: u64) -> u64 {
        number
    }
}

/// Notices to write out results are not given more often than that, ns: a program may ask in a loop.
const FLUSH_INTERVAL_NS: u64 = 10_000_000;

/// Does what a call with this level asks for, at `time_ns`.
///
/// Threads that call at once leave one of their wishes; every index is checked.
#[inline(always)]
pub fn control<P: Phases>(phases: &mut P, counters: &mut ProcessCounters, asked: i32, time_ns: u64) {
    match asked {
        level::OFF => switch_off(counters, time_ns),
        level::NORMAL => switch_on(counters, time_ns),
        level::FLUSH => flush(phases, counters, time_ns),
        level if level > level::FLUSH => open(phases, counters, level, time_ns),
        level if level < -level::FLUSH => close(phases, counters, level.wrapping_neg(), time_ns),
        _ => {}
    }
}

#[inline(always)]
fn switch_off(counters: &mut ProcessCounters, time_ns: u64) {
    if counters.current & current::OFF == 0 {
        counters.off_since_ns = time_ns;
        counters.current |= current::OFF;
    }
}

#[inline(always)]
fn switch_on(counters: &mut ProcessCounters, time_ns: u64) {
    if counters.current & current::OFF != 0 {
        counters.current &= !current::OFF;
        counters.off_ns += time_ns - counters.off_since_ns;
        counters.off_since_ns = 0;
    }
}

#[inline(always)]
fn flush<P: Phases>(phases: &mut P, counters: &mut ProcessCounters, time_ns: u64) {
    if time_ns - counters.flushed_ns >= FLUSH_INTERVAL_NS {
        counters.flushed_ns = time_ns;
        phases.notify();
    }
}

#[inline(always)]
fn open<P: Phases>(phases: &mut P, counters: &mut ProcessCounters, level: i32, time_ns: u64) {
    let depth = counters.phase_depth;
    counters.phase_depth = depth + 1;
    if depth >= PHASE_DEPTH as u64 {
        phases.count_loss();
        return;
    }
    let phase_plus_1 = phases.find_or_make(level);
    if let Some(remembered) = remembered::<P>(counters, depth) {
        *remembered = phase_plus_1;
    }
    let Some(phase) = phases.get(phase_plus_1) else {
        phases.count_loss();
        return;
    };
    phase.opened += 1;
    if phase.open == 0 {
        phase.since_ns = time_ns;
    }
    phase.open += 1;
    counters.current = counters.current & current::OFF | phase_plus_1;
}

/// Closes the innermost open phase of this level, and those that were opened in it.
#[inline(always)]
fn close<P: Phases>(phases: &mut P, counters: &mut ProcessCounters, level: i32, time_ns: u64) {
    if counters.phase_depth > PHASE_DEPTH as u64 {
        // Of those that are too deep it is not known which they are.
        counters.phase_depth -= 1;
        return;
    }
    let found = phases.find_open(counters, level);
    if found == u64::MAX {
        return;
    }
    for _ in 0..PHASE_DEPTH {
        if counters.phase_depth <= found {
            break;
        }
        counters.phase_depth -= 1;
        let innermost = phase_at::<P>(counters, counters.phase_depth);
        if let Some(phase) = phases.get(innermost) {
            if phase.open == 1 {
                phase.time_ns += time_ns - phase.since_ns;
            }
            phase.open = phase.open.saturating_sub(1);
        }
    }
    let outer = phase_at::<P>(counters, found.wrapping_sub(1));
    counters.current = counters.current & current::OFF | outer & current::PHASE_PLUS_1;
}

/// See [`Phases::find_open`].
#[inline(always)]
pub fn find_open<P: Phases>(phases: &mut P, counters: &mut ProcessCounters, level: i32) -> u64 {
    let mut depth = counters.phase_depth;
    for _ in 0..PHASE_DEPTH {
        if depth == 0 {
            break;
        }
        depth -= 1;
        let at = phase_at::<P>(counters, depth);
        if phases.get(at).is_some_and(|phase| phase.key.level == level) {
            return depth;
        }
    }
    u64::MAX
}

/// Number plus one of the phase that is open at this depth; 0: none.
#[inline(always)]
fn phase_at<P: Phases>(counters: &mut ProcessCounters, depth: u64) -> u64 {
    remembered::<P>(counters, depth).map_or(0, |phase_plus_1| *phase_plus_1)
}

#[inline(always)]
fn remembered<P: Phases>(counters: &mut ProcessCounters, depth: u64) -> Option<&mut u64> {
    counters.open_phases.get_mut(usize::try_from(P::settled(depth)).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PhaseKey;

    /// Phases without names.
    #[derive(Default)]
    struct Few {
        phases: [Option<Phase>; 4],
        lost: u32,
        notices: u32,
    }

    impl Phases for Few {
        fn find_or_make(&mut self, level: i32) -> u64 {
            let made = Phase { key: PhaseKey::new(0, level), opened: 0, open: 0, since_ns: 0, time_ns: 0 };
            let is_it = |known: &Option<Phase>| known.is_none_or(|phase| phase.key.level == level);
            let Some(index) = self.phases.iter().position(is_it) else { return 0 };
            self.phases[index].get_or_insert(made);
            index as u64 + 1
        }

        fn get(&mut self, phase_plus_1: u64) -> Option<&mut Phase> {
            self.phases.get_mut(usize::try_from(phase_plus_1).ok()?.checked_sub(1)?)?.as_mut()
        }

        fn count_loss(&mut self) {
            self.lost += 1;
        }

        fn notify(&mut self) {
            self.notices += 1;
        }
    }

    #[test]
    fn a_closed_phase_closes_those_opened_in_it() {
        let (mut phases, mut counters) = (Few::default(), ProcessCounters::ZERO);
        for (time_ns, level) in [(10, 3), (20, 4), (30, 4), (50, -3)] {
            control(&mut phases, &mut counters, level, time_ns);
        }
        let times =
            phases.phases.map(|phase| phase.map_or((0, 0, 0), |phase| (phase.opened, phase.open, phase.time_ns)));
        assert_eq!(times, [(1, 0, 40), (2, 0, 30), (0, 0, 0), (0, 0, 0)]);
        assert_eq!((counters.phase_depth, counters.current, phases.lost), (0, 0, 0));
    }

    #[test]
    fn what_is_too_deep_or_too_many_is_counted_as_lost() {
        let (mut phases, mut counters) = (Few::default(), ProcessCounters::ZERO);
        for level in 3..8 {
            control(&mut phases, &mut counters, level, 1);
        }
        assert_eq!((phases.lost, counters.current), (1, 4));
        for _ in 0..PHASE_DEPTH {
            control(&mut phases, &mut counters, 3, 1);
        }
        assert_eq!((phases.lost, counters.phase_depth), (6, 5 + PHASE_DEPTH as u64));
        for _ in 0..5 {
            control(&mut phases, &mut counters, -3, 2);
        }
        assert_eq!(counters.phase_depth, PHASE_DEPTH as u64);
    }

    #[test]
    fn time_without_counting_is_added_up_and_wishes_to_write_are_not_given_in_a_loop() {
        let (mut phases, mut counters) = (Few::default(), ProcessCounters::ZERO);
        for (time_ns, level) in [(5, 0), (7, 0), (9, 1), (12, 1)] {
            control(&mut phases, &mut counters, level, time_ns);
        }
        assert_eq!((counters.off_ns, counters.off_since_ns, counters.current), (4, 0, 0));
        for time_ns in [FLUSH_INTERVAL_NS, FLUSH_INTERVAL_NS + 1, 2 * FLUSH_INTERVAL_NS] {
            control(&mut phases, &mut counters, level::FLUSH, time_ns);
        }
        assert_eq!(phases.notices, 2);
    }
}
