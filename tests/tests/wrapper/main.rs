//! `mpiprobe run` with the wrapper, on real jobs, compared with the independent count of the truth library.

mod check;
mod communicators;
mod compare;
mod endings;
mod exact;
mod foreign;
mod layers;
mod library;
mod live;
mod loaded_later;
mod missing;
mod phases;
mod recent;
mod recording;
mod refusals;
mod report;
mod stacked;
mod threads;
mod trace;
mod traffic;
mod users;
mod waits;

use std::path::PathBuf;
use std::process::Command;

use libtest_mimic::{Arguments, Failed, Trial};
use mpiprobe_tests::profiler::binary;
use mpiprobe_tests::{Language, Mpi, Requirement, requirement};

fn main() {
    let of_mpi = |mpi| {
        [
            communicators::tests(mpi),
            compare::tests(mpi),
            endings::tests(mpi),
            exact::tests(mpi),
            foreign::tests(mpi),
            layers::tests(mpi),
            live::tests(mpi),
            loaded_later::tests(mpi),
            missing::tests(mpi),
            phases::tests(mpi),
            recent::tests(mpi),
            recording::tests(mpi),
            refusals::tests(mpi),
            report::tests(mpi),
            stacked::tests(mpi),
            threads::tests(mpi),
            trace::tests(mpi),
            waits::tests(mpi),
            traffic::tests(mpi),
            users::tests(mpi),
        ]
    };
    let mut tests = library::tests();
    tests.extend(foreign::general_tests());
    tests.extend(refusals::general_tests());
    tests.extend(users::general_tests());
    tests.extend(Mpi::EVERY.into_iter().flat_map(of_mpi).flatten());
    mpiprobe_tests::run(Arguments::from_args(), tests);
}

/// A test of a program in this language under one MPI.
fn trial(
    mpi: Mpi,
    language: Language,
    name: &str,
    test: impl FnOnce() -> Result<(), Failed> + Send + 'static,
) -> Trial {
    let needs = [Requirement::Mpi(mpi), Requirement::Language(mpi, language)];
    requirement::trial(format!("{}::{name}", mpi.id()), &needs, test)
}

/// The library for LD_PRELOAD.
fn wrapper() -> Result<PathBuf, Failed> {
    let output = Command::new(binary()?).arg("wrapper-path").output()?;
    Ok(String::from_utf8(output.stdout)?.trim().into())
}

/// Those of which Debian has everything, other languages too.
fn is_debians(mpi: Mpi) -> bool {
    Mpi::ALL.contains(&mpi)
}
