//! The campaigns of `cargo xtask soak` in a short form.

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::campaign::{cycles, killed_in_flight, visitors};
use mpiprobe_tests::{Language, Mpi};

use crate::trial;

/// Far above what mpiprobe takes, far below what a leak of its tables would take.
const MEMORY_KIB: u64 = 256 * 1024;

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    vec![
        trial(mpi, Language::C, "attached_and_detached_again_and_again", repeat),
        trial(mpi, Language::C, "ranks_killed_in_flight", kill),
        trial(mpi, Language::C, "jobs_come_and_go_under_one_mpiprobe", come_and_go),
    ]
}

fn repeat(mpi: Mpi) -> Result<(), Failed> {
    let report = cycles(mpi, 5, |_| {})?;
    assert!(report.peak_kib < MEMORY_KIB, "{report:?}");
    Ok(())
}

fn kill(mpi: Mpi) -> Result<(), Failed> {
    for round in 1..=2 {
        killed_in_flight(mpi, 20 * u64::from(round), round)?;
    }
    Ok(())
}

fn come_and_go(mpi: Mpi) -> Result<(), Failed> {
    assert!(visitors(mpi, 4, |_| {})? < MEMORY_KIB);
    Ok(())
}
