//! Pictures of the view, as text.
#![expect(clippy::unwrap_used, reason = "a helper that cannot go on fails its test")]

use std::sync::Arc;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use mpiprobe::view::{Running, Scheme, Size, State, Theme, ViewOptions, action, draw};
use mpiprobe_tests::synthetic::Synthetic;
use ratatui::{Terminal, backend::TestBackend};

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

/// Types keys, each a letter or the name of a key in angle brackets.
pub(crate) fn press(state: &mut State, keys: &[&str]) {
    for key in keys {
        let code = match *key {
            "<Enter>" => KeyCode::Enter,
            "<Esc>" => KeyCode::Esc,
            "<Tab>" => KeyCode::Tab,
            letter => KeyCode::Char(letter.chars().next().unwrap()),
        };
        let action = action(&KeyEvent::new(code, KeyModifiers::NONE)).unwrap();
        state.act(action);
    }
}

pub(crate) fn picture(state: &State) -> String {
    picture_with(state, OPTIONS)
}

pub(crate) fn picture_with(state: &State, options: ViewOptions) -> String {
    let size = state.size();
    let mut terminal = Terminal::new(TestBackend::new(size.width, size.height)).unwrap();
    terminal.draw(|frame| draw(frame, state, Theme::new(options))).unwrap();
    let buffer = terminal.backend().buffer();
    let row = |y| {
        let cells = (0..size.width).map(|x| buffer[(x, y)].symbol());
        cells.collect::<String>().trim_end().to_owned()
    };
    (0..size.height).map(row).collect::<Vec<_>>().join("\n")
}
