//! Phases: parts of a run that the program marks by `MPI_Pcontrol`.

pub use crate::process::PHASE_DEPTH;
use bytemuck::{Pod, Zeroable};

mod control;

pub use control::{Phases, control, find_open};

/// Room for a phase's name and its final NUL; longer names are cut.
pub const NAME_LENGTH: usize = 64;

/// Levels of `MPI_Pcontrol` that the standard gives a meaning; greater ones open phases, their negatives close them.
pub mod level {
    /// Nothing is counted until further notice.
    pub const OFF: i32 = 0;
    /// Everything is counted.
    pub const NORMAL: i32 = 1;
    /// What was counted so far is to be written out.
    pub const FLUSH: i32 = 2;
}

/// What a program calls a phase.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Pod, Zeroable)]
pub struct PhaseKey {
    /// Process slot.
    pub process: u32,
    /// First argument.
    pub level: i32,
    /// Second argument up to its NUL, zeros behind; all zeros: there was no readable text.
    pub name: [u8; NAME_LENGTH],
}

impl PhaseKey {
    /// Without a name.
    pub const fn new(process: u32, level: i32) -> Self {
        Self { process, level, name: [0; NAME_LENGTH] }
    }
}

/// One phase of a process image.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct Phase {
    pub key: PhaseKey,
    /// How often it was opened.
    pub opened: u64,
    /// How often it is open now: phases may be opened inside themselves.
    pub open: u64,
    /// When it was opened, ns, if it is open.
    pub since_ns: u64,
    /// How long it was open in all before that, ns; phases opened inside it included.
    pub time_ns: u64,
}

/// [`ProcessCounters::current`](crate::ProcessCounters::current).
pub mod current {
    /// Counting is off.
    pub const OFF: u64 = 1 << 32;
    /// Number of the innermost open phase plus one; 0: none is open.
    pub const PHASE_PLUS_1: u64 = OFF - 1;
}
