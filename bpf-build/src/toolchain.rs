//! Which compiler, cargo and linker build for BPF.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{Missing, linker, version};

/// Where Debian's `rustc-web` puts its compiler and `libstd-rust-web-dev-bpf` the libraries.
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
const DEBIAN_CORE: &str = "/usr/lib/rustlib/bpfel-unknown-none/lib";

/// How `core` for BPF comes about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// rustup's nightly compiles it from the rust-src component.
    RustupNightly,
    /// Debian ships it compiled, for its own compiler.
    Debian,
}

/// What compiles for BPF, as absolute paths (but `cargo` when nothing tells where it is).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiler {
    pub kind: Kind,
    pub cargo: PathBuf,
    pub rustc: PathBuf,
}

/// Everything that is needed to build for BPF.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Toolchain {
    pub compiler: Compiler,
    pub linker: PathBuf,
}

/// The compiler and the linker for BPF on this machine.
pub fn detect() -> Result<Toolchain, Missing> {
    Ok(Toolchain { compiler: detect_compiler()?, linker: linker::find()? })
}

/// Takes rustup's nightly where it is complete and fits the linker, else Debian's compiler.
pub fn detect_compiler() -> Result<Compiler, Missing> {
    if let Some((cargo, rustc)) = rustup_nightly()
        && readable_by_linker(&rustc).is_ok()
    {
        return Ok(Compiler { kind: Kind::RustupNightly, cargo, rustc });
    }
    let (rustc, core) = (PathBuf::from(DEBIAN_RUSTC), PathBuf::from(DEBIAN_CORE));
    if !rustc.is_file() || !has_core(&core) {
        return Err(Missing::Compiler { rustc, core });
    }
    readable_by_linker(&rustc)?;
    // The cargo that runs us works with any compiler; one that rustup would have to choose first does not.
    let cargo = env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    Ok(Compiler { kind: Kind::Debian, cargo: cargo.into(), rustc })
}

/// cargo and rustc of the nightly toolchain, by path, so that no rustup proxy gets another say.
fn rustup_nightly() -> Option<(PathBuf, PathBuf)> {
    let output =
        Command::new("rustup").args(["which", "--toolchain", "nightly", "rustc"]).stdin(Stdio::null()).output().ok()?;
    let rustc = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim_end());
    let sysroot = rustc.parent()?.parent()?;
    let cargo = sysroot.join("bin/cargo");
    let usable = output.status.success()
        && rustc.is_absolute()
        && cargo.is_file()
        && sysroot.join("lib/rustlib/src/rust/library/core").is_dir();
    usable.then_some((cargo, rustc))
}

fn has_core(libraries: &Path) -> bool {
    let Ok(entries) = fs::read_dir(libraries) else { return false };
    entries.flatten().any(|entry| entry.file_name().as_encoded_bytes().starts_with(b"libcore-"))
}

fn readable_by_linker(rustc: &Path) -> Result<(), Missing> {
    let (found, supported) = (version::llvm_major(rustc)?, linker::LLVM_MAJOR);
    if found <= supported { Ok(()) } else { Err(Missing::NewerLlvm { rustc: rustc.to_owned(), found, supported }) }
}
