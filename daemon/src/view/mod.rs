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
pub use source::{Running, Source, Update};
pub use state::{Block, Place, Screen, State};
pub use terminal::is_interactive;
