//! One thing that must be on the machine.

use clap::ValueEnum;

/// What something is needed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Purpose {
    /// Building mpiprobe.
    Build,
    /// Running the demo.
    Demo,
    /// Running the tests.
    Test,
    /// Comparing with other tools.
    Bench,
    /// Making packages, and trying them.
    Dist,
}

/// How one sees whether it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Check {
    /// A program in `PATH`, wherever it came from.
    Command(&'static str),
    /// A file or folder.
    File(&'static str),
    /// The Debian package itself, at least in this version (major, minor).
    Package(u32, u32),
}

/// The Debian repositories, for those who have not all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repository {
    Main,
    Security,
}

impl Repository {
    /// The line for /etc/apt/sources.list.
    pub(crate) const fn source(self) -> &'static str {
        match self {
            Self::Main => "deb http://deb.debian.org/debian bookworm main",
            Self::Security => "deb http://deb.debian.org/debian-security bookworm-security main",
        }
    }
}

/// Something that mpiprobe's development needs on the machine.
#[derive(Debug)]
pub(crate) struct Requirement {
    /// Debian's package for it.
    pub(crate) package: &'static str,
    pub(crate) reason: &'static str,
    pub(crate) purpose: Purpose,
    pub(crate) check: Check,
    pub(crate) repository: Repository,
}
