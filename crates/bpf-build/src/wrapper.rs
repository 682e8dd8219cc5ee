//! Builds the wrapper, as a shared library.
//!
//! By a cargo of its own, with the profile made for it, whatever profile the program that embeds it is built with: what the tests
//! preload is what users get.

use std::env;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::{
    BuildError,
    build::{copy, pass_on},
    environment,
    request::{shared_target, workspace},
};

/// Of the workspace, all that the library depends on.
const SOURCES: [&str; 7] = [
    "Cargo.toml",
    "crates/common",
    "crates/functions/mpi.tbl",
    "crates/functions/src",
    "wrapper/Cargo.toml",
    "wrapper/build",
    "wrapper/src",
];
const LIBRARY: &str = "libmpiprobe_wrapper.so";
const PROFILE: &str = "wrapper";

/// Builds the library for the build script of a crate of the workspace, and gives its path in that crate's `OUT_DIR`.
pub fn build_wrapper() -> Result<PathBuf, BuildError> {
    let variable = |name| env::var_os(name).ok_or(BuildError::NotABuildScript(name));
    let manifest_dir = PathBuf::from(variable("CARGO_MANIFEST_DIR")?);
    let out_dir = PathBuf::from(variable("OUT_DIR")?);
    let (cargo, rustc, target) = (PathBuf::from(variable("CARGO")?), variable("RUSTC")?, variable("TARGET")?);

    let workspace = workspace(&manifest_dir);
    for source in SOURCES {
        println!("cargo:rerun-if-changed={}", workspace.join(source).display());
    }
    let package = workspace.join("wrapper");
    // Never the caller's own folder: that one is locked.
    let target_dir = shared_target(&out_dir).join("wrapper");

    let mut command = Command::new(&cargo);
    for (name, _) in env::vars_os().filter(|(name, _)| environment::is_foreign(name)) {
        command.env_remove(name);
    }
    command
        .current_dir(&package)
        .args(["rustc", "--lib", "--crate-type", "cdylib", "--profile", PROFILE, "--target-dir"])
        .arg(&target_dir)
        .arg("--target")
        .arg(&target)
        // A symbol that no library has is an error: this is how a path that could panic is noticed. Nothing of a compiler's or a C
        // library's is linked in, which would need symbols of one version.
        .args(["--", "-C", "link-arg=-Wl,-z,defs", "-C", "link-arg=-nostartfiles"])
        .env("RUSTC", rustc)
        .env("RUSTC_WRAPPER", "")
        .env("CARGO_BUILD_BUILD_DIR", &target_dir)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let start = |source| BuildError::StartWrapper { cargo: cargo.clone(), source };
    let mut child = command.spawn().map_err(start)?;
    if let Some(stderr) = child.stderr.take() {
        pass_on(stderr, true);
    }
    let status = child.wait().map_err(start)?;
    if !status.success() {
        return Err(BuildError::FailedWrapper { package, status });
    }
    let output = out_dir.join(LIBRARY);
    copy(&target_dir.join(&target).join(PROFILE).join(LIBRARY), &output)?;
    Ok(output)
}
