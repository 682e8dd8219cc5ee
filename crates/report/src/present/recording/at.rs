//! How a moment of a recording is named: `#13`, `12s`, `+01:30`, `12:34:56`.

use std::{ops::RangeInclusive, str::FromStr};

use jiff::{SignedDuration, Timestamp, civil::Time, tz::TimeZone};
use thiserror::Error;

const SECOND: u64 = 1_000_000_000;
const DAY: u64 = 24 * 60 * 60 * SECOND;

/// A moment, as it was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// The first is 1.
    Number(usize),
    /// Since the beginning of observation, ns.
    Since(u64),
    /// The same as moments are shown: by their second, ns.
    Shown(u64),
    Clock(Clock),
}

/// A time of day, UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock(Time);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("no moment: such as 90s or +01:30 since the beginning, 12:34:56 by the clock (UTC), or #13")]
pub struct AtError;

impl FromStr for At {
    type Err = AtError;

    fn from_str(text: &str) -> Result<Self, AtError> {
        if let Some(number) = text.strip_prefix('#') {
            return number.parse().map(Self::Number).map_err(|_| AtError);
        }
        if let Some(since) = text.strip_prefix('+').filter(|since| since.contains(':')) {
            return minutes(since).map(Self::Shown).ok_or(AtError);
        }
        if text.contains(':') {
            return text.parse().map(|time| Self::Clock(Clock(time))).map_err(|_| AtError);
        }
        let text = text.strip_prefix('+').unwrap_or(text);
        let since = humantime::parse_duration(text).map_err(|_| AtError);
        // A bare number means seconds to everybody.
        let since = since.or_else(|_| text.parse().map(std::time::Duration::from_secs).map_err(|_| AtError))?;
        u64::try_from(since.as_nanos()).map(Self::Since).map_err(|_| AtError)
    }
}

/// Of `[hours:]minutes:seconds`, ns.
fn minutes(text: &str) -> Option<u64> {
    let mut seconds = 0_u64;
    for (place, part) in text.split(':').enumerate() {
        let part: u64 = part.parse().ok()?;
        if place > 2 || place > 0 && part >= 60 {
            return None;
        }
        seconds = seconds.checked_mul(60)?.checked_add(part)?;
    }
    seconds.checked_mul(SECOND)
}

impl Clock {
    /// The first second, ns since the beginning of observation, in which a clock shows this.
    fn second(self, began: Timestamp) -> Option<RangeInclusive<u64>> {
        let of_day = |time: Time| {
            let seconds = u64::try_from(time.hour()).ok()? * 3600 + u64::try_from(time.minute()).ok()? * 60;
            Some(
                (seconds + u64::try_from(time.second()).ok()?) * SECOND
                    + u64::try_from(time.subsec_nanosecond()).ok()?,
            )
        };
        let began = of_day(began.to_zoned(TimeZone::UTC).time())?;
        let wanted = of_day(self.0)?;
        // The whole second is meant: also the one in which it began.
        let second = began - began % SECOND;
        let since = if wanted >= second { wanted - second } else { wanted + DAY - second };
        Some(since.saturating_sub(began % SECOND)..=(since + SECOND - 1).saturating_sub(began % SECOND))
    }
}

/// A whole second is all that happened in it, as a moment is shown by its second.
fn shown(since_ns: u64) -> RangeInclusive<u64> {
    since_ns..=if since_ns.is_multiple_of(SECOND) { since_ns.saturating_add(SECOND - 1) } else { since_ns }
}

/// Times of moments: their number, when observation began, and each in ns since then, growing.
#[derive(Clone, Copy)]
#[expect(missing_debug_implementations, reason = "functions have none")]
pub struct Times<'a> {
    pub began: Option<Timestamp>,
    pub count: usize,
    pub at_ns: &'a dyn Fn(usize) -> u64,
}

/// The number of the moment that is meant, the first is 0.
///
/// `Err`: there is none; `true`: the time is before the first one.
pub fn find(at: At, times: Times<'_>) -> Result<usize, bool> {
    place(at, times, shown)
}

/// The same of a moment that a span begins or ends with: the last one until then.
pub fn find_bound(at: At, times: Times<'_>) -> Result<usize, bool> {
    place(at, times, |since_ns| since_ns..=since_ns)
}

fn place(at: At, times: Times<'_>, meant: fn(u64) -> RangeInclusive<u64>) -> Result<usize, bool> {
    let Times { began, count, at_ns } = times;
    let until = |time: RangeInclusive<u64>| {
        if count == 0 || *time.start() > at_ns(count - 1) {
            return Err(false);
        }
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = low.midpoint(high);
            if at_ns(middle) <= *time.end() { low = middle + 1 } else { high = middle }
        }
        low.checked_sub(1).ok_or(true)
    };
    match at {
        At::Number(number) => number.checked_sub(1).filter(|&index| index < count).ok_or(number == 0),
        At::Since(since_ns) => until(meant(since_ns)),
        At::Shown(since_ns) => until(shown(since_ns)),
        At::Clock(clock) => until(began.and_then(|began| clock.second(began)).ok_or(false)?),
    }
}

/// "12:34:56 (+00:12)", UTC, of a time since the beginning, ns.
pub fn describe(began: Option<Timestamp>, at_ns: u64) -> String {
    let moment = SignedDuration::try_from(std::time::Duration::from_nanos(at_ns)).ok();
    let moment = began.zip(moment).and_then(|(began, since)| began.checked_add(since).ok());
    let clock = moment.map(|moment| moment.to_zoned(TimeZone::UTC).strftime("%H:%M:%S").to_string());
    format!("{} ({})", clock.as_deref().unwrap_or("?"), since(at_ns))
}

/// "+00:12", or "+1:00:12".
fn since(ns: u64) -> String {
    let seconds = ns / SECOND;
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("+{hours}:{minutes:02}:{seconds:02}") } else { format!("+{minutes:02}:{seconds:02}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_read_as_they_are_shown() {
        assert_eq!("#13".parse(), Ok(At::Number(13)));
        assert_eq!("90s".parse(), Ok(At::Since(90 * SECOND)));
        assert_eq!("90".parse(), Ok(At::Since(90 * SECOND)));
        for ns in [0, 12 * SECOND, 60 * SECOND, 3599 * SECOND, 4000 * SECOND, 400_000 * SECOND] {
            assert_eq!(since(ns).parse(), Ok(At::Shown(ns)), "{}", since(ns));
        }
        for wrong in ["", "#", "#x", "soon", "+1:60", "1:2:3:4", "25:00:00", "+99999999999999999999:00", "-1s"] {
            assert_eq!(wrong.parse::<At>(), Err(AtError), "{wrong}");
        }
    }

    #[test]
    fn a_clock_goes_on_after_midnight() {
        let began: Timestamp = "2026-03-01T23:59:58.500Z".parse().unwrap();
        let since = |clock: &str| match clock.parse() {
            Ok(At::Clock(clock)) => clock.second(began).unwrap(),
            other => panic!("{other:?}"),
        };
        assert_eq!(since("23:59:58"), 0..=499_999_999, "the second in which it began");
        assert_eq!(since("23:59:59"), 500_000_000..=1_499_999_999);
        assert_eq!(since("00:00:01"), 2_500_000_000..=3_499_999_999);
    }

    #[test]
    fn a_bound_is_the_last_moment_until_then() {
        let at_ns = |index: usize| (index as u64 + 1) * SECOND / 10 - 1;
        let times = Times { began: None, count: 40, at_ns: &at_ns };
        let [bound, named] = [find_bound, find].map(|find| move |text: &str| find(text.parse().unwrap(), times));
        assert_eq!([bound("1s"), bound("1000ms"), bound("1001ms"), bound("1200ms")], [9, 9, 9, 11].map(Ok));
        assert_eq!((bound("+00:01"), named("+00:01"), named("1s")), (Ok(19), Ok(19), Ok(19)), "as it is shown");
        assert_eq!((bound("0s"), bound("5s")), (Err(true), Err(false)));
    }
}
