//! Builds the preloaded libraries: the counting one per MPI, and the one with gates only.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::symbols::{Interposed, interposed};
use super::typed::wrappers;
use crate::compile::{CompileError, build, cache_directory, file_error};
use crate::mpi::{Mpi, find_library};
use crate::program::Language;

/// The parts of the library in `tests/truth/`, headers last.
const SOURCES: &[&str] = &[
    "truth.c",
    "trampoline.S",
    "gate.c",
    "semantics/ask.c",
    "semantics/call.c",
    "semantics/collective.c",
    "semantics/describe.c",
    "semantics/log.c",
    "semantics/operation.c",
    "semantics/request.c",
    "semantics/scope.c",
    "semantics/sizes.c",
    "semantics/traffic.c",
    "semantics/world.c",
    "semantics/ask.h",
    "semantics/call.h",
    "semantics/log.h",
    "semantics/operation.h",
    "semantics/scope.h",
    "semantics/traffic.h",
    "truth.h",
];

/// Counts calls, records what they mean, and has gates. Once made it is there for the rest of the run.
pub(crate) fn truth_library(mpi: Mpi) -> Result<PathBuf, CompileError> {
    static MADE: Made = Made::new();
    MADE.of(mpi, make_truth_library)
}

fn make_truth_library(mpi: Mpi) -> Result<PathBuf, CompileError> {
    let c_library = mpi.library().ok_or(CompileError::NoLibrary { mpi, library: mpi.c_library() })?;
    // Without the Fortran libraries there is no Fortran program to count.
    let fortran_libraries: Vec<PathBuf> =
        mpi.fortran_libraries().iter().filter_map(|name| find_library(name)).collect();
    let symbols = interposed(&c_library, &fortran_libraries)?;
    let generated = cache_directory().join(mpi.id());
    fs::create_dir_all(&generated).map_err(file_error("creating", &generated))?;
    let trampolines = generated.join("symbols.inc");
    let tables = generated.join("symbols.c");
    write_if_changed(&trampolines, &trampoline_list(&symbols))?;
    let functions: BTreeMap<&str, usize> =
        symbols.values().map(String::as_str).collect::<BTreeSet<_>>().into_iter().zip(0..).collect();
    let (typed, wrapped) = wrappers(&functions);
    let typed_source = generated.join("typed.c");
    write_if_changed(&typed_source, &typed)?;
    write_if_changed(&tables, &symbol_tables(&symbols, &functions, &wrapped))?;

    let sources = source_directory();
    let inputs = SOURCES.iter().chain(yielding(mpi)).map(|name| sources.join(name));
    let inputs: Vec<PathBuf> = inputs.chain([tables, typed_source, trampolines]).collect();
    let mut include = std::ffi::OsString::from("-I");
    include.push(&generated);
    let mut include_sources = std::ffi::OsString::from("-I");
    include_sources.push(&sources);
    let mut arguments = vec![include, include_sources];
    arguments.extend(["-shared", "-fPIC", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-pthread"].map(Into::into));
    // An error handler may throw through the wrappers.
    arguments.push("-fexceptions".into());
    // mpi4py takes a process that exports MPI_* for one that has MPI loaded: so it must be loaded.
    arguments.extend(["-Wl,--no-as-needed".into(), c_library.into_os_string()]);
    arguments.extend(mpi.compiler_arguments());
    let compiler = mpi.compiler(Language::C).unwrap_or_default();
    build(mpi, &compiler, &arguments, &inputs, "libtruth.so")
}

/// Gates without counting, for jobs that must not be interposed.
pub(crate) fn gate_library(mpi: Mpi) -> Result<PathBuf, CompileError> {
    static MADE: Made = Made::new();
    MADE.of(mpi, |mpi| plain_library(mpi, &["gate.c"], "libgate.so"))
}

/// For jobs with neither: what makes waiting ranks give their core away, where MPI does not do it by itself.
pub(crate) fn yielding_library(mpi: Mpi) -> Result<Option<PathBuf>, CompileError> {
    static MADE: Made = Made::new();
    if yielding(mpi).is_empty() {
        Ok(None)
    } else {
        MADE.of(mpi, |mpi| plain_library(mpi, &[], "libyield.so")).map(Some)
    }
}

fn plain_library(mpi: Mpi, sources: &[&str], name: &str) -> Result<PathBuf, CompileError> {
    let arguments = ["-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror"].map(Into::into);
    let inputs: Vec<PathBuf> =
        sources.iter().chain(yielding(mpi)).map(|source| source_directory().join(source)).collect();
    build(mpi, "gcc", &arguments, &inputs, name)
}

/// Others yield when they are told to, or always.
fn yielding(mpi: Mpi) -> &'static [&'static str] {
    if mpi == Mpi::Mpich { &["yield.c"] } else { &[] }
}

/// A library of each MPI that has been asked for: nothing of it changes while tests run.
struct Made(Mutex<BTreeMap<Mpi, PathBuf>>);

impl Made {
    const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    fn of(
        &self,
        mpi: Mpi,
        compile: impl FnOnce(Mpi) -> Result<PathBuf, CompileError>,
    ) -> Result<PathBuf, CompileError> {
        // Held meanwhile: generated sources of one MPI are written by one thread at a time.
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(path) = made.get(&mpi) {
            return Ok(path.clone());
        }
        let path = compile(mpi)?;
        made.insert(mpi, path.clone());
        Ok(path)
    }
}

fn source_directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("truth")
}

fn trampoline_list(symbols: &Interposed) -> String {
    let mut text = String::new();
    for (index, symbol) in symbols.keys().enumerate() {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "INTERPOSE {symbol}, {index}");
    }
    text
}

fn symbol_tables(symbols: &Interposed, functions: &BTreeMap<&str, usize>, wrapped: &[&str]) -> String {
    let mut text = String::from("#include \"truth.h\"\n");
    for name in wrapped {
        let _ = writeln!(text, "void typed_{name}(void);");
    }
    let _ = writeln!(text, "const uint32_t truth_functions = {};", functions.len());
    let _ = writeln!(text, "_Atomic(void *) truth_symbol_next[{}];", symbols.len());
    let mut table = |declaration: &str, entries: &mut dyn Iterator<Item = String>| {
        let _ = writeln!(text, "{declaration} = {{");
        for entry in entries {
            let _ = writeln!(text, "    {entry},");
        }
        let _ = writeln!(text, "}};");
    };
    let quoted = |name: &str| format!("\"{name}\"");
    table("const char *const truth_function_names[]", &mut functions.keys().map(|name| quoted(name)));
    table("const char *const truth_symbol_names[]", &mut symbols.keys().map(|name| quoted(name)));
    table(
        "const uint32_t truth_symbol_functions[]",
        &mut symbols.values().filter_map(|name| functions.get(name.as_str())).map(ToString::to_string),
    );
    let typed = |symbol: &String| {
        if wrapped.contains(&symbol.as_str()) { format!("(void *)typed_{symbol}") } else { "0".to_owned() }
    };
    table("void *const truth_symbol_typed[]", &mut symbols.keys().map(typed));
    text
}

/// Another process may be compiling from the same file: an unchanged one is not touched, a changed one is replaced whole.
fn write_if_changed(path: &Path, text: &str) -> Result<(), CompileError> {
    if fs::read_to_string(path).is_ok_and(|present| present == text) {
        return Ok(());
    }
    let unfinished = path.with_extension(format!("{}.unfinished", std::process::id()));
    fs::write(&unfinished, text).map_err(file_error("writing", &unfinished))?;
    fs::rename(&unfinished, path).map_err(file_error("renaming", &unfinished))
}
