//! What a filter leaves of every screen.
#![expect(clippy::unwrap_used, reason = "a helper that cannot go on fails its test")]

use std::sync::Arc;

use mpiprobe_tests::{
    picture::{picture, view},
    synthetic::Synthetic,
};
use mpiprobe_view::{Screen, State};

use crate::keys::press;

const SIZES: [(u16, u16); 2] = [(80, 24), (120, 40)];

fn filtered(job: Synthetic, size: (u16, u16), filter: &str) -> State {
    let mut state = view(job, size);
    state.set_filter(Some(filter.parse().unwrap()));
    state
}

/// Rows that are shown of those that there are, screen by screen.
fn kept(job: Synthetic, filter: &str) -> Vec<(Screen, (usize, usize))> {
    let mut state = filtered(job, (120, 40), filter);
    let kept = Screen::ALL.into_iter().filter_map(|screen| {
        state.show(screen);
        Some((screen, state.kept_rows()?))
    });
    kept.collect()
}

#[test]
fn ranks_of_a_filter() {
    for (name, job) in [("small", Synthetic::SMALL), ("large", Synthetic::LARGE)] {
        for size in SIZES {
            let mut state = filtered(job, size, "rank in (1..2, 100..111) and mpi > 1%");
            state.show(Screen::Ranks);
            insta::assert_snapshot!(format!("filtered-ranks-{name}-{}x{}", size.0, size.1), picture(&state));
        }
    }
}

#[test]
fn every_table_is_filtered() {
    use Screen::{CallSites, Communicators, Functions, Matrix, Ranks, Recent, Requests, Stacks, Waiting};
    let everything = [
        (Ranks, (4, 4)),
        (Functions, (7, 7)),
        (CallSites, (4, 4)),
        (Matrix, (8, 8)),
        (Communicators, (3, 3)),
        // Blocked calls are among them.
        (Requests, (6, 6)),
        // Of calls that were not seen nothing is known.
        (Recent, (36, 37)),
        (Waiting, (3, 3)),
        (Stacks, (9, 9)),
    ];
    assert_eq!(kept(Synthetic::SMALL, "pid > 0"), everything);
    let of_one = kept(Synthetic::SMALL, "rank == 1");
    let number = |screen| of_one.iter().find(|(known, _)| *known == screen).unwrap().1;
    assert_eq!(number(Ranks), (1, 4));
    assert_eq!(number(Functions), (7, 7), "they are of all ranks and tell none");
    assert_eq!(number(Matrix), (2, 8));
    assert_eq!(number(Requests), (2, 6));
    assert_eq!(number(Waiting), (1, 3));
    assert_eq!(number(Stacks), (3, 9));
    let of_function = kept(Synthetic::SMALL, "func ~ \"Isend\"");
    let number = |screen| of_function.iter().find(|(known, _)| *known == screen).unwrap().1;
    assert_eq!(number(Functions), (1, 7));
    assert_eq!(number(CallSites), (1, 4));
    assert_eq!(number(Ranks), (4, 4));
}

#[test]
fn what_is_looked_into_is_filtered_too() {
    let mut state = filtered(Synthetic::SMALL, (120, 40), "func ~ \"recv\" or func ~ \"Recv\"");
    press(&mut state, &["2", "<Enter>"]);
    assert_eq!(state.kept_rows(), Some((2, 7)), "functions of a rank");
    state.set_filter(Some("rank >= 2".parse().unwrap()));
    press(&mut state, &["3", "<Enter>"]);
    assert_eq!(state.kept_rows(), Some((3, 5)), "ranks of a function, and their sum");
    press(&mut state, &["4", "<Enter>"]);
    assert_eq!(state.kept_rows(), Some((2, 4)), "ranks of a call site");
    state.set_filter(Some("func == \"MPI_Isend\"".parse().unwrap()));
    press(&mut state, &["6", "j", "<Enter>"]);
    assert_eq!(state.kept_rows(), Some((1, 3)), "functions of a communicator");
}

/// Invariant SUMS-OF-ALL.
#[test]
fn sums_are_of_everything() {
    let header = |state: &State| picture(state).lines().next().map(str::to_owned);
    let mut state = view(Synthetic::SMALL, (120, 40));
    let (whole, overview) = (header(&state), state.findings().to_vec());
    state.set_filter(Some("rank == 1".parse().unwrap()));
    assert_eq!(header(&state), whole);
    assert_eq!(state.findings(), overview);
    assert_eq!(state.profile().map(|profile| profile.ranks.len()), Some(4), "w writes everything");
    press(&mut state, &["3"]);
    let functions = picture(&state).lines().skip(2).map(str::to_owned).collect::<Vec<_>>();
    state.set_filter(None);
    assert_eq!(picture(&state).lines().skip(2).map(str::to_owned).collect::<Vec<_>>(), functions);
}

#[test]
fn nothing_left_is_said_to_be_the_filters_doing() {
    let mut state = filtered(Synthetic::SMALL, (80, 24), "rank == 99");
    for screen in [Screen::Ranks, Screen::Requests, Screen::Waiting, Screen::Matrix] {
        state.show(screen);
        assert!(picture(&state).contains("The filter keeps no"), "{}", picture(&state));
    }
}

#[test]
fn a_filter_follows_what_happens() {
    let mut state = filtered(Synthetic::SMALL, (80, 24), "calls > 10M");
    press(&mut state, &["2"]);
    assert_eq!(state.kept_rows(), Some((0, 4)));
    state.add(Arc::new(Synthetic::SMALL.profile(3000, None)));
    assert!(state.kept_rows().is_some_and(|(kept, _)| kept > 0));
    press(&mut state, &[" "]);
    state.set_filter(None);
    assert_eq!(state.grid().rows.len(), 4, "also while the display is frozen");
}
