//! Keys as a user types them.
#![expect(clippy::unwrap_used, reason = "a helper that cannot go on fails its test")]

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use mpiprobe::view::{State, action};

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
