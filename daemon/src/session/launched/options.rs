//! What was asked for of a command.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use mpiprobe_functions::FunctionSet;
use mpiprobe_report::Format;
use mpiprobe_report::present::{TextOptions, recording::RecordTo};

use crate::session::{
    options::{MaxOverhead, Returns},
    profile_file::ProfileTo,
    trace::TraceOptions,
};

/// One run.
#[derive(Debug)]
pub struct RunOptions {
    /// Program and arguments.
    pub command: Vec<OsString>,
    pub functions: FunctionSet,
    /// Count all the time and without phases, whatever the job asks for by `MPI_Pcontrol`.
    pub ignore_pcontrol: bool,
    /// Whether the kernel, where it counts, sees when calls return.
    pub returns: Returns,
    /// What the kernel, where it counts, may cost each rank.
    pub max_overhead: MaxOverhead,
    /// Where the profile goes; `None`: standard error.
    pub profile: Option<ProfileTo>,
    /// Where a report goes, and in what format.
    pub report: Option<(ProfileTo, Format)>,
    /// Where the tables go, to stay there; `None`: nowhere in particular.
    pub tables: Option<PathBuf>,
    pub json: bool,
    /// How it is laid out as text.
    pub text: TextOptions,
    /// Where what happens meanwhile is recorded.
    pub record: Option<RecordTo>,
    /// Where the course of events is recorded.
    pub trace: Option<TraceOptions>,
    /// Time between two moments of that.
    pub interval: Duration,
    /// Have the BPF programs, where they count, say what they see of processes.
    pub trace_bpf: bool,
}
