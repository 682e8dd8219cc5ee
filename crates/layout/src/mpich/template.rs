//! What MPICH's file tells of the processes that will map it. The objects are named nowhere if the file is stripped, but functions that
//! look them up refer to their tables: what is there in a process says itself what it is.

use std::collections::BTreeSet;

use mpiprobe_common::{
    Layout,
    layout::{
        Interface, Objects, Template, capability, handle_kind,
        template::{SEARCHED, Search, complete},
    },
};

use super::{
    super::{
        blueprint::Blueprint,
        template::{self as place, Draft, WordLocation},
    },
    INTEL_COMPLETE, UNWEIGHTED, WEIGHTS_EMPTY,
    allocator::Form,
    offsets::{self, INTEL, MPICH as TABLES},
    predefined,
};

/// They look communicators and datatypes up by the handle.
pub(in super::super) const FUNCTIONS: &[&str] = &["PMPI_Comm_rank", "PMPI_Type_size", "PMPI_Type_get_name"];
/// And requests, of which handles that are addresses do not tell whether they are complete from the start.
pub(in super::super) const FUNCTIONS_OF_ABI: &[&str] =
    &["PMPI_Comm_rank", "PMPI_Type_size", "PMPI_Type_get_name", "PMPI_Request_free"];

/// The requests that Intel MPI makes before all others and keeps.
const INTEL_FIRST_COMPLETE: u64 = 0xac00_0000;
const INTEL_LAST_COMPLETE: u64 = INTEL_FIRST_COMPLETE + INTEL_COMPLETE.len() as u64 - 1;

/// By the table that was verified for the release's series. A library that does not tell its version says what it is by the size of
/// a communicator, which its code multiplies the number in a handle by.
pub(in super::super) fn template(blueprint: &Blueprint, interface: &Interface) -> Option<Template> {
    let tables = if blueprint.is_intel { INTEL } else { TABLES };
    let table = if let Some(version) = blueprint.version {
        tables.iter().find(|table| table.verified.0 == version.0)?
    } else {
        let mut fitting = tables.iter().filter(|table| blueprint.data.factors.contains(&table.stride.into()));
        fitting.next().filter(|_| fitting.next().is_none())?
    };
    let early = capability::CONSTANTS | capability::BUILTIN_SIZES;
    let mut layout = Layout {
        known: early | capability::DATATYPES | capability::COMMUNICATORS | capability::MEMBERS,
        handles: interface.handles,
        constants: interface.constants,
        status: interface.status,
        datatypes: offsets::datatypes(Objects::default()),
        ..Layout::default()
    };
    table.fill(&mut layout);
    let mut draft = Draft::new(&layout, blueprint.data.code()?);
    let is_numbered = interface.handles == handle_kind::INTEGER;
    if is_numbered && blueprint.is_intel {
        draft.given(&place::COMPLETE_FIRST, INTEL_FIRST_COMPLETE);
        draft.given(&place::COMPLETE_LAST, INTEL_LAST_COMPLETE);
    }
    if is_numbered {
        set_weights(&mut draft, blueprint);
    }
    let complete = match (is_numbered, blueprint.is_intel) {
        (true, _) => complete::GIVEN,
        (false, true) => complete::FIRST,
        (false, false) => complete::PREDEFINED,
    };
    let form = Form::of(blueprint.is_intel, table.verified.0);
    let offset = |offset: usize| u32::try_from(offset).ok();
    let mut search = Search {
        stride: table.stride,
        first: predefined::COMMUNICATORS.first,
        kind: offset(form.kind)?,
        stride_at: offset(form.stride)?,
        direct: offset(form.direct)?,
        direct_count: offset(form.direct_count)?,
        indirect: u32::try_from(super::allocator::INDIRECT).ok()?,
        complete,
        request_block_mask: form.request_block_mask,
        request_foreign_mask: form.request_foreign_mask,
        ..Search::default()
    };
    let references = blueprint.data.references.iter().copied();
    // Code beside them refers to little else; what is too much was decoded out of step. In a program that has MPI linked in, code refers to
    // parts of them, but they are named.
    let symbols = [predefined::COMMUNICATORS, predefined::PAIRS, predefined::REQUESTS].map(|table| table.symbols);
    let symbols = symbols.into_iter().flatten().chain([
        super::allocator::COMMUNICATORS,
        super::allocator::DATATYPES,
        super::allocator::REQUESTS,
    ]);
    let named: BTreeSet<u64> = symbols.filter_map(|symbol| blueprint.symbol(symbol)).collect();
    let references = references.filter(|address| !named.contains(address));
    for (to, from) in search.places.iter_mut().zip(named.iter().copied().chain(references)) {
        *to = from;
        search.count += 1;
    }
    debug_assert!(search.places.len() == SEARCHED);
    (search.count > 0).then(|| draft.finish(early, search))
}

/// By a layout that was checked in a process, where the file's addresses are higher by `bias`.
pub(in super::super) fn learn(blueprint: &Blueprint, checked: &Layout, bias: u64) -> Option<Template> {
    let mut draft = Draft::new(checked, blueprint.data.code()?);
    let mut all: Vec<&WordLocation> = vec![
        &place::WORLD,
        &place::OWN,
        &place::COMMUNICATORS_BUILTIN,
        &place::COMMUNICATORS_DIRECT,
        &place::COMMUNICATORS_INDIRECT,
        &place::DATATYPES_BUILTIN,
        &place::DATATYPES_DIRECT,
        &place::DATATYPES_INDIRECT,
        &place::REQUESTS_BUILTIN,
        &place::REQUESTS_DIRECT,
        &place::REQUESTS_INDIRECT,
    ];
    if checked.handles != handle_kind::INTEGER && checked.constants.request_complete_first != u64::MAX {
        all.extend([&place::COMPLETE_FIRST, &place::COMPLETE_LAST]);
    }
    for place in all {
        let value = draft.value(place);
        if value == 0 {
            continue;
        }
        let address = value.wrapping_sub(bias);
        // All of them are variables of the library. What is not would be somewhere else in the next process.
        if !blueprint.data.writable.iter().any(|range| range.contains(&address)) {
            return None;
        }
        draft.address(place, address);
    }
    if checked.handles == handle_kind::INTEGER {
        set_weights(&mut draft, blueprint);
    }
    let early = checked.known & (capability::CONSTANTS | capability::BUILTIN_SIZES);
    // The predefined communicators are not there in a program that uses sessions.
    (checked.communicators.world != 0).then(|| draft.finish(early, Search::default()))
}

/// Pointer variables, whose value programs pass.
fn set_weights(draft: &mut Draft, blueprint: &Blueprint) {
    for (place, symbol) in [(&place::UNWEIGHTED, UNWEIGHTED), (&place::WEIGHTS_EMPTY, WEIGHTS_EMPTY)] {
        if let Some(symbol) = blueprint.symbol(symbol) {
            draft.variable(place, symbol);
        }
    }
}
