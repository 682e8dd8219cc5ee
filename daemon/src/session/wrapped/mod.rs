//! Jobs that count themselves by the wrapper: their tables are files.

mod account;
mod bury;
mod image;
mod images;
mod launch;
mod relay;

pub use launch::{LaunchError, RunOptions, launch};
