//! From a library's file, and a process that has mapped it, to the layout.

use mpiprobe_common::{
    Layout,
    layout::{MPICH, Memory, STANDARD_ABI, Template, capability},
};
use mpiprobe_discover::mappings::MappedFile;
use mpiprobe_plan::{Data, Family, Implementation, Library};

use super::{
    Blueprint, Expected, Missing, Reason, TargetMemory, Version,
    blueprint::{Findings, FoundLayout, Search, Target},
    mpich, openmpi, standard_abi, template,
};

impl Blueprint {
    pub fn of(library: &Library<'_>) -> Self {
        let implementation = Implementation::of(library);
        let (names, functions): (&[&'static str], &[&'static str]) = match implementation.family {
            Family::OpenMpi => (openmpi::NAMES, &[]),
            Family::Mpich => (mpich::NAMES, mpich::FUNCTIONS),
            Family::StandardAbi => (mpich::NAMES, mpich::FUNCTIONS_OF_ABI),
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

    /// Looks into a process that has mapped the library as `file`. `None`: it has ended meanwhile, or executes something else; what was
    /// not found says nothing then.
    pub fn find(&self, file: &MappedFile, memory: &TargetMemory, expected: Expected) -> Option<Search> {
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
        let found = FoundLayout {
            layout: found.layout,
            registry: found.registry,
            missing: found.missing.into_iter().map(missing).collect(),
        };
        let search = if not_yet { Search::NotYet(found) } else { Search::Done(found) };
        memory.is_there().then_some(search)
    }

    /// What the file alone tells of the layout that processes will have; `None` if that is not enough.
    pub fn template(&self) -> Option<Template> {
        match self.family {
            Family::OpenMpi => openmpi::template(self, None),
            Family::Mpich => mpich::template(self, &MPICH),
            Family::StandardAbi => mpich::template(self, &STANDARD_ABI),
            Family::Unknown => None,
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
}
