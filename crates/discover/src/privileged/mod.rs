//! What of `/proc` takes rights to be opened, done by a process that has them for one that has none.
//!
//! The node service is two processes: one holds capabilities, opens and hands out; the other has none, and does all that reads what others
//! have written. Whoever asks for a process's files in this crate asks [`here`], which does it itself or asks that process ([`client`]). What
//! can be asked for, and what of it is granted, is in [`server`].

mod client;
pub(crate) mod here;
mod request;
mod server;

pub use client::{AskFor, ask_instead, is_apart};
pub use here::{thread_file, thread_list};
pub use request::{Granted, Request, Stat};
pub(crate) use server::is_protected;
pub use server::{Server, is_protected_thread};
