//! BPF programs into the kernel, probes onto files, processes onto the allow-list.
// Printing to a pipe that somebody has closed must not panic: mpiprobe_report::present::{say, Output}.
#![cfg_attr(not(test), deny(clippy::print_stderr, clippy::print_stdout))]

pub mod apart;
mod calibrate;
mod engine;
mod error;
mod events;
mod grants;
mod hash_table;
mod kernel;
mod links;
mod locate;
mod method;
mod object;
mod observer;
mod rings;
mod site;
mod written_tables;

pub use engine::{Engine, choose_method};
pub use error::AttachError;
pub use events::{Notice, NoticeKind, Passed};
pub use grants::{Grants, Limits};
pub use links::Attachment;
pub use locate::{LocateError, PidNamespace};
pub use method::{AttachMethod, Calibration, Refusal};
pub use object::Tables;
pub use observer::{Hits, Observer};
pub use rings::{KernelReferred, KernelRings, ReferredTables, possible_processors};
pub use site::{ProbeSite, Scope};
pub use written_tables::{
    EarlierCalls, LayerFrames, Targets, begin_job, forget_library, forget_requests, release_requests, tell_library,
};

pub use kernel::{
    bpf::read_hash,
    btf,
    code_events::CodeEvents,
    code_record::{CodeMapped, Record},
};
