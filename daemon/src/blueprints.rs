//! How an MPI library lays out its objects, as far as its file tells.

use std::fs::File;

use mpiprobe_discover::{ForeignFile, Process, mappings::MappedFile, open_mapped};
use mpiprobe_layout::Blueprint;
use mpiprobe_plan::{ElfFile, Library};

/// `None` if the file cannot be read; that it has no probes then is told elsewhere.
pub(crate) fn blueprint(process: &Process, file: &MappedFile) -> Option<Blueprint> {
    read(&open_mapped(process, file).ok()?)
}

/// The same of an open file.
pub(crate) fn blueprint_of(file: &File) -> Option<Blueprint> {
    read(&file.try_clone().ok()?.into())
}

fn read(file: &ForeignFile) -> Option<Blueprint> {
    let file = ElfFile::new(file).ok()?;
    let blueprint = Blueprint::of(&Library::read(&file).ok()?);
    file.was_readable().ok()?;
    Some(blueprint)
}
