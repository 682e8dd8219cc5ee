//! Ranks that wait for each other, and what they wait in.

use libtest_mimic::Trial;
use mpiprobe_tests::{
    Language, Mpi,
    open_calls::{circle, expect_circle, expect_names, named_datatype},
};

use crate::trial;

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    vec![
        trial(mpi, Language::C, "one_look_shows_the_circle_of_a_deadlock", |mpi| {
            expect_circle(circle(mpi, false).spawn()?, false)
        }),
        trial(mpi, Language::C, "one_look_shows_a_circle_of_exchanges", |mpi| {
            expect_circle(circle(mpi, true).spawn()?, true)
        }),
        trial(mpi, Language::C, "datatypes_of_open_calls_have_their_names", |mpi| {
            expect_names(named_datatype(mpi).spawn()?)
        }),
    ]
}
