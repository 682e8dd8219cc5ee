//! Numbers with units, as short as they can be read.

use mpiprobe_model::{Estimate, FunctionRow};

/// A duration: three significant digits and a unit.
pub fn duration(ns: f64) -> String {
    let (value, unit) = match ns {
        ns if ns < 999.5 => return format!("{ns:.0} ns"),
        ns if ns < 999.5e3 => (ns / 1e3, "µs"),
        ns if ns < 999.5e6 => (ns / 1e6, "ms"),
        ns => (ns / 1e9, "s"),
    };
    match value {
        value if value < 9.995 => format!("{value:.2} {unit}"),
        value if value < 99.95 => format!("{value:.1} {unit}"),
        value => format!("{value:.0} {unit}"),
    }
}

/// An amount of data, in powers of 1000 as bandwidths are.
pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["kB", "MB", "GB", "TB", "PB", "EB"];
    if bytes < 1000 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64;
    let mut unit = "B";
    for larger in UNITS {
        if value < 999.5 {
            break;
        }
        (value, unit) = (value / 1e3, larger);
    }
    match value {
        value if value < 9.995 => format!("{value:.2} {unit}"),
        value if value < 99.95 => format!("{value:.1} {unit}"),
        value => format!("{value:.0} {unit}"),
    }
}

/// An amount of data as memory is counted, for what is a power of two, or just below one.
pub fn binary(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut shown = (bytes as f64, "B");
    for larger in UNITS {
        if shown.0 < 1024.0 {
            break;
        }
        shown = (shown.0 / 1024.0, larger);
    }
    let (value, unit) = shown;
    if value.fract() == 0.0 { format!("{value:.0} {unit}") } else { format!("{value:.1} {unit}") }
}

/// The same of whole nanoseconds.
pub fn ns(ns: u64) -> String {
    duration(ns as f64)
}

/// A count with thousands separated.
pub fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A percentage.
pub fn percent(percent: f64) -> String {
    format!("{percent:.1}")
}

/// A percentage that may be unknown.
pub fn maybe_percent(known: Option<f64>) -> String {
    known.map_or_else(|| "?".into(), percent)
}

/// A rate per second.
pub fn rate(per_second: f64) -> String {
    match per_second {
        rate if rate < 9999.5 => format!("{rate:.0}"),
        rate if rate < 9.9995e6 => format!("{:.1}k", rate / 1e3),
        rate => format!("{:.1}M", rate / 1e6),
    }
}

/// What may be unknown.
pub fn or_unknown<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "?".into(), |value| value.to_string())
}

/// Instead of what is not known.
pub const UNKNOWN: &str = "?";

/// A time that some calls (`untimed`) are not in: no less than that, or unknown if it is none at all.
pub(super) fn time_unless(untimed: u64, time_ns: u64) -> String {
    match (untimed, time_ns) {
        (0, _) => ns(time_ns),
        (_, 0) => UNKNOWN.to_owned(),
        _ => format!(">= {}", ns(time_ns)),
    }
}

/// A number of calls, of which some may not have been counted: how many there were by estimate, or at least if there is no upper limit.
pub(super) fn calls(row: &FunctionRow) -> String {
    match row.estimated {
        None => count(row.calls),
        Some(Estimate { calls, calls_high: Some(_), .. }) => format!("≈ {}", count(calls)),
        Some(Estimate { calls_low, .. }) => format!(">= {}", count(calls_low)),
    }
}

/// A sum of calls, to which those come that were not counted in one of these functions.
pub(super) fn sum_of_calls<'a>(calls: u64, rows: impl IntoIterator<Item = &'a FunctionRow>) -> String {
    let is_least = rows.into_iter().any(|row| row.estimated.is_some());
    format!("{}{}", if is_least { ">= " } else { "" }, count(calls))
}

/// What follows from times, if there is no call whose time is not known.
pub(super) fn unless(untimed: u64, text: String) -> String {
    if untimed == 0 { text } else { UNKNOWN.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_are_no_counts() {
        let mut row = mpiprobe_model::sample::function("MPI_Iprobe", 1000, 5).all;
        assert_eq!((calls(&row), sum_of_calls(7, [&row])), ("1,000".into(), "7".into()));
        let estimate = Estimate { calls: 5000, calls_low: 4000, calls_high: Some(6000), windows: 9 };
        row.estimated = Some(estimate);
        assert_eq!((calls(&row), sum_of_calls(7, [&row])), ("≈ 5,000".into(), ">= 7".into()));
        row.estimated = Some(Estimate { calls_high: None, ..estimate });
        assert_eq!(calls(&row), ">= 4,000");
    }

    #[test]
    fn durations_keep_three_digits() {
        let shown = [0.0, 999.0, 999.6, 12_345.0, 999_499.0, 1.5e6, 2.0e9, 123.4e9].map(duration);
        assert_eq!(shown, ["0 ns", "999 ns", "1.00 µs", "12.3 µs", "999 µs", "1.50 ms", "2.00 s", "123 s"]);
    }

    #[test]
    fn powers_of_two_are_round() {
        let shown = [0, 512, 1023, 1024, 1536, 4095, 1 << 20, 1 << 39].map(binary);
        assert_eq!(shown, ["0 B", "512 B", "1023 B", "1 KiB", "1.5 KiB", "4.0 KiB", "1 MiB", "512 GiB"]);
    }

    #[test]
    fn counts_are_grouped() {
        assert_eq!([0, 999, 1000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
    }
}
