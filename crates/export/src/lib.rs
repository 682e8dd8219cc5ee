//! Traces as files that other tools open: OTF2, Perfetto, Chrome's JSON, Parquet, CSV; and records of JSON as Parquet.
//!
//! Each is written in one or two passes over the trace, in bounded memory but for what is remembered of ends without the other one, and of a
//! filter, of the calls that it keeps. Where a format has messages as such, a message is written with both of its ends or not at all.
// Printing to a pipe that somebody has closed must not panic: mpiprobe_report::present::{say, Output}.
#![cfg_attr(not(test), deny(clippy::print_stderr, clippy::print_stdout))]

mod calls;
pub mod chrome;
mod course;
pub mod csv;
mod error;
mod facts;
mod messages;
mod names;
pub mod otf2;
#[cfg(feature = "parquet")]
pub mod parquet;
pub mod perfetto;
#[cfg(feature = "parquet")]
pub mod records;
mod rows;
mod summary;
#[cfg(test)]
mod tests;
mod text;

pub use calls::COLUMNS;
pub use error::ExportError;
pub use summary::{Exported, Selection};
