//! Datatypes, requests and windows of open calls of processes that count themselves. Their tables say nothing of them: how the library
//! lays out its objects is found when such a call is open, which is after MPI has been initialised.

use std::collections::HashMap;

use mpiprobe_discover::{Process, mappings::FileId};
use mpiprobe_layout::{Blueprint, Expected, FoundLayout, TargetMemory};
use mpiprobe_observe::ProcessSnapshot;

use super::image::Image;
use crate::{blueprints::blueprint, operands, session::datatypes};

/// What has been found out about libraries, and about processes by slot.
#[derive(Debug, Default)]
pub(super) struct Datatypes {
    blueprints: HashMap<FileId, Option<Blueprint>>,
    /// `None`: it cannot be known, perhaps because the user may not read the process's memory.
    layouts: HashMap<u32, Option<FoundLayout>>,
}

impl Datatypes {
    /// Adds them to what the tables of an image say.
    pub(super) fn complete(&mut self, slot: u32, image: &Image, now_ns: u64, tables: &mut ProcessSnapshot) {
        let Some(process) = image.process() else { return };
        let handles = datatypes::of_open_calls(tables);
        let calls = operands::of_tables(tables, now_ns);
        if handles.is_empty() && calls.is_empty() {
            return;
        }
        let Self { blueprints, layouts } = self;
        let layout = layouts.entry(slot).or_insert_with(|| find(blueprints, image, process));
        let Some(FoundLayout { layout, registry, .. }) = layout else { return };
        if !handles.is_empty() {
            tables.datatypes = datatypes::read(handles, layout, process);
        }
        if !calls.is_empty()
            && let Ok(memory) = TargetMemory::open(process)
        {
            operands::add(tables, &calls, (layout, *registry), &memory);
        }
    }
}

fn find(blueprints: &mut HashMap<FileId, Option<Blueprint>>, image: &Image, process: &Process) -> Option<FoundLayout> {
    let file = image.library_file()?;
    let blueprint = blueprints.entry(file.id).or_insert_with(|| blueprint(process, file)).as_ref()?;
    let memory = TargetMemory::open(process).ok()?;
    Some(blueprint.find(file, &memory, Expected::default())?.found().clone())
}
