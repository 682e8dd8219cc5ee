//! Who waits for whom, while a job counts itself, against what is found in its trace.

use libtest_mimic::Trial;
use mpiprobe_tests::waits::{agree, checks};
use mpiprobe_tests::{Language, Mpi, program};

use crate::trial;

/// Where no message is sent of which it is not sure who receives it.
const COLLECTIVES: [&str; 3] = ["collectives", "neighbourhoods", "nonblocking-collectives"];

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    let checks = checks(mpi).into_iter();
    let mut trials: Vec<Trial> =
        checks.map(|(name, check)| trial(mpi, Language::C, name, move || check(mpi, "wrapper"))).collect();
    trials.push(trial(mpi, Language::C, "waits_of_collectives_live_and_in_a_trace", move || {
        agree(mpi, "wrapper", program::SEMANTICS, &COLLECTIVES).map(drop)
    }));
    trials
}
