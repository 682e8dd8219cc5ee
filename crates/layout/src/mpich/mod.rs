//! MPICH and Intel MPI: handles are 32-bit numbers, objects are in tables that the library does not export.
//!
//! The tables are found by what describes them: for each type of object the library has a variable with the number of the type,
//! the size of an object and the address of its table, which the linker has filled in (src/include/mpir_objects.h,
//! `MPIR_Object_alloc_t`).

mod allocator;
mod check;
mod constants;
mod offsets;
mod operations;
mod predefined;
mod scan;
mod template;

use allocator::{Allocator, ObjectKind};
use mpiprobe_common::{
    Layout,
    layout::{Memory, Objects, capability, handle_kind},
};
use offsets::{INTEL, MPICH, Offsets};

use super::{
    Capability, Reason, Registry, TargetMemory,
    blueprint::{Findings, Target},
    version::nearest_first,
};
pub(super) use operations::{request, window};
pub(super) use template::{FUNCTIONS, FUNCTIONS_OF_ABI, learn, template};

/// What the requests are for that Intel MPI makes before all others and keeps, complete: sends, receives, collective operations and
/// accesses to windows (`MPIR_Request_kind_t`).
const INTEL_COMPLETE: [u32; 4] = [1, 2, 11, 13];
/// Offset of that in a request, and of the address of its counter, which follows there, bytes.
const INTEL_KIND: u64 = 8;
const INTEL_COUNTER: u64 = 16;

const UNWEIGHTED: &str = "MPI_UNWEIGHTED";
const WEIGHTS_EMPTY: &str = "MPI_WEIGHTS_EMPTY";

/// Variables of the library that are looked up. All but the first two are hidden, and seen only if the file is not stripped.
pub(super) const NAMES: &[&str] = &[
    UNWEIGHTED,
    WEIGHTS_EMPTY,
    allocator::COMMUNICATORS,
    allocator::DATATYPES,
    allocator::WINDOWS,
    allocator::REQUESTS,
    predefined::COMMUNICATORS.symbols[0],
    predefined::PAIRS.symbols[0],
    predefined::REQUESTS.symbols[0],
    predefined::REQUESTS.symbols[1],
];

pub(super) fn find(target: &Target<'_>) -> Findings {
    let mut layout = Layout { handles: handle_kind::INTEGER, ..Layout::default() };
    constants::fill(&mut layout, target);
    layout.known = capability::CONSTANTS | capability::BUILTIN_SIZES;
    find_objects(target, &layout)
}

/// The part that does not depend on what handles are.
pub(super) fn find_objects(target: &Target<'_>, layout: &Layout) -> Findings {
    let mut found = Findings::of(layout);
    let windows = Allocator::find(target, ObjectKind::Window, None).map(|allocator| allocator.objects());
    found.registry = Registry::Mpich { windows: windows.unwrap_or_default() };
    let tables = if target.blueprint.is_intel { INTEL } else { MPICH };
    let mut tables = nearest_first(tables, target.blueprint.version, |table| table.verified);

    match predefined::PAIRS.find(target) {
        None => found.not_yet = true,
        Some(pairs) => {
            let datatypes = Allocator::find(target, ObjectKind::Datatype, Some(pairs.stride)).and_then(|allocator| {
                found.layout.datatypes = offsets::datatypes(allocator.with_pairs(pairs).objects());
                check::datatypes(&found.layout, target)
            });
            found.note(Capability::Datatypes, capability::DATATYPES, datatypes);
        }
    }
    let Some(world) = predefined::COMMUNICATORS.find(target) else {
        if !found.not_yet {
            find_in_session(&mut found, &tables, target);
        }
        found.not_yet = true;
        return found;
    };
    tables.sort_by_key(|table| table.stride != world.stride);
    let communicators = Allocator::find(target, ObjectKind::Communicator, Some(world.stride)).and_then(|allocator| {
        found.layout.communicators.objects = Objects { builtin: world.start, ..allocator.objects() };
        fit(&mut found.layout, &tables, target)
    });
    if communicators == Ok(false) {
        find_in_session(&mut found, &tables, target);
        found.not_yet = true;
        return found;
    }
    if found.note(Capability::Communicators, capability::COMMUNICATORS, communicators.map(drop)) {
        let members = check::members(&found.layout, target);
        found.note(Capability::Members, capability::MEMBERS, members);
        let requests = requests(&mut found.layout, target);
        if !found.note(Capability::Requests, capability::REQUESTS, requests) {
            // They are made after the communicators.
            found.not_yet = true;
        }
    } else {
        // The same table says where they are, and it is wrong.
        found.rest_on_communicators();
    }
    found
}

/// A program that has begun a session instead of calling `MPI_Init` never has predefined communicators: what is found is checked
/// on those that it has made. It may also be that `MPI_Init` is at work, and those are the library's.
fn find_in_session(found: &mut Findings, tables: &[&'static Offsets], target: &Target<'_>) {
    for table in tables {
        let mut layout = found.layout;
        let Ok(allocator) = Allocator::find(target, ObjectKind::Communicator, Some(table.stride)) else { continue };
        layout.communicators.objects = allocator.objects();
        table.fill(&mut layout);
        (layout.communicators.world, layout.communicators.own) = (0, 0);
        if check::communicators_of_session(&layout, target) {
            found.layout = layout;
            found.layout.known |= capability::COMMUNICATORS | capability::MEMBERS;
            let requests = requests(&mut found.layout, target);
            found.note(Capability::Requests, capability::REQUESTS, requests);
            return;
        }
    }
}

fn requests(layout: &mut Layout, target: &Target<'_>) -> Result<(), Reason> {
    let allocator = Allocator::find(target, ObjectKind::Request, None)?;
    layout.requests.objects = allocator.objects();
    // Elsewhere their numbers are the same in all processes.
    if target.blueprint.is_intel || layout.handles != handle_kind::INTEGER {
        let (first, last) = complete_requests(layout, target).ok_or(Reason::NoTable("complete requests"))?;
        layout.constants.request_complete_first = first;
        layout.constants.request_complete_last = last;
    }
    Ok(())
}

/// Handles of requests that are complete from the start, where they differ from MPICH's numbers.
fn complete_requests(layout: &Layout, target: &Target<'_>) -> Option<(u64, u64)> {
    let objects = &layout.requests.objects;
    if target.blueprint.is_intel {
        let is_one = |(index, kind): &(u64, u32)| {
            let object = objects.direct.wrapping_add(index * u64::from(objects.stride));
            let word = |offset: u64| target.memory.word(object.wrapping_add(offset));
            // Somebody refers to it, and nothing is left to be done: the counter of that is its own.
            word(0).is_some_and(|header| header >> 32 != 0)
                && word(INTEL_KIND).is_some_and(|it| it & 0xffff_ffff == u64::from(*kind))
                && word(INTEL_COUNTER) == Some(object.wrapping_add(INTEL_COUNTER + 8))
        };
        let last = (0..).zip(INTEL_COMPLETE).take_while(is_one).count().checked_sub(1)? as u64;
        return match layout.handles {
            handle_kind::INTEGER => {
                let first = target.memory.word(objects.direct)? & 0xffff_ffff;
                Some((first, first + last))
            }
            _ => Some((objects.direct, objects.direct.saturating_add(last * u64::from(objects.stride)))),
        };
    }
    // Handles are addresses of objects in the table of predefined ones.
    let table = predefined::REQUESTS.find(target).filter(|table| table.stride == objects.stride)?;
    let length = u64::from(predefined::REQUESTS.length(target, &table) - 1) * u64::from(table.stride);
    Some((table.start, table.start.saturating_add(length)))
}

/// Leaves in `layout` the first table that passes. `Ok(false)`: the library is not initialised. If none passes, the outcome is
/// that of the table that is most likely right.
fn fit(layout: &mut Layout, tables: &[&'static Offsets], target: &Target<'_>) -> Result<bool, Reason> {
    let mut outcomes = tables.iter().map(|table| {
        table.fill(layout);
        check::communicators(layout, target)
    });
    let first = outcomes.next().unwrap_or(Err(Reason::UnknownImplementation));
    if first == Ok(true) || outcomes.any(|outcome| outcome == Ok(true)) { Ok(true) } else { first }
}

/// Handles of all communicators in the tables that the program can have a handle of.
pub(super) fn handles(layout: &Layout, memory: &TargetMemory) -> Vec<u64> {
    let mut found = vec![layout.constants.comm_world, layout.constants.comm_self];
    found.extend(handles_made(layout, memory));
    found
}

/// Without the predefined ones.
fn handles_made(layout: &Layout, memory: &TargetMemory) -> Vec<u64> {
    let mut found = Vec::new();
    for object in allocator::live_objects(&layout.communicators.objects, memory) {
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
