//! Communicators: told apart by handle, from the first use to the call that frees them.

use core::sync::atomic::{AtomicU32, Ordering};

use mpiprobe_common::{
    Communicator, CommunicatorKey, Loss,
    file::{COMMUNICATORS, COMMUNICATORS_REGION},
    flow::{UNKNOWN_NEIGHBOURS, communicator_kind, handle_of, peer},
};

use super::{
    Call,
    arguments::handle_at,
    handles::Handles,
    library::{AskHandle, Library},
    topology,
};
use crate::{clock::monotonic_ns, file, header, message::SavedErrno, process};

static HANDLES: Handles<{ COMMUNICATORS as usize }> = Handles::new();

/// How many communicators and datatypes have been freed: what is remembered by handle is true in one epoch only.
static EPOCH: AtomicU32 = AtomicU32::new(0);

#[inline]
pub(super) fn epoch() -> u32 {
    EPOCH.load(Ordering::Acquire)
}

/// From now on a handle may mean something else.
pub(super) fn begin_epoch() {
    EPOCH.fetch_add(1, Ordering::AcqRel);
}

/// The number of a communicator; 0 if nothing can be said of it, or there is no room for it.
pub(super) fn number(library: &Library, handle: u64) -> u32 {
    if handle == 0 || handle == library.layout.constants.comm_null {
        return 0;
    }
    match HANDLES.find(handle) {
        // Asked before, and outside of what only one thread may do at a time: MPI may have to wait for others.
        0 => ask(library, handle).map_or(0, |found| HANDLES.find_or_make(handle, || write(found))),
        known => known,
    }
}

/// Writes down what is known of a communicator. Gives its index, if there is room.
fn write(found: Communicator) -> Option<u32> {
    let place = process::take_number(header::communicators(), COMMUNICATORS)
        .and_then(|index| file::place::<Communicator>(COMMUNICATORS_REGION, index).map(|place| (index, place)));
    let Some((index, place)) = place else {
        process::count_loss(Loss::CommunicatorTableFull);
        return None;
    };
    // SAFETY: an entry that nobody else has.
    unsafe { place.as_ptr().write(found) };
    Some(index)
}

fn ask(library: &Library, handle: u64) -> Option<Communicator> {
    let _errno = SavedErrno::save();
    let is_inter = Library::ask(library.comm_test_inter, handle)? != 0;
    let count = |question| Library::ask(question, handle).and_then(|answer| u32::try_from(answer).ok());
    let rank = count(library.comm_rank)?;
    // Only within a group is there a topology.
    let neighbours = if is_inter { None } else { topology::neighbours(library, handle, rank) };
    let (in_neighbours, out_neighbours) = neighbours.unwrap_or((UNKNOWN_NEIGHBOURS, UNKNOWN_NEIGHBOURS));
    Some(Communicator {
        key: CommunicatorKey { process: 0, kind: handle_of::COMMUNICATOR, handle },
        context: 0,
        rank,
        size: count(library.comm_size)?,
        remote_size: if is_inter { count(library.comm_remote_size)? } else { 0 },
        is_inter: u32::from(is_inter),
        first_ns: monotonic_ns(),
        in_neighbours,
        out_neighbours,
        kind: kind(library, handle),
        first: peer::UNKNOWN,
        middle: peer::UNKNOWN,
        last: peer::UNKNOWN,
        ..Communicator::default()
    })
}

/// Of those that every program has, which one it is.
fn kind(library: &Library, handle: u64) -> u32 {
    let constants = &library.layout.constants;
    if handle == constants.comm_world {
        communicator_kind::WORLD
    } else if handle == constants.comm_self {
        communicator_kind::OWN
    } else {
        communicator_kind::NOT_YET
    }
}

/// What is known of a communicator by its number.
#[inline]
pub(super) fn facts(number: u32) -> Option<Communicator> {
    let place = file::known_place::<Communicator>(COMMUNICATORS_REGION, number.checked_sub(1)?)?;
    // SAFETY: an entry of the file, written before the number was given out.
    Some(unsafe { place.as_ptr().read() })
}

/// Whether its handle may mean another one by now.
pub(super) fn is_freed(number: u32) -> bool {
    facts(number).is_some_and(|known| known.freed_ns != 0)
}

/// A handle means another communicator from now on, or none.
pub(super) fn forget(handle: u64) {
    if let Some(index) = HANDLES.forget(handle).checked_sub(1)
        && let Some(place) = file::place::<Communicator>(COMMUNICATORS_REGION, index)
    {
        // SAFETY: a word of an entry of the file.
        unsafe { (&raw mut (*place.as_ptr()).freed_ns).write_volatile(monotonic_ns()) };
    }
    begin_epoch();
}

/// The completed call has made a communicator. If its handle is known, that was another one, freed where nobody has seen it.
pub(super) fn made(call: &Call<'_>) {
    let layout = &call.library.layout;
    if let Some(handle) = handle_at(layout, call.arguments.word(call.descriptor.new_communicator))
        && handle != layout.constants.comm_null
    {
        forget(handle);
    }
}

/// Rank in `MPI_COMM_WORLD` of a rank in a communicator, or [`peer::UNKNOWN`].
pub(super) fn world_rank(library: &Library, handle: u64, number: u32, rank: i32) -> i32 {
    if number == 0 {
        return peer::UNKNOWN;
    }
    if handle == library.layout.constants.comm_world && library.has_world() {
        return rank;
    }
    let is_inter = facts(number).is_some_and(|known| known.is_inter != 0);
    let members = if is_inter { library.comm_remote_group } else { library.comm_group };
    world_rank_of_member(library, members, handle, rank)
}

/// The same of a rank in the group that the library tells of a handle.
pub(super) fn world_rank_of_member(library: &Library, members: Option<AskHandle>, handle: u64, rank: i32) -> i32 {
    if library.has_world() { translate(library, members, handle, rank).unwrap_or(peer::UNKNOWN) } else { peer::UNKNOWN }
}

fn translate(library: &Library, members: Option<AskHandle>, handle: u64, rank: i32) -> Option<i32> {
    let world = library.layout.constants.comm_world;
    let (members, of_world) = (members?, library.comm_group?);
    let (translate, free) = (library.translate_ranks?, library.free_group?);
    let _errno = SavedErrno::save();
    let (mut group, mut all, mut answer) = (0, 0, -1);
    // SAFETY: as the standard defines these functions; what the handle is of exists, and so does the world.
    unsafe {
        if members(handle, &raw mut group) != 0 {
            return None;
        }
        if of_world(world, &raw mut all) == 0 {
            if translate(group, 1, &raw const rank, all, &raw mut answer) != 0 {
                answer = -1;
            }
            free(&raw mut all);
        }
        free(&raw mut group);
    }
    if answer >= 0 { Some(answer) } else { None }
}
