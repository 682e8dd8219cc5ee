//! Builds what is embedded in `mpiprobe`: the BPF object of `probe-ebpf/`, from a build script or from `xtask`, and the library of
//! `wrapper/`, from a build script.
//!
//! BPF needs a compiler with a `core` library for `bpfel-unknown-none`, which stable Rust has not. [`detect`] takes what
//! the machine has, [`build`] runs a second cargo with it, shielded from the environment of the first.
//!
//! ```no_run
//! # fn main() -> Result<(), mpiprobe_bpf_build::BuildError> {
//! // In build.rs; the object is then embedded with include_bytes!(env!("MPIPROBE_BPF_OBJECT")).
//! let object = mpiprobe_bpf_build::build(&mpiprobe_bpf_build::Request::from_build_script()?)?;
//! println!("cargo:rustc-env=MPIPROBE_BPF_OBJECT={}", object.display());
//! # Ok(()) }
//! ```

mod build;
mod environment;
mod error;
mod request;
mod toolchain;
mod wrapper;

pub use build::build;
pub use error::{BuildError, Missing};
pub use request::{Request, STACKS};
pub use toolchain::{
    Compiler, LINKER_LLVM_MAJOR, LINKER_VERSION, Toolchain, ToolchainKind, detect, detect_compiler, linker_root,
};
pub use wrapper::build_wrapper;
