//! `mpiprobe` on real jobs, compared with the independent count of the truth library.

mod busy;
mod campaigns;
mod check;
mod exact;
mod kills;
mod ladder;

use libtest_mimic::{Arguments, Failed, Trial};
use mpiprobe_tests::{Language, Mpi, Requirement, requirement};

fn main() {
    let mut arguments = Arguments::from_args();
    // Waiting ranks keep their cores busy: two jobs at once take longer than one after the other.
    arguments.test_threads.get_or_insert(1);
    let tests = Mpi::ALL.into_iter().flat_map(|mpi| {
        let all = [exact::tests(mpi), busy::tests(mpi), campaigns::tests(mpi), ladder::tests(mpi), kills::tests(mpi)];
        all.into_iter().flatten().collect::<Vec<_>>()
    });
    libtest_mimic::run(&arguments, tests.collect()).exit();
}

type Test = fn(Mpi) -> Result<(), Failed>;

/// A test of one MPI that attaches probes to a program in this language.
fn trial(mpi: Mpi, language: Language, name: &str, test: Test) -> Trial {
    trial_with(mpi, language, name, move || test(mpi))
}

fn trial_with(
    mpi: Mpi,
    language: Language,
    name: &str,
    test: impl FnOnce() -> Result<(), Failed> + Send + 'static,
) -> Trial {
    let needs = [Requirement::Bpf, Requirement::Mpi(mpi), Requirement::Language(mpi, language)];
    requirement::trial(format!("{}::{name}", mpi.id()), &needs, test)
}
