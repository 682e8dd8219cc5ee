//! Chromium, driven by the scripts of the page.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::Failed;

use crate::requirement::page_sources;

#[derive(Debug)]
pub struct Browser;

impl Browser {
    /// Opens a page and has a script of `crates/report/web/test/` look at it, which knows the JSON of the same profile.
    pub fn check(script: &str, page: &Path, json: &Path) -> Result<(), Failed> {
        run(script, page, json, &[])
    }

    /// Has a picture taken of a page, from one of its sections to another, by their names.
    pub fn picture(page: &Path, json: &Path, to: &Path, sections: [&str; 2]) -> Result<(), Failed> {
        let [first, last] = sections;
        run("shot", page, json, &[to.as_os_str(), "light".as_ref(), first.as_ref(), last.as_ref()])
    }
}

fn run(script: &str, page: &Path, json: &Path, more: &[&OsStr]) -> Result<(), Failed> {
    let script: PathBuf = page_sources().join("test").join(format!("{script}.mjs"));
    let mut node = Command::new("node");
    node.arg(&script).arg(page).arg(json).args(more).current_dir(page_sources());
    let output = node.output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let name = script.display();
    Err(format!("{name} with {}:\n{}{}", page.display(), said(&output.stdout), said(&output.stderr)).into())
}
