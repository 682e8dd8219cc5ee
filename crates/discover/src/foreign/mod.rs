//! Files of other users, read without waiting for those who keep them.
//!
//! A file may be on a file system whose server does not answer: FUSE, where any user is the server, or NFS. Whoever opens, reads, closes
//! or only looks at such a file waits in the kernel, where no signal reaches it. So a process of its own does it
//! ([`server`]), and is left behind when it does not answer in time ([`client`]). How long is waited for the files of one user is
//! limited as well ([`patience`]). Files on this machine's own disks, and in its memory, answer: these are handed over and read directly.

mod client;
mod file;
mod message;
mod patience;
mod server;

pub use client::{give_up, is_given_up, use_process};
pub use file::{ForeignFile, Reader, open};
pub use message::{FileState, Opening, Request};
pub use patience::Whose;
pub use patience::has_no_answer;
pub use server::serve_if_asked;

pub(crate) use client::start;
pub use client::{charged, open_here, work_beside};
pub(crate) use server::Asking;
