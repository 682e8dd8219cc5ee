//! The library itself: what it needs, what it offers, and that nothing in it can panic.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use libtest_mimic::{Failed, Trial};
use mpiprobe_functions::FUNCTIONS;
use mpiprobe_tests::profiler::binary;
use mpiprobe_tests::requirement;
use object::read::elf::{Dyn as _, ElfFile64, FileHeader as _};
use object::{Object as _, ObjectSymbol as _, elf};

pub(crate) fn tests() -> Vec<Trial> {
    vec![
        requirement::trial("library::every_function_is_exported_under_both_names_and_nothing_else", &[], exports),
        requirement::trial("library::needs_nothing_that_a_c_library_may_lack", &[], needs),
        requirement::trial("library::no_path_panics", &[], panics),
        requirement::trial("library::stays_where_it_is", &[], stays),
    ]
}

/// The library as a user gets it.
fn library() -> Result<Vec<u8>, Failed> {
    let cache = tempfile::tempdir()?;
    let output = Command::new(binary()?).arg("wrapper-path").env("XDG_CACHE_HOME", cache.path()).output()?;
    assert!(output.status.success(), "{output:?}");
    let path = String::from_utf8(output.stdout)?;
    Ok(fs::read(path.trim())?)
}

fn exports() -> Result<(), Failed> {
    let bytes = library()?;
    let file = ElfFile64::<object::Endianness>::parse(&*bytes)?;
    let defined = file.dynamic_symbols().filter(|symbol| symbol.is_definition() && symbol.is_global());
    let exported: BTreeSet<String> = defined.filter_map(|symbol| Some(symbol.name().ok()?.to_owned())).collect();
    let wanted = FUNCTIONS.iter().flat_map(|function| [function.name.to_owned(), format!("P{}", function.name)]);
    // And what is asked before something is loaded that may need MPI, or a call is left, or the program.
    let calls = ["dlopen", "longjmp", "_longjmp", "siglongjmp", "__longjmp_chk"];
    let ends =
        ["_exit", "_Exit", "execve", "execv", "execvp", "execvpe", "fexecve", "execveat", "execl", "execlp", "execle"];
    let others = calls.into_iter().chain(ends).map(str::to_owned);
    assert_eq!(exported, wanted.chain(others).collect());
    Ok(())
}

/// Whatever C library a program has, and whatever version of it: nothing is needed that it may lack.
/// Invariant ANY-LIBC.
fn needs() -> Result<(), Failed> {
    let bytes = library()?;
    let file = ElfFile64::<object::Endianness>::parse(&*bytes)?;
    let sections = file.elf_section_table();
    let (endian, data) = (file.endian(), &*bytes);
    let (entries, _) = sections.dynamic(endian, data)?.ok_or("not dynamic")?;
    let needs = [elf::DT_NEEDED, elf::DT_VERNEED, elf::DT_VERSYM];
    let found: Vec<_> = entries.iter().map(|entry| entry.tag(endian)).filter(|tag| needs.contains(tag)).collect();
    assert!(found.is_empty(), "{found:?}");
    let undefined: Vec<_> = file.dynamic_symbols().filter(object::ObjectSymbol::is_undefined).collect();
    assert!(undefined.iter().any(|symbol| symbol.name() == Ok("dlsym")), "nothing is proved");
    let strong: Vec<_> =
        undefined.iter().filter(|symbol| !symbol.is_weak()).filter_map(|symbol| symbol.name().ok()).collect();
    assert!(strong.is_empty(), "{strong:?}");
    assert_eq!(file.elf_header().e_machine(endian), elf::EM_X86_64);
    Ok(())
}

/// The linker has refused to make a library with such a path; that it did so by the name looked for here is seen in the symbols.
/// Invariant NEVER-PANICS.
fn panics() -> Result<(), Failed> {
    let bytes = library()?;
    let file = ElfFile64::<object::Endianness>::parse(&*bytes)?;
    let names: Vec<&str> =
        file.symbols().chain(file.dynamic_symbols()).filter_map(|symbol| symbol.name().ok()).collect();
    assert!(
        names.iter().any(|name| name.contains("mpiprobe_wrapper")),
        "the library has no symbols: nothing is proved"
    );
    for forbidden in ["panic", "personality", "_Unwind", "malloc", "__rust_alloc"] {
        let found: Vec<_> = names.iter().filter(|name| name.contains(forbidden)).collect();
        assert!(found.is_empty(), "{forbidden}: {found:?}");
    }
    Ok(())
}

/// Asked again, it is the same file.
fn stays() -> Result<(), Failed> {
    let cache = tempfile::tempdir()?;
    let ask = || Command::new(binary().ok()?).arg("wrapper-path").env("XDG_CACHE_HOME", cache.path()).output().ok();
    let (first, second) = (ask().ok_or("no answer")?, ask().ok_or("no answer")?);
    assert_eq!(first.stdout, second.stdout);
    assert_eq!(fs::read_dir(cache.path().join("mpiprobe"))?.count(), 1);
    Ok(())
}
