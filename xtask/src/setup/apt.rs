//! Installing Debian packages.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::machine::parse_version;
use super::requirement::{Check, Requirement};
use crate::command::{self, is_in_path, is_root};

/// Installs what `missing` names, after a fresh look at what the mirrors offer.
pub(crate) fn install(missing: &[&Requirement]) -> Result<()> {
    update()?;
    check_offers(missing)?;
    command::run(&mut install_command(missing))
        .context("the packages are not installed; apt-get's messages stand above")
}

/// A fresh look at what the mirrors offer.
pub(crate) fn update() -> Result<()> {
    check_rights()?;
    // One broken third-party source must not hinder: what counts is whether the packages are on offer.
    if !command::status(&mut apt_get(&["update"]))?.success() {
        eprintln!("set-up: apt-get update failed; going on with the package lists that are there");
    }
    Ok(())
}

fn check_rights() -> Result<()> {
    if !is_in_path("apt-get") {
        bail!("this is not Debian (no apt-get): install the named packages' counterparts, then try again");
    }
    if !is_root() && !is_in_path("sudo") {
        bail!("installing packages needs root, and there is no sudo: run the command above as root, then try again");
    }
    Ok(())
}

/// `apt-get install`, which removes nothing to make room and never asks.
pub(crate) fn install_command(missing: &[&Requirement]) -> Command {
    let mut command = apt_get(&["install", "--yes", "--no-install-recommends", "--no-remove"]);
    command.args(missing.iter().map(|requirement| requirement.package));
    command
}

fn apt_get(arguments: &[&str]) -> Command {
    let mut command = Command::new(if is_root() { "env" } else { "sudo" });
    if !is_root() {
        command.arg("env");
    }
    // Another apt may be at work on a machine that has just been started.
    command.args(["DEBIAN_FRONTEND=noninteractive", "apt-get", "--option=DPkg::Lock::Timeout=300"]);
    command.args(arguments).stdin(Stdio::null());
    command
}

fn check_offers(missing: &[&Requirement]) -> Result<()> {
    let mut query = Command::new("apt-cache");
    query.arg("policy").args(missing.iter().map(|requirement| requirement.package));
    // "Candidate:" is translated otherwise.
    let output = query.env("LC_ALL", "C").stdin(Stdio::null()).output().context("apt-cache cannot be started")?;
    let complaints = complaints(missing, &String::from_utf8_lossy(&output.stdout));
    if !complaints.is_empty() {
        bail!(
            "the package sources of this machine do not offer\n{}\nAdd the lines named to /etc/apt/sources.list.d/ \
             (Debian 12) and try again.",
            complaints.join("\n")
        );
    }
    Ok(())
}

/// What `policy`, the output of `apt-cache policy`, has no or too old a candidate for.
fn complaints(missing: &[&Requirement], policy: &str) -> Vec<String> {
    let complaint = |requirement: &&Requirement| {
        let candidate = candidate(policy, requirement.package);
        let wanted = match (requirement.check, candidate) {
            (Check::Package(major, minor), Some(version)) if version < (major, minor) => format!(" {major}.{minor}"),
            (_, Some(_)) => return None,
            (_, None) => String::new(),
        };
        Some(format!("  {}{wanted}, which is in: {}", requirement.package, requirement.repository.source()))
    };
    missing.iter().filter_map(complaint).collect()
}

/// The version that would be installed. A package that apt has never heard of has no section in `policy`.
fn candidate(policy: &str, package: &str) -> Option<(u32, u32)> {
    let section = policy.lines().skip_while(|line| line.strip_suffix(':') != Some(package)).skip(1);
    let mut details = section.take_while(|line| line.starts_with(' '));
    parse_version(details.find_map(|line| line.trim_start().strip_prefix("Candidate: "))?)
}

#[cfg(test)]
mod tests {
    use super::{candidate, complaints};
    use crate::setup::catalogue::required;
    use crate::setup::requirement::Purpose;

    const POLICY: &str = "\
rustc-web:
  Installed: (none)
  Candidate: 1.85.0+dfsg3-1~deb12u3
  Version table:
     1.85.0+dfsg3-1~deb12u3 500
        500 http://deb.debian.org/debian bookworm/main amd64 Packages
libllvm22:
  Installed: (none)
  Candidate: (none)
  Version table:
gcc:
  Installed: 4:12.2.0-3
  Candidate: 4:12.2.0-3
libc6-dev:
  Installed: (none)
  Candidate: 2.36-9+deb12u10
nodejs:
  Installed: (none)
  Candidate: 18.20.4+dfsg-1~deb12u1
npm:
  Installed: (none)
  Candidate: 9.2.0~ds1-1
";

    #[test]
    fn candidates_are_read() {
        assert_eq!(candidate(POLICY, "rustc-web"), Some((1, 85)));
        assert_eq!(candidate(POLICY, "gcc"), Some((12, 2)));
        assert_eq!(candidate(POLICY, "libllvm22"), None);
        assert_eq!(candidate(POLICY, "libstd-rust-web-dev-bpf"), None);
    }

    #[test]
    fn old_and_absent_packages_name_their_repository() {
        let source = "deb http://deb.debian.org/debian-security bookworm-security main";
        assert_eq!(
            complaints(&required(&[Purpose::Build], false), POLICY),
            [
                format!("  libllvm22, which is in: {source}"),
                format!("  rustc-web 1.87, which is in: {source}"),
                format!("  libstd-rust-web-dev-bpf, which is in: {source}"),
            ]
        );
    }
}
