//! Looks at threads by a process that has the rights, for one that has none; as [`mpiprobe_attach::apart`].

mod client;
mod request;

pub use client::{AskFor, ask_instead};
pub(crate) use client::{Looking, is_apart, open_event};
pub use request::{Answer, Request};
