//! `cargo xtask bench service`: what a node service costs.

use std::process::ExitCode;

use clap::Parser;
use mpiprobe_tests::bench::{BenchError, program, service};
use mpiprobe_tests::{Mpi, Requirement};

/// Processor time and memory of a node service: while nothing happens, and while a job is observed.
#[derive(Debug, Parser)]
struct Arguments {
    /// Ranks of the job.
    #[arg(long, default_value_t = 128, value_parser = clap::value_parser!(u32).range(2..=1024))]
    ranks: u32,
    /// Of each figure.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
    /// JSON.
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    program::exit("bench-service", run(&arguments))
}

fn run(arguments: &Arguments) -> Result<(), BenchError> {
    let [first, ..] = Mpi::ALL;
    let is_there = |mpi: &Mpi| Requirement::Mpi(*mpi).missing().is_none();
    let mpi = Mpi::ALL.into_iter().find(is_there).ok_or(BenchError::NoLibrary { mpi: first })?;
    program::print(&service::run(mpi, arguments.ranks, arguments.seconds)?, arguments.json);
    Ok(())
}
