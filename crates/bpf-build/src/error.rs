//! Why there is no BPF object.

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

/// A part of the BPF toolchain that is not there or does not fit.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Missing {
    #[error(
        "no compiler for BPF: neither a rustup nightly with the rust-src component nor Debian's {rustc} with the BPF core \
         library in {core} is there; run `cargo xtask setup`"
    )]
    Compiler { rustc: PathBuf, core: PathBuf },

    #[error("{rustc} -vV cannot be used ({reason}); run `cargo xtask setup`")]
    UnusableCompiler { rustc: PathBuf, reason: String },

    #[error(
        "{rustc} writes the bitcode of LLVM {found}, but bpf-linker is built for LLVM {supported}, which cannot read it; \
         move the linker's LLVM in `bpf-build` and `xtask` on"
    )]
    NewerLlvm { rustc: PathBuf, found: u32, supported: u32 },

    #[error("bpf-linker {version} is not at {path}; run `cargo xtask setup`")]
    Linker { version: &'static str, path: PathBuf },

    #[error("neither XDG_CACHE_HOME nor HOME is an absolute path, so there is no place for tools; set one of them")]
    CacheFolder,
}

/// Why the object or the library was not built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    #[error("the BPF programs cannot be built: {0}")]
    Missing(#[from] Missing),

    #[error("{0} is not set: this is meant to be called from a build script under cargo")]
    NotABuildScript(&'static str),

    #[error("cargo for the BPF programs cannot be started as {cargo}")]
    Start { cargo: PathBuf, source: io::Error },

    #[error("the BPF programs in {package} do not build ({status}); the compiler's messages stand above")]
    Failed { package: PathBuf, status: ExitStatus },

    #[error("cargo for the wrapper cannot be started as {cargo}")]
    StartWrapper { cargo: PathBuf, source: io::Error },

    #[error("the wrapper in {package} does not build ({status}); the compiler's messages stand above")]
    FailedWrapper { package: PathBuf, status: ExitStatus },

    #[error("{object}, which the BPF linker has written, cannot be read or written without its debug sections")]
    Object { object: PathBuf, source: object::build::Error },

    #[error("{from} cannot be copied to {to}")]
    Copy { from: PathBuf, to: PathBuf, source: io::Error },
}
