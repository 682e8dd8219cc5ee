//! Figures as people read them.

/// Units, and what they are multiples of.
const UNITS: [(&str, f64); 12] = [
    ("ns", 1.0),
    ("µs", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("B", 1.0),
    ("kB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("TB", 1e12),
    ("PB", 1e15),
    ("EB", 1e18),
    ("%", 1.0),
];

/// Whether a text such as `1.23 ms`, `<= 83.6 MB`, `1,200`, `+12 %` says this figure, as exactly as it can.
pub(super) fn says(text: &str, value: f64) -> bool {
    let text = text.trim_start_matches("<= ").trim_start_matches(">= ").trim_start_matches('+');
    let (number, unit) = text.split_once(' ').unwrap_or((text, ""));
    let Ok(said) = number.replace(',', "").parse::<f64>() else { return false };
    let Some(scale) =
        UNITS.iter().find(|(name, _)| *name == unit).map(|(_, scale)| *scale).or(unit.is_empty().then_some(1.0))
    else {
        return false;
    };
    let digits = number.split_once('.').map_or(0, |(_, digits)| digits.len());
    let half = 0.5 * scale / 10_f64.powi(i32::try_from(digits).unwrap_or(0));
    (said * scale - value).abs() <= half * 1.0001
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounded_figures_are_those_that_they_stand_for() {
        for (text, value) in [
            ("1.23 ms", 1_234_999.0),
            ("999 ns", 999.0),
            ("<= 83.6 MB", 83_640_000.0),
            ("1,200", 1200.0),
            ("+12 %", 12.4),
            ("0.0", 0.04),
        ] {
            assert!(says(text, value), "{text} {value}");
        }
        for (text, value) in [("1.23 ms", 1_236_000.0), ("1,201", 1200.0), ("?", 0.0), ("1.2 x", 1.2), ("", 0.0)] {
            assert!(!says(text, value), "{text} {value}");
        }
    }
}
