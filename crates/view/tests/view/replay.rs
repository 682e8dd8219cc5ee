//! Recordings that are looked at: going back and forth, playing, damaged files.

use std::{fs, sync::Arc};

use mpiprobe_model::Profile;
use mpiprobe_tests::{
    picture::{OPTIONS, picture, picture_with, view},
    synthetic::Synthetic,
};
use mpiprobe_view::{Action, Moment, Position, Running, Scheme, Screen, Size, State, ViewOptions};

use crate::replayed::{Replayed, body, record, seconds};

const SIZE: (u16, u16) = (80, 24);

#[test]
fn the_header_says_which_moment_it_is() {
    for size in [SIZE, (120, 40)] {
        let mut replayed = Replayed::new(record(seconds(Synthetic::SMALL)), 12, size);
        replayed.press(&["2"]);
        insta::assert_snapshot!(format!("replay-paused-{}x{}", size.0, size.1), picture(&replayed.state));
        replayed.press(&[" "]);
        insta::assert_snapshot!(format!("replay-playing-{}x{}", size.0, size.1), picture(&replayed.state));
        replayed.press(&[" "]);
        assert!(picture(&replayed.state).contains("PAUSED"));
    }
}

#[test]
fn keys_go_from_moment_to_moment() {
    let mut replayed = Replayed::new(record(seconds(Synthetic::SMALL)), 29, SIZE);
    assert_eq!((replayed.at(), replayed.state.running()), (29, Running::Replay));
    for (key, at) in [
        ("<Left>", 28),
        ("[", 27),
        ("h", 26),
        ("{", 16),
        ("<Right>", 17),
        ("]", 18),
        ("}", 28),
        ("}", 29),
        ("}", 29),
        ("{", 19),
        ("{", 9),
        ("{", 0),
        ("{", 0),
        ("<Left>", 0),
        ("]", 1),
    ] {
        replayed.press(&[key]);
        assert_eq!(replayed.at(), at, "{key}");
        let observed = replayed.state.profile().unwrap().observed_ns;
        assert_eq!(observed, Synthetic::SMALL.profile(at as u64 + 1, None).observed_ns, "{key}");
    }
}

#[test]
fn in_the_matrix_arrows_move_the_cursor() {
    let mut replayed = Replayed::new(record(seconds(Synthetic::SMALL)), 9, SIZE);
    replayed.press(&["5", "<Right>", "<Right>", "<Left>"]);
    assert_eq!((replayed.state.matrix_at(), replayed.at()), ((0, 1), 9));
    replayed.press(&["]"]);
    assert_eq!(replayed.at(), 10);
}

/// Whatever way leads there.
#[test]
fn a_moment_looks_as_it_did_when_it_was_live() {
    let mut live = State::new(Running::Live);
    live.resize(Size { width: 120, height: 40 });
    for profile in seconds(Synthetic::SMALL).take(18) {
        live.add(Arc::new(profile));
    }
    let ways: [(usize, &[&str]); 5] =
        [(17, &[]), (29, &["{", "[", "["]), (0, &["}", "]", "]", "]", "]", "]", "]", "]"]), (16, &["]"]), (27, &["{"])];
    for (from, keys) in ways {
        let mut replayed = Replayed::new(record(seconds(Synthetic::SMALL)), from, (120, 40));
        replayed.press(keys);
        assert_eq!(replayed.at(), 17);
        // Recent calls, stacks and what is on the timeline are not recorded.
        let is_recorded = |screen: &Screen| !matches!(screen, Screen::Recent | Screen::Stacks | Screen::Timeline);
        for screen in Screen::ALL.into_iter().filter(is_recorded) {
            live.show(screen);
            replayed.state.show(screen);
            assert_eq!(body(&picture(&replayed.state)), body(&picture(&live)), "from {from} by {keys:?}");
        }
    }
}

/// Where it is large, what was long before is not read for its history; the figures are right all the same.
#[test]
fn figures_of_a_large_job_are_right_after_going_back() {
    let job = Synthetic { ranks: 300, ..Synthetic::LARGE };
    let mut live = State::new(Running::Live);
    live.resize(Size { width: 120, height: 40 });
    for profile in seconds(job).take(19) {
        live.add(Arc::new(profile));
    }
    let mut replayed = Replayed::new(record(seconds(job)), 29, (120, 40));
    replayed.press(&["{", "["]);
    for screen in [Screen::Ranks, Screen::Functions] {
        live.show(screen);
        replayed.state.show(screen);
        assert_eq!(body(&picture(&replayed.state)), body(&picture(&live)));
    }
}

#[test]
fn it_plays_to_the_end_and_from_the_beginning_again() {
    let profiles =
        (1..=5).map(|second| Profile { observed_ns: second * 10_000_000, ..Synthetic::SMALL.profile(second, None) });
    let mut replayed = Replayed::new(record(profiles), 4, SIZE);
    replayed.press(&[" "]);
    let mut seen = Vec::new();
    loop {
        let position = replayed.state.position().unwrap();
        if seen.last() != Some(&position.index) {
            seen.push(position.index);
        }
        if !position.is_playing {
            break;
        }
        replayed.wait();
    }
    assert_eq!(seen, [0, 1, 2, 3, 4]);
}

#[test]
fn a_damaged_moment_is_said_and_stepped_over() {
    let (folder, path) = record(seconds(Synthetic::SMALL).take(5));
    let mut bytes = fs::read(&path).unwrap();
    // The third of the five: the lengths of all chunks are nearly the same.
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xff;
    fs::write(&path, bytes).unwrap();
    let mut replayed = Replayed::new((folder, path), 0, SIZE);
    replayed.press(&["]", "]"]);
    assert_eq!(replayed.at(), 1, "what is shown is what the header says");
    assert!(replayed.state.notice.as_ref().unwrap().contains("moment 3 of 5"), "{:?}", replayed.state.notice);
    replayed.press(&["]"]);
    assert_eq!((replayed.at(), replayed.state.notice.take()), (3, None));
    replayed.press(&["[", "["]);
    assert_eq!(replayed.at(), 1);
}

#[test]
fn what_is_missing_is_said_at_first() {
    let (folder, path) = record(seconds(Synthetic::SMALL).take(3));
    let bytes = fs::read(&path).unwrap();
    // Within the last of three moments, which are about as long.
    fs::write(&path, &bytes[..bytes.len() / 6 * 5]).unwrap();
    let replayed = Replayed::new((folder, path), 0, SIZE);
    let picture = picture(&replayed.state);
    assert!(picture.contains("moment 3 is cut off and left out: mpiprobe was killed"), "{picture}");
}

#[test]
fn a_live_view_has_no_moments() {
    let mut state = view(Synthetic::SMALL, SIZE);
    for action in [Action::Moment(1), Action::Moment(-10)] {
        assert_eq!(state.act(action), None);
        assert!(state.notice.as_ref().unwrap().contains("--record FILE"), "{:?}", state.notice);
    }
}

#[test]
fn ascii_is_nothing_but_ascii() {
    let replayed = Replayed::new(record(seconds(Synthetic::SMALL)), 3, SIZE);
    let picture = picture_with(&replayed.state, ViewOptions { ascii: true, scheme: Scheme::None, ..OPTIONS });
    assert!(picture.is_ascii(), "{picture}");
}

/// Somebody may have written any figures.
#[test]
fn times_that_go_back_do_no_harm() {
    let mut state = State::new(Running::Replay);
    let profile = |second| Arc::new(Synthetic::SMALL.profile(second, None));
    for (at, before) in [(9, vec![5, 3, 30]), (2, vec![]), (2, vec![2, 2])] {
        state.go_to_moment(Moment {
            profile: profile(at),
            before: before.into_iter().map(profile).collect(),
            follows: false,
            from_start: at == 2,
            position: Position { index: 0, count: 1, when: "?".into(), is_playing: false },
        });
        assert_eq!(state.profile().unwrap().observed_ns, profile(at).observed_ns);
    }
}
