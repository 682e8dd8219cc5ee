//! The timeline as text, for whoever has no terminal to go through it on.

use std::{io, sync::Arc};

use mpiprobe_replay::Clocks;
use mpiprobe_trace::Trace;
use ratatui::{Terminal, backend::TestBackend};

use super::{draw::lanes_only, reader::Reader, state::Timeline};
use crate::{
    ViewError,
    layout::Size,
    options::{Scheme, ViewOptions},
    paint::Theme,
};

/// Columns where the terminal does not say how many it has.
const WIDTH: usize = 100;
/// Lanes that are printed; more share lanes.
const MOST_LANES: usize = 64;

/// The whole trace, with so many columns, and whether all of it could be read.
pub fn timeline_text(
    trace: &Arc<dyn Trace + Send + Sync>,
    clocks: &Clocks,
    name: &str,
    width: Option<usize>,
    options: ViewOptions,
) -> Result<(String, bool), ViewError> {
    let options = ViewOptions { scheme: Scheme::None, ..options.resolved(&|name| std::env::var(name)) };
    let width = u16::try_from(width.unwrap_or(WIDTH).clamp(60, 400)).unwrap_or(100);
    let lanes = trace.definitions().locations.len().clamp(1, MOST_LANES);
    let mut state = Timeline::new(Arc::clone(trace), clocks, name, &[]);
    // As high as there are lanes, so that there is nothing between them.
    let height = Timeline::height_for(u16::try_from(lanes).unwrap_or(u16::MAX));
    state.resize(Size { width, height });
    let mut reader = Reader::new(trace.as_ref(), clocks);
    let wanted = state.wanted().without_messages();
    let mut news = reader.ask(wanted);
    while reader.is_busy() {
        news.extend(reader.work(&|| false));
    }
    for one in news {
        state.take(one);
    }
    if let Some(failed) = state.notice.take() {
        return Err(ViewError::Start(io::Error::other(failed)));
    }
    let mut drawn = String::new();
    let Ok(mut terminal) = Terminal::new(TestBackend::new(width, height));
    let Ok(_) = terminal.draw(|frame| lanes_only(frame, &state, Theme::new(options)));
    let buffer = terminal.backend().buffer();
    for y in 0..buffer.area.height {
        let cells = (0..width).filter_map(|x| buffer.cell((x, y))).map(ratatui::buffer::Cell::symbol);
        drawn += cells.collect::<String>().trim_end();
        drawn.push('\n');
    }
    let is_whole = state.last_picture().is_none_or(|picture| picture.damaged == 0);
    Ok((drawn.trim_end().to_owned() + "\n", is_whole))
}
