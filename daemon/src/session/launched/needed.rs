//! Which MPI libraries a command will use, as far as that can be told before it runs.
//!
//! Every argument that names a program is looked at, because launchers are given one; the dynamic linker itself says what it would
//! load, as `ldd` has it. It is asked only if it is one of the system's: an argument may be any file.

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    fs::File,
    io,
    os::unix::{
        ffi::OsStrExt as _,
        fs::{MetadataExt as _, PermissionsExt as _},
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use mpiprobe_discover::{
    ReturnRisk, ReturnRisks, Scanner, files::with_callers_rights, identity_when_mapped, mappings::FileId, open_regular,
};
use mpiprobe_elf::{Elf, constants::PT_INTERP};
use mpiprobe_plan::ImplementationRecogniser;
use object::{ReadCache, ReadRef as _};

/// Arguments that are looked at.
const MOST_ARGUMENTS: usize = 256;
/// Entries of a directory that are looked at.
const MOST_ENTRIES: usize = 4096;
/// Programs that texts name which are looked at: the dynamic linker takes some milliseconds for each.
const MOST_WORDS: usize = 32;
/// Words that are looked for, each in all directories of PATH.
const MOST_LOOKED_AT: usize = 4096;
/// Scripts that are read, and how much of each, bytes.
const MOST_SCRIPTS: usize = 16;
const LONGEST_SCRIPT: u64 = 64 << 10;
/// Length of an interpreter's path, bytes.
const LONGEST_PATH: u64 = 4096;

/// A file with MPI's functions.
#[derive(Debug)]
pub(super) struct Needed {
    pub(super) path: PathBuf,
    pub(super) file: File,
    pub(super) id: FileId,
}

/// What is known of a command before it runs.
#[derive(Debug)]
pub(super) struct Needs {
    /// MPI libraries, each once; empty if it cannot be told.
    pub(super) libraries: Vec<Needed>,
    /// Why return probes may harm it.
    pub(super) risk: Option<ReturnRisk>,
}

/// The scanner remembers what all files are that the command will load.
pub(super) fn needed(command: &[OsString], scanner: &mut Scanner<ImplementationRecogniser>) -> Needs {
    let found = with_callers_rights(|| Ok::<_, io::Error>(needed_by(command, scanner)));
    found.unwrap_or_else(|_| Needs { libraries: Vec::new(), risk: None })
}

fn needed_by(command: &[OsString], scanner: &mut Scanner<ImplementationRecogniser>) -> Needs {
    let mut seen = BTreeSet::new();
    let programs = command.iter().take(MOST_ARGUMENTS).filter_map(|argument| find_program(argument));
    let files = programs.flat_map(|program| {
        let libraries = libraries(&program);
        std::iter::once(program).chain(libraries)
    });
    let files: Vec<PathBuf> = files.filter(|path| seen.insert(path.clone())).collect();
    let risk = |path: &PathBuf| ReturnRisks::of_file(&open_regular(path).ok()?, &path.display().to_string());
    let risk = files.iter().filter_map(risk).max_by_key(|risk| risk.way);
    Needs { libraries: files.into_iter().filter_map(|path| mpi_library(path, scanner)).collect(), risk }
}

/// The same, and besides those that programs need which a shell or a script may start, and modules for Python which the command may import.
/// It may do without, so nothing is certain.
pub(super) fn perhaps_needed(command: &[OsString], scanner: &mut Scanner<ImplementationRecogniser>) -> Needs {
    let words = with_callers_rights(|| Ok::<_, io::Error>(words(command))).unwrap_or_default();
    let command: Vec<OsString> = command.iter().take(MOST_ARGUMENTS).cloned().chain(words).collect();
    let mut found = needed(&command, scanner);
    let programs: BTreeSet<PathBuf> = command.iter().filter_map(|argument| named_program(argument)).collect();
    let modules = programs.into_iter().filter(|program| is_python(program)).flat_map(|program| {
        let linker = program.canonicalize().ok().and_then(|program| interpreter(&program));
        let linker = linker.filter(|linker| is_the_systems(linker));
        let modules = mpi_modules(&package_directories(&program));
        modules
            .into_iter()
            .flat_map(move |module| linker.iter().flat_map(|linker| listed(linker, &module)).collect::<Vec<_>>())
    });
    for path in modules.collect::<BTreeSet<_>>() {
        if !found.libraries.iter().any(|known| known.path == path) {
            found.libraries.extend(mpi_library(path, scanner));
        }
    }
    found
}

/// Names of programs in what a shell is given as one argument, and in scripts, also in those that these name.
fn words(command: &[OsString]) -> Vec<OsString> {
    let mut scripts = BTreeSet::new();
    let mut script_of = |word: &OsStr| {
        let path = find_program(word).filter(|_| scripts.len() < MOST_SCRIPTS)?;
        let text = script(&path)?;
        scripts.insert(path).then_some(text)
    };
    let command = command.iter().take(MOST_ARGUMENTS);
    let mut texts: Vec<Vec<u8>> = command.clone().filter_map(|argument| script_of(argument)).collect();
    texts.extend(command.clone().map(|argument| argument.as_bytes().to_owned()).filter(|text| has_words(text)));
    let mut looked_at: BTreeSet<OsString> = command.cloned().collect();
    let mut found = Vec::new();
    let mut next = 0;
    while let Some(text) = texts.get(next).cloned() {
        next += 1;
        for word in text.split(|byte| byte.is_ascii_whitespace() || b";|&()<>{}`\"'$=".contains(byte)) {
            let word = OsStr::from_bytes(word);
            if found.len() == MOST_WORDS || looked_at.len() > MOST_LOOKED_AT {
                return found;
            }
            if word.is_empty() || !looked_at.insert(word.to_owned()) {
                continue;
            }
            texts.extend(script_of(word));
            if named_program(word).is_some() {
                found.push(word.to_owned());
            }
        }
    }
    found
}

fn has_words(argument: &[u8]) -> bool {
    argument.iter().any(u8::is_ascii_whitespace)
}

/// The beginning of a program that is text.
fn script(path: &Path) -> Option<Vec<u8>> {
    let file = open_regular(path).ok()?;
    let data = ReadCache::new(&file);
    let length = file.metadata().ok()?.len().min(LONGEST_SCRIPT);
    let text = (&data).read_bytes_at(0, length).ok()?;
    text.starts_with(b"#!").then(|| text.to_owned())
}

fn is_python(program: &Path) -> bool {
    program.file_name().is_some_and(|name| name.as_bytes().starts_with(b"python"))
}

/// Where an interpreter of this name looks for packages, as far as its place and the environment tell.
fn package_directories(program: &Path) -> Vec<PathBuf> {
    let path = std::env::var_os("PYTHONPATH");
    let named = path.iter().flat_map(std::env::split_paths);
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local"));
    let prefix = |program: &Path| Some(program.parent()?.parent()?.to_owned());
    let prefixes =
        [prefix(program), program.canonicalize().ok().as_deref().and_then(prefix), home, Some("/usr/local".into())];
    let versions = prefixes.into_iter().flatten().flat_map(|prefix| entries(&prefix.join("lib"), b"python3"));
    named
        .chain(versions.flat_map(|library| ["site-packages", "dist-packages"].map(|packages| library.join(packages))))
        .collect()
}

/// The modules of mpi4py that have MPI's functions linked in.
fn mpi_modules(packages: &[PathBuf]) -> Vec<PathBuf> {
    let modules = packages.iter().flat_map(|packages| entries(&packages.join("mpi4py"), b"MPI."));
    modules.filter(|module| module.extension() == Some(OsStr::new("so"))).collect()
}

/// What is in a directory whose name begins so.
fn entries(directory: &Path, beginning: &[u8]) -> Vec<PathBuf> {
    let Ok(listed) = std::fs::read_dir(directory) else { return Vec::new() };
    let paths = listed.take(MOST_ENTRIES).filter_map(|entry| Some(entry.ok()?.path()));
    paths.filter(|path| path.file_name().is_some_and(|name| name.as_bytes().starts_with(beginning))).collect()
}

/// The program's file: with a path in its name, or on `PATH`.
pub(super) fn find_program(argument: &OsStr) -> Option<PathBuf> {
    named_program(argument)?.canonicalize().ok()
}

/// By the name that it is called by.
fn named_program(argument: &OsStr) -> Option<PathBuf> {
    let is_program = |path: &PathBuf| {
        let metadata = path.metadata();
        metadata.is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
    };
    if argument.as_bytes().contains(&b'/') {
        return Some(PathBuf::from(argument)).filter(is_program);
    }
    if argument.is_empty() || argument.as_bytes().starts_with(b"-") {
        return None;
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(argument)).find(is_program)
}

/// What the dynamic linker would load for it.
fn libraries(program: &Path) -> Vec<PathBuf> {
    let linker = interpreter(program).filter(|linker| is_the_systems(linker));
    linker.map_or_else(Vec::new, |linker| listed(&linker, program))
}

/// What this linker would load for a program or module.
fn listed(linker: &Path, file: &Path) -> Vec<PathBuf> {
    let listed = Command::new(linker).arg("--list").arg(file).stdin(Stdio::null()).stderr(Stdio::null()).output();
    listed.map_or_else(
        |_| Vec::new(),
        |output| output.stdout.split(|&byte| byte == b'\n').filter_map(listed_file).collect(),
    )
}

/// The file in `\tlibmpi.so.40 => /lib/libmpi.so.40 (0x00007f…)`.
fn listed_file(line: &[u8]) -> Option<PathBuf> {
    let line = line.trim_ascii();
    let arrow = memchr::memmem::find(line, b"=> ").map_or(0, |at| at + 3);
    let end = memchr::memmem::rfind(line, b" (0x")?;
    let path = line.get(arrow..end).filter(|path| path.starts_with(b"/"))?;
    PathBuf::from(OsStr::from_bytes(path)).canonicalize().ok()
}

fn interpreter(program: &Path) -> Option<PathBuf> {
    let file = open_regular(program).ok()?;
    let data = ReadCache::new(&file);
    let elf = Elf::parse(&data).ok()?;
    let segment = elf.segments.of_kind(PT_INTERP)?;
    let bytes = (&data).read_bytes_at(segment.offset, segment.file_size.min(LONGEST_PATH)).ok()?;
    let path = bytes.split(|&byte| byte == 0).next()?;
    PathBuf::from(OsStr::from_bytes(path)).canonicalize().ok()
}

/// Whether nobody but the system's administrator can have put it there.
fn is_the_systems(linker: &Path) -> bool {
    let is_named_so = linker.file_name().is_some_and(|name| {
        let name = name.as_bytes();
        name.starts_with(b"ld-") || name.starts_with(b"ld.so") || name.starts_with(b"libc.")
    });
    let is_roots = |path: &Path| path.metadata().is_ok_and(|found| found.uid() == 0 && found.mode() & 0o022 == 0);
    is_named_so && linker.ancestors().all(is_roots)
}

fn mpi_library(path: PathBuf, scanner: &mut Scanner<ImplementationRecogniser>) -> Option<Needed> {
    let file = open_regular(&path).ok()?;
    let id = identity_when_mapped(&file).ok()??;
    scanner.is_mpi(&path, &file, id).then_some(Needed { path, file, id })
}

#[cfg(test)]
mod tests {
    use super::*;
    use mpiprobe_discover::{Caller, ProcRoot};

    #[test]
    fn lines_of_the_linker_name_files() {
        let own = std::env::current_exe().unwrap().canonicalize().unwrap();
        let line = format!("\tlibx.so => {} (0x00007f0000000000)", own.display());
        assert_eq!(listed_file(line.as_bytes()), Some(own.clone()));
        assert_eq!(listed_file(format!("\t{} (0x00007f0000000000)", own.display()).as_bytes()), Some(own));
        for other in ["\tlinux-vdso.so.1 (0x00007ffc)", "\tlibx.so => not found", "", "\tstatically linked"] {
            assert_eq!(listed_file(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn programs_are_found_as_a_shell_finds_them() {
        assert!(find_program(OsStr::new("sh")).is_some_and(|path| path.is_absolute()));
        let own = std::env::current_exe().unwrap();
        assert_eq!(find_program(own.as_os_str()), own.canonicalize().ok());
        for other in ["-n", "4", "", "/", "/etc/passwd", "no-such-program"] {
            assert_eq!(find_program(OsStr::new(other)), None, "{other}");
        }
    }

    #[test]
    fn programs_that_a_shell_or_a_script_starts_are_found() {
        let named = |command: &[&str]| words(&command.iter().map(Into::into).collect::<Vec<_>>());
        assert_eq!(
            named(&["sh", "-c", "x=$(true) && exec sleep 5;no-such-program"]),
            ["true", "sleep"].map(OsString::from)
        );
        assert!(named(&["sh", "-c", "exit"]).is_empty() && named(&["true", "-n", "4"]).is_empty());
        let folder = tempfile::tempdir().unwrap();
        let script = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
            path.display().to_string()
        };
        let inner = script("inner", "#!/bin/sh\nsleep 1\n");
        let outer = script("outer", &format!("#!/bin/sh\n{inner} \"$@\"\n"));
        assert!(named(&[&outer]).contains(&"sleep".into()), "{:?}", named(&[&outer]));
        // One that names itself.
        let itself = folder.path().join("itself").display().to_string();
        script("itself", &format!("#!/bin/sh\n{itself} true\n"));
        assert!(named(&[&itself]).contains(&"true".into()));
    }

    #[test]
    fn what_a_program_needs_is_asked_of_the_systems_linker_only() {
        let libraries = libraries(&find_program(OsStr::new("sh")).unwrap());
        let is_libc = |path: &PathBuf| path.to_string_lossy().contains("libc.so");
        assert!(libraries.iter().any(is_libc), "{libraries:?}");
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("ld-linux.so.2");
        std::fs::write(&own, "").unwrap();
        std::fs::set_permissions(&own, std::fs::Permissions::from_mode(0o777)).unwrap();
        assert!(!is_the_systems(&own));
    }

    #[test]
    fn modules_of_an_interpreter_are_found_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let packages = folder.path().join("lib/python3.11/site-packages");
        let module = packages.join("mpi4py/MPI.cpython-311-x86_64-linux-gnu.so");
        std::fs::create_dir_all(module.parent().unwrap()).unwrap();
        for file in [&module, &packages.join("mpi4py/MPI.pyi"), &packages.join("mpi4py/dl.so")] {
            std::fs::write(file, "").unwrap();
        }
        let directories = package_directories(&folder.path().join("bin/python3"));
        assert!(directories.contains(&packages), "{directories:?}");
        assert_eq!(mpi_modules(&[packages]), [module]);
        assert!(is_python(Path::new("/usr/bin/python3.11")) && !is_python(Path::new("/usr/bin/perl")));
    }

    #[test]
    fn what_does_not_use_mpi_needs_no_library() {
        let root = ProcRoot::system().unwrap();
        let mut scanner = Scanner::new(root, Caller::current().unwrap(), ImplementationRecogniser::default());
        let needs = needed(&["sh".into(), "-c".into(), "exit 0".into()], &mut scanner);
        assert!(needs.libraries.is_empty() && needs.risk.is_none(), "{needs:?}");
    }
}
