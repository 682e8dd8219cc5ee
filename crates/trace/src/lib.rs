//! The course of a job's calls of MPI, as plain data.
//!
//! A trace has [`Definitions`] (which threads there are, which communicators, which call sites), and for each thread, its *location*, a
//! sequence of [`Event`]s in the order of time. Whoever reads one does so by [`Trace`], location by location, in bounded memory,
//! whatever it is kept in; [`in_order`] merges locations. Whoever makes one while the job runs gives it to a [`Sink`].
//!
//! Messages match as MPI says: those from one process to another over one communicator with one tag are received in the order in which
//! they were sent. Collective calls over one communicator match by their order in each process. Both orders are those of the
//! calls' entries; [`Call::number`] tells whether any call is missing between two.
// Printing to a pipe that somebody has closed must not panic: mpiprobe_report::present::{say, Output}.
#![cfg_attr(not(test), deny(clippy::print_stderr, clippy::print_stdout))]

mod definitions;
mod event;
#[cfg(feature = "hand-made")]
mod hand_made;
mod part;
mod selected;
mod source;
mod span;
pub mod store;

pub use definitions::{
    ClockPair, Communicator, CommunicatorId, CommunicatorKind, Definitions, File, FileId, LeftOut, Location,
    LocationId, Losses, Neighbours, Node, NodeId, Process, ProcessId, SiteId, Window, WindowId,
};
pub use event::{
    Bytes, Call, Change, Event, Lock, Object, Operation, Partner, PhaseChange, RequestChange, RequestId, Root, Target,
    Transfer,
};
#[cfg(feature = "hand-made")]
pub use hand_made::{HandMade, Numbers, Repeated, call, function};
pub use part::{ChangeRow, Part, Row, Shape};
pub use selected::Selected;
pub use source::{Events, InOrder, Parts, ReadError, Sink, Trace, in_order};
pub use span::Span;
