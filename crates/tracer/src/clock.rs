//! How the clock of the events stands to that of the world.
#![expect(unsafe_code, reason = "adjtimex(2) has no safe form")]

use mpiprobe_trace::ClockPair;
use rustix::time::{ClockId, clock_gettime};

/// The two are read so often; the pair that took least counts.
const ATTEMPTS: usize = 5;

/// Both clocks now.
pub fn clock_pair() -> ClockPair {
    let ns = |clock| {
        let now = clock_gettime(clock);
        let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
        seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(now.tv_nsec).unwrap_or(0))
    };
    let read = |_| {
        let (before, realtime_ns, after) = (ns(ClockId::Monotonic), ns(ClockId::Realtime), ns(ClockId::Monotonic));
        let within_ns = after.saturating_sub(before);
        ClockPair { monotonic_ns: before + within_ns / 2, realtime_ns, within_ns, max_error_ns: None }
    };
    let best = (0..ATTEMPTS).map(read).min_by_key(|pair| pair.within_ns).unwrap_or_default();
    ClockPair { max_error_ns: max_error_ns(), ..best }
}

/// How far the clock of the world may be wrong, as the kernel knows; `None`: it is not synchronised.
fn max_error_ns() -> Option<u64> {
    // SAFETY: zeros are a valid value: nothing is to be changed.
    let mut asked: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel fills the structure that it is given.
    let state = unsafe { libc::adjtimex(&raw mut asked) };
    let is_synchronised = state >= 0 && state != libc::TIME_ERROR && asked.status & libc::STA_UNSYNC == 0;
    // Microseconds.
    is_synchronised.then(|| u64::try_from(asked.maxerror).unwrap_or(0).saturating_mul(1000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_clocks_go_on_and_are_read_together() {
        let (before, one, other) = (mpiprobe_observe::monotonic_ns(), clock_pair(), clock_pair());
        assert!(before <= one.monotonic_ns && one.monotonic_ns <= other.monotonic_ns);
        assert!(one.realtime_ns > 0);
    }
}
