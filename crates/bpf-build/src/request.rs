//! What to build, and where.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::BuildError;

/// The objects: the programs that observe calls, and the one that looks at stacks.
const CALLS: &str = "probe-ebpf";
pub const STACKS: &str = "stacks-ebpf";

/// Of the workspace, all that the object depends on. `probe-ebpf` itself is not listed whole: it may have a `target`.
const SOURCES: [&str; 6] = [
    "Cargo.toml",
    "crates/common",
    "crates/functions",
    "probe-ebpf/Cargo.toml",
    "probe-ebpf/Cargo.lock",
    "probe-ebpf/src",
];

/// One build of the BPF object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The folder of the package with the BPF programs.
    pub package: PathBuf,
    /// Which of its binaries.
    pub binary: &'static str,
    /// Cargo's target folder for it. Never the caller's own: that one is locked.
    pub target_dir: PathBuf,
    /// Where the finished object is put.
    pub output: PathBuf,
    /// The machine that the object will run on, named as in `cfg(target_arch)`.
    pub arch: String,
    /// Tell cargo about warnings and dependencies, in the language of build scripts.
    pub build_script: bool,
}

impl Request {
    /// For the workspace at `workspace`, with everything under `target_dir`.
    pub fn new(workspace: &Path, target_dir: &Path) -> Self {
        let target_dir = target_dir.join("bpf");
        Self {
            package: workspace.join("probe-ebpf"),
            binary: CALLS,
            output: target_dir.join("probe-ebpf.o"),
            target_dir,
            arch: env::consts::ARCH.into(),
            build_script: false,
        }
    }

    /// For the build script of a crate one level below the workspace; the object goes to its `OUT_DIR`.
    ///
    /// All of the workspace's profiles share one target folder for BPF: the object is the same for each of them, and
    /// its dependencies take most of a minute.
    pub fn from_build_script() -> Result<Self, BuildError> {
        Self::binary_from_build_script(CALLS)
    }

    /// The same for one of the package's other binaries.
    pub fn binary_from_build_script(binary: &'static str) -> Result<Self, BuildError> {
        let variable = |name| env::var_os(name).ok_or(BuildError::NotABuildScript(name));
        let manifest_dir = PathBuf::from(variable("CARGO_MANIFEST_DIR")?);
        let out_dir = PathBuf::from(variable("OUT_DIR")?);
        let arch = variable("CARGO_CFG_TARGET_ARCH")?;

        let workspace = workspace(&manifest_dir);
        for source in SOURCES {
            println!("cargo:rerun-if-changed={}", workspace.join(source).display());
        }
        println!("cargo:rerun-if-env-changed=XDG_CACHE_HOME");

        let mut request = Self::new(workspace, shared_target(&out_dir));
        request.binary = binary;
        request.output = out_dir.join(format!("{binary}.o"));
        request.arch = arch.to_string_lossy().into_owned();
        request.build_script = true;
        Ok(request)
    }
}

/// `target` (or `target/TRIPLE`) of an `OUT_DIR` such as `target/debug/build/mpiprobe-0123/out`, if it looks like that.
pub(crate) fn shared_target(out_dir: &Path) -> &Path {
    let mut above = out_dir.ancestors().skip(2);
    match (above.next().and_then(Path::file_name), above.nth(1)) {
        (Some(build), Some(target)) if build == OsStr::new("build") => target,
        _ => out_dir,
    }
}

/// The workspace that a crate belongs to: the nearest directory above it that has the BPF programs.
pub(crate) fn workspace(crate_directory: &Path) -> &Path {
    crate_directory.ancestors().find(|directory| directory.join("probe-ebpf").is_dir()).unwrap_or(crate_directory)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Request, shared_target};

    #[test]
    fn profiles_share_a_target_folder() {
        let shared = |path| shared_target(Path::new(path)).to_str();
        assert_eq!(shared("/w/target/debug/build/mpiprobe-01/out"), Some("/w/target"));
        assert_eq!(shared("/w/target/release/build/mpiprobe-02/out"), Some("/w/target"));
        assert_eq!(shared("/t/x86_64-unknown-linux-gnu/debug/build/p-3/out"), Some("/t/x86_64-unknown-linux-gnu"));
    }

    #[test]
    fn unknown_layouts_keep_to_themselves() {
        assert_eq!(shared_target(Path::new("/somewhere/else")), Path::new("/somewhere/else"));
        assert_eq!(shared_target(Path::new("/")), Path::new("/"));
    }

    #[test]
    fn the_target_folder_is_not_the_callers() {
        let request = Request::new(Path::new("/w"), Path::new("/w/target"));
        assert_eq!(request.package, Path::new("/w/probe-ebpf"));
        assert_eq!(request.target_dir, Path::new("/w/target/bpf"));
        assert_eq!(request.output, Path::new("/w/target/bpf/probe-ebpf.o"));
    }
}
