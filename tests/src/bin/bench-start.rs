//! `cargo xtask bench start`: how much later a command starts because it is counted.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use mpiprobe_tests::bench::{BenchError, program, start};
use mpiprobe_tests::{Mpi, Requirement};

/// Milliseconds until a command runs, bare and by each engine of `mpiprobe run`.
#[derive(Debug, Parser)]
struct Arguments {
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    runs: u32,
    /// JSON, one report on a line for each MPI.
    #[arg(long)]
    json: bool,
    /// Be this command: note when it began, whatever program is named.
    #[arg(long, hide = true, num_args = 2)]
    stamp: Option<Vec<PathBuf>>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match arguments.stamp.as_deref() {
        Some([file, ..]) => program::exit("bench-start", start::stamp(file)),
        _ => program::exit("bench-start", run(&arguments)),
    }
}

fn run(arguments: &Arguments) -> Result<(), BenchError> {
    for mpi in Mpi::ALL.into_iter().filter(|&mpi| Requirement::Mpi(mpi).missing().is_none()) {
        program::print(&start::run(mpi, arguments.runs, "--stamp")?, arguments.json);
    }
    Ok(())
}
