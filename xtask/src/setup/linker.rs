//! Installing `bpf-linker` in the project's own tools folder.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use mpiprobe_bpf_build::{LINKER_LLVM_MAJOR, LINKER_VERSION, linker_root};

use crate::command;

pub(crate) const REASON: &str = "makes one BPF object of the compiler's output";
pub(crate) const EFFORT: &str = "built from crates.io by cargo install, which takes half a minute";

pub(crate) fn is_missing() -> bool {
    linker_root().map_or(true, |root| !root.join("bin/bpf-linker").is_file())
}

/// Builds it against the LLVM library that the compiler brings along.
pub(crate) fn install() -> Result<()> {
    let root = linker_root()?;
    let prefix = llvm_prefix(&root)?;
    command::run(
        command::cargo()
            .args(["install", "bpf-linker", "--version", LINKER_VERSION, "--locked", "--no-default-features"])
            .arg(format!("--features=llvm-{LINKER_LLVM_MAJOR}"))
            .arg("--root")
            .arg(root)
            // Debug information of a tool that is only run takes half of the time and nine tenths of the space, and all that it does
            // is done by LLVM's library.
            .env("CARGO_PROFILE_RELEASE_DEBUG", "false")
            .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0")
            .env("LLVM_PREFIX", prefix),
    )
    .context("bpf-linker cannot be installed; it comes from crates.io, so the network must reach it")
}

/// A folder that looks like an LLVM installation to bpf-linker's build.
///
/// All it wants there is `lib/libLLVM.so` to link against; the development package that has this link brings half a
/// gigabyte of static libraries with it. At run time the library is found by its own name.
fn llvm_prefix(root: &Path) -> Result<PathBuf> {
    let library = llvm_library()?;
    let prefix = root.join("llvm");
    let (folder, link) = (prefix.join("lib"), prefix.join("lib/libLLVM.so"));
    let failed = || format!("{} cannot be made", link.display());
    fs::create_dir_all(&folder).with_context(failed)?;
    match fs::remove_file(&link) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error).with_context(failed),
        _ => symlink(library, &link).with_context(failed)?,
    }
    Ok(prefix)
}

fn llvm_library() -> Result<PathBuf> {
    let folders = [format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH), "/usr/lib64".into(), "/usr/lib".into()];
    let name = format!("libLLVM.so.{LINKER_LLVM_MAJOR}.");
    let library = folders.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten().find_map(|entry| {
        let found = entry.file_name().as_encoded_bytes().starts_with(name.as_bytes());
        found.then(|| entry.path())
    });
    library.with_context(|| format!("{name}* is in none of {}", folders.join(", ")))
}
