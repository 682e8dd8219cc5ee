//! `cargo xtask soak [CYCLES [KILLS [VISITORS]]]`: the long campaigns, on every MPI installed; `cargo xtask soak odd [NAME…]`: odd
//! programs, under every engine and every way of attaching; `cargo xtask soak processes [COUNT]`: what is left of processes that come
//! and go; `cargo xtask soak requests [COUNT [SEED]]`: a node service that somebody asks for anything; `cargo xtask soak short [RUNS]`:
//! short jobs beside somebody who uses the processors, by eBPF; `cargo xtask soak wheels`: traffic of PyPI's MPIs; `cargo xtask soak any
//! MPI RANKS PROGRAM [ARGUMENT…]`: a program of yours; `cargo xtask soak random [COUNT [FIRST]]`: calls in random order; `cargo xtask
//! soak hang [NAME…]`: programs that hang, under every MPI; `cargo xtask soak compare [ENGINE] [MPI] [compute] [beside] [PLANTED
//! [SAME]]`: what is found between runs of the same program, and of one that is slower in one place. Needs root.

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Instant;

use mpiprobe_tests::campaign::{
    CampaignError, any, compare, cycles, hang, kernels, killed_in_flight, odd, processes, random, requests, short,
    traffic, visitors,
};
use mpiprobe_tests::{Mpi, Requirement};

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        Some("any") => return any::main(&arguments.collect::<Vec<_>>()),
        Some("odd") => return odd::main(&arguments.collect::<Vec<_>>()),
        Some("processes") => {
            let count = arguments.next().and_then(|count| count.parse().ok()).unwrap_or(PROCESSES);
            return if come_and_go(count) { ExitCode::SUCCESS } else { ExitCode::FAILURE };
        }
        Some("short") => return short_jobs(arguments.next().and_then(|runs| runs.parse().ok()).unwrap_or(200)),
        Some("requests") => {
            let mut number = |default: u64| arguments.next().and_then(|number| number.parse().ok()).unwrap_or(default);
            return ask_for_anything(number(1_000_000), number(1));
        }
        Some("wheels") => return traffic::wheels(),
        Some("random") => return random::main(&arguments.collect::<Vec<_>>()),
        Some("compare") => return compare::main(&arguments.collect::<Vec<_>>()),
        Some("kernels") => return kernels::main(&arguments.collect::<Vec<_>>()),
        Some("hang") => return hang::main(&arguments.collect::<Vec<_>>()),
        _ => {}
    }
    let numbers: Result<Vec<u32>, _> = std::env::args().skip(1).map(|argument| argument.parse()).collect();
    let Ok(numbers) = numbers else {
        eprintln!(
            "usage: soak [CYCLES [KILLS [VISITORS]]] | soak any MPI RANKS PROGRAM [ARGUMENT...] | soak odd [NAME...] | soak processes [COUNT] | soak random [COUNT [FIRST]] | soak requests [COUNT [SEED]] | soak short [RUNS] | soak wheels | soak hang [NAME...] | soak kernels [VERSION...] | soak compare [wrapper|ebpf] [openmpi|mpich] [compute] [beside] [PLANTED [SAME]]"
        );
        return ExitCode::from(2);
    };
    let number = |position: usize, default: u32| numbers.get(position).copied().unwrap_or(default);
    if let Some(missing) = Requirement::Bpf.missing() {
        eprintln!("soak needs {}: {missing}", Requirement::Bpf);
        return ExitCode::FAILURE;
    }
    let mut failed = !come_and_go(PROCESSES);
    for mpi in Mpi::ALL {
        if let Some(missing) = Requirement::Mpi(mpi).missing() {
            eprintln!("{mpi}: left out: {missing}");
            failed = true;
            continue;
        }
        if let Err(error) = campaigns(mpi, number(0, 1000), number(1, 100), number(2, 100)) {
            eprintln!("{mpi}: {error}");
            failed = true;
        }
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// More of them than files may be open.
const PROCESSES: u64 = 1500;

fn come_and_go(count: u64) -> bool {
    match processes(count) {
        Ok(report) => println!(
            "{count} processes came and went: {} bytes of memory and no table left of each",
            report.bytes_per_process
        ),
        Err(error) => {
            println!("processes that come and go: {error}");
            return false;
        }
    }
    true
}

fn ask_for_anything(count: u64, seed: u64) -> ExitCode {
    match requests(Mpi::ALL[0], count, seed) {
        Ok(report) => println!("{count} requests of somebody else, who was told nothing of a job: {report}"),
        Err(error) => {
            eprintln!("requests: {error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// Nothing may be unknown of any of them.
fn short_jobs(runs: u32) -> ExitCode {
    let mut failed = false;
    for mpi in Mpi::EVERY.into_iter().filter(|mpi| Requirement::Mpi(*mpi).missing().is_none()) {
        match short(mpi, runs, |done| show(mpi, "short jobs", done, runs)) {
            Ok(report) => {
                println!("\r{mpi}: {report}");
                failed |= !report.is_right();
            }
            Err(error) => {
                eprintln!("{mpi}: {error}");
                failed = true;
            }
        }
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn campaigns(mpi: Mpi, count: u32, kills: u32, guests: u32) -> Result<(), CampaignError> {
    let start = Instant::now();
    let report = cycles(mpi, count, |done| show(mpi, "attached and detached", done, count))?;
    println!(
        "\r{mpi}: attached and detached {} times in {:.0} s; {} verified rounds of messages; mpiprobe took {} KiB at most",
        report.cycles,
        start.elapsed().as_secs_f64(),
        report.rounds,
        report.peak_kib
    );
    let start = Instant::now();
    for round in 1..=kills {
        // Never the same moment, and the same moments in every run.
        killed_in_flight(mpi, 10 + u64::from(round) * 37 % 500, round)?;
        show(mpi, "killed a rank", round, kills);
    }
    println!("\r{mpi}: killed a rank {kills} times in {:.0} s; all counts right", start.elapsed().as_secs_f64());
    let start = Instant::now();
    let peak = visitors(mpi, guests, |done| show(mpi, "jobs that came and went", done, guests))?;
    println!(
        "\r{mpi}: {guests} jobs came and went in {:.0} s; all counts right, no file left open; mpiprobe took {peak} KiB at most",
        start.elapsed().as_secs_f64()
    );
    Ok(())
}

fn show(mpi: Mpi, what: &str, done: u32, of: u32) {
    print!("\r{mpi}: {what}: {done} of {of}");
    // Progress is of no importance.
    let _ = std::io::stdout().flush();
}
