//! Pictures of the full-screen view of [synthetic](crate::synthetic) jobs: as text for tests, as images for documents.

mod colours;
mod svg;

use std::{error::Error, sync::Arc};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use mpiprobe_replay::Clocks;
use mpiprobe_trace::{
    HandMade, Span, Trace as _,
    store::{TraceFiles, TraceWriter, Window, copy_into},
};
use mpiprobe_view::{
    CallsOfMoment, KeptMoment, KnownClocks, News, Reader, Running, Scheme, Size, State, Theme, Timeline, ViewOptions,
    draw, draw_timeline,
};
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

/// The calls of a job that runs, up to now, after these keys have been pressed, each a letter.
///
/// # Errors
/// There is no memory for the calls, or those in it cannot be read back.
pub fn calls_of_now(mut state: State, made: &HandMade, keys: &str) -> Result<State, Box<dyn Error>> {
    let window = Arc::new(Window::new(1 << 20));
    copy_into(made, Span::ALL, TraceWriter::with_window(Vec::new(), Arc::clone(&window))?)?;
    window.note(made.span().until_ns, Vec::new());
    let kept = window.moment()?;
    let (trace, clocks) = (TraceFiles::of_dump(&kept.dump, "now"), Clocks::same());
    for key in keys.chars() {
        state.key(&KeyEvent::new(KeyCode::Char(key), KeyModifiers::NONE));
        if state.follows_calls() {
            let again = [KeptMoment::from(window.moment()?)];
            state.take_calls(News::Moment(CallsOfMoment::of(&again, &mut KnownClocks::default())?));
        }
        read_calls(&mut state, &trace, &clocks);
    }
    Ok(state)
}

/// Reads all that the timeline of a job that runs wants to show, as the thread does that reads.
pub fn read_calls(state: &mut State, trace: &TraceFiles, clocks: &Clocks) {
    let mut reader = Reader::new(trace, clocks);
    let mut asked = None;
    while asked != state.wanted_calls() {
        asked = state.wanted_calls();
        let Some(wanted) = asked.clone() else { break };
        let mut news = reader.ask(wanted);
        while reader.is_busy() {
            news.extend(reader.work(&|| false));
        }
        for one in news {
            state.take_calls(one);
        }
    }
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
