//! Programs and probes of a process that has the rights, for one that has none.
//!
//! The node service is two processes ([`mpiprobe_discover::privileged`]). The one with rights loads the embedded object, keeps programs and
//! links, and hands out the tables ([`super::grants`]); it takes no program from anybody, and no word on where the kernel keeps what. The other one
//! has an [`Engine`](crate::Engine) as if it had loaded everything itself ([`client`]).

mod client;
mod request;

pub use client::{AskFor, ask_instead};
pub(crate) use client::{LinkApart, Loaded, Other, load, other};
pub use request::{Answer, MOST_SITES, Request};
