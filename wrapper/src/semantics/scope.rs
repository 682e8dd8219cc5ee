//! Windows and files: what is moved by them belongs to the communicator that they were made with.
//!
//! That may have been freed meanwhile, so it is known by its number, and ranks are those in the window's own group.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use mpiprobe_common::{
    Loss,
    descriptor::NONE,
    flow::{RecentFlow, peer},
    rules::{communicators::Scope, handles::Sender},
};

use super::{Call, arguments::Own, communicator, library::Library, row::row};
use crate::process;

/// What a call is made over, by its handle.
#[derive(Clone, Copy)]
pub(super) enum Over {
    Nothing,
    Communicator(u64),
    /// One that has been freed, by its number: its handle may mean another one.
    Freed(u32),
    Scope(Scope),
}

/// Windows and files that are open at once.
const ROOM: usize = 1024;
const _: () = assert!(ROOM.is_power_of_two());
/// Somebody is writing the entry.
const WRITING: u64 = u64::MAX;

struct Entry {
    /// Handle and what it is of; 0: free.
    key: AtomicU64,
    /// Of the communicator.
    number: AtomicU32,
}

static ENTRIES: [Entry; ROOM] = [const { Entry { key: AtomicU64::new(0), number: AtomicU32::new(0) } }; ROOM];

impl Over {
    /// What the call was given.
    pub(super) fn given(call: &Call<'_>) -> Self {
        if call.descriptor.communicator != NONE {
            return Self::Communicator(call.arguments.handle(&call.library.layout, call.descriptor.communicator));
        }
        Scope::given(&call.given()).map_or(Self::Nothing, Self::Scope)
    }

    /// What a received message came over.
    pub(super) fn of(sender: Sender) -> Self {
        match sender.communicator {
            0 if sender.is_over_freed() => Self::Freed(sender.number),
            0 => Self::Nothing,
            handle => Self::Communicator(handle),
        }
    }

    /// What tells it from others.
    pub(super) fn handle(self) -> u64 {
        match self {
            Self::Nothing => 0,
            Self::Freed(number) => RecentFlow::freed(number),
            Self::Communicator(handle) | Self::Scope(Scope { handle, .. }) => handle,
        }
    }

    pub(super) fn communicator(self) -> Option<u64> {
        if let Self::Communicator(handle) = self { Some(handle) } else { None }
    }

    /// The communicator's number; 0: not known.
    pub(super) fn number(self, library: &Library) -> u32 {
        match self {
            Self::Nothing => 0,
            Self::Communicator(handle) => communicator::number(library, handle),
            Self::Freed(number) => number,
            Self::Scope(scope) => entry(scope).map_or(0, |entry| entry.number.load(Ordering::Acquire)),
        }
    }

    /// Itself if it has been seen to exist.
    pub(super) fn if_known(self, library: &Library) -> Self {
        let is_known = match self {
            Self::Nothing | Self::Freed(_) => true,
            Self::Communicator(handle) => communicator::is_known(library, handle),
            Self::Scope(scope) => entry(scope).is_some(),
        };
        if is_known { self } else { Self::Nothing }
    }

    /// Rank in `MPI_COMM_WORLD` of a rank as the call was given it, or [`peer::UNKNOWN`]: also of one that is none, as a call that failed may have
    /// been given it. Whoever asks the library of such a one is ended by it.
    pub(super) fn world_rank(self, library: &Library, number: u32, rank: i32) -> i32 {
        if !communicator::may_have(number, rank) {
            return peer::UNKNOWN;
        }
        match self {
            Self::Communicator(handle) => communicator::world_rank(library, handle, number, rank),
            Self::Scope(Scope { is_file: false, handle }) => {
                communicator::world_rank_of_member(library, library.win_group, handle, rank)
            }
            Self::Nothing | Self::Freed(_) | Self::Scope(_) => peer::UNKNOWN,
        }
    }
}

/// No handle is that long: they are 32 bits, or addresses of programs.
fn key(scope: Scope) -> u64 {
    scope.handle | if scope.is_file { 1 << 61 } else { 1 << 62 }
}

fn entries(scope: Scope) -> impl Iterator<Item = &'static Entry> {
    row(key(scope), ROOM).filter_map(|index| ENTRIES.get(index))
}

fn entry(scope: Scope) -> Option<&'static Entry> {
    entries(scope).find(|entry| entry.key.load(Ordering::Acquire) == key(scope))
}

/// The completed call has made a window or a file, with a communicator.
pub(super) fn made(call: &Call<'_>) {
    let Over::Communicator(parent) = Over::given(call) else { return };
    let Some(scope) = Scope::made(&call.given()) else { return };
    let number = communicator::number(call.library, parent);
    // One that was made while nothing was counted had this handle.
    communicator::begin_epoch();
    if let Some(known) = entry(scope) {
        known.number.store(number, Ordering::Release);
        return;
    }
    for entry in entries(scope) {
        if entry.key.compare_exchange(0, WRITING, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            entry.number.store(number, Ordering::Release);
            entry.key.store(key(scope), Ordering::Release);
            return;
        }
    }
    process::count_loss(Loss::CommunicatorTableFull);
}

/// The handle of the window or file at an address; 0: there is none.
pub(super) fn handle(library: &Library, handle_address: u64, is_file: bool) -> u64 {
    Scope::at(&library.layout, &Own, handle_address, is_file).map_or(0, |scope| scope.handle)
}

/// The window or file whose handle is at an address is about to be freed.
pub(super) fn forget(library: &Library, handle_address: u64, is_file: bool) {
    if let Some(entry) = Scope::at(&library.layout, &Own, handle_address, is_file).and_then(entry) {
        entry.key.store(0, Ordering::Release);
    }
    communicator::begin_epoch();
}
