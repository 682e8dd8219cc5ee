//! `cargo xtask bench report`: what reports of a large job that was recorded cost.

use std::process::ExitCode;

use clap::Parser;
use mpiprobe_tests::bench::{
    formats::{self, FormatsEffort, FormatsError},
    program,
};

/// Time and memory of a report in every format, of a job that never ran.
#[derive(Debug, Parser)]
struct Arguments {
    #[arg(long, default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    ranks: u32,
    #[arg(long, default_value_t = 60)]
    functions: usize,
    /// Places in which each function is called that moves data.
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=1000))]
    places: u32,
    #[arg(long, default_value_t = 600, value_parser = clap::value_parser!(u64).range(3..=100_000))]
    moments: u64,
    /// Reports in each format, of which the fastest counts.
    #[arg(long, default_value_t = 3)]
    repetitions: u32,
    /// JSON, one report on a line.
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    program::exit("bench-report", run(&Arguments::parse()))
}

fn run(arguments: &Arguments) -> Result<(), FormatsError> {
    let Arguments { ranks, functions, places, moments, repetitions, .. } = *arguments;
    let mpiprobe = mpiprobe_tests::profiler::binary()?;
    let report = formats::run(mpiprobe, FormatsEffort { ranks, functions, places, moments, repetitions })?;
    program::print(&report, arguments.json);
    Ok(())
}
