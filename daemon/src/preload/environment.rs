//! Variables that bring the wrapper into a process and tell it what to do.

use std::{
    ffi::{OsStr, OsString},
    fmt::Write as _,
    os::unix::ffi::OsStrExt as _,
    path::Path,
};

use mpiprobe_common::FUNCTION_SLOTS;
use mpiprobe_functions::{FunctionSet, fingerprint};

/// What the dynamic linker loads first.
const PRELOAD_VARIABLE: &str = "LD_PRELOAD";
/// What the runtime library of AddressSanitizer is told.
const SANITIZER_VARIABLE: &str = "ASAN_OPTIONS";
/// That library ends every program in which another one has been loaded before it, lest that keeps functions of the C library from it. The
/// wrapper has none of those; and which of the programs that a job starts have it, nobody knows before.
const ANY_ORDER: &str = "verify_asan_link_order=0";
/// Runtime libraries of sanitizers, by the beginnings of their names: these come first if the user preloads them.
const SANITIZERS: [&str; 7] =
    ["libasan.", "libtsan.", "libubsan.", "liblsan.", "libhwasan.", "libclang_rt.", "libmsan."];

/// Names and values of the variables for a job.
#[derive(Clone, Debug)]
pub struct Preload {
    /// The wrapper's path.
    pub library: OsString,
    pub variables: Vec<(&'static str, OsString)>,
}

impl Preload {
    /// Of a job that is to load `library`, put its tables into `directory` and count `functions`. What is preloaded already stays,
    /// after the wrapper. `ignore_pcontrol`: everything is counted, whatever the job asks for by `MPI_Pcontrol`.
    pub fn new(library: &Path, directory: &Path, functions: &FunctionSet, ignore_pcontrol: bool) -> Self {
        let mut preload = Self { library: library.into(), variables: Vec::new() };
        for name in [PRELOAD_VARIABLE, SANITIZER_VARIABLE] {
            let value = preload.completed(name, &std::env::var_os(name).unwrap_or_default());
            preload.variables.extend(value.map(|value| (name, value)));
        }
        preload.variables.push(("MPIPROBE_OUTPUT", directory.as_os_str().to_owned()));
        preload.variables.push(("MPIPROBE_FUNCTIONS", selection(functions).into()));
        if ignore_pcontrol {
            preload.variables.push(("MPIPROBE_IGNORE_PCONTROL", "1".into()));
        }
        preload
    }

    /// Calls are written to rings from the first one on.
    pub fn record_calls(&mut self) {
        self.variables.push(("MPIPROBE_TRACE", "1".into()));
    }

    /// What a variable is to be that somebody sets to `value` for the job; `None`: what he wants, whatever that is.
    pub(super) fn completed(&self, name: &str, value: &OsStr) -> Option<OsString> {
        let is_set = !value.is_empty();
        match name {
            PRELOAD_VARIABLE => Some(with_library(&self.library, value)),
            SANITIZER_VARIABLE => {
                let mut options = value.to_owned();
                options.push(if is_set { ":" } else { "" });
                options.push(ANY_ORDER);
                Some(options)
            }
            _ => None,
        }
    }
}

/// A list for the dynamic linker with the wrapper in it: before all but the sanitizers.
fn with_library(library: &OsStr, list: &OsStr) -> OsString {
    let is_separator = |byte: &u8| matches!(byte, b':' | b' ');
    let entries = list.as_bytes().split(is_separator).filter(|entry| !entry.is_empty());
    let is_sanitizer = |entry: &&[u8]| {
        let name = entry.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
        SANITIZERS.iter().any(|known| name.starts_with(known.as_bytes()))
    };
    let before = entries.clone().take_while(is_sanitizer);
    let after = entries.skip_while(is_sanitizer);
    let all: Vec<&[u8]> = before.chain([library.as_bytes()]).chain(after).collect();
    OsStr::from_bytes(&all.join(&b':')).to_owned()
}

/// A selection of functions as the wrapper reads it: the table's fingerprint, a colon, and a bit for each function, four to a
/// hexadecimal digit.
pub fn selection(functions: &FunctionSet) -> String {
    let mut digits = vec![0u8; FUNCTION_SLOTS as usize / 4];
    for id in functions.iter() {
        if let Some(digit) = digits.get_mut(id.index() / 4) {
            *digit |= 1 << (id.index() % 4);
        }
    }
    let mut text = format!("{:016x}:", fingerprint());
    for digit in digits {
        // Writing to a String cannot fail.
        let _ = write!(text, "{digit:x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(name: &str, value: &str) -> Option<String> {
        let preload = Preload::new(Path::new("/w.so"), Path::new("/tables"), &FunctionSet::EMPTY, false);
        preload.completed(name, value.as_ref()).map(|value| value.into_string().unwrap())
    }

    #[test]
    fn the_wrapper_comes_before_all_but_sanitizers() {
        let preloaded = |value: &str| completed("LD_PRELOAD", value).unwrap();
        assert_eq!(preloaded(""), "/w.so");
        assert_eq!(preloaded("a.so b.so"), "/w.so:a.so:b.so");
        assert_eq!(preloaded("/usr/lib/libasan.so.8:a.so"), "/usr/lib/libasan.so.8:/w.so:a.so");
        assert_eq!(preloaded("a.so:libtsan.so.2"), "/w.so:a.so:libtsan.so.2");
    }

    #[test]
    fn sanitizers_are_told_not_to_mind_and_keep_the_users_options() {
        assert_eq!(completed("ASAN_OPTIONS", "").unwrap(), "verify_asan_link_order=0");
        let kept = completed("ASAN_OPTIONS", "detect_leaks=0").unwrap();
        assert_eq!(kept, "detect_leaks=0:verify_asan_link_order=0");
        assert_eq!(completed("PATH", "/bin"), None);
    }

    #[test]
    fn each_function_has_its_bit() {
        let mut functions = FunctionSet::EMPTY;
        let id = mpiprobe_functions::by_name("MPI_Send").unwrap();
        functions.insert(id);
        let text = selection(&functions);
        let (table, digits) = text.split_once(':').unwrap();
        assert_eq!((table.len(), digits.len()), (16, 256));
        let digit = digits.as_bytes()[id.index() / 4] as char;
        assert_eq!(digit.to_digit(16), Some(1 << (id.index() % 4)));
        assert_eq!(digits.bytes().filter(|&digit| digit != b'0').count(), 1);
    }
}
