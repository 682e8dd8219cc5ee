//! The tables as they are now.

mod shared;
mod stats;

pub use stats::StatsReader;
