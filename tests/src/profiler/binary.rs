//! Builds `mpiprobe` once per test run.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use super::ProfilerError;

/// The binary under test: `MPIPROBE_BIN`, or what cargo builds in the profile that the tests themselves were built in.
pub fn binary() -> Result<&'static Path, ProfilerError> {
    static BINARY: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    match BINARY.get_or_init(find_or_build) {
        Ok(path) => Ok(path),
        Err(reason) => Err(ProfilerError::Build { reason: reason.clone() }),
    }
}

fn find_or_build() -> Result<PathBuf, String> {
    if let Some(path) = std::env::var_os("MPIPROBE_BIN") {
        return std::path::absolute(&path).map_err(|error| format!("MPIPROBE_BIN: {error}"));
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(cargo);
    command.args([
        "build",
        "--quiet",
        "-p",
        "mpiprobe",
        "--bin",
        "mpiprobe",
        "--message-format",
        "json-render-diagnostics",
    ]);
    if !cfg!(debug_assertions) {
        command.arg("--release");
    }
    command.current_dir(env!("CARGO_MANIFEST_DIR")).stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{command:?}: {}", output.status));
    }
    let messages = String::from_utf8_lossy(&output.stdout);
    let executable = messages.lines().find_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        let is_ours = message.pointer("/target/name")?.as_str()? == "mpiprobe";
        let path = message.get("executable")?.as_str()?;
        is_ours.then(|| PathBuf::from(path))
    });
    executable.ok_or_else(|| format!("{command:?} names no executable"))
}
