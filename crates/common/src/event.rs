//! Notices about the life of processes, in the order they happened.

use bytemuck::{Pod, Zeroable};

use crate::thread::ARGUMENT_WORDS;

/// What happened; the value of [`Event::kind`].
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A process became a target, or stays one, by exec: [`Event::process`] is its new slot. It may be an [`ExecNotice`].
    Exec = 1,
    /// A target has exec'ed a program that is no target.
    ExecAway = 2,
    /// A thread of a target ended inside an MPI call: it is an [`EndedInCall`].
    EndedInCall = 3,
    /// A target wants what was counted so far to be written out.
    Flush = 4,
    /// A process that is no target begins to use MPI, by a function with probes.
    Newcomer = 5,
}

/// One notice.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Event {
    /// An [`EventKind`].
    pub kind: u32,
    /// Thread group id.
    pub tgid: u32,
    /// Thread id.
    pub tid: u32,
    /// Process slot.
    pub process: u32,
    /// When, ns.
    pub time_ns: u64,
    /// Function id plus one of the open call, 0 without one.
    pub function_plus_1: u32,
    /// Not 0: the arguments on the stack of the open call have been read.
    pub has_stack: u32,
    /// Entry of the open call, ns.
    pub started_ns: u64,
    /// Call site of the open call: an address in the process.
    pub call_site: u64,
}

/// The end of a thread inside a call.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct EndedInCall {
    pub event: Event,
    /// As in [`crate::ThreadState`].
    pub arguments: [u64; ARGUMENT_WORDS],
}

/// Most of an environment that is told, bytes: with what stands before it, the largest entry of a per-CPU table.
pub const ENVIRONMENT_BYTES: usize = 32 * 1024 - size_of::<Event>() - size_of::<u64>();

/// An exec, with who had started the process and the environment that was passed. The notice ends where the environment does.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct ExecNotice {
    pub event: Event,
    /// Not 0: there is more before what is here of the environment.
    pub cut: u32,
    /// The process that has started this one; 0: not one that is known here.
    pub parent: u32,
    /// `NAME=value`, each with its final NUL.
    pub environment: [u8; ENVIRONMENT_BYTES],
}
