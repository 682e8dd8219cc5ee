//! `cargo xtask bench trace`: what an MPI call costs that is recorded, more than one that is counted, by either engine.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use mpiprobe_tests::Mpi;
use mpiprobe_tests::bench::{self, BenchError, Effort, program};

/// ns per MPI call with and without a trace, on processes that are measured in turn.
#[derive(Debug, Parser)]
struct Arguments {
    /// How often each process is measured.
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Batches of each loop in a round.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    batches: u32,
    /// Turns in a batch.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    turns: u32,
    /// Events of a trace of several nodes whose clocks are compared; 0: none are.
    #[arg(long, value_name = "N", default_value_t = 10_000_000)]
    clocks: u64,
    /// The mpiprobe to measure; the default is the one that was built with this benchmark.
    #[arg(long, value_name = "PATH")]
    mpiprobe: Option<PathBuf>,
    /// JSON, one report on a line for each MPI.
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    program::exit("bench-trace", run(&Arguments::parse()))
}

fn run(arguments: &Arguments) -> Result<(), BenchError> {
    let interrupted = program::interruption()?;
    let beside_us = || Some(std::env::current_exe().ok()?.with_file_name("mpiprobe"));
    let mpiprobe = arguments.mpiprobe.clone().or_else(beside_us).unwrap_or_else(|| "mpiprobe".into());
    let effort = Effort { rounds: arguments.rounds, batches: arguments.batches, turns: arguments.turns };
    if arguments.clocks > 0 {
        program::print(&bench::clocks::run(arguments.clocks)?, arguments.json);
    }
    for mpi in Mpi::ALL {
        let report = bench::run_trace(mpi, &mpiprobe, effort, &interrupted)?;
        program::print(&report, arguments.json);
    }
    Ok(())
}
