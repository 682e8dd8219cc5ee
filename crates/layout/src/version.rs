//! Versions of libraries, to choose the table that is most likely right.

use std::fmt;

/// The first three numbers of a version; missing ones are 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u32, pub u32, pub u32);

impl Version {
    /// `4.1.4`, `5.0.0rc2`, `2021.18`; `None` if it does not begin with a number.
    pub fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split('.').map(|part| {
            let end = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
            part.get(..end).and_then(|digits| digits.parse().ok())
        });
        let major = numbers.next().flatten()?;
        let mut next = || numbers.next().flatten().unwrap_or(0);
        Some(Self(major, next(), next()))
    }

    /// Whether both are of one series, whose releases are binary compatible.
    pub(super) fn is_of_series(self, other: Self) -> bool {
        (self.0, self.1) == (other.0, other.1)
    }

    /// How far apart two versions are, for ordering: releases of one series are closer than two series.
    fn distance(self, other: Self) -> (u32, u32, u32) {
        (self.0.abs_diff(other.0), self.1.abs_diff(other.1), self.2.abs_diff(other.2))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

/// The tables in the order in which they are to be tried: the one verified for the version next to `version` first.
pub(super) fn nearest_first<T>(
    tables: &'static [T],
    version: Option<Version>,
    of: fn(&T) -> Version,
) -> Vec<&'static T> {
    let mut tables: Vec<&T> = tables.iter().collect();
    if let Some(version) = version {
        tables.sort_by_key(|table| of(table).distance(version));
    }
    tables
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_far_as_they_are_numbers() {
        for (text, version) in [
            ("4.1.4", Some(Version(4, 1, 4))),
            ("5.0.0rc2", Some(Version(5, 0, 0))),
            ("2021.18", Some(Version(2021, 18, 0))),
            ("4", Some(Version(4, 0, 0))),
            ("v4.1", None),
            ("", None),
            ("99999999999.1", None),
        ] {
            assert_eq!(Version::parse(text), version, "{text}");
        }
    }

    #[test]
    fn the_next_series_is_tried_first() {
        static TABLES: [Version; 3] = [Version(4, 1, 4), Version(5, 0, 11), Version(4, 0, 2)];
        let order = |text| nearest_first(&TABLES, Version::parse(text), |table| *table)[0];
        assert_eq!(*order("4.1.9"), Version(4, 1, 4));
        assert_eq!(*order("4.0.7"), Version(4, 0, 2));
        assert_eq!(*order("6.1.0"), Version(5, 0, 11));
        assert_eq!(nearest_first(&TABLES, None, |table| *table).len(), 3);
    }
}
