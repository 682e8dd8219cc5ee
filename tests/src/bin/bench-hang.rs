//! `cargo xtask bench hang`: how long a look at the threads of many processes takes, and how much it slows those that compute.

use std::process::ExitCode;

use clap::Parser;
use mpiprobe_tests::bench::{
    hang::{self, HangEffort, HangError},
    program, slowed,
};

/// Milliseconds of a look at all threads of many processes: captured, named and merged; and what it costs processes that compute.
#[derive(Debug, Parser)]
struct Arguments {
    #[arg(long, default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..=4096))]
    processes: u32,
    /// Threads of each.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1024))]
    threads: u32,
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    looks: u32,
    /// Processes that compute while they are looked at; 0: that is not measured.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(..=1024))]
    working: u32,
    /// Seconds with an answer, and as many without.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pairs: u32,
    /// JSON, one report on a line.
    #[arg(long)]
    json: bool,
    /// Be one of these processes.
    #[arg(long, hide = true)]
    wait: bool,
    #[arg(long, hide = true)]
    work: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if arguments.wait {
        hang::wait(arguments.threads);
        return ExitCode::SUCCESS;
    }
    if arguments.work {
        return slowed::work().map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS);
    }
    program::exit("bench-hang", run(&arguments))
}

fn run(arguments: &Arguments) -> Result<(), HangError> {
    let Arguments { processes, threads, looks, working, pairs, .. } = *arguments;
    let waiting = ["--wait".to_owned(), format!("--threads={threads}")];
    let report = hang::run(HangEffort { processes, threads, looks }, &waiting)?;
    program::print(&report, arguments.json);
    if working > 0 {
        program::print(&slowed::run(working, pairs, &["--work".to_owned()])?, arguments.json);
    }
    Ok(())
}
