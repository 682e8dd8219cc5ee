//! What keys do.

use std::sync::Arc;

use mpiprobe_model::EndReason;
use mpiprobe_tests::{
    picture::{OPTIONS, picture, picture_with, view},
    synthetic::Synthetic,
};
use mpiprobe_view::{Location, Running, Scheme, Screen, Size, ViewOptions};

use crate::keys::press;

const SIZE: (u16, u16) = (80, 24);

#[test]
fn tab_goes_round_all_screens() {
    let mut state = view(Synthetic::SMALL, SIZE);
    let mut seen = Vec::new();
    for _ in Screen::ALL {
        seen.push(state.screen());
        press(&mut state, &["<Tab>"]);
    }
    assert_eq!(seen, Screen::ALL);
    assert_eq!(state.screen(), Screen::Overview);
}

#[test]
fn enter_looks_into_a_row_and_escape_comes_back() {
    let mut state = view(Synthetic::SMALL, SIZE);
    press(&mut state, &["2", "j", "<Enter>"]);
    assert!(matches!(state.place(), Location::Rank(id) if id.pid == 4001));
    assert!(picture(&state).contains("Rank 1, last 10.0 s: in MPI_Recv from 2 tag 7"), "{}", picture(&state));
    press(&mut state, &["<Enter>"]);
    assert!(matches!(state.place(), Location::Function(_)));
    press(&mut state, &["<Esc>", "<Esc>"]);
    assert_eq!(state.place(), Location::Screen(Screen::Ranks));
    assert_eq!(state.cursor().index, 1, "the cursor is where it was");
}

#[test]
fn a_function_leads_to_its_histogram_and_that_of_a_rank_to_the_rank() {
    let mut state = view(Synthetic::SMALL, SIZE);
    press(&mut state, &["3", "<Enter>", "<Enter>"]);
    let Location::Histogram(name, None) = state.place() else { panic!("{:?}", state.place()) };
    assert!(picture(&state).contains(&format!("{name}, all ranks")), "{}", picture(&state));
    press(&mut state, &["<Enter>"]);
    assert_eq!(state.place(), Location::Histogram(name, None), "all ranks are no place");
    press(&mut state, &["<Esc>", "j", "<Enter>"]);
    let Location::Histogram(_, Some(id)) = state.place() else { panic!("{:?}", state.place()) };
    for text in ["duration p50", "duration p90", "duration p99", "duration max"] {
        assert!(picture(&state).contains(text), "{}", picture(&state));
    }
    press(&mut state, &["<Enter>"]);
    assert_eq!(state.place(), Location::Rank(id));
}

#[test]
fn a_rank_leads_to_its_threads_and_a_function_to_the_layers_before_it() {
    let mut state = view(Synthetic::HYBRID, SIZE);
    press(&mut state, &["2", "j", "<Enter>", "<Enter>"]);
    assert!(matches!(state.place(), Location::Threads(id) if id.pid == 4001), "{:?}", state.place());
    for text in ["16 threads in MPI", "40011 ended", "12 others ended", "40010 outside MPI", "4001 in MPI_Recv"] {
        assert!(picture(&state).contains(text), "{}", picture(&state));
    }
    press(&mut state, &["<Esc>", "<Esc>", "3", "j", "j", "<Enter>", "j"]);
    assert!(matches!(state.place(), Location::Function("MPI_Allreduce")), "{:?}", state.place());
    press(&mut state, &["<Enter>"]);
    assert_eq!(state.place(), Location::Layers("MPI_Allreduce"));
    for text in ["libtimes.so", "libchecks.so", "its own MPI_Comm_size", "MPICH 4.0.2"] {
        assert!(picture(&state).contains(text), "{}", picture(&state));
    }
    press(&mut state, &["<Enter>", "<Esc>"]);
    assert_eq!(state.place(), Location::Function("MPI_Allreduce"), "layers lead nowhere");
}

#[test]
fn one_thread_and_no_tool_are_not_looked_into() {
    let mut state = view(Synthetic::SMALL, SIZE);
    press(&mut state, &["2", "<Enter>"]);
    assert!(!picture(&state).contains("threads"), "{}", picture(&state));
    press(&mut state, &["3", "<Enter>"]);
    assert!(!picture(&state).contains("layers"), "{}", picture(&state));
}

#[test]
fn matrices_are_of_all_communicators_or_of_one() {
    let mut state = view(Synthetic::SMALL, (120, 40));
    press(&mut state, &["6", "c"]);
    assert_eq!(state.place(), Location::Screen(Screen::Matrix));
    assert!(picture(&state).contains(" over "), "{}", picture(&state));
    // Round in circles, at the end of which is that of all.
    let mut seen = Vec::new();
    while seen.len() < 10 && !seen.iter().any(|seen: &String| !seen.contains(" over ")) {
        press(&mut state, &["c"]);
        seen.push(picture(&state).lines().nth(2).unwrap_or_default().to_owned());
    }
    assert!(seen.len() < 10, "{seen:?}");
    press(&mut state, &["c"]);
    assert!(picture(&state).contains("over row (its own ranks)"), "{}", picture(&state));
    press(&mut state, &["2", "c"]);
    assert!(picture(&state).contains("neither a matrix nor a communicator"), "{}", picture(&state));
}

#[test]
fn a_frozen_display_says_so_and_does_not_change() {
    let mut state = view(Synthetic::SMALL, SIZE);
    press(&mut state, &["2", " "]);
    let frozen = picture(&state);
    assert!(frozen.contains("FROZEN") && frozen.contains("counting goes on"), "{frozen}");
    state.add(Arc::new(Synthetic::SMALL.profile(31, None)));
    assert_eq!(picture(&state), frozen);
    press(&mut state, &[" "]);
    assert!(picture(&state).contains("LIVE 31.0 s"));
}

#[test]
fn the_cursor_stays_with_its_row_when_the_order_changes() {
    let mut state = view(Synthetic::LARGE, SIZE);
    press(&mut state, &["2", "G"]);
    assert_eq!(state.cursor().index, 1023);
    press(&mut state, &["s", "I", "I"]);
    assert_eq!(state.cursor().index, 0, "a new order is looked at from its top");
    press(&mut state, &["j", "j"]);
    let row = state.grid().rows[2].id;
    state.add(Arc::new(Synthetic::LARGE.profile(31, None)));
    assert_eq!(state.grid().rows[state.cursor().index].id, row);
}

#[test]
fn n_finds_what_stands_out() {
    let mut state = view(Synthetic::LARGE, SIZE);
    press(&mut state, &["2", "n"]);
    let first = state.cursor().index;
    press(&mut state, &["n", "N"]);
    assert_eq!(state.cursor().index, first);
    assert!(state.grid().rows[first].marked);
    press(&mut state, &["N", "N"]);
    assert_eq!(state.cursor().index, 1023, "round in circles: the last rank is stopped");
}

#[test]
fn the_end_leaves_the_last_state_on_the_screen() {
    let mut state = view(Synthetic::SMALL, SIZE);
    state.add(Arc::new(Synthetic::SMALL.profile(31, Some(EndReason::TargetsEnded))));
    assert_eq!(state.running(), Running::Ended);
    assert!(picture(&state).contains("The job has ended. q: print the profile"));
}

#[test]
fn help_lists_every_key_at_any_size() {
    for (width, height) in [(60, 15), (200, 60)] {
        let mut state = view(Synthetic::SMALL, (width, height));
        press(&mut state, &["?"]);
        let mut seen = picture(&state);
        for _ in 0..60 {
            press(&mut state, &["j"]);
            seen += &picture(&state);
        }
        for binding in mpiprobe_view::BINDINGS {
            assert!(seen.contains(binding.shown), "{width}x{height}: {}", binding.shown);
        }
        press(&mut state, &["<Esc>"]);
        assert!(!state.is_help_open);
    }
}

/// No size makes it fail, and none that is large enough leaves the screen empty.
#[test]
fn any_size_is_drawn() {
    for job in [Synthetic::EMPTY, Synthetic::SMALL] {
        let mut state = view(job, SIZE);
        for (width, height) in [(0, 0), (1, 1), (59, 15), (60, 14), (60, 15), (61, 100), (400, 15), (500, 200)] {
            state.resize(Size { width, height });
            for screen in Screen::ALL {
                state.show(screen);
                let picture = picture(&state);
                assert_eq!(width >= 60 && height >= 15, picture.contains("mpiprobe"), "{width}x{height}: {picture}");
            }
        }
    }
}

#[test]
fn ascii_is_nothing_but_ascii() {
    let mut state = view(Synthetic::SMALL, (120, 40));
    for screen in Screen::ALL {
        state.show(screen);
        let picture = picture_with(&state, ViewOptions { ascii: true, scheme: Scheme::None, ..OPTIONS });
        assert!(picture.is_ascii(), "{picture}");
    }
    press(&mut state, &["?"]);
    assert!(picture_with(&state, ViewOptions { ascii: true, ..OPTIONS }).is_ascii());
}
