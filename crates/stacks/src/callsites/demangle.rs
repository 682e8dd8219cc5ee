//! Names of functions as people write them.

use std::fmt::{self, Write};

use gimli::DwLang;
use mpiprobe_discover::printable;

/// What is kept of a name, in bytes.
const MAX_NAME: usize = 512;
/// What is demangled at all, in bytes.
const MAX_MANGLED: usize = 4 << 10;

/// The readable form of a symbol or of a name from DWARF, without parameters; printable.
pub(super) fn function_name(raw: &[u8], language: Option<DwLang>) -> String {
    let Ok(name) = std::str::from_utf8(raw) else { return bounded(&printable(raw)) };
    if name.len() > MAX_MANGLED {
        return bounded(&printable(raw));
    }
    let name = without_clone_suffix(name);
    let demangled = rust(name).or_else(|| cxx(name)).or_else(|| fortran(name));
    let readable = demangled.unwrap_or_else(|| match language {
        // Compilers of Fortran append an underscore to what is in no module.
        Some(language) if is_fortran(language) => name.strip_suffix('_').unwrap_or(name).to_owned(),
        _ => name.to_owned(),
    });
    bounded(&printable(readable.as_bytes()))
}

/// What compilers append to the names of copies they make of a function, and of functions inside functions.
fn without_clone_suffix(name: &str) -> &str {
    let Some((base, suffix)) = name.split_once('.') else { return name };
    let is_clone = suffix.split('.').all(|part| {
        let kinds = ["isra", "constprop", "part", "cold", "lto_priv", "llvm", "clone", "localalias"];
        kinds.contains(&part) || (!part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
    });
    if is_clone && !base.is_empty() { base } else { name }
}

fn rust(name: &str) -> Option<String> {
    let demangled = rustc_demangle::try_demangle(name).ok()?;
    // A C++ name of Rust's old form ends in a hash; anything else is C++.
    let mut text = Bounded::default();
    let _ = write!(text, "{demangled:#}");
    Some(text.0)
}

fn cxx(name: &str) -> Option<String> {
    if !name.starts_with("_Z") {
        return None;
    }
    let parse = cpp_demangle::ParseOptions::default().recursion_limit(96);
    let symbol = cpp_demangle::BorrowedSymbol::new_with_options(name.as_bytes(), &parse).ok()?;
    let options = cpp_demangle::DemangleOptions::new().no_params().no_return_type().recursion_limit(96);
    let mut text = Bounded::default();
    // A short name can stand for gigabytes: what did not fit is left out.
    let _ = symbol.structured_demangle(&mut text, &options);
    Some(text.0).filter(|text| !text.is_empty())
}

/// Procedures of modules, as gfortran, the Intel compilers and flang name them.
fn fortran(name: &str) -> Option<String> {
    let gnu = || name.strip_prefix("__")?.split_once("_MOD_");
    let intel = || name.strip_suffix('_')?.split_once("_mp_");
    let flang = || name.strip_prefix("_QM")?.split_once('P');
    let (module, procedure) = gnu().or_else(intel).or_else(flang)?;
    let plain = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    (plain(module) && plain(procedure)).then(|| format!("{module}::{procedure}"))
}

fn is_fortran(language: DwLang) -> bool {
    use gimli::{DW_LANG_Fortran03, DW_LANG_Fortran08, DW_LANG_Fortran77, DW_LANG_Fortran90, DW_LANG_Fortran95};
    let all = [DW_LANG_Fortran77, DW_LANG_Fortran90, DW_LANG_Fortran95, DW_LANG_Fortran03, DW_LANG_Fortran08];
    all.contains(&language)
}

fn bounded(text: &str) -> String {
    let mut short = Bounded::default();
    let _ = short.write_str(text);
    short.0
}

/// Text that takes no more than [`MAX_NAME`] bytes, and says where it was cut.
#[derive(Default)]
struct Bounded(String);

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = MAX_NAME.saturating_sub(self.0.len());
        if text.len() <= room {
            self.0.push_str(text);
            return Ok(());
        }
        if !self.0.ends_with('…') {
            self.0.push_str(text.get(..text.floor_char_boundary(room)).unwrap_or_default());
            self.0.push('…');
        }
        Err(fmt::Error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gimli::DW_LANG_Fortran08;
    use proptest::prelude::*;

    #[test]
    fn names_of_every_language() {
        for (mangled, readable) in [
            ("main", "main"),
            ("solve_", "solve_"),
            ("__solver_MOD_step", "solver::step"),
            ("solver_mp_step_", "solver::step"),
            ("_QMsolverPstep", "solver::step"),
            ("expect.0", "expect"),
            ("halo.part.0.constprop.1", "halo"),
            ("step._omp_fn.0", "step._omp_fn.0"),
            ("_ZN3MPI4InitEv", "MPI::Init"),
            ("_ZN6SolverIdE4stepEiPKc", "Solver<double>::step"),
            ("_ZN6SolverIdE4stepEiPKc.isra.0", "Solver<double>::step"),
            ("_ZN4ring4main17h0123456789abcdefE", "ring::main"),
            ("_RNvCskwGfYPst2Cb_3foo16example_function", "foo::example_function"),
            ("_Z", "_Z"),
        ] {
            assert_eq!(function_name(mangled.as_bytes(), None), readable);
        }
        assert_eq!(function_name(b"solve_", Some(DW_LANG_Fortran08)), "solve");
        assert_eq!(function_name(b"a\x1b[2J\xff", None), "a\\u{1b}[2J\\xff");
    }

    #[test]
    fn a_short_name_that_stands_for_a_huge_one_is_cut() {
        // Each level names the one before twice: written out, it would fill the memory.
        let mut name = "_Z1fI1aE".to_owned();
        for level in 0..40 {
            let digit = |number: u32| char::from_digit(number, 36).unwrap().to_ascii_uppercase();
            let reference = if level == 0 { "S_".to_owned() } else { format!("S{}_", digit((level - 1) % 36)) };
            name = format!("{name}St4pairI{reference}{reference}E");
        }
        assert!(function_name(name.as_bytes(), None).len() <= MAX_NAME + '…'.len_utf8());
    }

    proptest! {
        #[test]
        fn any_name_is_made_printable_and_short(prefix in "(_Z|_R|_ZN|__|_QM|)", raw in prop::collection::vec(any::<u8>(), 0..300)) {
            let name = function_name(&[prefix.as_bytes(), &raw].concat(), Some(DW_LANG_Fortran08));
            prop_assert!(name.len() <= MAX_NAME + '…'.len_utf8());
            prop_assert!(!name.chars().any(char::is_control));
        }
    }
}
