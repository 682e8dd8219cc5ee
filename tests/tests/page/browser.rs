//! Chromium, driven by the scripts of the page.

use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::Failed;
use mpiprobe_tests::requirement::page_sources;

use crate::made::Made;

#[derive(Debug)]
pub(crate) struct Browser;

impl Browser {
    /// Opens the page and has a script of `crates/report/web/test/` look at it.
    pub(crate) fn check(script: &str, made: &Made) -> Result<(), Failed> {
        let script: PathBuf = page_sources().join("test").join(format!("{script}.mjs"));
        let mut node = Command::new("node");
        node.arg(&script).arg(&made.page).arg(&made.json).current_dir(page_sources());
        let output = node.output()?;
        if output.status.success() {
            return Ok(());
        }
        let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let name = Path::new(&script).display().to_string();
        Err(format!("{name} with {}:\n{}{}", made.page.display(), said(&output.stdout), said(&output.stderr)).into())
    }
}
