//! What a library's file tells of the memory of its processes, and what one of them tells then.

use mpiprobe_common::{
    Layout,
    layout::{Objects, template::may_be_place},
};
use mpiprobe_discover::{RankInfo, mappings::MappedFile};
use mpiprobe_plan::{Data, Family};

use super::{Capability, Missing, Reason, TargetMemory, Version};

/// What a library's file tells about the memory of processes that map it.
#[derive(Debug, Clone)]
pub struct Blueprint {
    pub(super) family: Family,
    /// Name and version, for messages.
    pub(super) name: String,
    pub(super) is_intel: bool,
    pub(super) version: Option<Version>,
    pub(super) data: Data,
}

/// The outcome of a look into a process.
#[derive(Debug, Clone)]
pub enum Search {
    /// The library is not initialised: its objects are not there yet. What does not depend on them is found. With communicators,
    /// it may be a program that has begun a session and never makes the predefined ones.
    NotYet(FoundLayout),
    Done(FoundLayout),
}

/// What was found out about a process.
#[derive(Debug, Clone)]
pub struct FoundLayout {
    pub layout: Layout,
    /// Where the process's communicators are listed.
    pub registry: Registry,
    /// Capabilities that are off, with reasons.
    pub missing: Vec<Missing>,
}

/// Where a library lists its objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Registry {
    /// Nowhere, as far as is known.
    None,
    /// In a numbered array of addresses, whose description is at this address.
    OpenMpi { array: u64 },
    /// In the tables of objects that the layout describes. Those of windows are here: programs that count do not need them.
    Mpich { windows: Objects },
}

/// A process and the library in it, as one look sees them.
pub(super) struct Target<'a> {
    pub(super) blueprint: &'a Blueprint,
    pub(super) memory: &'a TargetMemory,
    /// What to add to addresses of the file.
    pub(super) bias: u64,
    pub(super) expected: Expected,
}

/// Filled step by step by the module of a family.
pub(super) struct Findings {
    pub(super) layout: Layout,
    pub(super) registry: Registry,
    pub(super) missing: Vec<(Capability, Reason)>,
    pub(super) not_yet: bool,
}

impl Blueprint {
    pub(super) fn bias(&self, file: &MappedFile) -> Option<u64> {
        file.ranges.iter().find_map(|range| self.data.bias(range.start, range.offset))
    }

    /// The address of a variable in the file.
    pub(super) fn symbol(&self, symbol: &str) -> Option<u64> {
        self.data.symbol(symbol).map(|symbol| symbol.address)
    }
}

impl Search {
    pub fn found(&self) -> &FoundLayout {
        let (Self::NotYet(found) | Self::Done(found)) = self;
        found
    }
}

impl Target<'_> {
    /// The address of a variable of the library in the process.
    pub(super) fn address(&self, symbol: &'static str) -> Result<u64, Reason> {
        let symbol = self.blueprint.data.symbol(symbol).ok_or(Reason::NoSymbol(symbol))?;
        Ok(symbol.address.wrapping_add(self.bias))
    }
}

impl Findings {
    /// Nothing but constants, as far as the caller has put any into `layout`.
    pub(super) fn of(layout: &Layout) -> Self {
        Self { layout: *layout, registry: Registry::None, missing: Vec::new(), not_yet: false }
    }

    pub(super) fn failed(reason: Reason) -> Self {
        Self { missing: vec![(Capability::Everything, reason)], ..Self::of(&Layout::default()) }
    }

    /// Notes that without communicators there is nothing that is read by way of them or checked with them.
    pub(super) fn rest_on_communicators(&mut self) {
        for capability in [Capability::Members, Capability::Requests] {
            self.missing.push((capability, Reason::RestsOn(Capability::Communicators)));
        }
    }

    /// Notes that a capability is there, or why not.
    pub(super) fn note(&mut self, capability: Capability, bits: u32, outcome: Result<(), Reason>) -> bool {
        match outcome {
            Ok(()) => self.layout.known |= bits,
            Err(reason) => self.missing.push((capability, reason)),
        }
        self.layout.knows(bits)
    }
}

/// The process's place in `MPI_COMM_WORLD`, as its launcher told it; `None` where that is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Expected {
    pub rank: Option<u32>,
    pub size: Option<u32>,
}

impl Expected {
    /// Whether a library's word for it may be true.
    pub(super) fn check(self, rank: u32, size: u32) -> Result<(), Reason> {
        let (told_rank, told_size) = (self.rank.unwrap_or(rank), self.size.unwrap_or(size));
        if may_be_place(rank, size, told_rank, told_size) {
            return Ok(());
        }
        Reason::unless("the rank in MPI_COMM_WORLD", told_rank, rank)?;
        Reason::unless("the size of MPI_COMM_WORLD", told_size, size)
    }
}

impl From<&RankInfo> for Expected {
    fn from(info: &RankInfo) -> Self {
        Self { rank: info.rank, size: info.size }
    }
}
