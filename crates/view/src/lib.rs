//! The full-screen view: `source` tells, `state` knows, `draw` shows, `app` waits. None of the first three waits for anything or
//! touches the terminal.
// Printing to a pipe that somebody has closed must not panic: mpiprobe_report::present::{say, Output}.
#![cfg_attr(not(test), deny(clippy::print_stderr, clippy::print_stdout))]

mod app;
mod content;
mod draw;
mod error;
mod export;
mod keep;
mod keys;
mod layout;
mod live;
mod options;
mod paint;
mod replay;
mod screens;
mod source;
mod start;
mod state;
mod terminal;
mod timeline;
mod user;

pub use content::{Block, Location, Measure, Screen, Span};
pub use draw::draw;
pub use error::ViewError;
pub use keys::{Action, BINDINGS, Binding, Edit, Section, action};
pub use layout::Size;
pub use live::{Asked, LiveView, ShowStacks};
pub use options::{Scheme, ViewOptions};
pub use paint::Theme;
pub use replay::{Replay, replay};
pub use source::{Calls, KeptCalls, Moment, Position, Running, Source, Stacks, Update, Wish};
pub use start::{StartError, ViewStart};
pub use state::{Effect, State};
pub use terminal::{GivenBack, give_back, is_interactive};
pub use timeline::{
    CallsOfMoment, KeptMoment, KnownClocks, News, Reader, TIMELINE_BINDINGS, TIMELINE_SECTIONS, Timeline,
    TimelineAction, Wanted, draw as draw_timeline, timeline, timeline_text,
};
pub use user::{Config, FileError, Files, History, SavedView};
