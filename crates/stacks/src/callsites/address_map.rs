//! Where a process has code: copied while it lives, used also when it has ended.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use mpiprobe_discover::{
    Process, ProcessError, Root,
    mappings::{Mappings, TextRange},
};

use super::{
    module::{Module, ModuleAddress},
    modules::Modules,
};

#[derive(Debug, Clone)]
struct Region {
    range: TextRange,
    module: Arc<Module>,
}

impl Region {
    fn contains(&self, address: u64) -> bool {
        (self.range.start..self.range.end).contains(&address)
    }

    fn locate(&self, address: u64) -> ModuleAddress {
        let within = address.saturating_sub(self.range.start);
        let in_file = self.range.offset.saturating_add(within);
        ModuleAddress { module: Arc::clone(&self.module), offset: self.module.offset_of(in_file) }
    }
}

/// Code of a process that has layers in it.
#[derive(Debug, Clone)]
pub struct LayerRegion {
    pub range: Range<u64>,
    /// What addresses in the process are higher by than [`ModuleAddress::offset`].
    pub bias: u64,
    pub module: Arc<Module>,
}

/// The code of one process image, by address. A new program (exec) needs a new map.
#[derive(Debug, Default)]
pub struct AddressMap {
    /// What was mapped at the last look, in ascending order.
    regions: Vec<Region>,
    /// What had been mapped before and is no longer: a library that was closed again.
    former: Vec<Region>,
    /// The list that `regions` are from.
    mappings: Mappings,
    /// Addresses that were in nothing mapped, for which another look was taken already.
    missed: HashSet<u64>,
}

impl AddressMap {
    /// Executable ranges that are kept. The largest programs have some thousand.
    pub const MAX_REGIONS: usize = 16 << 10;
    /// Ranges that are kept after they were unmapped; the oldest are forgotten.
    const MAX_FORMER: usize = 1 << 10;
    /// Addresses for which the mappings are read again if nothing is known to be there.
    pub const MAX_REREADS: usize = 64;

    /// Copies the table of a living process, and opens its files.
    pub fn of(process: &Process, modules: &mut Modules) -> Result<Self, ProcessError> {
        let mut map = Self::default();
        map.refresh(process, modules)?;
        Ok(map)
    }

    /// Of a process that has ended, from the list of its mappings that somebody has kept. Files are taken for the same if nobody has
    /// written to them since `began`, ns since 1970: of others addresses are known by module and offset.
    pub fn noted(list: &[u8], began: u64, modules: &mut Modules) -> Self {
        let mut map = Self::default();
        for mapped in Mappings::parse(list, false).files.iter().take(Self::MAX_REGIONS) {
            let module = modules.named(mapped, began);
            map.regions.extend(mapped.ranges.iter().map(|range| Region { range: *range, module: Arc::clone(&module) }));
        }
        map.regions.sort_by_key(|region| region.range.start);
        map
    }

    /// Looks again: libraries may have been opened or closed since.
    pub fn refresh(&mut self, process: &Process, modules: &mut Modules) -> Result<(), ProcessError> {
        self.missed.clear();
        self.read(process, modules)
    }

    fn read(&mut self, process: &Process, modules: &mut Modules) -> Result<(), ProcessError> {
        let mappings = Mappings::of(process)?;
        // Opening files takes much longer than reading the list again.
        if mappings == self.mappings {
            return Ok(());
        }
        let root = Root::of(process).ok().flatten().map(Arc::new);
        let mut regions = Vec::new();
        for mapped in mappings.files.iter().take(Self::MAX_REGIONS) {
            let module = modules.file(process, mapped, root.as_ref());
            regions.extend(mapped.ranges.iter().map(|range| Region { range: *range, module: Arc::clone(&module) }));
        }
        for memory in mappings.memory.iter().take(Self::MAX_REGIONS) {
            // The offset counts from the start of the range, whatever the kernel prints there.
            let range = TextRange { offset: 0, ..memory.range };
            regions.push(Region { range, module: modules.memory(&memory.display_name()) });
        }
        regions.sort_by_key(|region| region.range.start);
        regions.truncate(Self::MAX_REGIONS);
        // A process on its way out has no mappings any more.
        if regions.is_empty() {
            return Ok(());
        }
        self.mappings = mappings;
        let gone = std::mem::replace(&mut self.regions, regions);
        let gone = gone.into_iter().filter(|old| {
            let now = self.region_at(old.range.start);
            now.is_none_or(|now| now.module.id() != old.module.id())
        });
        let gone: Vec<_> = gone.collect();
        self.former.extend(gone);
        let excess = self.former.len().saturating_sub(Self::MAX_FORMER);
        self.former.drain(..excess);
        Ok(())
    }

    /// What the return address of a call belongs to.
    ///
    /// If it is in nothing known, and the process is given and lives, its mappings are read once more, for at most
    /// [`Self::MAX_REREADS`] such addresses until the next [`Self::refresh`]. What is nowhere has the module `[unmapped]` and keeps its absolute address.
    pub fn locate(&mut self, return_address: u64, process: Option<&Process>, modules: &mut Modules) -> ModuleAddress {
        // The call may be the last instruction of its mapping.
        let call = return_address.wrapping_sub(1);
        if let Some(process) = process
            && self.known(call).is_none()
            && self.missed.len() < Self::MAX_REREADS
            && self.missed.insert(call)
        {
            // An ended process leaves the table as it is.
            let _ = self.read(process, modules);
        }
        match self.known(call) {
            Some(region) => {
                let call = region.locate(call);
                ModuleAddress { offset: call.offset.wrapping_add(1), ..call }
            }
            None => ModuleAddress { module: modules.memory("[unmapped]"), offset: return_address },
        }
    }

    /// The files and memory with code at the last look, each once.
    pub fn modules(&self) -> impl Iterator<Item = &Arc<Module>> {
        let mut seen = HashSet::new();
        self.regions.iter().map(|region| &region.module).filter(move |module| seen.insert(Arc::as_ptr(module)))
    }

    /// What addresses of a file in the process are higher by than those of the file, as of the last look.
    pub fn bias_of(&self, module: &Arc<Module>) -> Option<u64> {
        let region = self.regions.iter().find(|region| Arc::ptr_eq(&region.module, module))?;
        Some(region.range.start.wrapping_sub(region.locate(region.range.start).offset))
    }

    /// The code that language layers are in, as of the last look.
    pub fn layers(&self) -> impl Iterator<Item = LayerRegion> {
        self.regions.iter().filter_map(|region| {
            let extent = region.module.layer_code()?.extent();
            let start = region.locate(region.range.start).offset;
            let bias = region.range.start.wrapping_sub(start);
            let end = start.checked_add(region.range.end.checked_sub(region.range.start)?)?;
            let within = extent.start.max(start)..extent.end.min(end);
            let range = within.start.wrapping_add(bias)..within.end.wrapping_add(bias);
            (within.start < within.end).then(|| LayerRegion { range, bias, module: Arc::clone(&region.module) })
        })
    }

    fn known(&self, address: u64) -> Option<&Region> {
        self.region_at(address).or_else(|| self.former.iter().rev().find(|region| region.contains(address)))
    }

    fn region_at(&self, address: u64) -> Option<&Region> {
        let after = self.regions.partition_point(|region| region.range.start <= address);
        self.regions.get(after.checked_sub(1)?).filter(|region| region.contains(address))
    }
}
