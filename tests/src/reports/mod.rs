//! Reports of one run in all formats: that each figure of each of them is that of the JSON.
#![expect(clippy::indexing_slicing, reason = "what is not there fails the test")]

mod expected;
mod figure;
mod other;
mod table;
mod text;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use libtest_mimic::Failed;
use serde_json::Value;

use crate::browser::Browser;
use crate::profiler::{Ended, Profiler};
use crate::requirement::Requirement;

/// What that needs besides the job.
pub const NEEDS: [Requirement; 4] =
    [Requirement::Page, Requirement::Readers, Requirement::Command("node"), Requirement::Command("chromium")];

/// `mpiprobe report KEPT MORE`, which has to succeed.
fn report<A: AsRef<OsStr>>(kept: &Path, more: impl IntoIterator<Item = A>) -> Result<Ended, Failed> {
    let mut arguments = vec!["report".into(), kept.as_os_str().to_owned()];
    arguments.extend(more.into_iter().map(|argument| argument.as_ref().to_owned()));
    let ended = Profiler::start(arguments)?.wait()?;
    if ended.status.code() == Some(0) { Ok(ended) } else { Err(ended.printed().into()) }
}

/// Of a run of a few ranks on one node that is kept in a file, or in a directory of tables: writes reports into a new folder and reads
/// them back.
pub fn say_the_same(kept: &Path, folder: &Path) -> Result<(), Failed> {
    fs::create_dir(folder)?;
    let path = |name: &str| folder.join(name);
    let written = |format: &str, name: &str| -> Result<PathBuf, Failed> {
        let to = path(name);
        report(kept, ["--format".as_ref(), format.as_ref(), "-o".as_ref(), to.as_os_str()])?;
        Ok(to)
    };
    let json = written("json", "profile.json")?;
    let profile: Value = serde_json::from_str(&fs::read_to_string(&json)?)?;

    // What is read back is what was written.
    let again = report(&json, ["--json"])?;
    if again.stdout.join("\n") != fs::read_to_string(&json)?.trim_end() {
        return Err("the JSON of the JSON is another one".into());
    }
    let schema = Profiler::start(["schema"])?.wait()?;
    fs::write(path("schema.json"), schema.stdout.join("\n"))?;
    other::schema(&path("schema.json"), &json)?;

    text::check(&report(kept, ["-v"])?.stdout.join("\n"), &profile)?;
    other::csv(&written("csv", "csv")?, &profile)?;
    other::mpip(&fs::read_to_string(written("mpip", "profile.mpip")?)?, &profile)?;
    other::folded(&fs::read_to_string(written("folded", "profile.folded")?)?, &profile)?;
    other::cube(&written("cube", "profile.cubex")?, &profile)?;
    Browser::check("figures", &written("html", "profile.html")?, &json)
}
