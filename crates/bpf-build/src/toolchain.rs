//! Which compiler, cargo and linker build for BPF.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Missing;

/// Where Debian's `rustc-web` puts its compiler and `libstd-rust-web-dev-bpf` the libraries.
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
const DEBIAN_CORE: &str = "/usr/lib/rustlib/bpfel-unknown-none/lib";

/// How `core` for BPF comes about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolchainKind {
    /// rustup's nightly compiles it from the rust-src component.
    RustupNightly,
    /// Debian ships it compiled, for its own compiler.
    Debian,
}

/// What compiles for BPF, as absolute paths (but `cargo` when nothing tells where it is).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiler {
    pub kind: ToolchainKind,
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
    Ok(Toolchain { compiler: detect_compiler()?, linker: find_linker()? })
}

/// Takes rustup's nightly where it is complete and fits the linker, else Debian's compiler.
pub fn detect_compiler() -> Result<Compiler, Missing> {
    if let Some((cargo, rustc)) = rustup_nightly()
        && readable_by_linker(&rustc).is_ok()
    {
        return Ok(Compiler { kind: ToolchainKind::RustupNightly, cargo, rustc });
    }
    let (rustc, core) = (PathBuf::from(DEBIAN_RUSTC), PathBuf::from(DEBIAN_CORE));
    if !rustc.is_file() || !has_core(&core) {
        return Err(Missing::Compiler { rustc, core });
    }
    readable_by_linker(&rustc)?;
    // The cargo that runs us works with any compiler; one that rustup would have to choose first does not.
    let cargo = env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    Ok(Compiler { kind: ToolchainKind::Debian, cargo: cargo.into(), rustc })
}

/// cargo and rustc of the nightly toolchain, by path, so that no rustup proxy gets another say.
///
/// Looked for in rustup's folder: rustup itself, when asked about a toolchain that is not there, may download it.
fn rustup_nightly() -> Option<(PathBuf, PathBuf)> {
    let home = env::var_os("RUSTUP_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".rustup")))?;
    let name = format!("nightly-{}-unknown-linux-gnu", env::consts::ARCH);
    complete_toolchain(&home.join("toolchains").join(name))
}

/// cargo and rustc of a toolchain that has its library's source, too.
fn complete_toolchain(sysroot: &Path) -> Option<(PathBuf, PathBuf)> {
    let (cargo, rustc) = (sysroot.join("bin/cargo"), sysroot.join("bin/rustc"));
    let is_complete = sysroot.is_absolute()
        && cargo.is_file()
        && rustc.is_file()
        && sysroot.join("lib/rustlib/src/rust/library/core").is_dir();
    is_complete.then_some((cargo, rustc))
}

fn has_core(libraries: &Path) -> bool {
    let Ok(entries) = fs::read_dir(libraries) else { return false };
    entries.flatten().any(|entry| entry.file_name().as_encoded_bytes().starts_with(b"libcore-"))
}

fn readable_by_linker(rustc: &Path) -> Result<(), Missing> {
    let (found, supported) = (llvm_major(rustc)?, LINKER_LLVM_MAJOR);
    if found <= supported { Ok(()) } else { Err(Missing::NewerLlvm { rustc: rustc.to_owned(), found, supported }) }
}

/// The version of `bpf-linker` that `cargo xtask setup` installs: the one that is known to work.
pub const LINKER_VERSION: &str = "0.13.0";

/// The LLVM that it is built against. It reads the bitcode of this LLVM and older ones, not that of newer ones.
pub const LINKER_LLVM_MAJOR: u32 = 22;

/// `--root` of the linker's `cargo install`: `${XDG_CACHE_HOME:-~/.cache}/mpiprobe/tools/bpf-linker-VERSION`.
///
/// Outside the clone, so that fresh clones need not build it again; the version is in the name, so that clones of different
/// ages do not disturb each other.
pub fn linker_root() -> Result<PathBuf, Missing> {
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
    let cache = cache.ok_or(Missing::CacheFolder)?;
    Ok(cache.join("mpiprobe/tools").join(format!("bpf-linker-{LINKER_VERSION}")))
}

fn find_linker() -> Result<PathBuf, Missing> {
    let path = linker_root()?.join("bin/bpf-linker");
    if path.is_file() { Ok(path) } else { Err(Missing::Linker { version: LINKER_VERSION, path }) }
}

/// The XDG base directory specification has relative paths ignored.
fn absolute(variable: &str) -> Option<PathBuf> {
    env::var_os(variable).map(PathBuf::from).filter(|path| Path::is_absolute(path))
}

/// The major version of the LLVM inside `rustc`.
fn llvm_major(rustc: &Path) -> Result<u32, Missing> {
    let unusable = |reason: String| Missing::UnusableCompiler { rustc: rustc.to_owned(), reason };
    let output = Command::new(rustc).arg("-vV").stdin(Stdio::null()).output();
    let output = output.map_err(|error| unusable(error.to_string()))?;
    if !output.status.success() {
        return Err(unusable(output.status.to_string()));
    }
    parse_llvm_major(&String::from_utf8_lossy(&output.stdout))
        .ok_or_else(|| unusable("it does not name its LLVM version".into()))
}

fn parse_llvm_major(verbose_version: &str) -> Option<u32> {
    let version = verbose_version.lines().find_map(|line| line.strip_prefix("LLVM version:"))?;
    version.trim().split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{complete_toolchain, has_core, parse_llvm_major};

    #[test]
    fn a_nightly_without_the_librarys_source_does_not_count() {
        let folder = tempfile::tempdir().unwrap();
        let sysroot = folder.path();
        fs::create_dir(sysroot.join("bin")).unwrap();
        for program in ["cargo", "rustc"] {
            fs::write(sysroot.join("bin").join(program), "").unwrap();
        }
        assert_eq!(complete_toolchain(sysroot), None);

        fs::create_dir_all(sysroot.join("lib/rustlib/src/rust/library/core")).unwrap();
        let found = complete_toolchain(sysroot);
        assert_eq!(found, Some((sysroot.join("bin/cargo"), sysroot.join("bin/rustc"))));
    }

    #[test]
    fn core_is_recognised_by_its_library() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!has_core(folder.path()));
        assert!(!has_core(&folder.path().join("absent")));
        fs::write(folder.path().join("libcore-8056e5e5b270ef4d.rlib"), "").unwrap();
        assert!(has_core(folder.path()));
    }

    #[test]
    fn llvm_version_is_found_among_the_other_lines() {
        let text = "rustc 1.96.0 (ac68faa20 2026-05-25)\nbinary: rustc\nrelease: 1.96.0\nLLVM version: 22.1.8\n";
        assert_eq!(parse_llvm_major(text), Some(22));
    }

    #[test]
    fn other_code_generators_have_no_llvm_version() {
        assert_eq!(parse_llvm_major("rustc 1.96.0\nrelease: 1.96.0\n"), None);
        assert_eq!(parse_llvm_major("LLVM version: unknown\n"), None);
    }
}
