//! A function's code in the memory of a process, against that in its file.

use std::io;

use crate::{
    discover::ForeignFile,
    plan::{Difference, PlannedFunction},
};

/// Compares the bytes that a probe on `function` counts on; `address` is that of the function's entry in the process.
///
/// The outer error: the memory could not be read.
pub(crate) fn compare_code<K>(
    memory: &ForeignFile,
    address: u64,
    function: &PlannedFunction<K>,
) -> io::Result<Result<(), Difference>> {
    let mut bytes = vec![0; function.fingerprint.size()];
    memory.read_exact_at(&mut bytes, address)?;
    Ok(function.fingerprint.compare(&bytes))
}
