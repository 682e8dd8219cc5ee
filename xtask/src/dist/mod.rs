//! Packages: one static program, its manual pages, completions and licences, as .deb, .rpm and tarball.

mod licences;
mod packages;
mod tree;
mod trial;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::command::{self, target_dir, workspace};
use crate::setup::{self, Mode, Purpose};

/// What a package may take with all that is in it, bytes.
const GOAL: u64 = 15_000_000;

/// With this C library a program runs wherever the kernel does, whatever libraries a system has.
const TARGET: &str = "x86_64-unknown-linux-gnu";
/// For the target alone: what runs while building, and the library for ranks, is linked as ever.
const FLAGS: (&str, &str) = ("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS", "-C target-feature=+crt-static");
const PROFILE: &str = "dist";

/// How it is called, and of when it is: the same commit gives the same packages.
#[derive(Debug)]
struct Release {
    version: String,
    /// Seconds since 1970: the time of the commit.
    epoch: String,
}

/// Builds the packages into `target/dist`.
pub(crate) fn run(mode: Mode) -> Result<()> {
    setup::ensure(&[Purpose::Build, Purpose::Dist], mode)?;
    let release = release()?;
    let program = build()?;
    let folder = folder();
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("{} cannot be removed", folder.display()))?;
    }
    make(&folder)?;
    let licences = licences::collect(TARGET)?;
    let packages = [
        packages::deb(&folder, &release, &program, &licences)?,
        packages::rpm(&folder, &release, &program, &licences)?,
        packages::tarball(&folder, &release, &program, &licences)?,
    ];
    packages::sums(&folder, &packages)?;
    eprintln!("{:>9} bytes  {}", fs::metadata(&program)?.len(), program.display());
    for package in &packages {
        let length = fs::metadata(package)?.len();
        eprintln!("{length:>9} bytes  {}", package.display());
        if length > GOAL {
            bail!("{} is larger than {GOAL} bytes", package.display());
        }
    }
    Ok(())
}

/// Installs, uses and removes the packages of `target/dist` in clean root file systems below `root`.
pub(crate) fn try_out(root: &Path, mirror: &str, mode: Mode) -> Result<()> {
    setup::ensure(&[Purpose::Dist, Purpose::Demo], mode)?;
    trial::run(&folder(), &release()?, root, mirror)
}

fn folder() -> PathBuf {
    target_dir().join("dist")
}

fn release() -> Result<Release> {
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let mut git = Command::new("git");
    git.args(["log", "-1", "--format=%ct"]).current_dir(workspace());
    Ok(Release { version, epoch: said(&mut git)?.trim().to_owned() })
}

fn build() -> Result<PathBuf> {
    let mut cargo = command::cargo();
    let (name, value) = FLAGS;
    cargo.args(["build", "--locked", "-p", "mpiprobe", "--profile", PROFILE, "--target", TARGET]).env(name, value);
    command::run(&mut cargo)?;
    Ok(target_dir().join(TARGET).join(PROFILE).join("mpiprobe"))
}

fn make(directory: &Path) -> Result<()> {
    fs::create_dir_all(directory).with_context(|| format!("{} cannot be made", directory.display()))
}

fn write(path: &Path, text: impl AsRef<[u8]>) -> Result<()> {
    fs::write(path, text).with_context(|| format!("{} cannot be written", path.display()))
}

/// What a command prints, which has to succeed.
fn said(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("{} cannot be started", command.get_program().display()))?;
    if !output.status.success() {
        bail!("`{}` failed: {}", command::shown(command), String::from_utf8_lossy(&output.stderr));
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{}` prints no text", command::shown(command)))
}
