//! `cargo xtask bench nodes`: what grows with the number of nodes.

use std::process::ExitCode;

use clap::Parser;
use mpiprobe_tests::bench::{BenchError, nodes, program};
use mpiprobe_tests::{Mpi, Requirement};

/// Time and memory of an observation of many nodes, and what summaries and metrics of as many come to.
#[derive(Debug, Parser)]
struct Arguments {
    /// How many, one after the other.
    #[arg(long, value_delimiter = ',', default_values_t = [8, 100, 1_000, 10_000], value_parser = clap::value_parser!(u32).range(1..=10_000))]
    nodes: Vec<u32>,
    /// Of each node.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(2..=256))]
    ranks: u32,
    /// JSON.
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    // As mpiprobe starts it on a node.
    if std::env::args().nth(1).as_deref() == Some("agent") {
        return program::exit("bench-nodes agent", nodes::agent());
    }
    let arguments = Arguments::parse();
    program::exit("bench-nodes", run(&arguments))
}

fn run(arguments: &Arguments) -> Result<(), BenchError> {
    let [first, ..] = Mpi::ALL;
    let is_there = |mpi: &Mpi| Requirement::Mpi(*mpi).missing().is_none();
    let mpi = Mpi::ALL.into_iter().find(is_there).ok_or(BenchError::NoLibrary { mpi: first })?;
    program::print(&nodes::run(mpi, &arguments.nodes, arguments.ranks)?, arguments.json);
    Ok(())
}
