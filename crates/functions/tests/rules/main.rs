//! The rules that all engines have in common, function by function of the table: arguments, memory and tables before a call, and what
//! comes of it.
#![expect(clippy::panic, clippy::unwrap_used, reason = "a helper that cannot go on fails its test")]
#![expect(clippy::indexing_slicing, reason = "an index out of bounds fails its test")]
#![expect(clippy::cast_sign_loss, clippy::cast_possible_truncation, reason = "arguments are words")]

mod amounts;
mod communicators;
mod engine;
mod recording;
mod requests;
mod setting;
mod topologies;
