//! A rank of a job, looked at as mpiprobe does.

use std::sync::Mutex;

use mpiprobe_common::Layout;
use mpiprobe_discover::{
    ProcRoot, Process, RankInfo, SymbolRecogniser, mappings::MappedFile, mpi_process::Search as LibrarySearch,
    open_mapped, recognise::Cache,
};
use mpiprobe_layout::{Blueprint, Expected, Search, TargetMemory};
use mpiprobe_plan::{ElfFile, Library};

/// One look at a process.
pub(crate) struct Look {
    pub(crate) search: Search,
    pub(crate) memory: TargetMemory,
    blueprint: Blueprint,
    mapped: MappedFile,
}

impl Look {
    /// The layout that programs give the process before anybody has looked at it, by the library's file alone.
    pub(crate) fn by_file(&self) -> Option<Layout> {
        self.blueprint.foresee(&self.blueprint.template()?, &self.mapped, &self.memory)
    }

    /// That by what was found in another process.
    pub(crate) fn learned(&self, from: &Self) -> Option<Layout> {
        let template = from.blueprint.learn(&from.mapped, &from.search.found().layout)?;
        self.blueprint.foresee(&template, &self.mapped, &self.memory)
    }
}

/// Finds the MPI library of the process and looks for its layout.
pub(crate) fn look(pid: u32) -> Look {
    look_expecting(pid, |told| told)
}

/// Looks at a process with something else expected than what the launcher told.
pub(crate) fn look_expecting(pid: u32, change: fn(Expected) -> Expected) -> Look {
    let process = Process::open(&ProcRoot::system().unwrap(), pid).unwrap();
    let cache = Mutex::new(Cache::new(SymbolRecogniser));
    let libraries = LibrarySearch::of(&process, &cache).unwrap().libraries;
    let mapped = &libraries.first().unwrap_or_else(|| panic!("process {pid} has no MPI library")).file;
    let file = open_mapped(&process, mapped).unwrap();
    let blueprint = Blueprint::of(&Library::read(&ElfFile::new(&file).unwrap()).unwrap());
    let memory = TargetMemory::open(&process).unwrap();
    let expected = Expected::from(&RankInfo::from_environment(&process.environment().unwrap(), true));
    assert!(expected.rank.is_some() && expected.size.is_some(), "the launcher tells rank and size");
    let search = blueprint.find(mapped, &memory, change(expected)).unwrap();
    Look { search, memory, blueprint, mapped: mapped.clone() }
}
