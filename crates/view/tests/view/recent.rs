//! The screen of the last calls of a rank: whose they are, which of them are shown, when they are asked for.

use std::sync::Arc;

use mpiprobe_model::{EndReason, Profile, RecentCalls};
use mpiprobe_tests::{
    picture::{picture, view},
    synthetic::Synthetic,
};
use mpiprobe_view::{Location, Running, Screen, Size, State};

use crate::keys::press;

const SIZE: (u16, u16) = (160, 24);

fn title(state: &State) -> String {
    picture(state).lines().nth(2).unwrap_or_default().trim().to_owned()
}

/// A profile in which nobody has asked for them.
fn without() -> Profile {
    let mut profile = Synthetic::SMALL.profile(12, None);
    profile.ranks.iter_mut().for_each(|rank| rank.recent = None);
    profile
}

fn live(profile: Profile) -> State {
    let mut state = State::new(Running::Live);
    state.resize(Size { width: SIZE.0, height: SIZE.1 });
    state.add(Arc::new(profile));
    state
}

#[test]
fn they_are_asked_for_while_the_screen_is_open() {
    let mut state = live(without());
    assert!(!state.wants_recent_calls());
    press(&mut state, &["8"]);
    assert!(state.wants_recent_calls());
    assert!(picture(&state).contains("Calls are written down from now on"), "{}", picture(&state));
    press(&mut state, &["9"]);
    assert!(!state.wants_recent_calls());
    press(&mut state, &["8"]);
    state.add(Arc::new(Synthetic::SMALL.profile(13, Some(EndReason::TargetsEnded))));
    assert!(!state.wants_recent_calls(), "there will be no more");
    assert!(title(&state).starts_with("Last 36 calls of rank 0"), "the last ones stay: {}", picture(&state));
}

#[test]
fn where_there_can_be_none_it_says_so() {
    let mut ended = without();
    ended.end = Some(EndReason::TargetsEnded);
    let mut state = live(ended);
    press(&mut state, &["8"]);
    assert!(picture(&state).contains("The job has ended."), "{}", picture(&state));
    let mut state = State::new(Running::Replay);
    state.resize(Size { width: SIZE.0, height: SIZE.1 });
    state.add(Arc::new(without()));
    press(&mut state, &["8"]);
    assert!(!state.wants_recent_calls());
    assert!(picture(&state).contains("recordings have none"), "{}", picture(&state));
    let mut refused = without();
    let why_not = Some("none, since its tables cannot be written to: Permission denied".to_owned());
    refused.ranks[0].recent = Some(Arc::new(RecentCalls { calls: Vec::new(), why_not }));
    let mut state = live(refused);
    press(&mut state, &["8"]);
    assert!(title(&state).contains("rank 0: none, since its tables cannot be written to"), "{}", picture(&state));
}

#[test]
fn they_are_of_one_rank_after_the_other_or_of_the_one_under_the_cursor() {
    let mut state = view(Synthetic::SMALL, SIZE);
    let rank = |state: &State| title(state).split("of rank ").nth(1).and_then(|rest| rest.chars().next());
    press(&mut state, &["8"]);
    assert_eq!(rank(&state), Some('0'));
    press(&mut state, &["<Right>"]);
    assert_eq!(rank(&state), Some('1'));
    press(&mut state, &["h", "<Left>"]);
    assert_eq!(rank(&state), Some('3'), "round in circles");
    press(&mut state, &["2", "g", "j", "j", "8"]);
    assert_eq!(rank(&state), Some('2'));
    press(&mut state, &["2", "g", "<Enter>", "8"]);
    assert_eq!(rank(&state), Some('0'), "of the rank that is looked into");
    press(&mut state, &["1", "8"]);
    assert_eq!(rank(&state), Some('0'), "as it was");
    state.set_filter(Some("rank in 2..3".parse().unwrap()));
    assert_eq!(rank(&state), Some('2'), "the filter keeps others");
}

#[test]
fn the_newest_is_followed_until_the_user_goes_up() {
    let mut state = view(Synthetic::SMALL, SIZE);
    press(&mut state, &["8"]);
    let last = |state: &State| state.grid().rows.len() - 1;
    assert_eq!(state.cursor().index, last(&state));
    let longer = |seconds| {
        let mut profile = Synthetic::SMALL.profile(seconds, None);
        for rank in &mut profile.ranks {
            let mut recent = rank.recent.as_deref().cloned().unwrap();
            let mut call = recent.calls[0].clone();
            call.number = 1000 + seconds;
            recent.calls.push(call);
            rank.recent = Some(Arc::new(recent));
        }
        Arc::new(profile)
    };
    state.add(longer(3000));
    assert_eq!(state.cursor().index, last(&state), "it has gone with the newest");
    press(&mut state, &["k", "k"]);
    let on = state.grid().rows[state.cursor().index].id;
    state.add(longer(3001));
    assert_eq!(state.grid().rows[state.cursor().index].id, on, "it stays where the user is");
    press(&mut state, &["<Right>"]);
    assert_eq!(state.cursor().index, last(&state), "another list is looked at from its end");
}

#[test]
fn calls_are_filtered_and_lead_to_their_function() {
    let mut state = view(Synthetic::SMALL, SIZE);
    press(&mut state, &["8"]);
    let (all, gaps) = (state.grid().rows.len(), 1);
    for (filter, kept) in [
        ("func == \"MPI_Recv\"", 6),
        ("comm == \"row\"", 12),
        ("comm == \"world\"", 12),
        ("tag == 7", 12),
        ("time > 100us", 12),
        ("func == \"MPI_Bcast\"", 0),
    ] {
        state.set_filter(Some(filter.parse().unwrap()));
        assert_eq!(state.kept_rows(), Some((kept, all)), "{filter}: {}", picture(&state));
    }
    state.set_filter(None);
    assert_eq!(all, 36 + gaps);
    press(&mut state, &["<Enter>"]);
    assert_eq!(state.place(), Location::Function("MPI_Wtime"));
    assert_eq!(state.screen(), Screen::Recent);
    assert!(state.wants_recent_calls() || state.running() != Running::Live, "the way back is short");
}

#[test]
fn failed_calls_stand_out() {
    let mut state = view(Synthetic::SMALL, SIZE);
    press(&mut state, &["8", "<Right>", "n"]);
    let row = &state.grid().rows[state.cursor().index];
    assert!(row.marked);
    assert!(row.cells[2].plain().ends_with(" = error 14"), "{row:?}");
}
