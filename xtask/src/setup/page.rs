//! What the HTML report is made of and tested with, from npm.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::command;

pub(crate) const REASON: &str = "charts and tables of the HTML report, and what bundles them";

/// Written when everything else is there: the lock file that was fetched.
const READY: &str = "node_modules/.fetched-package-lock.json";

/// Whether what is there is not what the lock file says.
pub(crate) fn is_missing() -> bool {
    let read = |name: &str| fs::read(directory().join(name)).ok();
    read(READY).is_none_or(|fetched| Some(fetched) != read("package-lock.json"))
}

/// Fetches exactly what the lock file says. Nothing of it is run: esbuild's program lies ready in a package of its own.
pub(crate) fn install() -> Result<()> {
    let directory = directory();
    let mut npm = Command::new("npm");
    npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]).current_dir(&directory);
    command::run(&mut npm).context(
        "the libraries of the HTML report cannot be fetched; they come from npm, so the network must reach that",
    )?;
    let ready = directory.join(READY);
    let copied = fs::copy(directory.join("package-lock.json"), &ready);
    copied.map(drop).with_context(|| format!("{} cannot be made", ready.display()))
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/report/web")
}
