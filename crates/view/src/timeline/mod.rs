//! The screen of a trace: one lane for each thread or several ranks, from left to right in the order of time. `reader` reads what is to be
//! seen, on a thread of its own, of a job that runs one moment (`now`) after the other; `state` knows, `draw` shows, `app` waits.

mod app;
mod describe;
mod draw;
mod keys;
mod messages;
mod now;
mod reader;
mod state;
mod text;

pub use app::timeline;
pub use draw::draw;
pub use keys::{TIMELINE_BINDINGS, TIMELINE_SECTIONS, TimelineAction};
pub use now::{KeptMoment, KnownClocks, Moment as CallsOfMoment};
pub(crate) use reader::Background;
pub use reader::{News, Reader, Wanted};
pub(crate) use state::Effect as TimelineEffect;
pub use state::Timeline;
pub use text::timeline_text;
