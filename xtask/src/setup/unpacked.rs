//! Debian packages that tests use but nobody wants on the machine: with their services, they would run from the next start on. They are
//! unpacked below the build directory instead, and what they need besides, as far as the machine has it not.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use super::apt;
use crate::command::{self, target_dir};

/// One package a line. The tests read the same file, and look where this module puts things.
const PACKAGES: &str = include_str!("../../../tests/debs.txt");
pub(crate) const REASON: &str = "Prometheus, Slurm and sshd, which tests run for themselves";
/// Written when everything else is there: the packages.
const READY: &str = ".ready";
/// What pages of theirs are made of, which nobody looks at.
const OF_PAGES: [&str; 2] = ["libjs-", "fonts-"];

fn directory() -> PathBuf {
    target_dir().join("mpi-programs/debian")
}

pub(crate) fn is_missing() -> bool {
    !fs::read_to_string(directory().join(READY)).is_ok_and(|ready| ready == PACKAGES)
}

pub(crate) fn install() -> Result<()> {
    apt::update()?;
    let directory = directory();
    let folders = [directory.join("packages"), directory.join("root")];
    for folder in &folders {
        // What an earlier set-up has left, perhaps unfinished.
        let _ = fs::remove_dir_all(folder);
        fs::create_dir_all(folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    }
    let [packages, root] = &folders;
    let names = with_what_they_need()?;
    if !names.is_empty() {
        let mut download = Command::new("apt-get");
        download.args(["download", "--quiet"]).args(&names).current_dir(packages);
        command::run(&mut download).context("the packages cannot be fetched; apt-get's messages stand above")?;
    }
    for entry in fs::read_dir(packages).with_context(|| format!("{} cannot be read", packages.display()))? {
        unpack(&entry?.path(), root)?;
    }
    fs::remove_dir_all(packages).with_context(|| format!("{} cannot be removed", packages.display()))?;
    let ready = directory.join(READY);
    fs::write(&ready, PACKAGES).with_context(|| format!("{} cannot be made", ready.display()))
}

fn unpack(package: &Path, root: &Path) -> Result<()> {
    command::quietly(Command::new("dpkg-deb").arg("--extract").arg(package).arg(root))
}

/// What would be installed.
fn with_what_they_need() -> Result<Vec<String>> {
    let mut query = Command::new("apt-get");
    query.args(["install", "--simulate", "--no-install-recommends"]).args(PACKAGES.lines());
    let output = query.stdin(Stdio::null()).env("LC_ALL", "C").output().context("apt-get cannot be started")?;
    if !output.status.success() {
        anyhow::bail!(
            "the package sources of this machine do not offer {}: {}",
            PACKAGES.lines().collect::<Vec<_>>().join(", "),
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(installed(&String::from_utf8_lossy(&output.stdout)))
}

/// The packages that `apt-get install --simulate` says it would install.
fn installed(simulated: &str) -> Vec<String> {
    let names = simulated.lines().filter_map(|line| line.strip_prefix("Inst ")?.split_whitespace().next());
    names.filter(|name| !OF_PAGES.iter().any(|prefix| name.starts_with(prefix))).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::installed;

    #[test]
    fn packages_are_named_once_and_without_those_of_pages() {
        let simulated = "Reading package lists...\nThe following NEW packages will be installed:\n  munge\n\
                         Inst libjs-d3 (3.5.17-4 Debian:12/stable [all])\n\
                         Inst munge (0.5.15-2 Debian:12/stable [amd64])\n\
                         Inst libslurm38 [1] (2 Debian:12/stable [amd64])\nConf munge (0.5.15-2)\n";
        assert_eq!(installed(simulated), ["munge", "libslurm38"]);
    }
}
