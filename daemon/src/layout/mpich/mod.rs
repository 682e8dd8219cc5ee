//! MPICH and Intel MPI: handles are 32-bit numbers, objects are in tables that the library does not export.
//!
//! The tables are found by what describes them: for each type of object the library has a variable with the number of the type,
//! the size of an object and the address of its table, which the linker has filled in (src/include/mpir_objects.h,
//! `MPIR_Object_alloc_t`).

mod allocator;
mod builtin;
mod check;
mod constants;
mod offsets;
mod scan;

use mpiprobe_common::Layout;
use mpiprobe_common::layout::{Memory, capability, handle_kind};

use super::blueprint::{Findings, Target};
use super::version::nearest_first;
use super::{Capability, Reason, Registry, TargetMemory};
use allocator::{Allocator, Kind};
use offsets::{INTEL, MPICH, Offsets};

const UNWEIGHTED: &str = "MPI_UNWEIGHTED";
const WEIGHTS_EMPTY: &str = "MPI_WEIGHTS_EMPTY";
const COMM_BUILTIN: &str = "MPIR_Comm_builtin";

/// Variables of the library that are looked up. All but the first two are hidden, and seen only if the file is not stripped.
pub(super) const NAMES: &[&str] =
    &[UNWEIGHTED, WEIGHTS_EMPTY, COMM_BUILTIN, allocator::COMMUNICATORS, allocator::DATATYPES, allocator::REQUESTS];

pub(super) fn find(target: &Target<'_>) -> Findings {
    let mut layout = Layout { handles: handle_kind::INTEGER, ..Layout::default() };
    constants::fill(&mut layout, target);
    layout.known = capability::CONSTANTS | capability::BUILTIN_SIZES;
    find_objects(target, &layout)
}

/// The part that does not depend on what handles are.
pub(super) fn find_objects(target: &Target<'_>, layout: &Layout) -> Findings {
    let mut found = Findings::of(layout);
    found.registry = Registry::Mpich;
    let tables = if target.blueprint.is_intel { INTEL } else { MPICH };
    let tables = nearest_first(tables, target.blueprint.version, |table| table.verified);

    let datatypes = Allocator::find(target, Kind::Datatype).and_then(|allocator| {
        let layout = &mut found.layout;
        layout.datatypes = offsets::datatypes(allocator.objects());
        check::datatypes(layout, target, &allocator)
    });
    match datatypes {
        Ok(true) => found.layout.known |= capability::DATATYPES,
        Ok(false) => found.not_yet = true,
        Err(reason) => found.missing.push((Capability::Datatypes, reason)),
    }
    let builtin = Allocator::find(target, Kind::Communicator).map(|allocator| {
        found.layout.communicators.objects = allocator.objects();
        builtin::find(target, &allocator)
    });
    let communicators = match builtin {
        Ok(None) => {
            found.not_yet = true;
            return found;
        }
        Ok(Some(builtin)) => {
            found.layout.communicators.objects.builtin = builtin;
            fit(&mut found.layout, &tables, target)
        }
        Err(reason) => Err(reason),
    };
    if communicators == Ok(false) {
        found.not_yet = true;
        return found;
    }
    if found.note(Capability::Communicators, capability::COMMUNICATORS, communicators.map(drop)) {
        let members = check::members(&found.layout, target);
        found.note(Capability::Members, capability::MEMBERS, members);
    } else {
        found.missing.push((Capability::Members, Reason::RestsOn(Capability::Communicators)));
    }
    let requests = Allocator::find(target, Kind::Request).map(|allocator| {
        found.layout.requests.objects = allocator.objects();
    });
    let requests = requests.and_then(|()| check::requests(&found.layout));
    found.note(Capability::Requests, capability::REQUESTS, requests);
    found
}

/// Leaves in `layout` the first table that passes. `Ok(false)`: the library is not initialised. The error is that of the table
/// that is closest to the library's version.
fn fit(layout: &mut Layout, tables: &[&'static Offsets], target: &Target<'_>) -> Result<bool, Reason> {
    let mut first = None;
    for table in tables {
        table.fill(layout);
        match check::communicators(layout, target) {
            Ok(is_set) => return Ok(is_set),
            Err(reason) => first.get_or_insert(reason),
        };
    }
    Err(first.unwrap_or(Reason::UnknownImplementation))
}

/// Handles of all communicators in the tables that the program can have a handle of.
pub(super) fn handles(layout: &Layout, memory: &TargetMemory) -> Vec<u64> {
    let objects = &layout.communicators.objects;
    let mut found = vec![layout.constants.comm_world, layout.constants.comm_self];
    for object in allocator::live_objects(objects, memory) {
        let context = layout.communicators.context.read(object, memory);
        if !context.is_some_and(offsets::is_of_program) {
            continue;
        }
        match layout.handles {
            handle_kind::INTEGER => found.extend(memory.word(object).map(|header| header & 0xffff_ffff)),
            _ => found.push(object),
        }
    }
    found
}
