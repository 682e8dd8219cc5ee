//! Where programs call MPI: places in the source for return addresses ([`callsites`]), and stacks of running threads, copied without
//! stopping them, unwound, named and merged.
//!
//! [`Capture`] copies registers and stacks of all threads of some processes. Nothing here attaches to a process or stops it but
//! [`Capture::by_stopping`], for callers to whom the kernel does not give BPF programs.

pub mod apart;
mod arguments;
pub mod callsites;
mod capture;
mod copy;
mod error;
mod exchanging;
mod fingerprint;
mod grants;
mod kernel;
mod look;
mod memory;
mod naming;
mod proc;
mod python;
mod ranks;
mod registers;
mod report;
mod seen;
mod system_calls;
mod thread_report;
mod thread_stack;
mod tree;
mod unwind;
mod watched;
mod ways;
mod within;

pub use arguments::{KnownBy, Word, values};
pub use capture::{Capture, Captured, Limits};
pub use copy::{Certainty, Progress, Stack, State, SystemCall, ThreadCopy, Way};
pub use error::CaptureError;
pub use fingerprint::Fingerprint;
pub use grants::Grants;
pub use look::{Look, Looker, Target};
pub use memory::Memory;
pub use proc::waits_in;
pub use ranks::{Member, RankSet};
pub use registers::Registers;
pub use report::{Cause, CauseKind, NodeReport, Report, Verdict, subject};
pub use seen::{Seen, Stacked};
pub use system_calls::{is_of_descriptor, system_call_name};
pub use thread_report::{Argument, Doing, ThreadReport};
pub use thread_stack::{CallNow, MpiCall, Returns, SystemCallSeen, ThreadStack, WhereNow};
pub use tree::{Label, Node, Tree};
pub use unwind::{End, FoundBy, Frame, MAX_FRAMES, Unwinder, Unwound};
pub use ways::Ways;
pub use within::WaitsWithin;
