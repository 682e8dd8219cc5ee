//! `cargo xtask bench calls`: what a probed MPI call costs, bare, with an empty probe, with mpiprobe and with bpftrace.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use mpiprobe_tests::Mpi;
use mpiprobe_tests::bench::{self, BenchError, Effort, program};

/// ns per MPI call under each kind of probes, on one process, in interleaved rounds.
#[derive(Debug, Parser)]
struct Arguments {
    /// Only under this MPI.
    #[arg(long, value_enum)]
    mpi: Option<Family>,
    /// How often each kind of probes is attached.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Batches of each loop in a round.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    batches: u32,
    /// Calls (or trios) in a batch.
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    turns: u32,
    /// The mpiprobe to measure; the default is the one that was built with this benchmark.
    #[arg(long, value_name = "PATH")]
    mpiprobe: Option<PathBuf>,
    /// Another build of mpiprobe, measured in the same rounds; may be given several times.
    #[arg(long, value_name = "PATH")]
    compare: Vec<PathBuf>,
    /// JSON, one report on a line for each MPI.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Family {
    Openmpi,
    Mpich,
}

fn main() -> ExitCode {
    program::exit("bench-calls", run(&Arguments::parse()))
}

fn run(arguments: &Arguments) -> Result<(), BenchError> {
    let interrupted = program::interruption()?;
    let beside_us = || Some(std::env::current_exe().ok()?.with_file_name("mpiprobe"));
    let mut builds = vec![arguments.mpiprobe.clone().or_else(beside_us).unwrap_or_else(|| "mpiprobe".into())];
    builds.extend(arguments.compare.iter().cloned());
    let effort = Effort { rounds: arguments.rounds, batches: arguments.batches, turns: arguments.turns };
    let families = match arguments.mpi {
        Some(Family::Openmpi) => vec![Mpi::OpenMpi],
        Some(Family::Mpich) => vec![Mpi::Mpich],
        None => Mpi::ALL.to_vec(),
    };
    for mpi in families {
        let report = bench::run(mpi, &builds, effort, &interrupted)?;
        program::print(&report, arguments.json);
    }
    Ok(())
}
