//! Legal calls in an order that nobody has thought of (`tests/programs/random.c`), by seeds: what both engines say of them, against what the
//! truth library counts in the same run.

use std::process::ExitCode;

use mpiprobe_functions::FunctionSet;

use super::{
    CampaignError,
    any::{self, AnyReport, WAYS},
};
use crate::{Mpi, Requirement, check, program};

/// Of one run of the program.
const STEPS: u32 = 150;

/// `cargo xtask soak random [COUNT [FIRST]]`: so many seeds, from the first one on, under each MPI whose objects are understood.
pub fn main(arguments: &[String]) -> ExitCode {
    let number = |position: usize, default: u32| {
        arguments.get(position).map_or(Some(default), |argument| argument.parse::<u32>().ok())
    };
    let (Some(count), Some(first)) = (number(0, 20), number(1, 1)) else {
        eprintln!("usage: soak random [COUNT [FIRST]]");
        return ExitCode::from(2);
    };
    let mut failed = false;
    for mpi in Mpi::ALL.into_iter().filter(|mpi| Requirement::Mpi(*mpi).missing().is_none()) {
        for seed in first..first.saturating_add(count) {
            for way in WAYS {
                let name = name(mpi, seed, way);
                match seeded(mpi, seed, way) {
                    Ok(report) => {
                        println!("{name}: {report}");
                        failed |= !report.is_right();
                    }
                    Err(error) => {
                        println!("{name}: {error}");
                        failed = true;
                    }
                }
            }
        }
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn name(mpi: Mpi, seed: u32, way: &str) -> String {
    format!("{mpi}: random {seed} ({} ranks, {} threads): {way}", ranks(seed), threads(seed))
}

const fn ranks(seed: u32) -> u32 {
    2 + seed % 4
}

/// One run in three has several.
const fn threads(seed: u32) -> u32 {
    if seed.is_multiple_of(3) { 2 + seed % 2 } else { 1 }
}

/// The calls of a seed, observed in one of the [ways](WAYS).
pub fn seeded(mpi: Mpi, seed: u32, way: &str) -> Result<AnyReport, CampaignError> {
    let wanted: FunctionSet = check::functions("default")
        .map_err(|error| CampaignError::wrong(seed, error.message().unwrap_or_default().to_owned()))?;
    let arguments = [seed, STEPS, threads(seed)].map(|number| number.to_string());
    any::observe(mpi, program::RANDOM, ranks(seed), &arguments, way, &wanted)
}
