//! Pictures of the view, as text.
#![expect(clippy::unwrap_used, reason = "a helper that cannot go on fails its test")]

use std::sync::Arc;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use mpiprobe::view::{Effect, Running, Scheme, Size, State, Theme, ViewOptions, draw};
use mpiprobe_tests::synthetic::Synthetic;
use ratatui::{
    Terminal,
    backend::TestBackend,
    buffer::{Buffer, Cell},
    style::Modifier,
};

pub(crate) const OPTIONS: ViewOptions = ViewOptions { scheme: Scheme::Dark, ascii: false, mouse: false };

/// A view of a job that has been observed for 30 seconds.
pub(crate) fn view(job: Synthetic, (width, height): (u16, u16)) -> State {
    let mut state = State::new(Running::Live);
    state.resize(Size { width, height });
    for seconds in 20..=30 {
        if job.ranks > 0 {
            state.add(Arc::new(job.profile(seconds, None)));
        }
    }
    state
}

/// Types keys, each a letter or the name of a key in angle brackets; gives what the last one asks for.
pub(crate) fn press(state: &mut State, keys: &[&str]) -> Option<Effect> {
    let mut effect = None;
    for key in keys {
        let code = match *key {
            "<Enter>" => KeyCode::Enter,
            "<Esc>" => KeyCode::Esc,
            "<Tab>" => KeyCode::Tab,
            "<Shift-Tab>" => KeyCode::BackTab,
            "<Up>" => KeyCode::Up,
            "<Down>" => KeyCode::Down,
            "<Left>" => KeyCode::Left,
            "<Backspace>" => KeyCode::Backspace,
            "<F2>" => KeyCode::F(2),
            letter => KeyCode::Char(letter.chars().next().unwrap()),
        };
        effect = state.key(&KeyEvent::new(code, KeyModifiers::NONE));
    }
    effect
}

/// Types a text, letter by letter.
pub(crate) fn type_text(state: &mut State, text: &str) {
    for letter in text.chars() {
        state.key(&KeyEvent::new(KeyCode::Char(letter), KeyModifiers::NONE));
    }
}

pub(crate) fn picture(state: &State) -> String {
    picture_with(state, OPTIONS)
}

/// What is underlined of it.
pub(crate) fn underlined(state: &State) -> String {
    let buffer = buffer(state, OPTIONS);
    let cells = buffer.content().iter().filter(|cell| cell.modifier.contains(Modifier::UNDERLINED));
    cells.map(Cell::symbol).collect()
}

fn buffer(state: &State, options: ViewOptions) -> Buffer {
    let size = state.size();
    let mut terminal = Terminal::new(TestBackend::new(size.width, size.height)).unwrap();
    terminal.draw(|frame| draw(frame, state, Theme::new(options))).unwrap();
    terminal.backend().buffer().clone()
}

pub(crate) fn picture_with(state: &State, options: ViewOptions) -> String {
    let (size, buffer) = (state.size(), buffer(state, options));
    let row = |y| {
        let cells = (0..size.width).map(|x| buffer[(x, y)].symbol());
        cells.collect::<String>().trim_end().to_owned()
    };
    (0..size.height).map(row).collect::<Vec<_>>().join("\n")
}
