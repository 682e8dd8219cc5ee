//! Typing a filter: mistakes, completion, history.

use mpiprobe_tests::{
    picture::{OPTIONS, drawn, picture, picture_with, view},
    synthetic::Synthetic,
};
use mpiprobe_view::{Effect, History, Scheme, State, ViewOptions};
use ratatui::{buffer::Cell, style::Modifier};

use crate::keys::{press, type_text};

const SIZE: (u16, u16) = (80, 24);
const SIZES: [(u16, u16); 2] = [(80, 24), (120, 40)];

fn snapshots(name: &str, keys: impl Fn(&mut State)) {
    for size in SIZES {
        let mut state = view(Synthetic::SMALL, size);
        press(&mut state, &["2"]);
        keys(&mut state);
        insta::assert_snapshot!(format!("{name}-{}x{}", size.0, size.1), picture(&state));
    }
}

/// What is underlined of the view.
fn underlined(state: &State) -> String {
    let buffer = drawn(state, OPTIONS);
    let cells = buffer.content().iter().filter(|cell| cell.modifier.contains(Modifier::UNDERLINED));
    cells.map(Cell::symbol).collect()
}

#[test]
fn a_mistake_is_marked() {
    snapshots("editor-mistake", |state| {
        press(state, &["/"]);
        type_text(state, "rank == 1 and byts > 1MiB");
    });
}

#[test]
fn the_mistake_is_underlined_wherever_it_is() {
    for (key, text, mark) in [
        ("/", "rank == 1 and byts > 1", "byts"),
        ("/", "func ~ \"計算\" and 計算 == 1", "計算"),
        ("e", "rank == 1\nand tim > 1s", "tim"),
        ("/", "rank == 1 and", " "),
        ("/", "rank == 1", ""),
    ] {
        let mut state = view(Synthetic::SMALL, SIZE);
        press(&mut state, &[key]);
        state.paste(text);
        assert_eq!(underlined(&state), mark, "{text}");
    }
    let mut state = view(Synthetic::SMALL, SIZE);
    press(&mut state, &["/"]);
    type_text(&mut state, &format!("{}byts == 1", "rank == 1 or ".repeat(20)));
    assert_eq!(underlined(&state), "byts", "also in what is scrolled sideways");
}

#[test]
fn completions_are_listed() {
    snapshots("editor-completion", |state| {
        press(state, &["/"]);
        type_text(state, "func ~ ");
        press(state, &["<Tab>", "<Tab>"]);
    });
}

#[test]
fn several_lines_are_in_a_frame() {
    snapshots("editor-lines", |state| {
        press(state, &["e"]);
        type_text(state, "# the first row");
        press(state, &["<Enter>"]);
        type_text(state, "rank in 0..1");
        press(state, &["<Enter>"]);
        type_text(state, "and tim > 1ms");
    });
}

/// The text that is being typed, which is on the last line.
fn typed(state: &State) -> String {
    picture(state).lines().last().unwrap_or_default().trim_start_matches(" / ").trim().to_owned()
}

#[test]
fn enter_applies_what_is_right_only_and_escape_nothing() {
    let mut state = view(Synthetic::SMALL, SIZE);
    press(&mut state, &["2", "/"]);
    type_text(&mut state, "q == ");
    assert_eq!(press(&mut state, &["<Enter>"]), None);
    assert!(picture(&state).contains("there is no field q"), "keys are typed, and the editor stays");
    press(&mut state, &["<Esc>"]);
    assert!(state.filter().is_none());
    press(&mut state, &["/"]);
    type_text(&mut state, "rank in 1..2");
    assert_eq!(press(&mut state, &["<Enter>"]), Some(Effect::Remember("rank in 1..2".into())));
    assert_eq!(state.kept_rows(), Some((2, 4)));
    press(&mut state, &["/"]);
    assert_eq!(typed(&state), "rank in 1..2", "it begins with the filter in force");
    for _ in 0..12 {
        press(&mut state, &["<Backspace>"]);
    }
    assert_eq!(press(&mut state, &["<Enter>"]), None);
    assert!(state.filter().is_none() && picture(&state).contains("all rows are shown"));
}

#[test]
fn tab_goes_through_completions_and_escape_takes_them_back() {
    let mut state = view(Synthetic::SMALL, SIZE);
    press(&mut state, &["/"]);
    type_text(&mut state, "fu");
    press(&mut state, &["<Tab>"]);
    assert_eq!(typed(&state), "func", "the only one is taken at once");
    press(&mut state, &["<Tab>"]);
    assert_eq!(typed(&state), "func ==");
    press(&mut state, &["<Down>"]);
    assert_eq!(typed(&state), "func ~");
    press(&mut state, &["<Shift-Tab>", "<Up>"]);
    assert_eq!(typed(&state), "func in", "round in circles");
    press(&mut state, &["<Esc>"]);
    assert_eq!(typed(&state), "func");
    type_text(&mut state, "== allr");
    press(&mut state, &["<Tab>"]);
    assert_eq!(typed(&state), "func == \"MPI_Allreduce\"");
    press(&mut state, &["<Tab>", "<Enter>"]);
    assert_eq!(typed(&state), "func == \"MPI_Allreduce\" and", "Enter closes the list first");
    type_text(&mut state, "rank == ");
    press(&mut state, &["<Tab>"]);
    assert!(picture(&state).contains("nothing is known that would fit here"));
}

#[test]
fn earlier_filters_come_back() {
    let mut state = view(Synthetic::SMALL, SIZE);
    state.history = History::of_text("rank == 1\nrank == 2\n");
    press(&mut state, &["/"]);
    type_text(&mut state, "ra");
    press(&mut state, &["<Up>"]);
    assert_eq!(typed(&state), "rank == 2");
    press(&mut state, &["<Up>", "<Up>"]);
    assert_eq!(typed(&state), "rank == 1");
    assert!(picture(&state).contains("no earlier filter"));
    press(&mut state, &["<Down>", "<Down>"]);
    assert_eq!(typed(&state), "ra", "what was typed is not lost");
    press(&mut state, &["<Up>", "<Up>", "<Enter>", "/", "<Up>"]);
    assert_eq!(typed(&state), "rank == 1", "what was used last is the latest");
}

#[test]
fn several_lines_are_applied_by_f2_and_stay_several() {
    let mut state = view(Synthetic::SMALL, SIZE);
    press(&mut state, &["2", "e"]);
    type_text(&mut state, "rank == 1 # one");
    press(&mut state, &["<Enter>"]);
    type_text(&mut state, "or rank == 2");
    assert_eq!(press(&mut state, &["<F2>"]), Some(Effect::Remember("rank == 1 or rank == 2".into())));
    assert!(picture(&state).contains("/ rank == 1 or rank == 2  2 of 4 rows"), "{}", picture(&state));
    press(&mut state, &["/"]);
    assert!(picture(&state).contains("F2 or Alt-Enter"), "a line cannot hold them");
}

/// Whatever is typed or pasted, on a screen of any size.
#[test]
fn strange_input_is_input() {
    for size in [(60, 15), (80, 24), (200, 60)] {
        for key in ["/", "e", "V"] {
            let mut state = view(Synthetic::SMALL, size);
            press(&mut state, &[key]);
            for text in ["計算する\u{301}ﾞ", "\t\u{1b}[31m\r\n\r\n\u{0}", "((((((\"", "a\nb\nc", "🦀🦀🦀"] {
                state.paste(text);
                press(&mut state, &["<Left>", "<Tab>", "<Up>", "<Left>", "<Down>"]);
                let ascii = ViewOptions { ascii: true, scheme: Scheme::None, ..OPTIONS };
                assert!(picture_with(&state, ascii).is_ascii());
                assert!(!picture(&state).contains(['\u{1b}', '\0', '\t']));
            }
            state.paste(&"x".repeat(1 << 20));
            assert!(picture(&state).contains("no room for more than 4,096 characters"));
            state.paste(&"\n(".repeat(1000));
            picture(&state);
            press(&mut state, &["<Esc>", "<Esc>"]);
            state.paste("q");
            assert!(state.filter().is_none(), "what is pasted is no keys");
        }
    }
}
