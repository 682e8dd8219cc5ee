//! What MPICH's file tells of the processes that will map it. The objects are named nowhere if the file is stripped, but functions that
//! look them up refer to their tables: what is there in a process says itself what it is.

use mpiprobe_common::{
    Layout,
    layout::{
        MPICH, Objects, Template, capability, handle_kind,
        template::{SEARCHED, Search},
    },
};

use super::{
    super::{
        blueprint::Blueprint,
        template::{self as place, Draft, WordLocation},
    },
    UNWEIGHTED, WEIGHTS_EMPTY,
    allocator::Form,
    offsets::{self, INTEL, MPICH as TABLES},
    predefined,
};

/// They look a communicator and a datatype up by the handle.
pub(in super::super) const FUNCTIONS: &[&str] = &["PMPI_Comm_rank", "PMPI_Type_size"];

/// The request that Intel MPI makes before all others and keeps.
const INTEL_COMPLETE: u64 = 0xac00_0000;

/// By the table that was verified for the release's series. A library that does not tell its version says what it is by the size of
/// a communicator, which its code multiplies the number in a handle by.
pub(in super::super) fn template(blueprint: &Blueprint) -> Option<Template> {
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
        handles: handle_kind::INTEGER,
        constants: MPICH.constants,
        status: MPICH.status,
        datatypes: offsets::datatypes(Objects::default()),
        ..Layout::default()
    };
    table.fill(&mut layout);
    let mut draft = Draft::new(&layout, blueprint.data.code()?);
    if blueprint.is_intel {
        draft.given(&place::COMPLETE_FIRST, INTEL_COMPLETE);
        draft.given(&place::COMPLETE_LAST, INTEL_COMPLETE);
    }
    set_weights(&mut draft, blueprint);
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
        ..Search::default()
    };
    let references = blueprint.data.references.iter().copied();
    // Code beside them refers to little else; what is too much was decoded out of step.
    let named = predefined::COMMUNICATORS.symbols.iter().find_map(|symbol| blueprint.symbol(symbol));
    for (to, from) in search.places.iter_mut().zip(named.into_iter().chain(references)) {
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
