//! What Open MPI's file tells of the processes that will map it: which variable leads to what.

use mpiprobe_common::{
    Layout,
    layout::{Constants, OPEN_MPI, Template, capability, handle_kind, template::Search},
};

use super::{
    super::{
        blueprint::Blueprint,
        template::{self as place, Draft},
    },
    DATATYPES, SELF, WORLD,
    constants::MESSAGES,
    offsets::{REQUESTS, TABLES},
    pointer_array::ADDRESSES,
};

/// By a layout that was checked in a process, else by the table that was verified for the release's series.
pub(in super::super) fn template(blueprint: &Blueprint, checked: Option<&Layout>) -> Option<Template> {
    let layout = if let Some(layout) = checked {
        *layout
    } else {
        let version = blueprint.version?;
        let table = TABLES.iter().find(|table| table.verified.is_of_series(version))?;
        Layout {
            known: capability::CONSTANTS
                | capability::DATATYPES
                | capability::COMMUNICATORS
                | capability::MEMBERS
                | capability::REQUESTS,
            handles: handle_kind::POINTER,
            constants: Constants { ..OPEN_MPI.constants },
            status: OPEN_MPI.status,
            datatypes: table.datatypes(),
            communicators: table.communicators(0, 0),
            members: table.members(),
            requests: REQUESTS,
            ..Layout::default()
        }
    };
    let mut draft = Draft::new(&layout, blueprint.data.code()?);
    for (places, symbol) in [
        ([&place::COMM_WORLD, &place::WORLD].as_slice(), WORLD),
        (&[&place::COMM_SELF, &place::OWN], SELF),
        (&[&place::COMM_NULL], "ompi_mpi_comm_null_addr"),
        (&[&place::REQUEST_NULL], "ompi_request_null_addr"),
        (&[&place::WIN_NULL], "ompi_mpi_win_null_addr"),
        (&[&place::FILE_NULL], "ompi_mpi_file_null_addr"),
    ] {
        let symbol = blueprint.symbol(symbol)?;
        for place in places {
            draft.variable(place, symbol);
        }
    }
    // Not in all releases.
    match blueprint.symbol("ompi_mpi_op_no_op_addr") {
        Some(symbol) => draft.variable(&place::NO_OP, symbol),
        None => draft.given(&place::NO_OP, 0),
    }
    draft.element(&place::DATATYPE_NULL, blueprint.symbol(DATATYPES)?.wrapping_add(ADDRESSES), 0);
    if let Some(messages) = blueprint.symbol(MESSAGES) {
        draft.element(&place::MESSAGE_NULL, messages.wrapping_add(ADDRESSES), 0);
        draft.element(&place::MESSAGE_NO_PROC, messages.wrapping_add(ADDRESSES), 1);
    } else {
        draft.given(&place::MESSAGE_NULL, 0);
        draft.given(&place::MESSAGE_NO_PROC, 0);
    }
    if let Some(empty) = blueprint.symbol("ompi_request_empty") {
        draft.address(&place::COMPLETE_FIRST, empty);
        draft.address(&place::COMPLETE_LAST, empty);
    } else {
        draft.given(&place::COMPLETE_FIRST, u64::MAX);
        draft.given(&place::COMPLETE_LAST, 0);
    }
    Some(draft.finish(0, Search::default()))
}
