//! The full-screen view: `source` tells, `state` knows, `draw` shows, `app` waits. None of the first three waits for anything or
//! touches the terminal.

mod app;
mod draw;
mod error;
mod export;
mod keys;
mod layout;
mod live;
mod options;
mod replay;
mod screens;
mod source;
mod state;
mod terminal;

pub use draw::{Theme, draw};
pub use error::ViewError;
pub use keys::{Action, BINDINGS, Binding, Section, action};
pub use layout::Size;
pub use live::LiveView;
pub use options::{Scheme, ViewOptions};
pub use replay::{Replay, replay};
pub use source::{Moment, Position, Running, Source, Update, Wish};
pub use state::{Block, Effect, Place, Screen, State};
pub use terminal::is_interactive;
