//! `--traffic` of every MPI, in the languages that it has. What PyPI's have besides is in `cargo xtask soak wheels`.

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::campaign::traffic::{Attached, C, CXX, Case, F08, HPCC, MPI4PY, SCOPES, SESSION, THREADS, agrees};
use mpiprobe_tests::{Language, Mpi, Program, Requirement, requirement};

use crate::trial_with;

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    use Attached::{AtStart, Both};
    let mut cases = vec![(C, Both)];
    if Mpi::ALL.contains(&mpi) {
        cases.extend([THREADS, SESSION, SCOPES].map(|case| (case, AtStart)));
        cases.extend([F08, CXX, MPI4PY].map(|case| (case, Both)));
    }
    if mpi == Mpi::OpenMpi {
        cases.push((HPCC, Both));
    }
    let trial = |(case, when): (Case, Attached)| {
        let suffix = match when {
            AtStart => "at_start",
            Attached::Late => "late",
            Both => "at_start_and_late",
        };
        let name = format!("traffic_of_{}_attached_{suffix}", case.name);
        let test = move || agrees(mpi, case, when);
        match case.program.language {
            Language::Installed => installed_trial(mpi, case.program, &name, test),
            language => trial_with(mpi, language, &name, test),
        }
    };
    cases.into_iter().map(trial).collect()
}

fn installed_trial(
    mpi: Mpi,
    program: Program,
    name: &str,
    test: impl FnOnce() -> Result<(), Failed> + Send + 'static,
) -> Trial {
    let needs = [Requirement::Bpf, Requirement::Mpi(mpi), Requirement::Command(program.name)];
    requirement::trial(format!("{}::{name}", mpi.id()), &needs, test)
}
