//! What a test needs of the machine. A test that cannot run is reported as skipped, by name and with the reason; under
//! `CI=true` it fails instead, so that nothing is lost unnoticed.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use libtest_mimic::{Failed, Trial};

use crate::debian;
use crate::mpi::{Mpi, find_command};
use crate::program::Language;
use crate::python;
use crate::schedule::Claim;
use crate::wheel::readers;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requirement {
    /// Launcher and C compiler wrapper.
    Mpi(Mpi),
    /// What programs in this language need besides.
    Language(Mpi, Language),
    /// A program that comes with the system.
    Command(&'static str),
    /// A file or folder that comes with the system.
    File(&'static str),
    /// May load BPF programs and trace processes: root, or CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE.
    Bpf,
    Root,
    /// No other trial beside it: it measures times, or looks at all processes.
    QuietMachine,
    /// File systems whose server is a process.
    Fuse,
    /// The libraries of the HTML report, from npm.
    Page,
    /// A program of a Debian package that is unpacked, not installed.
    Unpacked(&'static str),
    /// Programs of others that read what mpiprobe writes, from PyPI.
    Readers,
}

impl Requirement {
    /// Why the machine does not meet the requirement; `None` if it does.
    pub fn missing(self) -> Option<String> {
        match self {
            Self::Mpi(mpi) if mpi.wheel().is_some() => {
                mpi.library().is_none().then(|| "not installed: cargo xtask setup test".to_owned())
            }
            Self::Mpi(mpi) => command_missing(&mpi.launcher())
                .or_else(|| command_missing(&mpi.compiler(Language::C).unwrap_or_default())),
            Self::Language(mpi, Language::Python) => python::interpreter(mpi).err().map(|error| error.to_string()),
            Self::Language(mpi, language) => command_missing(&mpi.compiler(language)?),
            Self::Command(name) => command_missing(name),
            Self::File(path) => (!Path::new(path).exists()).then(|| "it is not there".to_owned()),
            Self::Bpf => capabilities_missing(&[(39, "CAP_BPF"), (38, "CAP_PERFMON"), (19, "CAP_SYS_PTRACE")]),
            Self::Root => (!rustix::process::geteuid().is_root()).then(|| "not root".to_owned()),
            Self::QuietMachine => None,
            Self::Page => {
                let is_there = mpiprobe_report::page::html::has_page()
                    && page_sources().join("node_modules/playwright-core").is_dir();
                (!is_there).then(|| "not installed: cargo xtask setup test".to_owned())
            }
            Self::Readers => readers().is_none().then(|| "not installed: cargo xtask setup test".to_owned()),
            Self::Unpacked(name) => {
                debian::program(name).is_none().then(|| "not there: cargo xtask setup test".to_owned())
            }
            Self::Fuse => fs::File::open("/dev/fuse").err().map(|error| format!("/dev/fuse: {error}")),
        }
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mpi(mpi) => write!(formatter, "{mpi}"),
            Self::Language(mpi, language) => write!(formatter, "{language:?} with {mpi}"),
            Self::Command(name) | Self::Unpacked(name) | Self::File(name) => formatter.write_str(name),
            Self::Bpf => formatter.write_str("the right to load BPF programs"),
            Self::Root => formatter.write_str("root"),
            Self::QuietMachine => formatter.write_str("a quiet machine"),
            Self::Fuse => formatter.write_str("FUSE"),
            Self::Page => formatter.write_str("the libraries of the HTML report"),
            Self::Readers => formatter.write_str("readers from PyPI"),
        }
    }
}

/// Where the page of the HTML report is made and tested.
pub fn page_sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/report/web")
}

/// A test under its requirements; the runner's output names the first one that is missing. What it needs is also what it has for
/// itself while it [runs](crate::run).
pub fn trial(
    name: impl Into<String>,
    requirements: &[Requirement],
    test: impl FnOnce() -> Result<(), Failed> + Send + 'static,
) -> Trial {
    let name = name.into();
    let claim = Claim::of(&name, requirements);
    let test = {
        let name = name.clone();
        move || claim.run(&name, test)
    };
    let missing = requirements.iter().find_map(|needed| Some(format!("needs {needed}: {}", needed.missing()?)));
    match verdict(missing, in_ci()) {
        Verdict::Run => Trial::test(name, test),
        Verdict::Skip(why) => Trial::test(name, test).with_kind(why).with_ignored_flag(true),
        Verdict::Fail(why) => Trial::test(name, move || Err(why.into())),
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Run,
    Skip(String),
    Fail(String),
}

fn verdict(missing: Option<String>, in_ci: bool) -> Verdict {
    match missing {
        None => Verdict::Run,
        Some(why) if in_ci => Verdict::Fail(why),
        Some(why) => Verdict::Skip(why),
    }
}

fn in_ci() -> bool {
    std::env::var_os("CI").is_some_and(|value| value == "true")
}

fn command_missing(command: &str) -> Option<String> {
    find_command(command).is_none().then(|| format!("{command} is not on PATH"))
}

fn capabilities_missing(needed: &[(u32, &str)]) -> Option<String> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap_or_default();
    let effective = u64::from_str_radix(effective.trim(), 16).unwrap_or(0);
    let missing: Vec<&str> =
        needed.iter().filter(|(bit, _)| effective & (1 << bit) == 0).map(|(_, name)| *name).collect();
    (!missing.is_empty()).then(|| format!("without {}", missing.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_that_cannot_run_is_skipped_but_fails_in_ci() {
        let missing = || Some("needs root: not root".to_owned());
        assert_eq!((verdict(None, false), verdict(None, true)), (Verdict::Run, Verdict::Run));
        assert_eq!(verdict(missing(), false), Verdict::Skip("needs root: not root".to_owned()));
        assert_eq!(verdict(missing(), true), Verdict::Fail("needs root: not root".to_owned()));
    }
}
