//! What mpiprobe reads from a running process's memory about datatypes, communicators, statuses and requests, against what MPI
//! told the process itself: the same for every handle, on every MPI implementation.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "without a harness of its own, clippy does not see that this is a test"
)]

mod agreement;
mod facts;
mod late;
mod refusals;
mod target;

use libtest_mimic::{Arguments, Failed, Trial};
use mpiprobe_tests::{Language, Mpi, Requirement, requirement};

fn main() {
    let tests = Mpi::EVERY
        .into_iter()
        .flat_map(|mpi| [agreement::tests(mpi), late::tests(mpi), refusals::tests(mpi)].into_iter().flatten());
    mpiprobe_tests::run(Arguments::from_args(), tests.collect());
}

type Test = fn(Mpi) -> Result<(), Failed>;

fn trial(mpi: Mpi, name: &str, test: Test) -> Trial {
    let needs = [Requirement::Mpi(mpi), Requirement::Language(mpi, Language::C), Requirement::Root];
    requirement::trial(format!("{}::{name}", mpi.id()), &needs, move || test(mpi))
}
