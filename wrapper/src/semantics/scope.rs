//! Windows and files: what is moved by them belongs to the communicator that they were made with.
//!
//! That may have been freed meanwhile, so it is known by its number, and ranks are those in the window's own group.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use mpiprobe_common::{Loss, descriptor::NONE, flow::peer, layout::Memory as _};

use super::{
    Call,
    arguments::{Arguments, Own, handle_at},
    communicator,
    library::Library,
    row::row,
};
use crate::process;

/// What a call is made over, by its handle.
#[derive(Clone, Copy)]
pub(super) enum Over {
    Nothing,
    Communicator(u64),
    Window(u64),
    File(u64),
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
        let (descriptor, layout) = (call.descriptor, &call.library.layout);
        if descriptor.communicator != NONE {
            Self::Communicator(call.arguments.handle(layout, descriptor.communicator))
        } else if descriptor.window != NONE {
            Self::Window(call.arguments.handle(layout, descriptor.window))
        } else if descriptor.file != NONE {
            // Files are pointers in every implementation.
            Self::File(call.arguments.word(descriptor.file))
        } else {
            Self::Nothing
        }
    }

    pub(super) fn handle(self) -> u64 {
        match self {
            Self::Nothing => 0,
            Self::Communicator(handle) | Self::Window(handle) | Self::File(handle) => handle,
        }
    }

    pub(super) fn communicator(self) -> Option<u64> {
        if let Self::Communicator(handle) = self { Some(handle) } else { None }
    }

    /// The communicator's number; 0: not known.
    pub(super) fn number(self, library: &Library) -> u32 {
        if let Self::Communicator(handle) = self {
            return communicator::number(library, handle);
        }
        self.entry().map_or(0, |entry| entry.number.load(Ordering::Acquire))
    }

    /// Rank in `MPI_COMM_WORLD` of a rank as the call was given it, or [`peer::UNKNOWN`].
    pub(super) fn world_rank(self, library: &Library, number: u32, rank: i32) -> i32 {
        match self {
            Self::Communicator(handle) => communicator::world_rank(library, handle, number, rank),
            Self::Window(handle) => communicator::world_rank_of_member(library, library.win_group, handle, rank),
            Self::Nothing | Self::File(_) => peer::UNKNOWN,
        }
    }

    /// No handle is that long: they are 32 bits, or addresses of programs.
    fn key(self) -> u64 {
        match self {
            Self::Nothing | Self::Communicator(_) => 0,
            Self::Window(handle) => handle | 1 << 62,
            Self::File(handle) => handle | 1 << 61,
        }
    }

    fn row(self) -> impl Iterator<Item = &'static Entry> {
        row(self.key(), ROOM).filter_map(|index| ENTRIES.get(index))
    }

    fn entry(self) -> Option<&'static Entry> {
        let key = self.key();
        self.row().find(|entry| key != 0 && entry.key.load(Ordering::Acquire) == key)
    }
}

/// The completed call has made a window or a file, with a communicator.
pub(super) fn made(call: &Call<'_>) {
    let Over::Communicator(parent) = Over::given(call) else { return };
    let (position, is_file) = (call.descriptor.new_scope, call.descriptor.new_scope_is_file != 0);
    let Some(scope) = scope_at(call.library, call.arguments, position, is_file) else { return };
    let number = communicator::number(call.library, parent);
    // One that was made while nothing was counted had this handle.
    communicator::begin_epoch();
    if let Some(known) = scope.entry() {
        known.number.store(number, Ordering::Release);
        return;
    }
    for entry in scope.row() {
        if entry.key.compare_exchange(0, WRITING, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            entry.number.store(number, Ordering::Release);
            entry.key.store(scope.key(), Ordering::Release);
            return;
        }
    }
    process::count_loss(Loss::CommunicatorTableFull);
}

/// The one whose handle is at the address in an argument.
fn scope_at(library: &Library, arguments: Arguments, position: u8, is_file: bool) -> Option<Over> {
    let address = arguments.word(position);
    if is_file { Own.word(address).map(Over::File) } else { handle_at(&library.layout, address).map(Over::Window) }
}

/// The handle of the window or file at the first argument; 0: there is none.
pub(super) fn handle(library: &Library, arguments: Arguments, is_file: bool) -> u64 {
    scope_at(library, arguments, 0, is_file).map_or(0, Over::handle)
}

/// The window or file whose handle is at the first argument is about to be freed.
pub(super) fn forget(library: &Library, arguments: Arguments, is_file: bool) {
    if let Some(entry) = scope_at(library, arguments, 0, is_file).and_then(Over::entry) {
        entry.key.store(0, Ordering::Release);
    }
    communicator::begin_epoch();
}
