//! What of `/proc` takes rights to be opened, done by a process that has them for one that has none.
//!
//! The node service is two processes: one holds capabilities, opens and hands out; the other has none, and does all that reads what others
//! have written. Whoever asks for a process's files in this crate asks [`here`], which does it itself or asks that process ([`client`]). What
//! is granted is in [`super::grants`].

mod client;
pub(crate) mod here;
mod request;

pub use client::{AskFor, ask_instead, is_apart};
pub(crate) use here::is_protected;
pub use here::{is_protected_thread, thread_file, thread_list};
pub use request::{Granted, Request, Stat};
