//! What a test needs of the machine. A test that cannot run is reported as skipped, by name and with the reason; under
//! `CI=true` it fails instead, so that nothing is lost unnoticed.

use std::fmt;
use std::fs;

use libtest_mimic::{Failed, Trial};

use crate::mpi::{Mpi, find_command};
use crate::program::Language;
use crate::python;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requirement {
    /// Launcher and C compiler wrapper.
    Mpi(Mpi),
    /// What programs in this language need besides.
    Language(Mpi, Language),
    /// May load BPF programs and trace processes: root, or CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE.
    Bpf,
    Root,
}

impl Requirement {
    /// Why the machine does not meet the requirement; `None` if it does.
    pub fn missing(self) -> Option<String> {
        match self {
            Self::Mpi(mpi) => command_missing(&mpi.launcher())
                .or_else(|| command_missing(&mpi.compiler(Language::C).unwrap_or_default())),
            Self::Language(mpi, Language::Python) => python::interpreter(mpi).err().map(|error| error.to_string()),
            Self::Language(mpi, language) => command_missing(&mpi.compiler(language)?),
            Self::Bpf => capabilities_missing(&[(39, "CAP_BPF"), (38, "CAP_PERFMON"), (19, "CAP_SYS_PTRACE")]),
            Self::Root => (!rustix::process::geteuid().is_root()).then(|| "not root".to_owned()),
        }
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mpi(mpi) => write!(formatter, "{mpi}"),
            Self::Language(mpi, language) => write!(formatter, "{language:?} with {mpi}"),
            Self::Bpf => formatter.write_str("the right to load BPF programs"),
            Self::Root => formatter.write_str("root"),
        }
    }
}

/// A test under its requirements. `kind` in the runner's output says what is missing.
pub fn trial(
    name: impl Into<String>,
    requirements: &[Requirement],
    test: impl FnOnce() -> Result<(), Failed> + Send + 'static,
) -> Trial {
    trial_unless(requirements.iter().find_map(|needed| Some((*needed, needed.missing()?))), in_ci(), name.into(), test)
}

fn trial_unless(
    missing: Option<(Requirement, String)>,
    in_ci: bool,
    name: String,
    test: impl FnOnce() -> Result<(), Failed> + Send + 'static,
) -> Trial {
    match missing {
        None => Trial::test(name, test),
        Some((needed, why)) if in_ci => Trial::test(name, move || Err(format!("needs {needed}: {why}").into())),
        Some((needed, why)) => {
            Trial::test(name, test).with_kind(format!("needs {needed}: {why}")).with_ignored_flag(true)
        }
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

    fn run(missing: Option<(Requirement, String)>, in_ci: bool) -> libtest_mimic::Conclusion {
        let quiet = libtest_mimic::Arguments {
            quiet: true,
            format: Some(libtest_mimic::FormatSetting::Terse),
            ..Default::default()
        };
        libtest_mimic::run(&quiet, vec![trial_unless(missing, in_ci, "name".to_owned(), || Ok(()))])
    }

    #[test]
    fn a_test_that_cannot_run_is_skipped_but_fails_in_ci() {
        let missing = || Some((Requirement::Root, "not root".to_owned()));
        assert_eq!((run(None, true).num_passed, run(None, false).num_passed), (1, 1));
        let (here, in_ci) = (run(missing(), false), run(missing(), true));
        assert_eq!((here.num_ignored, here.num_failed), (1, 0));
        assert_eq!((in_ci.num_ignored, in_ci.num_failed), (0, 1));
    }
}
