//! How far something has come that lasts: a bar on standard error, where that is a terminal, and only of what takes longer than a second.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// What is over sooner needs no bar.
const PATIENCE: Duration = Duration::from_secs(1);

/// Counts steps; the bar goes away with it.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    began: Instant,
}

impl Progress {
    /// `what` is done, such as "reading recordings", in so many steps.
    pub fn new(what: &'static str, steps: usize) -> Self {
        let bar = ProgressBar::with_draw_target(Some(steps as u64), ProgressDrawTarget::hidden());
        // The default is a bar too, without words.
        if let Ok(style) = ProgressStyle::with_template("{msg} [{bar:30}] {pos}/{len}, {eta} left") {
            bar.set_style(style.progress_chars("=> "));
        }
        Self { bar: bar.with_message(what), began: Instant::now() }
    }

    /// One step is done.
    pub fn step(&self) {
        self.advance(1);
    }

    /// So many are.
    pub fn advance(&self, steps: u64) {
        if self.bar.is_hidden() && self.began.elapsed() >= PATIENCE {
            // Stays hidden where nobody looks.
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.inc(steps);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
