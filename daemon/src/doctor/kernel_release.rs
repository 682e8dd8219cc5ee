//! The kernel's release: for information, and for the few dangers that cannot be tried without harm.

use std::fmt;

/// What uname(2) says. Distributions carry later features and fixes under old numbers: never a proof of anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KernelRelease {
    text: String,
    /// Major, minor and stable number, 0 where there is none.
    numbers: Option<[u32; 3]>,
}

impl KernelRelease {
    pub(super) fn running() -> Self {
        let name = rustix::system::uname();
        Self::parse(&mpiprobe_discover::printable(name.release().to_bytes()))
    }

    pub(super) fn parse(text: &str) -> Self {
        let mut parts = text.split(|character: char| !character.is_ascii_digit()).map(str::parse);
        let numbers = match (parts.next(), parts.next()) {
            (Some(Ok(major)), Some(Ok(minor))) => Some([major, minor, parts.next().and_then(Result::ok).unwrap_or(0)]),
            _ => None,
        };
        Self { text: text.to_owned(), numbers }
    }

    /// Whether return probes may kill a process with a seccomp filter on x86-64: they return through a system call since 6.11,
    /// which filters are not asked about since 6.14, 6.13.3 and 6.12.14 (kernel commit cf6cb56ef244).
    pub(super) fn may_filter_return_probes(&self) -> bool {
        self.numbers.is_some_and(|numbers| {
            let fixed = match numbers {
                [6, 12, _] => [6, 12, 14],
                _ => [6, 13, 3],
            };
            (([6, 11, 0])..fixed).contains(&numbers)
        })
    }

    /// Whether return probes may kill a process with a shadow stack on x86-64: user shadow stacks exist since 6.6, return probes
    /// know of them since 6.11.
    pub(super) fn may_break_shadow_stacks(&self) -> bool {
        self.numbers.is_some_and(|numbers| numbers < [6, 11, 0])
    }
}

impl fmt::Display for KernelRelease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_from_what_distributions_make_of_them() {
        let numbers = |text| KernelRelease::parse(text).numbers;
        assert_eq!(numbers("6.18.44-fc-v595"), Some([6, 18, 44]));
        assert_eq!(numbers("6.1.0-37-amd64"), Some([6, 1, 0]));
        assert_eq!(numbers("6.14-rc2"), Some([6, 14, 0]));
        assert_eq!(numbers("5.14.0-570.el9.x86_64"), Some([5, 14, 0]));
        assert_eq!(numbers("99999999999.1"), None);
        assert_eq!(numbers(""), None);
        assert_eq!(numbers("six"), None);
    }

    #[test]
    fn releases_that_filter_return_probes() {
        let dangerous = |text| KernelRelease::parse(text).may_filter_return_probes();
        for text in ["6.11.0-21-generic", "6.11.11", "6.12.0", "6.12.13", "6.13.0", "6.13.2-arch1"] {
            assert!(dangerous(text), "{text}");
        }
        for text in ["5.15.0", "6.10.14", "6.12.14", "6.12.41+deb13-amd64", "6.13.3", "6.14.0", "6.18.44", "7.0", "odd"]
        {
            assert!(!dangerous(text), "{text}");
        }
    }

    #[test]
    fn releases_that_break_shadow_stacks() {
        assert!(KernelRelease::parse("6.8.0-40-generic").may_break_shadow_stacks());
        assert!(!KernelRelease::parse("6.11.0").may_break_shadow_stacks());
    }
}
