//! Communicators: told apart by handle, from the first use to the call that frees them.

use core::{
    ffi::c_int,
    sync::atomic::{AtomicU32, Ordering},
};

use mpiprobe_common::{
    Communicator, CommunicatorKey, Loss,
    file::{COMMUNICATORS, COMMUNICATORS_REGION, NAMES_REGION, TOPOLOGIES_REGION},
    flow::{Degrees, NAME_LENGTH, Origin, Topology, communicator_kind, distinct_communicators, handle_of, peer},
    rules::communicators::{self, Communicators},
};

use super::{
    Call,
    handles::Handles,
    library::{AskHandle, Library},
    origins,
    scope::Over,
    sessions,
    topology::Neighbours,
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
        0 => ask(library, handle).map_or(0, |(mut found, topology)| {
            come_from(&mut found, origins::take(handle));
            HANDLES.find_or_make(handle, || write(found, topology.as_ref()))
        }),
        known => known,
    }
}

/// Writes down what is known of a communicator, and its topology at the same index. Gives that, if there is room.
fn write(mut found: Communicator, topology: Option<&Topology>) -> Option<u32> {
    let place = process::take_number(header::communicators(), COMMUNICATORS)
        .and_then(|index| file::place(COMMUNICATORS_REGION, index).map(|place| (index, place)));
    let Some((index, place)) = place else {
        process::count_loss(Loss::CommunicatorTableFull);
        return None;
    };
    if let (Some(topology), Some(place)) = (topology, file::place(TOPOLOGIES_REGION, index)) {
        // SAFETY: an entry that nobody else has.
        unsafe { place.as_ptr().write(*topology) };
        found.degrees = found.degrees.told_by(index + 1);
    }
    // SAFETY: an entry that nobody else has.
    unsafe { place.as_ptr().write(found) };
    Some(index)
}

fn ask(library: &Library, handle: u64) -> Option<(Communicator, Option<Topology>)> {
    let _errno = SavedErrno::save();
    let is_inter = Library::ask(library.comm_test_inter, handle)? != 0;
    let count = |question| Library::ask(question, handle).and_then(|answer| u32::try_from(answer).ok());
    let rank = count(library.comm_rank)?;
    // Only within a group is there a topology.
    let kind = communicators::kind(&library.layout.constants, handle);
    let is_predefined = kind != communicator_kind::MADE;
    let origin = origins::find(handle);
    let neighbours = if is_inter || is_predefined { None } else { Neighbours::of(library, handle, rank, origin) };
    let degrees = neighbours.as_ref().map_or(Degrees::UNKNOWN, |neighbours| neighbours.degrees);
    let size = count(library.comm_size)?;
    let [first, middle, last] = members(library, handle, is_inter, size);
    let found = Communicator {
        key: CommunicatorKey { process: 0, kind: handle_of::COMMUNICATOR, handle },
        context: 0,
        rank,
        size,
        remote_size: if is_inter { count(library.comm_remote_size)? } else { 0 },
        is_inter: u32::from(is_inter),
        first_ns: monotonic_ns(),
        degrees,
        kind,
        first,
        middle,
        last,
        ..Communicator::default()
    };
    Some((found, neighbours.and_then(|neighbours| neighbours.topology)))
}

/// Some members, which tell it from others: see [`Communicator::first`].
fn members(library: &Library, handle: u64, is_inter: bool, size: u32) -> [i32; communicators::MEMBERS as usize] {
    const COUNT: usize = communicators::MEMBERS as usize;
    let ranks: [i32; COUNT] = core::array::from_fn(|step| communicators::member(step as u32, size, false).1 as i32);
    let mut members = [peer::UNKNOWN; COUNT];
    if handle == library.layout.constants.comm_world && library.has_world() {
        return ranks;
    }
    translate(library, library.comm_group, handle, ranks, &mut members);
    if is_inter {
        let mut first = [peer::UNKNOWN];
        translate(library, library.comm_remote_group, handle, [0], &mut first);
        let ([.., last], [of_the_others]) = (&mut members, first);
        *last = of_the_others;
    }
    members
}

/// What is known of a communicator by its number.
#[inline]
pub(super) fn facts(number: u32) -> Option<Communicator> {
    let place = file::known_place(COMMUNICATORS_REGION, number.checked_sub(1)?)?;
    // SAFETY: an entry of the file, written before the number was given out.
    Some(unsafe { place.as_ptr().read() })
}

/// Whether a handle still means the communicator with that number.
pub(super) fn is_alive(number: u32, handle: u64) -> bool {
    facts(number).is_some_and(|known| known.freed_ns == 0 && known.key.handle == handle)
}

/// Whether a handle is that of a communicator, as far as has been seen.
pub(super) fn is_known(library: &Library, handle: u64) -> bool {
    communicators::kind(&library.layout.constants, handle) != communicator_kind::MADE || HANDLES.find(handle) != 0
}

/// Whether a communicator, by its number, can have a partner of that rank: of one that is not known, any.
pub(super) fn may_have(number: u32, rank: i32) -> bool {
    facts(number).is_none_or(|known| {
        let others = if known.is_inter == 0 { known.size } else { known.remote_size };
        u32::try_from(rank).is_ok_and(|rank| rank < others)
    })
}

/// A handle means another communicator from now on, or none.
pub(super) fn forget(handle: u64) {
    origins::take(handle);
    if let Some(index) = HANDLES.forget(handle).checked_sub(1)
        && let Some(place) = file::place(COMMUNICATORS_REGION, index)
    {
        // SAFETY: a word of an entry of the file.
        unsafe { (&raw mut (*place.as_ptr()).freed_ns).write_volatile(monotonic_ns()) };
    }
    begin_epoch();
}

/// The communicators of the process.
struct OfProcess<'a>(&'a Library);

impl Communicators for OfProcess<'_> {
    fn release(&mut self, handle: u64) {
        forget(handle);
    }

    fn keep_origin(&mut self, handle: u64, origin: Origin) {
        origins::keep(handle, origin);
    }

    fn number(&mut self, handle: u64) -> u32 {
        number(self.0, handle)
    }

    /// Of those that are never used, only so many are written down that there is room for the others.
    fn has_room_for_unused(&self) -> bool {
        let used = header::communicators().map_or(0, |used| used.load(Ordering::Relaxed));
        used < u64::from(distinct_communicators(COMMUNICATORS))
    }
}

/// The completed call has made a communicator.
pub(super) fn made(call: &Call<'_>) {
    let parent = Over::given(call).communicator().map_or(0, |parent| number(call.library, parent));
    communicators::made(&call.given(), call.function, parent, call.returned_ns, &mut OfProcess(call.library));
}

fn come_from(communicator: &mut Communicator, origin: Option<Origin>) {
    if let Some(origin) = origin {
        communicator.made_by_plus_1 = origin.made_by_plus_1;
        communicator.parent = origin.parent;
        communicator.first_ns = origin.made_ns;
    }
}

/// The program has given a communicator a name.
pub(super) fn named(call: &Call<'_>) {
    let number = Over::given(call).communicator().map_or(0, |handle| number(call.library, handle));
    let from = call.arguments.word(call.descriptor.communicator_name) as *const u8;
    let Some(index) = number.checked_sub(1).filter(|_| !from.is_null()) else { return };
    let Some(to) = file::place(NAMES_REGION, index) else { return };
    let mut is_over = false;
    // The last byte stays zero.
    for at in 0..NAME_LENGTH - 1 {
        // SAFETY: a text that ends in NUL, which MPI has just read; an entry of the file, within its length.
        unsafe {
            let byte = if is_over { 0 } else { from.add(at).read() };
            is_over = byte == 0;
            (&raw mut (*to.as_ptr()).text).cast::<u8>().add(at).write_volatile(byte);
        }
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
    let mut answer = [peer::UNKNOWN];
    translate(library, members, handle, [rank], &mut answer);
    let [answer] = answer;
    answer
}

/// The group of `MPI_COMM_WORLD`, to be freed: where the program has none, the same processes in the same order by one of its sessions
/// (MPI-4.0, section 11.3.2).
fn world(library: &Library) -> Option<u64> {
    let mut all = 0;
    let result = if library.has_world() {
        let of_communicator = library.comm_group?;
        // SAFETY: as the standard defines the function; the communicator exists.
        unsafe { of_communicator(library.layout.constants.comm_world, &raw mut all) }
    } else {
        let (of_session, session) = (library.group_of_session?, sessions::any()?);
        // SAFETY: the same; the session has begun and not ended.
        unsafe { of_session(session, c"mpi://WORLD".as_ptr(), &raw mut all) }
    };
    (result == 0).then_some(all)
}

/// Ranks in `MPI_COMM_WORLD` of ranks in a group of a communicator's, as far as they have one.
fn translate<const N: usize>(
    library: &Library,
    members: Option<AskHandle>,
    handle: u64,
    ranks: [i32; N],
    answers: &mut [i32; N],
) {
    let Some(members) = members else { return };
    let (Some(translate), Some(free)) = (library.translate_ranks, library.free_group) else { return };
    let _errno = SavedErrno::save();
    let Some(mut all) = world(library) else { return };
    let (mut group, mut found) = (0, [-1; N]);
    // SAFETY: as the standard defines these functions; what the handle is of exists.
    unsafe {
        if members(handle, &raw mut group) == 0 {
            if translate(group, N as c_int, ranks.as_ptr(), all, found.as_mut_ptr()) != 0 {
                found = [-1; N];
            }
            free(&raw mut group);
        }
        free(&raw mut all);
    }
    for (answer, found) in answers.iter_mut().zip(found) {
        *answer = if found >= 0 { found } else { peer::UNKNOWN };
    }
}
