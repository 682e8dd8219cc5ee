//! Pictures of the full-screen view of [synthetic](crate::synthetic) jobs: as text for tests, as images for documents.

mod colours;
mod svg;

use std::sync::Arc;

use mpiprobe_view::{Running, Scheme, Size, State, Theme, Timeline, ViewOptions, draw, draw_timeline};
use ratatui::{Terminal, backend::TestBackend, buffer::Buffer};

use crate::synthetic::Synthetic;

pub use svg::svg;

/// On a terminal that can show everything.
pub const OPTIONS: ViewOptions = ViewOptions { scheme: Scheme::Dark, ascii: false, mouse: false };

/// A view of a job that has been observed for 30 seconds.
pub fn view(job: Synthetic, (width, height): (u16, u16)) -> State {
    let mut state = State::new(Running::Live);
    state.resize(Size { width, height });
    for seconds in 20..=30 {
        if job.ranks > 0 {
            state.add(Arc::new(job.profile(seconds, None)));
        }
    }
    if job.ranks > 0 {
        state.add_stacks(Arc::new(job.stacks()));
    }
    state
}

/// What the terminal shows, character by character.
pub fn drawn(state: &State, options: ViewOptions) -> Buffer {
    let size = state.size();
    let Ok(mut terminal) = Terminal::new(TestBackend::new(size.width, size.height));
    let Ok(_) = terminal.draw(|frame| draw(frame, state, Theme::new(options)));
    terminal.backend().buffer().clone()
}

/// The same as text.
pub fn picture(state: &State) -> String {
    picture_with(state, OPTIONS)
}

pub fn picture_with(state: &State, options: ViewOptions) -> String {
    text(&drawn(state, options))
}

/// What the terminal shows of a trace.
pub fn drawn_timeline(state: &Timeline, options: ViewOptions) -> Buffer {
    let size = state.size();
    let Ok(mut terminal) = Terminal::new(TestBackend::new(size.width, size.height));
    let Ok(_) = terminal.draw(|frame| draw_timeline(frame, state, Theme::new(options)));
    terminal.backend().buffer().clone()
}

/// Character by character.
pub fn text(buffer: &Buffer) -> String {
    let row = |y| {
        let cells = (0..buffer.area.width).filter_map(|x| buffer.cell((x, y))).map(ratatui::buffer::Cell::symbol);
        cells.collect::<String>().trim_end().to_owned()
    };
    (0..buffer.area.height).map(row).collect::<Vec<_>>().join("\n")
}
