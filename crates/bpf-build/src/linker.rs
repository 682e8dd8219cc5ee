//! Where `bpf-linker` is: in a folder of the project's own, in the one version that is known to work.

use std::env;
use std::path::{Path, PathBuf};

use crate::Missing;

/// The version that `cargo xtask setup` installs.
pub const VERSION: &str = "0.13.0";

/// The LLVM that it is built against. It reads the bitcode of this LLVM and older ones, not that of newer ones.
pub const LLVM_MAJOR: u32 = 22;

/// `--root` of the linker's `cargo install`: `${XDG_CACHE_HOME:-~/.cache}/mpiprobe/tools/bpf-linker-VERSION`.
///
/// Outside the clone, so that fresh clones need not build it again; the version is in the name, so that clones of different
/// ages do not disturb each other.
pub fn linker_root() -> Result<PathBuf, Missing> {
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
    let cache = cache.ok_or(Missing::CacheFolder)?;
    Ok(cache.join("mpiprobe/tools").join(format!("bpf-linker-{VERSION}")))
}

pub(crate) fn find() -> Result<PathBuf, Missing> {
    let path = linker_root()?.join("bin/bpf-linker");
    if path.is_file() { Ok(path) } else { Err(Missing::Linker { version: VERSION, path }) }
}

/// The XDG base directory specification has relative paths ignored.
fn absolute(variable: &str) -> Option<PathBuf> {
    env::var_os(variable).map(PathBuf::from).filter(|path| Path::is_absolute(path))
}
