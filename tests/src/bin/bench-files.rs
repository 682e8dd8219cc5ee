//! `cargo xtask bench files`: what wait states and exports of traces in files cost.

use std::process::ExitCode;

use clap::Parser;
use mpiprobe_tests::bench::{
    files::{self, FilesEffort, FilesError},
    program,
};

/// Time and memory of wait states and of exports in every format, of traces of jobs that never ran.
#[derive(Debug, Parser)]
struct Arguments {
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(8..=4096))]
    ranks: u32,
    /// Events of the short traces; the long ones have ten times as many.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1000..=100_000_000))]
    events: u64,
    /// How often each trace is used in each way, of which the fastest counts.
    #[arg(long, default_value_t = 2)]
    repetitions: u32,
    /// JSON, one report on a line.
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    program::exit("bench-files", run(&arguments))
}

fn run(arguments: &Arguments) -> Result<(), FilesError> {
    let Arguments { ranks, events, repetitions, .. } = *arguments;
    let mpiprobe = mpiprobe_tests::profiler::binary()?;
    program::print(&files::run(mpiprobe, FilesEffort { ranks, events, repetitions })?, arguments.json);
    Ok(())
}
