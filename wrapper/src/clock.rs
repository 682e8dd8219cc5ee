//! Time stamps: from the processor's counter where that runs evenly, else from the system.
//!
//! A stamp is a number of ticks. Each thread has an anchor, a moment of which both ticks and time are known, and renews it about
//! once a second: stamps are then right by `CLOCK_MONOTONIC` to within what two clocks drift apart in that time. The length of a
//! tick is measured against `CLOCK_MONOTONIC_RAW`, over all the time since the library was loaded; until that has been long enough
//! to be exact, the system is asked for each stamp.

use core::arch::x86_64::{__cpuid, _rdtsc};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use crate::{imports, system};

/// So long a time of both clocks makes the length of a tick exact to a few parts in a million, ns.
const ENOUGH_NS: u64 = 10_000_000;
/// Long enough for a length of a tick that is right to a per cent, ns.
const ROUGHLY_NS: u64 = 10_000;
/// Between two anchors, ns.
const ANCHOR_NS: u64 = 1_000_000_000;
/// The length of a tick, ns, is written as a multiple of 2⁻³².
const ONE: u64 = 1 << 32;
/// Between two measurements it may differ by a 256th; if it differs by more, the counter does not run evenly.
const TOLERANCE: u64 = 256;

/// What the counter and the raw clock said when the library was loaded; 0: the counter is of no use.
static FIRST_TICKS: AtomicU64 = AtomicU64::new(0);
static FIRST_RAW_NS: AtomicU64 = AtomicU64::new(0);
/// Found to run unevenly.
static UNEVEN: AtomicBool = AtomicBool::new(false);
/// Ticks that reading both costs at least: of several attempts the quickest is the exact one.
const ATTEMPTS: u32 = 3;
/// Not 0: the counter is in use by somebody.
static IN_USE: AtomicU32 = AtomicU32::new(0);

/// The clock of one thread.
#[repr(C)]
pub(crate) struct Clock {
    /// The moment of which both are known.
    anchor: u64,
    anchor_ns: u64,
    /// Length of a tick.
    scale: u64,
    /// From then on the anchor is too old.
    deadline: u64,
    /// Ticks are those of the processor's counter, not nanoseconds of the system.
    counts: bool,
}

/// To be called once, when the library is loaded.
pub(crate) fn start() {
    if is_even() {
        let (ticks, raw) = both(libc::CLOCK_MONOTONIC_RAW);
        FIRST_RAW_NS.store(raw, Ordering::Relaxed);
        FIRST_TICKS.store(ticks, Ordering::Release);
    }
}

/// Whether the time stamp counter is used.
pub(crate) fn uses_counter() -> bool {
    IN_USE.load(Ordering::Relaxed) != 0
}

/// Whether the processor promises a counter that runs evenly in all states, and the kernel agrees.
fn is_even() -> bool {
    let extended = __cpuid(0x8000_0000).eax;
    if extended < 0x8000_0007 || __cpuid(0x8000_0007).edx & 1 << 8 == 0 {
        return false;
    }
    let mut name = [0u8; 32];
    let path = c"/sys/devices/system/clocksource/clocksource0/current_clocksource";
    if system::open(path, libc::O_RDONLY, 0).and_then(|file| file.read(&mut name)).is_err() {
        return false;
    }
    // Those of virtual machines are made from the counter, which then runs evenly as well.
    [&b"tsc\n"[..], b"kvm-clock\n", b"hyperv_clocksource_tsc_page\n"].iter().any(|source| name.starts_with(source))
}

/// Nanoseconds of a clock of the system.
pub(crate) fn system_ns(clock: libc::clockid_t) -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    if !imports::clock_gettime(clock, &mut now) {
        system::clock_ns(clock, &mut now);
    }
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// `CLOCK_MONOTONIC`, ns.
pub(crate) fn monotonic_ns() -> u64 {
    system_ns(libc::CLOCK_MONOTONIC)
}

#[inline]
fn counter() -> u64 {
    // SAFETY: every x86-64 processor has the instruction.
    unsafe { _rdtsc() }
}

/// Counter and clock at the same moment.
fn both(clock: libc::clockid_t) -> (u64, u64) {
    let mut best = (0, 0);
    let mut shortest = u64::MAX;
    for _ in 0..ATTEMPTS {
        let before = counter();
        let ns = system_ns(clock);
        let took = counter().wrapping_sub(before);
        if took < shortest {
            shortest = took;
            best = (before + took / 2, ns);
        }
    }
    best
}

impl Clock {
    pub(crate) fn new() -> Self {
        let now = monotonic_ns();
        let mut clock = Self { anchor: now, anchor_ns: now, scale: ONE, deadline: now, counts: false };
        clock.renew();
        clock
    }

    /// One that is good for some milliseconds, with ticks of about the right length, whether or not they have been measured.
    pub(crate) fn for_calibration() -> Self {
        let counts = FIRST_TICKS.load(Ordering::Acquire) != 0;
        if !counts {
            return Self::new();
        }
        let (before, start) = (counter(), monotonic_ns());
        while monotonic_ns() - start < ROUGHLY_NS {}
        let (ticks, ns) = (counter() - before, monotonic_ns() - start);
        let scale = ((ns as u128) << 32).checked_div(ticks as u128).unwrap_or(ONE as u128) as u64;
        Self { anchor: before, anchor_ns: start, scale, deadline: u64::MAX, counts }
    }

    /// Now, in ticks.
    #[inline]
    pub(crate) fn stamp(&mut self) -> u64 {
        let now = if self.counts { counter() } else { monotonic_ns() };
        if now < self.deadline { now } else { self.renew() }
    }

    /// Now, in ticks, the same kind as the last stamp's: the anchor stays.
    #[inline]
    pub(crate) fn stamp_again(&self) -> u64 {
        if self.counts { counter() } else { monotonic_ns() }
    }

    /// Time between two stamps, ns.
    #[inline]
    pub(crate) fn between(&self, from: u64, to: u64) -> u64 {
        let ticks = to.saturating_sub(from);
        ((ticks as u128 * self.scale as u128) >> 32) as u64
    }

    /// The time of a stamp, ns.
    #[inline]
    pub(crate) fn time(&self, stamp: u64) -> u64 {
        self.anchor_ns + self.between(self.anchor, stamp)
    }

    /// Makes a new anchor of the present moment, and a stamp.
    #[cold]
    fn renew(&mut self) -> u64 {
        match measure() {
            Measured::Exact(scale) => {
                let (ticks, now) = both(libc::CLOCK_MONOTONIC);
                *self = Self {
                    anchor: ticks,
                    anchor_ns: now,
                    scale,
                    deadline: ticks + ((ANCHOR_NS as u128) << 32).checked_div(scale as u128).unwrap_or(0) as u64,
                    counts: true,
                };
                IN_USE.store(1, Ordering::Relaxed);
                counter()
            }
            not_yet => {
                let now = monotonic_ns();
                let wait = if matches!(not_yet, Measured::Later) { ENOUGH_NS } else { u64::MAX - now };
                *self = Self { anchor: now, anchor_ns: now, scale: ONE, deadline: now + wait, counts: false };
                now
            }
        }
    }
}

enum Measured {
    /// Length of a tick.
    Exact(u64),
    /// Not long enough yet.
    Later,
    /// The counter is of no use.
    Never,
}

/// The length of a tick as of now.
fn measure() -> Measured {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let (ticks, raw) = (FIRST_TICKS.load(Ordering::Acquire), FIRST_RAW_NS.load(Ordering::Relaxed));
    if ticks == 0 || UNEVEN.load(Ordering::Relaxed) {
        return Measured::Never;
    }
    let (now_ticks, now_raw) = both(libc::CLOCK_MONOTONIC_RAW);
    let (ticks, ns) = (now_ticks.saturating_sub(ticks), now_raw.saturating_sub(raw));
    if ns < ENOUGH_NS || ticks == 0 {
        return Measured::Later;
    }
    let scale = ((ns as u128) << 32).checked_div(ticks as u128).unwrap_or(0) as u64;
    let last = LAST.swap(scale, Ordering::Relaxed);
    // A counter slower than 1 MHz or faster than 1 THz is none.
    let is_odd = !(ONE / 1000..=ONE * 1000).contains(&scale);
    if is_odd || (last != 0 && scale.abs_diff(last) > last / TOLERANCE) {
        UNEVEN.store(true, Ordering::Relaxed);
        return Measured::Never;
    }
    Measured::Exact(scale)
}
