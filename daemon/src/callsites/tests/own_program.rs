//! This test program: a large one in Rust, with all its debug information.

use super::super::{AddressMap, Modules, Symboliser};
use crate::discover::{ProcRoot, Process};

#[inline(never)]
fn marked(number: u32) -> u32 {
    std::hint::black_box(number) + 1
}

#[test]
fn a_rust_function_is_found() {
    let line = line!() - 6;
    assert_eq!(marked(1), 2);
    let process = Process::open(&ProcRoot::system().unwrap(), std::process::id()).unwrap();
    let mut modules = Modules::default();
    let mut map = AddressMap::of(&process, &mut modules).unwrap();
    let function: fn(u32) -> u32 = marked;
    // The "call" is then the function's first instruction.
    let address = map.locate(function as usize as u64 + 1, Some(&process), &mut modules);
    let site = Symboliser::default().resolve(&address);
    assert_eq!(site.text, format!("own_program.rs:{line} in mpiprobe::callsites::tests::own_program::marked"));
}
