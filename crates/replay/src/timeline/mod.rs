//! A part of a trace as it is to be seen: one lane for each rank or several, cut into columns.
//!
//! Everything is done in small steps, so that whoever shows it can show what is there already, and can change his mind. However long
//! the trace is, what is in memory follows from lanes and columns.

mod find;
mod lanes;
mod messages;
mod painter;
#[cfg(test)]
mod tests;

pub use find::{Direction, Found, Look, Search, Seen};
pub use lanes::{Lane, lanes};
pub use messages::{Matching, Message, Messages, WaitSeen};
pub use painter::{Cell, Frame, GROUPS, LongCall, Painter, Picture, WideCall};
