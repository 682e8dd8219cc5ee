//! The last calls of ranks that count themselves.
//!
//! Invariant RECENT-WHOLE.

use libtest_mimic::Trial;
use mpiprobe_tests::{Language, Mpi, Requirement, recent_calls, requirement, terminal::STARTER};

use crate::is_debians;

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    if !is_debians(mpi) {
        return Vec::new();
    }
    let needs = [Requirement::Mpi(mpi), Requirement::Language(mpi, Language::C), Requirement::Command(STARTER)];
    let name = format!("{}::recent_calls_are_those_that_were_executed", mpi.id());
    let watch = move || recent_calls::watch(recent_calls::job(mpi).profiled([] as [&str; 0])?.spawn()?, &[]);
    vec![requirement::trial(name, &needs, watch)]
}
