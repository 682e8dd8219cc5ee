//! `cargo xtask bench view`: what the full-screen view costs, of a job that never ran.

use std::io;
use std::process::ExitCode;

use clap::Parser;
use mpiprobe_model::filter::Filter;
use mpiprobe_tests::bench::{
    program,
    view::{self, ViewEffort},
};

/// Processor time and memory of the full-screen view, without a filter and with one.
#[derive(Debug, Parser)]
struct Arguments {
    #[arg(long, default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    ranks: u32,
    #[arg(long, default_value_t = 60)]
    functions: usize,
    /// Seconds of the job that are measured.
    #[arg(long, default_value_t = 48, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    seconds: u64,
    /// Frames drawn in each of them.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    frames: u32,
    #[arg(long, default_value_t = 200)]
    width: u16,
    #[arg(long, default_value_t = 60)]
    height: u16,
    /// The filter of the second measurement.
    #[arg(long, default_value = "rank in 0..63 and func ~ \"Send|Recv|All\"")]
    filter: Filter,
    /// JSON, one report on a line.
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    program::exit("bench-view", run(&Arguments::parse()))
}

fn run(arguments: &Arguments) -> io::Result<()> {
    for filter in [None, Some(arguments.filter.clone())] {
        let report = view::run(&ViewEffort {
            ranks: arguments.ranks,
            functions: arguments.functions,
            seconds: arguments.seconds,
            frames: arguments.frames,
            size: (arguments.width, arguments.height),
            filter,
        })?;
        program::print(&report, arguments.json);
    }
    Ok(())
}
