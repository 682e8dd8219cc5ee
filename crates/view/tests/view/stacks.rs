//! The screen of stacks: when they are looked at, what is folded, what a filter leaves, and why there are none.

use std::sync::Arc;

use mpiprobe_model::EndReason;
use mpiprobe_tests::{
    picture::{picture, view},
    synthetic::Synthetic,
};
use mpiprobe_view::{Running, Screen, Size, Stacks, State};

use crate::keys::{press, type_text};

const SIZE: (u16, u16) = (120, 24);

fn live() -> State {
    let mut state = State::new(Running::Live);
    state.resize(Size { width: SIZE.0, height: SIZE.1 });
    state.add(Arc::new(Synthetic::SMALL.profile(12, None)));
    state
}

/// Functions that are shown, from the top.
fn functions(state: &State) -> Vec<String> {
    column(state, 2)
}

fn column(state: &State, place: usize) -> Vec<String> {
    state.grid().rows.iter().filter_map(|row| Some(row.cells.get(place)?.plain())).collect()
}

fn ranks(state: &State) -> Vec<String> {
    column(state, 0)
}

#[test]
fn they_are_looked_at_while_the_screen_is_open() {
    let mut state = live();
    assert!(!state.wants_stacks());
    press(&mut state, &["0"]);
    assert!(state.wants_stacks() && state.screen() == Screen::Stacks);
    assert!(picture(&state).contains("Stacks are looked at from now on"), "{}", picture(&state));
    state.add_stacks(Arc::new(Synthetic::SMALL.stacks()));
    let expected =
        ["main", "  step", "  dot", "  MPI_Allreduce", "  step", "  MPI_Waitall", "main", "load_mesh", "read"];
    assert_eq!(functions(&state), expected, "{}", picture(&state));
    assert_eq!(ranks(&state), ["0-2", "0,2", "0,2", "0,2", "1", "1", "3", "3", "3"], "{}", picture(&state));
    // What is frozen stays as it is.
    press(&mut state, &[" "]);
    state.add_stacks(Arc::new(Stacks::Refused("none".into())));
    assert_eq!(functions(&state), expected);
    press(&mut state, &["9"]);
    assert!(!state.wants_stacks());
    press(&mut state, &["0"]);
    state.add(Arc::new(Synthetic::SMALL.profile(13, Some(EndReason::TargetsEnded))));
    assert!(!state.wants_stacks(), "there will be no more");
}

#[test]
fn what_a_function_has_called_is_folded_and_unfolded() {
    let mut state = view(Synthetic::SMALL, SIZE);
    press(&mut state, &["0", "g", "<Enter>"]);
    assert_eq!(functions(&state).first().map(String::as_str), Some("+ main"), "{}", picture(&state));
    // It stays folded at the next look.
    state.add_stacks(Arc::new(Synthetic::SMALL.stacks()));
    assert_eq!(functions(&state), ["+ main", "main", "load_mesh", "read"], "{}", picture(&state));
    press(&mut state, &["<Enter>"]);
    assert!(functions(&state).len() > 6, "{}", picture(&state));
    press(&mut state, &["G", "<Enter>"]);
    assert!(picture(&state).contains("nothing is called from here"), "{}", picture(&state));
}

#[test]
fn a_filter_leaves_ranks_out() {
    let mut state = view(Synthetic::HYBRID, SIZE);
    press(&mut state, &["0", "/"]);
    type_text(&mut state, "rank = 3");
    press(&mut state, &["<Enter>"]);
    assert_eq!(functions(&state), ["worker", "update", "main", "load_mesh", "read"], "{}", picture(&state));
    assert!(ranks(&state).iter().all(|ranks| ranks == "3"), "{}", picture(&state));
    assert!(picture(&state).contains("Stacks of 3 threads of 1 ranks"), "{}", picture(&state));
}

#[test]
fn where_there_can_be_none_it_says_so() {
    let mut state = live();
    press(&mut state, &["0"]);
    state.add_stacks(Arc::new(Stacks::Refused("none, as the kernel is too old".into())));
    assert!(picture(&state).contains("Stacks: none, as the kernel is too old"), "{}", picture(&state));
    let mut state = State::new(Running::Replay);
    state.resize(Size { width: SIZE.0, height: SIZE.1 });
    state.add(Arc::new(Synthetic::SMALL.profile(12, None)));
    press(&mut state, &["0"]);
    assert!(!state.wants_stacks());
    assert!(picture(&state).contains("recordings have none"), "{}", picture(&state));
}
