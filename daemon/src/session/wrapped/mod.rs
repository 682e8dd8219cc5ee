//! Jobs that count themselves by the wrapper: their tables are files.

mod changes;
mod clocks;
pub(super) mod command_tables;
mod datatypes;
mod ended_process;
mod hosts;
mod image;
pub(super) mod images;
mod kept;
mod last_words;
pub(super) mod live;
mod place;
mod profile;
mod recent;
pub(super) mod stale;
mod traced;
pub(super) mod uncounted;

pub use kept::{TablesError, kept_tables};
