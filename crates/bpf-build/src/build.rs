//! Runs cargo for the BPF programs.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, Command, Stdio};

use crate::{BuildError, Request, Toolchain, ToolchainKind, detect, environment};

const TARGET: &str = "bpfel-unknown-none";

/// Builds the object with the toolchain that [`detect`] finds and returns the path of the ELF file ([`Request::output`]).
///
/// Always with the release profile: the kernel's verifier refuses unoptimised code. Cheap when nothing has changed.
pub fn build(request: &Request) -> Result<PathBuf, BuildError> {
    let toolchain = detect()?;
    if request.build_script {
        // Another compiler, or the linker installed again, makes another object.
        println!("cargo:rerun-if-changed={}", toolchain.compiler.rustc.display());
        println!("cargo:rerun-if-changed={}", toolchain.linker.display());
    }

    let mut command = command(request, &toolchain);
    let start = |source| BuildError::Start { cargo: toolchain.compiler.cargo.clone(), source };
    let mut child = command.spawn().map_err(start)?;
    if let Some(stderr) = child.stderr.take() {
        pass_on(stderr, request.build_script);
    }
    let status = child.wait().map_err(start)?;
    if !status.success() {
        return Err(BuildError::Failed { package: request.package.clone(), status });
    }

    let object = request.target_dir.join(TARGET).join("release").join(request.binary);
    copy(&object, &request.output)?;
    Ok(request.output.clone())
}

fn command(request: &Request, toolchain: &Toolchain) -> Command {
    let mut command = Command::new(&toolchain.compiler.cargo);
    for (name, _) in env::vars_os().filter(|(name, _)| environment::is_foreign(name)) {
        command.env_remove(name);
    }
    command
        .current_dir(&request.package)
        .args(["build", "--release", "--bin", request.binary, "--target", TARGET, "--target-dir"])
        .arg(&request.target_dir)
        .env("RUSTC", &toolchain.compiler.rustc)
        // Empty also switches off a wrapper or build folder of the user's configuration files.
        .env("RUSTC_WRAPPER", "")
        .env("CARGO_BUILD_BUILD_DIR", &request.target_dir)
        .env("CARGO_ENCODED_RUSTFLAGS", environment::encoded_rustflags(&request.arch, toolchain.linker.as_os_str()))
        .stdin(Stdio::null())
        // A build script's output is read by cargo.
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    match toolchain.compiler.kind {
        ToolchainKind::RustupNightly => command.args(["-Z", "build-std=core"]),
        // These two crates need the unstable asm_experimental_arch; all others stay as stable as Debian's compiler is.
        ToolchainKind::Debian => command.env("RUSTC_BOOTSTRAP", "aya_ebpf,probe_ebpf"),
    };
    command
}

/// Cargo shows what a build script writes to stderr only if it fails, so warnings must be handed over.
pub(crate) fn pass_on(stderr: ChildStderr, build_script: bool) {
    for line in BufReader::new(stderr).split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line);
        eprintln!("{line}");
        if build_script && line.starts_with("warning") {
            println!("cargo:warning=nested build: {line}");
        }
    }
}

/// Leaves an equal file alone, so that nothing is made again because of a new time stamp.
pub(crate) fn copy(from: &Path, to: &Path) -> Result<(), BuildError> {
    let failed = |source| BuildError::Copy { from: from.to_owned(), to: to.to_owned(), source };
    let object = fs::read(from).map_err(failed)?;
    if fs::read(to).is_ok_and(|present| present == object) {
        return Ok(());
    }
    fs::write(to, object).map_err(failed)
}
