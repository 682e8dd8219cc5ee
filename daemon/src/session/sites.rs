//! Where in their source the observed processes call MPI.

use std::{collections::HashMap, fmt};

use crate::{
    callsites::{AddressMap, Modules, Symboliser},
    discover::{Process, printable},
};

/// Tables of code of all processes, taken while they live, and the names found so far.
#[derive(Default)]
pub(super) struct Sites {
    modules: Modules,
    maps: HashMap<u32, AddressMap>,
    symboliser: Symboliser,
}

impl fmt::Debug for Sites {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sites").field("maps", &self.maps.len()).finish_non_exhaustive()
    }
}

impl Sites {
    /// Notes what a process has mapped. Of one that has ended meanwhile, addresses stay numbers.
    pub(super) fn add(&mut self, slot: u32, process: &Process) {
        if let Ok(map) = AddressMap::of(process, &mut self.modules) {
            self.maps.insert(slot, map);
        }
    }

    /// Lets go of the files of a process that has ended.
    pub(super) fn forget(&mut self, slot: u32) {
        self.maps.remove(&slot);
    }

    /// A return address as a place in the source, or as near to that as the files allow; `None` of a process that nothing is
    /// known of. `process` is asked for what it has mapped since, if it lives.
    pub(super) fn name(&mut self, slot: u32, address: u64, process: Option<&Process>) -> Option<String> {
        let map = self.maps.get_mut(&slot)?;
        let at = map.locate(address, process, &mut self.modules);
        // Names come from files of other users.
        Some(printable(self.symboliser.resolve(&at).text.as_bytes()))
    }
}
