//! `cargo xtask bench wrapper`: what an MPI call costs that counts itself, and one that does not because counting is switched off.

use std::process::ExitCode;

use clap::Parser;
use mpiprobe_tests::Mpi;
use mpiprobe_tests::bench::{self, BenchError, Effort, program};

/// ns per MPI call with and without the wrapper, on processes that are measured in turn.
#[derive(Debug, Parser)]
struct Arguments {
    /// How often each process is measured.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Batches of each loop in a round.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    batches: u32,
    /// Turns in a batch.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    turns: u32,
    /// JSON, one report on a line for each MPI.
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    program::exit("bench-wrapper", run(&Arguments::parse()))
}

fn run(arguments: &Arguments) -> Result<(), BenchError> {
    let interrupted = program::interruption()?;
    let effort = Effort { rounds: arguments.rounds, batches: arguments.batches, turns: arguments.turns };
    for mpi in Mpi::ALL {
        let report = bench::run_wrapper(mpi, effort, &interrupted)?;
        program::print(&report, arguments.json);
    }
    Ok(())
}
