//! The last calls of ranks, as the kernel writes them down.
//!
//! Invariant RECENT-WHOLE.

use libtest_mimic::Trial;
use mpiprobe_tests::{Language, Mpi, Requirement, recent_calls, requirement, terminal::STARTER};

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    [("session", ["--attach", "session"].as_slice()), ("multi", &["--attach", "multi"]), ("traffic", &["--traffic"])]
        .into_iter()
        .map(|(name, options)| {
            let needs = [
                Requirement::Bpf,
                Requirement::Mpi(mpi),
                Requirement::Language(mpi, Language::C),
                Requirement::Command(STARTER),
            ];
            let name = format!("{}::recent_calls_are_those_that_were_executed_{name}", mpi.id());
            requirement::trial(name, &needs, move || {
                recent_calls::watch(recent_calls::job(mpi).own_library().spawn()?, options)
            })
        })
        .collect()
}
