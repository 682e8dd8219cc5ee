//! Calls as they return, out of the rings that they are written to.

mod file;
mod reader;

use std::io;

pub use file::{FileReferred, FileRings};
use mpiprobe_common::{
    Communicator, CommunicatorName, EndedThread, FlowKey, Layout, PhaseKey, flow::Topology, trace::Line,
};
pub use reader::{Drained, RingReader};

use crate::{CommunicatorSnapshot, ThreadSnapshot};

/// The rings that the processes of one engine write to, or one process.
pub trait Rings {
    /// How many there are, and how many lines each has: a power of two.
    fn count(&self) -> u32;
    fn lines(&self) -> u64;

    /// Of each ring, the lines whose numbers have been given out.
    fn heads(&self, to: &mut [u64]) -> io::Result<()>;

    /// Copies as many lines as there is room for, from a number on, which do not go round the ring's end.
    fn read(&self, ring: u32, first: u64, to: &mut [Line]) -> io::Result<()>;

    /// Lines of a ring before this one have been read: there is room for others.
    fn set_tail(&self, ring: u32, tail: u64) -> io::Result<()>;
}

/// What lines refer to, of one process.
pub trait Referred {
    /// Whether all lines of a thread are in one ring: none of them comes after one that was written later.
    fn has_threads_in_order(&self) -> bool;

    /// The flow of an index, plus one.
    fn flow(&mut self, plus_1: u32) -> Option<FlowKey>;

    /// What is known of a communicator, by number.
    fn communicator(&mut self, number: u32) -> Option<CommunicatorSnapshot>;

    /// The largest number that a communicator may have by now.
    fn communicators(&mut self) -> u32;

    /// Who the process's neighbours are in the topology of an index, plus one.
    fn topology(&mut self, plus_1: u32) -> Option<Topology>;

    /// The number of the communicator that a handle means now.
    fn communicator_of(&mut self, handle: u64) -> Option<u32>;

    /// How the process's library lays out its objects; zeroed where that is not known.
    fn layout(&mut self) -> Layout;

    /// A phase by number, plus one.
    fn phase(&mut self, plus_1: u32) -> Option<PhaseKey>;

    /// Threads that live, and those that have ended, as far as they are remembered.
    fn threads(&mut self) -> Option<(Vec<ThreadSnapshot>, Vec<EndedThread>)>;
}

/// Of a communicator's entries in tables.
pub fn communicator(number: u32, facts: Communicator, name: &CommunicatorName) -> Option<CommunicatorSnapshot> {
    let name = CommunicatorSnapshot::name_of(name);
    (facts.first_ns != 0).then(|| CommunicatorSnapshot { number, facts, name, ..CommunicatorSnapshot::default() })
}
