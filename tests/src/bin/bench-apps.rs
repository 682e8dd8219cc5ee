//! `cargo xtask bench apps`: what observing slows whole programs by, held to a limit.

use std::process::ExitCode;

use clap::Parser;
use mpiprobe_tests::Mpi;
use mpiprobe_tests::bench::{BenchError, apps, program};

/// Pairs of runs of whole programs, alone and observed with a limit: how much longer the latter take, and whether estimates are true.
#[derive(Debug, Parser)]
struct Arguments {
    /// Of each program.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pairs: u32,
    /// Of each run, about.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
    /// JSON, one report on a line for each MPI.
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    program::exit("bench-apps", run(&Arguments::parse()))
}

fn run(arguments: &Arguments) -> Result<(), BenchError> {
    for mpi in Mpi::ALL {
        program::print(&apps::run(mpi, arguments.pairs, arguments.seconds)?, arguments.json);
    }
    Ok(())
}
