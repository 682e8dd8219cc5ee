//! Variables that bring the wrapper into a process and tell it what to do.

use std::{ffi::OsString, fmt::Write as _, path::Path};

use mpiprobe_common::FUNCTION_SLOTS;
use mpiprobe_functions::{FunctionSet, fingerprint};

/// What the dynamic linker loads first.
pub(super) const PRELOAD_VARIABLE: &str = "LD_PRELOAD";

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
        let mut preload = library.as_os_str().to_owned();
        if let Some(already) = std::env::var_os("LD_PRELOAD").filter(|already| !already.is_empty()) {
            preload.push(":");
            preload.push(already);
        }
        let mut variables = vec![
            (PRELOAD_VARIABLE, preload),
            ("MPIPROBE_OUTPUT", directory.as_os_str().to_owned()),
            ("MPIPROBE_FUNCTIONS", selection(functions).into()),
        ];
        if ignore_pcontrol {
            variables.push(("MPIPROBE_IGNORE_PCONTROL", "1".into()));
        }
        Self { library: library.into(), variables }
    }
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
