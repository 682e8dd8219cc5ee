//! Those who read exports.

use std::{ffi::OsStr, path::Path, process::Command};

use libtest_mimic::Failed;
use mpiprobe_tests::wheel;
use serde_json::Value;

/// What otf2-print prints of an archive; it must have nothing to complain of.
pub(crate) fn otf2_print(anchor: &Path) -> Result<String, Failed> {
    let output = Command::new("otf2-print").arg("--show-all").arg(anchor).output()?;
    let (text, errors) = (String::from_utf8(output.stdout)?, String::from_utf8(output.stderr)?);
    if !output.status.success() || !errors.is_empty() {
        return Err(format!("otf2-print complains:\n{errors}").into());
    }
    for complaint in ["UNKNOWN", "out of order", "duplicate", "INVALID", "[OTF2]"] {
        if let Some(line) = text.lines().find(|line| line.contains(complaint)) {
            return Err(format!("otf2-print prints {line}").into());
        }
    }
    Ok(text)
}

/// What a script of `tests/readers` says.
pub(crate) fn read(script: &str, arguments: &[&OsStr]) -> Result<Value, Failed> {
    Ok(serde_json::from_str(&wheel::read(script, arguments)?)?)
}
