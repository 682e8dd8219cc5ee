//! What a terminal shows, made from what was written to it.

use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::num::NonZeroU16;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use vt100::Parser;

/// Fed by a thread of its own.
#[derive(Clone, Debug)]
pub(super) struct Screen {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    parser: Parser,
    output: Vec<u8>,
    /// Nobody writes any more.
    closed: bool,
}

/// Everything, when nobody writes any more.
pub(super) struct All {
    pub(super) output: String,
    /// What is not as terminals are when programs begin.
    pub(super) not_restored: Vec<&'static str>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl Screen {
    pub(super) fn of(mut output: File, columns: u16, rows: u16) -> Self {
        let (columns, rows) = (at_least_one(columns), at_least_one(rows));
        let state = State { parser: Parser::new(rows, columns, 0), output: Vec::new(), closed: false };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        let screen = Self { shared };
        let fed = screen.clone();
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            // The end of a terminal is an error: nobody has its device open.
            while let Ok(number) = output.read(&mut bytes) {
                let Some(written) = bytes.get(..number).filter(|written| !written.is_empty()) else { break };
                let mut state = fed.lock();
                state.parser.process(written);
                state.output.extend_from_slice(written);
                drop(state);
                fed.shared.changed.notify_all();
            }
            fed.lock().closed = true;
            fed.shared.changed.notify_all();
        });
        screen
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn resize(&self, columns: u16, rows: u16) {
        self.lock().parser.set_size(at_least_one(rows), at_least_one(columns));
    }

    pub(super) fn now(&self) -> String {
        self.lock().parser.screen().contents()
    }

    /// Gives the screen as soon as it is as wanted; if that takes longer than `patience`, what it shows then as an error.
    pub(super) fn wait_until(&self, patience: Duration, is_it: impl Fn(&str) -> bool) -> Result<String, String> {
        let goes_on = |state: &mut State| !is_it(&state.parser.screen().contents()) && !state.closed;
        let waited = self.shared.changed.wait_timeout_while(self.lock(), patience, goes_on);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let shown = state.parser.screen().contents();
        if is_it(&shown) { Ok(shown) } else { Err(shown) }
    }

    /// Waits until nobody writes any more; `None` if that takes too long.
    pub(super) fn end(&self, patience: Duration) -> Option<All> {
        let waited = self.shared.changed.wait_timeout_while(self.lock(), patience, |state| !state.closed);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if !state.closed {
            return None;
        }
        let screen = state.parser.screen();
        let left = [
            (screen.alternate_screen(), "the alternate screen is shown"),
            (screen.hide_cursor(), "the cursor is hidden"),
            (screen.bracketed_paste(), "pasting is bracketed"),
            (screen.mouse_protocol_mode() != vt100::MouseProtocolMode::None, "the mouse is taken"),
        ];
        let not_restored = left.into_iter().filter(|(is_left, _)| *is_left).map(|(_, what)| what).collect();
        Some(All { output: String::from_utf8_lossy(&state.output).into_owned(), not_restored })
    }
}

fn at_least_one(number: u16) -> NonZeroU16 {
    NonZeroU16::new(number).unwrap_or(NonZeroU16::MIN)
}
