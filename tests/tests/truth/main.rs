//! The truth library and the harness themselves, checked against what the sources of the programs say they call. The profiler
//! has no part in this.

mod counts;
mod endings;
mod gates;
mod languages;
mod semantics;

use libtest_mimic::{Arguments, Failed, Trial};
use mpiprobe_tests::{Language, Mpi, Requirement, requirement};

fn main() {
    let tests = Mpi::ALL.into_iter().flat_map(|mpi| {
        let all =
            [counts::tests(mpi), languages::tests(mpi), gates::tests(mpi), endings::tests(mpi), semantics::tests(mpi)];
        all.into_iter().flatten().collect::<Vec<_>>()
    });
    mpiprobe_tests::run(Arguments::from_args(), tests.collect());
}

type Test = fn(Mpi) -> Result<(), Failed>;

/// A test of one MPI, with a program in this language.
fn trial(mpi: Mpi, language: Language, name: &str, test: Test) -> Trial {
    let needs = [Requirement::Mpi(mpi), Requirement::Language(mpi, language)];
    requirement::trial(format!("{}::{name}", mpi.id()), &needs, move || test(mpi))
}
