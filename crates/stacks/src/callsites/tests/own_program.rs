//! This test program: a large one in Rust, with all its debug information.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use mpiprobe_discover::{ProcRoot, Process};

use super::{
    super::{AddressMap, ModuleAddress, Modules, Symboliser, symbols::Symbols},
    processor_time,
};

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
    assert_eq!(site.text, format!("own_program.rs:{line} in mpiprobe_stacks::callsites::tests::own_program::marked"));
}

/// Names can be looked up by a thread of their own.
#[test]
fn everything_can_be_sent_to_another_thread() {
    fn send<T: Send>() {}
    send::<(AddressMap, Modules, ModuleAddress, Symboliser)>();
}

/// What it costs to name places all over a large program; `--nocapture` shows it.
#[test]
fn two_hundred_places_in_a_large_program_are_named_within_limits() {
    let process = Process::open(&ProcRoot::system().unwrap(), std::process::id()).unwrap();
    let mut modules = Modules::default();
    let mut map = AddressMap::of(&process, &mut modules).unwrap();
    let function: fn(u32) -> u32 = marked;
    let module = map.locate(function as usize as u64 + 1, Some(&process), &mut modules).module;
    let symbols = Symbols::read(module.image.iter());
    // What others have written is compiled without lines.
    let is_ours = |name: &[u8]| memchr::memmem::find(name, b"mpiprobe").is_some();
    let is_looked_up = |(name, range): &(&[u8], Range<u64>)| is_ours(name) && range.end - range.start > 64;
    let functions: Vec<_> = symbols.functions().filter(is_looked_up).collect();
    let step = functions.len() / 200;
    let (before, start) = (resident(), processor_time());
    let mut symboliser = Symboliser::default();
    let mut lines = 0;
    let mut first = Duration::ZERO;
    for (_, range) in functions.iter().step_by(step).take(200) {
        let site = symboliser.resolve(&ModuleAddress { module: Arc::clone(&module), offset: range.start + 32 });
        lines += u32::from(site.at.line.is_some());
        first = if first.is_zero() { processor_time().saturating_sub(start) } else { first };
    }
    let (spent, bytes) =
        (processor_time().saturating_sub(start), module.image.as_ref().unwrap().file().state().unwrap().size);
    let grown = resident().saturating_sub(before) >> 20;
    println!(
        "{} MiB file: {lines} of 200 with lines in {spent:?}, the first in {first:?}, {grown} MiB; reads left {:?}",
        bytes >> 20,
        symboliser.budgets()
    );
    assert!(lines > 150, "{lines}");
    assert!(spent < Duration::from_mins(1), "{spent:?}");
}

/// This process's memory, in bytes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}
