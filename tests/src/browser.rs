//! Chromium, driven by the scripts of the page.

use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::Failed;

use crate::requirement::page_sources;

#[derive(Debug)]
pub struct Browser;

impl Browser {
    /// Opens a page and has a script of `crates/report/web/test/` look at it, which knows the JSON of the same profile.
    pub fn check(script: &str, page: &Path, json: &Path) -> Result<(), Failed> {
        let script: PathBuf = page_sources().join("test").join(format!("{script}.mjs"));
        let mut node = Command::new("node");
        node.arg(&script).arg(page).arg(json).current_dir(page_sources());
        let output = node.output()?;
        if output.status.success() {
            return Ok(());
        }
        let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let name = script.display();
        Err(format!("{name} with {}:\n{}{}", page.display(), said(&output.stdout), said(&output.stderr)).into())
    }
}
