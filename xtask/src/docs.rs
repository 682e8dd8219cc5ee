//! Writes the generated pages of the documentation anew.

use anyhow::Result;

use crate::command;
use crate::setup::{self, Mode, Purpose};

/// What makes the tests of the documents write the generated pages instead of comparing them.
const UPDATE: &str = "MPIPROBE_UPDATE_DOCS";

/// And pictures of HTML pages, if they are wanted. The pages come from mpiprobe's own definitions, which this program must not need before the set-up: so mpiprobe's tests write them.
pub(crate) fn generate(screenshots: bool, mode: Mode) -> Result<()> {
    setup::ensure(&[Purpose::Build], mode)?;
    let mut cargo = command::cargo();
    cargo.args(["test", "-p", "mpiprobe", "--test", "docs", "--", "is_current"]).env(UPDATE, "1");
    command::run(&mut cargo)?;
    if !screenshots {
        return Ok(());
    }
    setup::ensure(&[Purpose::Test], mode)?;
    let mut cargo = command::cargo();
    cargo.args(["test", "-p", "mpiprobe-tests", "--test", "page", "--", "pictures_of_the_documents"]).env(UPDATE, "1");
    command::run(&mut cargo)
}
