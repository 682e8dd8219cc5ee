//! The command line.

mod arguments;
mod command;

pub use arguments::Arguments;
pub use command::{Exit, execute};
