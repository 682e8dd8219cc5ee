//! Collects the lines of a pipe while somebody else writes them.

use std::io::{BufRead, BufReader, Read};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

#[derive(Debug, Default)]
struct State {
    lines: Vec<String>,
    closed: bool,
}

/// What has come through a pipe up to now.
#[derive(Debug, Clone)]
pub(super) struct Lines(Arc<(Mutex<State>, Condvar)>);

/// How a wait for a line ended.
#[derive(Debug)]
pub(super) enum Wait {
    Line(String),
    Closed,
    Timeout,
}

impl Lines {
    pub(super) fn of(pipe: impl Read + Send + 'static) -> Self {
        let lines = Self(Arc::default());
        let writer = lines.clone();
        thread::spawn(move || {
            let mut reader = BufReader::new(pipe);
            let mut line = Vec::new();
            while reader.read_until(b'\n', &mut line).is_ok_and(|bytes| bytes > 0) {
                let text = String::from_utf8_lossy(&line).trim_end_matches('\n').to_owned();
                writer.change(|state| state.lines.push(text));
                line.clear();
            }
            writer.change(|state| state.closed = true);
        });
        lines
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let (state, changed) = &*self.0;
        change(&mut state.lock().unwrap_or_else(PoisonError::into_inner));
        changed.notify_all();
    }

    /// The first line from `*from` on that contains `text`; the next wait begins behind it.
    pub(super) fn wait_for(&self, text: &str, from: &mut usize, patience: Duration) -> Wait {
        let deadline = Instant::now() + patience;
        let (state, changed) = &*self.0;
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let found = state.lines.iter().enumerate().skip(*from).find(|(_, line)| line.contains(text));
            if let Some((position, line)) = found {
                *from = position + 1;
                return Wait::Line(line.clone());
            }
            if state.closed {
                return Wait::Closed;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Wait::Timeout;
            }
            state = changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Everything, once the writer has closed the pipe (or after `patience`).
    pub(super) fn all(&self, patience: Duration) -> Vec<String> {
        let (state, changed) = &*self.0;
        let state = state.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = changed.wait_timeout_while(state, patience, |state| !state.closed);
        waited.unwrap_or_else(PoisonError::into_inner).0.lines.clone()
    }

    pub(super) fn now(&self) -> Vec<String> {
        self.all(Duration::ZERO)
    }
}
