//! Runs cargo for the BPF programs.

use std::env;
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, Command, Stdio};

use object::{
    build::elf::{Builder, SectionData},
    elf,
};

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
    let failed = |source| BuildError::Copy { from: object.clone(), to: request.output.clone(), source };
    let bytes = fs::read(&object).map_err(failed)?;
    let bytes = without_dwarf(&bytes).map_err(|source| BuildError::Object { object: object.clone(), source })?;
    keep(bytes, &request.output).map_err(failed)?;
    Ok(request.output.clone())
}

/// Compilers write types and lines of BPF programs for the kernel (BTF) only together with those for debuggers, which are three quarters of the
/// file, and which nobody reads.
fn without_dwarf(object: &[u8]) -> Result<Vec<u8>, object::build::Error> {
    let is_dwarf = |name: &[u8]| [".debug_", ".rel.debug_"].iter().any(|prefix| name.starts_with(prefix.as_bytes()));
    let mut builder = Builder::read(object)?;
    for section in &mut builder.sections {
        section.delete = is_dwarf(&section.name);
    }
    builder.delete_orphans();
    // LLVM keeps names of sections with those of symbols.
    if !builder.sections.iter().any(|section| matches!(section.data, SectionData::SectionString)) {
        let names = builder.sections.add();
        names.name = b".shstrtab".as_slice().into();
        names.sh_type = elf::SHT_STRTAB;
        names.data = SectionData::SectionString;
    }
    let mut bytes = Vec::new();
    builder.write(&mut bytes)?;
    Ok(bytes)
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
    keep(fs::read(from).map_err(failed)?, to).map_err(failed)
}

fn keep(bytes: Vec<u8>, to: &Path) -> io::Result<()> {
    if fs::read(to).is_ok_and(|present| present == bytes) {
        return Ok(());
    }
    fs::write(to, bytes)
}
