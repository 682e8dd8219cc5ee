//! Who waits for whom, while a job counts itself, against what is found in its trace.

use libtest_mimic::Trial;
use mpiprobe_tests::waits::{
    agree, communicators_agree, communicators_of_threads_agree, epochs_agree, fences_agree, groups_agree, ring_agrees,
    switched_off_agrees, unseen_completions_are_counted, worlds_agree,
};
use mpiprobe_tests::{Language, Mpi, neighbours, program};

use crate::trial;

/// Where no message is sent of which it is not sure who receives it.
const COLLECTIVES: [&str; 3] = ["collectives", "neighbourhoods", "nonblocking-collectives"];

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    let mut trials = vec![
        trial(mpi, Language::C, "waits_of_a_ring_live_and_in_a_trace", move || ring_agrees(mpi, "wrapper")),
        trial(mpi, Language::C, "waits_of_windows_and_files_live_and_in_a_trace", move || fences_agree(mpi, "wrapper")),
        trial(mpi, Language::C, "waits_over_communicators_in_any_order", move || communicators_agree(mpi, "wrapper")),
        trial(mpi, Language::C, "waits_over_communicators_that_threads_make", move || {
            communicators_of_threads_agree(mpi, "wrapper")
        }),
        trial(mpi, Language::C, "waits_in_epochs", move || epochs_agree(mpi, "wrapper")),
        trial(mpi, Language::C, "waits_between_two_groups", move || groups_agree(mpi, "wrapper")),
        trial(mpi, Language::C, "waits_without_what_completes_requests", move || {
            unseen_completions_are_counted(mpi, "wrapper")
        }),
        trial(mpi, Language::C, "waits_where_counting_was_off", move || switched_off_agrees(mpi, "wrapper")),
        trial(mpi, Language::C, "neighbours_are_known", move || neighbours::are_known(mpi, "wrapper")),
        trial(mpi, Language::C, "waits_of_collectives_live_and_in_a_trace", move || {
            agree(mpi, "wrapper", program::SEMANTICS, &COLLECTIVES).map(drop)
        }),
    ];
    // Debian's MPICH, and Intel's without its launcher's service, do not spawn.
    if matches!(mpi, Mpi::OpenMpi | Mpi::OpenMpi5 | Mpi::Mpich5) {
        trials.push(trial(mpi, Language::C, "waits_of_worlds_that_were_spawned", move || worlds_agree(mpi, "wrapper")));
    }
    trials
}
