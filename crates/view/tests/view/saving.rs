//! Saved views.
#![expect(clippy::unwrap_used, reason = "a helper that cannot go on fails its test")]

use std::{collections::BTreeMap, path::Path};

use mpiprobe_model::filter::Filter;
use mpiprobe_tests::{
    picture::{picture, view},
    synthetic::Synthetic,
};
use mpiprobe_view::{Config, Effect, Files, SavedView, Screen, Span, ViewStart};

use crate::keys::{press, type_text};

const CONFIG: &str = "\
[views.neighbours]
screen = \"matrix\"
measure = \"calls\"

[views.slow]
filter = \"p99 > 1us and calls > 100\"
screen = \"functions\"
sort = \"p99\"
span = \"start\"

[views.first-row]
filter = \"rank in 0..1\"
screen = \"ranks\"
sort = \"calls\"
descending = false
";

fn views() -> BTreeMap<String, SavedView> {
    Config::of_text(CONFIG).unwrap().views
}

fn files(home: &Path) -> Files {
    Files::new(&|name| (name == "HOME").then(|| home.to_str().unwrap().to_owned()))
}

#[test]
fn they_are_listed() {
    for size in [(80, 24), (120, 40)] {
        let mut state = view(Synthetic::SMALL, size);
        state.set_saved(views());
        press(&mut state, &["2", "v", "j"]);
        insta::assert_snapshot!(format!("saved-views-{}x{}", size.0, size.1), picture(&state));
    }
}

#[test]
fn one_is_chosen_or_none() {
    let mut state = view(Synthetic::SMALL, (200, 60));
    press(&mut state, &["v"]);
    assert!(picture(&state).contains("no view has been saved yet"));
    state.set_saved(views());
    press(&mut state, &["v", "<Esc>"]);
    assert_eq!(state.screen(), Screen::Overview);
    press(&mut state, &["v", "j", "j", "<Enter>"]);
    assert_eq!((state.screen(), state.span), (Screen::Functions, Span::Start));
    assert_eq!(state.filter().map(Filter::text), Some("p99 > 1us and calls > 100"));
    assert!(picture(&state).contains("p99▼"), "{}", picture(&state));
    press(&mut state, &["v", "<Enter>"]);
    assert!(picture(&state).contains("calls▲") && state.kept_rows() == Some((2, 4)), "{}", picture(&state));
}

#[test]
fn what_is_saved_is_found_again() {
    let home = tempfile::tempdir().unwrap();
    let mut state = view(Synthetic::SMALL, (80, 24));
    state.set_filter(Some("rank >= 1".parse().unwrap()));
    press(&mut state, &["2", "s", "s", "t", "V"]);
    type_text(&mut state, "mine");
    assert_eq!(press(&mut state, &["<Enter>"]), Some(Effect::SaveView("mine".into())));
    let saved = state.as_view();
    files(home.path()).save_view("mine", &saved).unwrap();
    assert_eq!(files(home.path()).config().unwrap().views.get("mine"), Some(&saved));

    let mut other = mpiprobe_view::State::new(mpiprobe_view::Running::Live);
    ViewStart::new(None, Some("mine"), files(home.path())).unwrap().begin(&mut other);
    other.resize(state.size());
    (20..=30).for_each(|seconds| other.add(std::sync::Arc::new(Synthetic::SMALL.profile(seconds, None))));
    state.notice = None;
    assert_eq!(picture(&other), picture(&state), "also before there is anything to sort");
    assert_eq!(other.as_view(), saved);
    let error = ViewStart::new(None, Some("his"), files(home.path())).unwrap_err();
    assert_eq!(error.to_string(), "no view is called \"his\"; there are mine");
}

#[test]
fn a_filter_on_the_command_line_is_that_of_the_view() {
    let home = tempfile::tempdir().unwrap();
    let mut state = view(Synthetic::SMALL, (80, 24));
    let filter = "rank == 1".parse().unwrap();
    ViewStart::new(Some(filter), None, files(home.path())).unwrap().begin(&mut state);
    press(&mut state, &["2"]);
    assert_eq!(state.kept_rows(), Some((1, 4)));
}

#[test]
fn a_broken_configuration_is_said_and_left_aside() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join(".config/mpiprobe");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("config.toml"), "[views.a]\nscren = \"ranks\"\n").unwrap();
    let mut state = view(Synthetic::SMALL, (200, 60));
    ViewStart::new(None, None, files(home.path())).unwrap().begin(&mut state);
    let notice = state.notice.clone().unwrap();
    assert!(notice.contains("config.toml: line 2, column 1: unknown field `scren`"), "{notice}");
    assert!(files(home.path()).save_view("b", &SavedView::default()).is_err(), "nor is it written to");
    assert!(ViewStart::new(None, Some("a"), files(home.path())).is_err());
}
