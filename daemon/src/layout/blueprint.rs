//! From a library's file, and a process that has mapped it, to the layout.

use mpiprobe_common::Layout;
use mpiprobe_common::layout::{Memory, Template, capability};

use super::{
    Capability, Expected, Missing, Reason, Registry, TargetMemory, Version, mpich, openmpi, standard_abi, template,
};
use crate::discover::mappings::MappedFile;
use crate::plan::{Data, Family, Implementation, Library};

/// What a library's file tells about the memory of processes that map it.
#[derive(Debug, Clone)]
pub struct Blueprint {
    family: Family,
    /// Name and version, for messages.
    name: String,
    pub(super) is_intel: bool,
    pub(super) version: Option<Version>,
    pub(super) data: Data,
}

/// The outcome of a look into a process.
#[derive(Debug, Clone)]
pub enum Search {
    /// The library is not initialised: its objects are not there yet. What does not depend on them is found. With communicators,
    /// it may be a program that has begun a session and never makes the predefined ones.
    NotYet(Found),
    Done(Found),
}

/// What was found out about a process.
#[derive(Debug, Clone)]
pub struct Found {
    pub layout: Layout,
    /// Where the process's communicators are listed.
    pub registry: Registry,
    /// Capabilities that are off, with reasons.
    pub missing: Vec<Missing>,
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
    pub fn of(library: &Library<'_>) -> Self {
        let implementation = Implementation::of(library);
        let (names, functions): (&[&'static str], &[&'static str]) = match implementation.family {
            Family::OpenMpi => (openmpi::NAMES, &[]),
            Family::Mpich | Family::StandardAbi => (mpich::NAMES, mpich::FUNCTIONS),
            Family::Unknown => (&[], &[]),
        };
        Self {
            family: implementation.family,
            name: implementation.to_string(),
            is_intel: implementation.name.starts_with("Intel"),
            version: implementation.version.as_deref().and_then(Version::parse),
            data: Data::of(library, names, functions),
        }
    }

    /// Looks into a process that has mapped the library as `file`.
    pub fn find(&self, file: &MappedFile, memory: &TargetMemory, expected: Expected) -> Search {
        let bias = self.bias(file);
        let found = match bias {
            None => Findings::failed(Reason::Unplaced),
            Some(bias) => {
                let target = Target { blueprint: self, memory, bias, expected };
                match self.family {
                    Family::OpenMpi => openmpi::find(&target),
                    Family::Mpich => mpich::find(&target),
                    Family::StandardAbi => standard_abi::find(&target),
                    Family::Unknown => Findings::failed(Reason::UnknownImplementation),
                }
            }
        };
        let missing = |(capability, reason)| Missing { capability, library: self.name.clone(), reason };
        let not_yet = found.not_yet;
        let found = Found {
            layout: found.layout,
            registry: found.registry,
            missing: found.missing.into_iter().map(missing).collect(),
        };
        if not_yet { Search::NotYet(found) } else { Search::Done(found) }
    }
}

impl Blueprint {
    /// What the file alone tells of the layout that processes will have; `None` if that is not enough.
    pub fn template(&self) -> Option<Template> {
        match self.family {
            Family::OpenMpi => openmpi::template(self, None),
            Family::Mpich => mpich::template(self),
            Family::StandardAbi | Family::Unknown => None,
        }
    }

    /// What is known of all processes that map the library, since one has been looked at, which had mapped it as `file`: it has the
    /// layout `found`, all of it checked.
    pub fn learn(&self, file: &MappedFile, found: &Layout) -> Option<Template> {
        const ALL: u32 =
            capability::CONSTANTS | capability::DATATYPES | capability::COMMUNICATORS | capability::MEMBERS;
        let bias = self.bias(file).filter(|_| found.knows(ALL))?;
        match self.family {
            Family::OpenMpi => openmpi::template(self, Some(found)),
            Family::Mpich | Family::StandardAbi => mpich::learn(self, found, bias),
            Family::Unknown => None,
        }
    }

    /// The layout that programs give a process that has mapped the library as `file`, by what is known of others.
    pub fn foresee(&self, template: &Template, file: &MappedFile, memory: &impl Memory) -> Option<Layout> {
        template::apply(template, self.bias(file)?, memory)
    }

    fn bias(&self, file: &MappedFile) -> Option<u64> {
        file.ranges.iter().find_map(|range| self.data.bias(range.start, range.offset))
    }

    /// The address of a variable in the file.
    pub(super) fn symbol(&self, symbol: &str) -> Option<u64> {
        self.data.symbol(symbol).map(|symbol| symbol.address)
    }
}

impl Search {
    pub fn found(&self) -> &Found {
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

    fn failed(reason: Reason) -> Self {
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
