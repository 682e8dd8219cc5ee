//! Keys as a user types them.
#![expect(clippy::unwrap_used, reason = "a helper that cannot go on fails its test")]

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use mpiprobe_view::{Effect, State};

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
            "<Right>" => KeyCode::Right,
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
