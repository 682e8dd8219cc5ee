//! What calls do, by the rules of MPI: pure functions that every engine uses, each with its own tables.
#![expect(
    clippy::cast_possible_truncation,
    reason = "arguments are words of which a function takes what it needs; `try_from` is a branch in BPF"
)]
#![expect(clippy::cast_possible_wrap, reason = "arguments have no sign of their own")]
#![expect(clippy::cast_sign_loss, reason = "checked to be non-negative just before")]
#![expect(clippy::cast_lossless, reason = "`from` is not const")]
#![expect(clippy::inline_always, reason = "BPF programs have 512 bytes of stack and pay for calls")]

pub mod access;
pub mod amount;
pub mod call;
pub mod communicators;
pub mod completion;
pub mod counting;
pub mod handles;
pub mod operation;
pub mod partner;
pub mod recording;
pub mod settling;
pub mod tables;
pub mod topology;
