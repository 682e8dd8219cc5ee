//! `cargo xtask bench times`: how far time in MPI is from what another clock around the same calls says.

use std::process::ExitCode;

use clap::Parser;
use mpiprobe_tests::Mpi;
use mpiprobe_tests::bench::{self, BenchError, MeasuredBy, program};

/// Time in MPI by length of calls against the truth library's, by both engines.
#[derive(Debug, Parser)]
struct Arguments {
    /// Turns of the program: 200 take some seconds.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(20..=100_000))]
    turns: u32,
    /// JSON, one report on a line for each job.
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    program::exit("bench-times", run(&Arguments::parse()))
}

fn run(arguments: &Arguments) -> Result<(), BenchError> {
    for mpi in Mpi::ALL {
        for by in [MeasuredBy::Ebpf, MeasuredBy::Wrapper] {
            program::print(&bench::run_times(mpi, by, arguments.turns)?, arguments.json);
        }
    }
    Ok(())
}
