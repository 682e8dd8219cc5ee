//! Requests (ompi/request/request.h, ompi/mca/pml/base/pml_base_request.h, ompi/mca/pml/ob1/) and windows (ompi/win/win.h). Every
//! object begins with the address of its class, which begins with the address of its name (opal/class/opal_object.h): so it is
//! known what an address leads to.

use std::ops::Range;

use mpiprobe_common::{
    FoundOperation, FoundPeer, FoundProgress, FoundRequest, FoundTag, Layout,
    layout::{Field, Memory, Side, Size, comm, datatype_size, group_member_world_rank, member_world_rank},
};

use super::super::{
    TargetMemory,
    found::{MAX_LISTED, NOTHING, Window, ends, shown},
};

/// Offsets in `ompi_request_t`, the same from 4.0 to 5.0.
const COMPLETE: u32 = 88;
const STATE: u32 = 96;
const IS_PERSISTENT: u32 = 100;
const COMMUNICATOR: u64 = 152;
/// In `mca_pml_base_request_t`, behind it.
const PML_TYPE: u64 = 168;
const PML_COMMUNICATOR: u64 = 176;
const PML_DATATYPE: u64 = 184;
/// Where rank and tag may stand, behind a convertor whose size differs; the address of a process follows.
const PEERS: Range<u64> = 400..576;

const COMPLETED: u64 = 1;
const INACTIVE: u64 = 1;
const ACTIVE: u64 = 2;
const PML_SEND: u64 = 1;
const PML_RECEIVE: u64 = 2;

/// Longer than any name of a class.
const CLASS_NAME: u64 = 64;

pub(in super::super) fn request(layout: &Layout, object: u64, memory: &TargetMemory) -> Option<FoundRequest> {
    let class = class_name(object, memory)?;
    if !class.contains("request") {
        return None;
    }
    let field = |offset, width| Field::at(offset, width).read(object, memory);
    let (state, complete) = (field(STATE, 4)?, field(COMPLETE, 8)?);
    let progress = match state {
        INACTIVE => FoundProgress::Inactive,
        ACTIVE if complete == COMPLETED => FoundProgress::Complete,
        ACTIVE => FoundProgress::Active,
        _ => return None,
    };
    let is_message = class.starts_with("mca_pml_");
    let operation = match () {
        () if is_message && class.contains("_recv_") => FoundOperation::Receive,
        () if is_message && class.contains("_send_") => FoundOperation::Send,
        () if class.contains("nbc_request") => FoundOperation::Collective,
        () => FoundOperation::Other,
    };
    let found = FoundRequest { operation, progress, is_persistent: field(IS_PERSISTENT, 1)? != 0, ..NOTHING };
    let communicator = memory.word(object.checked_add(COMMUNICATOR)?);
    let Some(communicator) = communicator.filter(|at| is_of(*at, "ompi_communicator_t", memory)) else {
        return Some(found);
    };
    let found = FoundRequest { communicator: Some(communicator), ..found };
    let ob1 = class.starts_with("mca_pml_ob1_").then(|| message(layout, object, (operation, communicator), memory));
    let Some((peer, tag, bytes)) = ob1.flatten() else { return Some(found) };
    Some(FoundRequest { peer, tag, bytes, ..found })
}

/// Rank, tag and bytes of the buffer.
fn message(
    layout: &Layout,
    object: u64,
    (operation, communicator): (FoundOperation, u64),
    memory: &TargetMemory,
) -> Option<(FoundPeer, FoundTag, Option<u64>)> {
    let word = |offset: u64| memory.word(object.checked_add(offset)?);
    let expected = if operation == FoundOperation::Send { PML_SEND } else { PML_RECEIVE };
    if word(PML_TYPE)? & 0xffff_ffff != expected || word(PML_COMMUNICATOR)? != communicator {
        return None;
    }
    let facts = comm(layout, communicator, memory)?;
    let size = if facts.is_inter { facts.remote_size } else { facts.size };
    let place = PEERS.step_by(8).find(|place| {
        let process = word(place + 8);
        process.is_some_and(|process| is_of(process, "ompi_proc_t", memory))
    })?;
    let both = word(place)?.to_le_bytes();
    let number = |at: usize| both.get(at..)?.first_chunk().map(|half| i32::from_le_bytes(*half));
    let (peer, tag) = ends(layout, (number(0)?, number(4)?), size)?;
    if let FoundPeer::Rank(rank) = peer {
        let process = word(place + 8)?;
        let by_process = Field::at(layout.members.rank, 4).read(process, memory)?;
        let by_communicator = member_world_rank(layout, communicator, Side::Remote, rank, memory)?;
        if by_process != u64::from(by_communicator) {
            return None;
        }
    }
    let bytes = || {
        let Size::Known(element) = datatype_size(layout, word(PML_DATATYPE)?, memory) else { return None };
        word(place - 8)?.checked_mul(element)
    };
    Some((peer, tag, bytes()))
}

/// Where the address of its group stands in a window; behind its name, in the way of 4.x.
const GROUP: Range<u64> = 96..512;
const GROUP_SIZE: u32 = 16;
/// Where the address of the module of the window's component stands, and in that the communicator that its members use for it.
const MODULE: Range<u64> = 96..512;
const IN_MODULE: Range<u64> = 16..2048;
const NAME: u64 = 64;

pub(in super::super) fn window(layout: &Layout, object: u64, memory: &TargetMemory) -> Option<Window> {
    if !is_of(object, "ompi_win_t", memory) {
        return None;
    }
    let mut words = words(object, GROUP, memory);
    let (offset, group) = words.find(|(_, at)| is_of(*at, "ompi_group_t", memory))?;
    let size = group_size(group, memory)?;
    // By the communicator, whose members are those of the group, in their order.
    let communicator = communicator_of(layout, object, size, memory)?;
    let facts = comm(layout, communicator, memory)?;
    let member = |rank| member_world_rank(layout, communicator, Side::Local, rank, memory);
    let name = memory.text(object.checked_add(offset.checked_sub(NAME)?)?, NAME);
    Some(Window {
        name: shown(name).filter(|name| !name.starts_with("MPI_WIN")),
        context: Some(facts.context),
        members: (0..size).map(member).collect(),
    })
}

/// World ranks of the members of a group; `None` within: one of another world.
pub(in super::super) fn group(layout: &Layout, object: u64, memory: &TargetMemory) -> Option<Vec<Option<u32>>> {
    if !is_of(object, "ompi_group_t", memory) {
        return None;
    }
    let member = |rank| group_member_world_rank(layout, object, rank, memory);
    Some((0..group_size(object, memory)?).map(member).collect())
}

fn group_size(group: u64, memory: &TargetMemory) -> Option<u32> {
    u32::try_from(Field::at(GROUP_SIZE, 4).read(group, memory)?).ok().filter(|size| *size <= MAX_LISTED)
}

/// The communicator of a window: its module leads to it, and back to the window.
fn communicator_of(layout: &Layout, object: u64, size: u32, memory: &TargetMemory) -> Option<u64> {
    let is_its = |module: u64| words(module, IN_MODULE, memory).any(|(_, at)| at == object);
    let fits = |at: u64| {
        is_of(at, "ompi_communicator_t", memory) && comm(layout, at, memory).is_some_and(|facts| facts.size == size)
    };
    let mut modules = words(object, MODULE, memory).filter(|(_, at)| at.is_multiple_of(8) && is_its(*at));
    modules.find_map(|(_, module)| words(module, IN_MODULE, memory).map(|(_, at)| at).find(|at| fits(*at)))
}

/// Words of an object that can be read, each with where it stands.
fn words(object: u64, range: Range<u64>, memory: &TargetMemory) -> impl Iterator<Item = (u64, u64)> + '_ {
    range.step_by(8).map_while(move |offset| Some((offset, memory.word(object.checked_add(offset)?)?)))
}

fn is_of(object: u64, class: &str, memory: &TargetMemory) -> bool {
    class_name(object, memory).is_some_and(|name| name == class)
}

fn class_name(object: u64, memory: &TargetMemory) -> Option<String> {
    if !object.is_multiple_of(8) {
        return None;
    }
    memory.text(memory.word(memory.word(object)?)?, CLASS_NAME)
}
