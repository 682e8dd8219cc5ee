//! Compiles the test programs and libraries once per content, compiler and MPI library, into `target/mpi-programs/`.

use std::ffi::OsString;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use thiserror::Error;

use crate::mpi::{Mpi, find_command};
use crate::program::{Language, Program};

#[derive(Debug, Error)]
pub enum CompileError {
    #[error("{compiler} cannot be started ({source}); is {mpi} with its development files installed?")]
    NoCompiler { mpi: Mpi, compiler: String, source: io::Error },
    #[error("`{command}` failed:\n{stderr}")]
    Failed { command: String, stderr: String },
    #[error("program {program} has no source")]
    NoSource { program: &'static str },
    #[error("{program} is not installed")]
    NotInstalled { program: &'static str },
    #[error("{library} of {mpi} is not installed")]
    NoLibrary { mpi: Mpi, library: &'static str },
    #[error("cannot read the symbols of {path}: {source}")]
    Symbols { path: PathBuf, source: object::Error },
    #[error("{action} {path}: {source}")]
    File { action: &'static str, path: PathBuf, source: io::Error },
}

/// The executable of a C, C++ or Fortran program or of an installed one, the script itself for Python.
pub fn executable(mpi: Mpi, program: Program) -> Result<PathBuf, CompileError> {
    if program.language == Language::Installed {
        return find_command(program.name).ok_or(CompileError::NotInstalled { program: program.name });
    }
    let inputs: Vec<PathBuf> = program.files().collect();
    let Some(compiler) = mpi.compiler(program.language) else {
        return inputs.into_iter().next().ok_or(CompileError::NoSource { program: program.name });
    };
    let arguments = [options(program), mpi.compiler_arguments()].concat();
    build(mpi, &compiler, &arguments, &inputs, program.name)
}

/// The executable of a C or Fortran program with MPICH's libraries in it. Debian has no such library of Open MPI.
pub fn executable_with_mpich(program: Program) -> Result<PathBuf, CompileError> {
    let mpi = Mpi::Mpich;
    let is_fortran = program.language == Language::Fortran;
    let compiler = if is_fortran { "gfortran" } else { "gcc" };
    let wrapper = mpi.compiler(program.language).unwrap_or_default();
    let mut command = Command::new(&wrapper);
    let shown = command.arg("-compile-info").output();
    let shown = shown.map_err(|source| CompileError::NoCompiler { mpi, compiler: wrapper, source })?;
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    let mut arguments = options(program);
    arguments.extend(shown.split_whitespace().filter(|option| option.starts_with("-I")).map(Into::into));
    arguments.extend(is_fortran.then(|| "-l:libmpichfort.a".into()));
    // What the library needs is there as shared libraries only.
    arguments.extend(["-l:libmpich.a", "-lucp", "-lucs", "-lhwloc", "-lm"].map(Into::into));
    build(mpi, compiler, &arguments, &program.files().collect::<Vec<_>>(), program.name)
}

/// The executable of [`BRIEF`](crate::program::BRIEF) and its library, with another C library (musl) than MPI's, which is only named:
/// Debian has no MPI for it.
pub fn executable_with_musl(mpi: Mpi, program: Program) -> Result<PathBuf, CompileError> {
    with_own_library(mpi, "musl-gcc", program)
}

/// The same with the ordinary one.
pub fn executable_of_brief(mpi: Mpi, program: Program) -> Result<PathBuf, CompileError> {
    with_own_library(mpi, "gcc", program)
}

/// The first file is that of the library as well.
fn with_own_library(mpi: Mpi, compiler: &str, program: Program) -> Result<PathBuf, CompileError> {
    let sources: Vec<PathBuf> = program.files().collect();
    let library: Vec<OsString> = ["-DLIBRARY", "-shared", "-fPIC"].map(Into::into).into();
    let first: Vec<PathBuf> = sources.iter().take(1).cloned().collect();
    let library = build(mpi, compiler, &library, &first, "libbrief.so")?;
    let mut arguments = options(program);
    let mut path = OsString::from("-Wl,-rpath,");
    path.push(library.parent().unwrap_or(Path::new("/")));
    arguments.extend([library.into(), path]);
    build(mpi, compiler, &arguments, &sources, program.name)
}

fn options(program: Program) -> Vec<OsString> {
    let options: &[&str] = match program.language {
        // Some of MPI's special constants look to gcc like arrays of no elements.
        Language::C => &["-Wall", "-Wextra", "-Wno-stringop-overflow", "-Wno-stringop-overread", "-pthread"],
        // MPICH's C++ bindings cast functions.
        Language::Cxx => &["-Wall", "-Wno-cast-function-type"],
        Language::Fortran | Language::Python | Language::Installed => &[],
    };
    ["-O2", "-g"].iter().chain(options).chain(program.options).map(Into::into).collect()
}

/// Runs `compiler arguments inputs -o OUTPUT` unless that was done before with the same content; returns OUTPUT. Headers (`.h`,
/// `.inc`) are part of the content but not of the command line. Safe to call from several processes at once.
pub(crate) fn build(
    mpi: Mpi,
    compiler: &str,
    arguments: &[OsString],
    inputs: &[PathBuf],
    name: &str,
) -> Result<PathBuf, CompileError> {
    let mut hasher = DefaultHasher::new();
    (compiler, arguments, name).hash(&mut hasher);
    for input in inputs {
        fs::read(input).map_err(file_error("reading", input))?.hash(&mut hasher);
    }
    // A new release of the library may come with other headers.
    let library = mpi.library().ok_or(CompileError::NoLibrary { mpi, library: mpi.c_library() })?;
    let metadata = library.metadata().map_err(file_error("reading", &library))?;
    (&library, metadata.size(), metadata.mtime()).hash(&mut hasher);

    let directory = cache_directory().join(mpi.id()).join(format!("{:016x}", hasher.finish()));
    fs::create_dir_all(&directory).map_err(file_error("creating", &directory))?;
    let output = directory.join(name);
    let lock_path = directory.join(".lock");
    let lock = File::create(&lock_path).map_err(file_error("creating", &lock_path))?;
    lock.lock().map_err(file_error("locking", &lock_path))?;
    if !output.exists() {
        compile(mpi, compiler, arguments, inputs, &output)?;
    }
    Ok(output)
}

fn compile(
    mpi: Mpi,
    compiler: &str,
    arguments: &[OsString],
    inputs: &[PathBuf],
    output: &Path,
) -> Result<(), CompileError> {
    let unfinished = output.with_extension("unfinished");
    let mut command = Command::new(compiler);
    let is_source = |path: &&PathBuf| path.extension().is_some_and(|extension| extension != "h" && extension != "inc");
    // Libraries in `arguments` come after the objects that need them.
    command.args(inputs.iter().filter(is_source)).args(arguments).arg("-o").arg(&unfinished);
    // Fortran module files and the like.
    command.current_dir(output.parent().unwrap_or(Path::new("/")));
    let result =
        command.output().map_err(|source| CompileError::NoCompiler { mpi, compiler: compiler.to_owned(), source })?;
    if !result.status.success() {
        let stderr = String::from_utf8_lossy(&result.stderr).into_owned();
        return Err(CompileError::Failed { command: format!("{command:?}"), stderr });
    }
    fs::rename(&unfinished, output).map_err(file_error("renaming", &unfinished))
}

/// `target/mpi-programs`, where nothing but a change of content makes anything compile again.
pub(crate) fn cache_directory() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../target"), PathBuf::from);
    // The compiler runs in another directory.
    std::path::absolute(&target).unwrap_or(target).join("mpi-programs")
}

pub(crate) fn file_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> CompileError {
    let path = path.to_owned();
    move |source| CompileError::File { action, path, source }
}
