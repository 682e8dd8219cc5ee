//! BPF programs into the kernel, probes onto files, processes onto the allow-list.

mod calibrate;
mod error;
mod kernel;
mod ladder;
mod layer_frames;
mod libraries;
mod links;
mod locate;
mod object;
mod pod;
mod requests;
mod rung;
mod targets;

pub use calibrate::Calibration;
pub use error::AttachError;
pub use ladder::{Engine, Refusal, check_pid_namespace, climb};
pub use layer_frames::LayerFrames;
pub use libraries::{forget_library, tell_library};
pub use links::{Attachment, ProbeSite, Scope};
pub use locate::LocateError;
pub use object::{LoadOptions, Tables};
pub use requests::release_requests;
pub use rung::Rung;
pub use targets::{Targets, begin_job};

pub(crate) use kernel::{
    bpf::read_hash,
    code_events::CodeEvents,
    code_record::{CodeMapped, Record},
};
pub(crate) use pod::Plain;
