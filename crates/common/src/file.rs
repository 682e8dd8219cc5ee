//! The file that the wrapper keeps the tables of one process image in.
//!
//! It is mapped, so that everything counted so far is in it whatever happens to the process. It is as long as all its tables
//! together, but only as much of each is backed by memory or disk as is used: what lies between reads as zeros.
//!
//! | part | content |
//! |------|---------|
//! | [`Header`] | who the process is, how far the tables are used |
//! | counters | one [`ProcessCounters`] |
//! | threads | [`ThreadState`], by slot |
//! | owners | [`StatsOwner`] of each statistics entry |
//! | statistics | [`FunctionStats`]: of one function in one phase in one thread slot each; a slot's are of all threads that had it |
//! | off | [`CallsOff`], by thread slot |
//! | phases | [`Phase`], by number |
//! | flows | [`Flow`], in the order of first use: those of one thread slot each, which stands in the key in the place of the process |
//! | communicators | [`Communicator`], by number from 1 on; one of 0 at [`Communicator::first_ns`] is none |
//! | names | [`CommunicatorName`] of each of them; zeros: it has none |
//! | topologies | [`Topology`] of each of them, where the process has neighbours in it that are known |
//! | requests | [`FollowedRequest`], in no order |
//! | recent | [`RecentCall`], a ring: the last calls, while an observer looks at them |
//! | layout | one [`Layout`]: the special values of the process's MPI library |
//! | ended threads | [`EndedThread`], by [`EndedThread::place`]; one of 0 at [`EndedThread::ended_ns`] is none |
//! | rings | [`RingHead`] of each ring: the first half of the rings are those of the threads with the first slots, the others share the rest |
//! | lines | [`Line`], [`RING_LINES`] of each ring: calls as they return, while somebody wants the course of events |
//! | code | lines of `/proc/PID/maps` about files with code |

use core::marker::PhantomData;

use bytemuck::{Pod, Zeroable};

use crate::{
    Communicator, CommunicatorName, EndedThread, Flow, FunctionStats, Layout, Phase, ProcessCounters, RecentCall,
    Request, RequestKey, ThreadState,
    ended_thread::ENDED_THREAD_PLACES,
    flow::Topology,
    recent::RECENT_CALLS,
    trace::{Line, RingHead},
};

/// First bytes of a file that is complete enough to be read; written last.
pub const MAGIC: u64 = u64::from_le_bytes(*b"mpiprobe");

/// Raised when anything changes that [`FINGERPRINT`] does not notice.
pub const VERSION: u32 = 9;

/// Live threads that a file has room for.
pub const THREADS: u32 = 1024;
/// Statistics entries that it has room for.
pub const STATS: u32 = 8192;
/// Flows of all thread slots.
pub const FLOWS: u32 = 16384;
/// Communicators, freed ones too.
pub const COMMUNICATORS: u32 = 4096;
/// Phases that are told apart.
pub const PHASES: u32 = 256;
/// Operations that are under way at once.
pub const REQUESTS: u32 = 16_384;

/// Rings of lines: most programs call MPI in one thread, or a few.
pub const RINGS: u32 = 8;
/// Lines of each; 8 MiB. A power of two.
pub const RING_LINES: u32 = 1 << 17;

/// Bytes of the list of what is mapped where.
pub const CODE: u32 = 256 * 1024;

/// How names of files end.
pub const SUFFIX: &str = ".mpiprobe";

/// A file beside them, that all processes of a run share: a number of those that called MPI past the wrapper.
pub const PAST_NAME: &str = ".called-past-the-wrapper";
/// Its size: a page.
pub const PAST_BYTES: usize = 4096;

/// Size of the header with room to grow, bytes.
const HEADER_ROOM: u64 = 16384;
/// Tables begin at multiples of this: what is backed is so by pages.
const PAGE: u64 = 4096;

/// Where one table is in the file, and what its entries are.
#[derive(Debug)]
pub struct Region<T> {
    /// Bytes from the beginning of the file.
    pub offset: u64,
    /// Entries that there is room for.
    pub capacity: u32,
    entry: PhantomData<fn() -> T>,
}

impl<T> Region<T> {
    /// Bytes of one entry.
    pub const ENTRY: u64 = size_of::<T>() as u64;

    const fn new(after: u64, capacity: u32) -> Self {
        Self { offset: after.next_multiple_of(PAGE), capacity, entry: PhantomData }
    }

    /// The same without the type of its entries.
    pub const fn extent(&self) -> Extent {
        Extent { offset: self.offset, entry: Self::ENTRY, capacity: self.capacity }
    }

    /// Where it ends.
    pub const fn end(&self) -> u64 {
        self.extent().end()
    }

    /// Where an entry is; `None` beyond the last one.
    pub const fn at(&self, index: u32) -> Option<u64> {
        self.extent().at(index)
    }
}

impl<T> Clone for Region<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Region<T> {}

/// Which part of the file a table takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Bytes from the beginning of the file.
    pub offset: u64,
    /// Bytes of one entry.
    pub entry: u64,
    /// Entries that there is room for.
    pub capacity: u32,
}

impl Extent {
    /// FNV-1a, by words.
    const fn mixed_into(&self, hash: u64) -> u64 {
        let hash = (hash ^ self.offset).wrapping_mul(FNV_FACTOR);
        let hash = (hash ^ self.entry).wrapping_mul(FNV_FACTOR);
        (hash ^ self.capacity as u64).wrapping_mul(FNV_FACTOR)
    }

    /// Where it ends.
    pub const fn end(&self) -> u64 {
        self.offset + self.entry * self.capacity as u64
    }

    /// Where an entry is; `None` beyond the last one.
    pub const fn at(&self, index: u32) -> Option<u64> {
        if index < self.capacity { Some(self.offset + self.entry * index as u64) } else { None }
    }
}

/// One list of the tables in their order: name, type of entries, room for so many of them, and for how many from the start.
macro_rules! regions {
    ($first:ident: $first_type:ty = $first_room:expr, $first_start:expr; $($name:ident: $type:ty = $room:expr, $start:expr;)*) => {
        pub const $first: Region<$first_type> = Region::new(HEADER_ROOM, $first_room);
        regions!(@after $first; $($name: $type = $room;)*);

        /// All tables, and of each how many entries there is memory or disk for from the start.
        pub const REGIONS: &[(Extent, u32)] = &[($first.extent(), $first_start), $(($name.extent(), $start)),*];
    };
    (@after $before:ident; $name:ident: $type:ty = $room:expr; $($rest:tt)*) => {
        pub const $name: Region<$type> = Region::new($before.end(), $room);
        regions!(@after $name; $($rest)*);
    };
    (@after $before:ident;) => {
        /// Length of a file, bytes.
        pub const FILE_SIZE: u64 = $before.end().next_multiple_of(PAGE);
    };
}

regions! {
    COUNTERS_REGION: ProcessCounters = 1, 1;
    THREADS_REGION: ThreadState = THREADS, 32;
    OWNERS_REGION: StatsOwner = STATS, 128;
    STATS_REGION: FunctionStats = STATS, 128;
    OFF_REGION: CallsOff = THREADS, 32;
    PHASES_REGION: Phase = PHASES, 16;
    FLOWS_REGION: Flow = FLOWS, 256;
    COMMUNICATORS_REGION: Communicator = COMMUNICATORS, 64;
    NAMES_REGION: CommunicatorName = COMMUNICATORS, 64;
    TOPOLOGIES_REGION: Topology = COMMUNICATORS, 4;
    REQUESTS_REGION: FollowedRequest = REQUESTS, 256;
    RECENT_REGION: RecentCall = RECENT_CALLS, RECENT_CALLS;
    LAYOUT_REGION: Layout = 1, 1;
    ENDED_THREADS_REGION: EndedThread = ENDED_THREAD_PLACES, ENDED_THREAD_PLACES;
    CODE_REGION: u8 = CODE, 64 * 1024;
    RINGS_REGION: RingHead = RINGS, RINGS;
    LINES_REGION: Line = RINGS * RING_LINES, 64;
}

/// Whose calls a statistics entry counts. Zeros: it is not in use.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct StatsOwner {
    /// Function id plus one.
    pub function_plus_1: u32,
    /// Number of the phase plus one; 0: outside all phases.
    pub phase_plus_1: u32,
    /// Slot.
    pub thread: u32,
    pub reserved: u32,
}

/// Calls of a thread slot that were entered while the program had counting switched off; a cache line of its own.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
pub struct CallsOff {
    pub calls: u64,
    pub reserved: [u64; 7],
}

/// An operation, and what its handle is.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
pub struct FollowedRequest {
    /// Its process is the thread slot that has posted it.
    pub key: RequestKey,
    pub request: Request,
}

/// Sizes and places of all tables in one number: files of another layout have another one.
pub const FINGERPRINT: u64 = {
    let mut hash = FNV_START ^ size_of::<Header>() as u64;
    let mut regions = REGIONS;
    while let [(extent, _), rest @ ..] = regions {
        hash = extent.mixed_into(hash);
        regions = rest;
    }
    hash
};

/// Of FNV-1a.
const FNV_START: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_FACTOR: u64 = 0x0100_0000_01b3;

/// Room for a file's path.
pub const PATH: usize = 1024;
/// Room for the host's name.
pub const HOST: usize = 64;
/// Room for variables of the environment.
pub const ENVIRONMENT: usize = 4096;
/// Room for a text that names something or says why something is missing.
pub const TEXT: usize = 256;

/// What stands first in the file. Texts end at the first zero byte.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct Header {
    /// [`MAGIC`].
    pub magic: u64,
    /// [`VERSION`].
    pub version: u32,
    /// [`size_of::<Header>`](size_of), bytes.
    pub header_size: u32,
    /// [`FINGERPRINT`].
    pub fingerprint: u64,
    /// Names and order of the functions, in one number: function ids mean something by the same table only.
    pub functions: u64,
    /// As the process itself knows them.
    pub pid: u32,
    pub parent: u32,
    /// Real user id.
    pub user: u32,
    /// [`flags`], ORed.
    pub flags: u32,
    /// When the process started, clock ticks since boot (`/proc/PID/stat`): with the pid, which process it is.
    pub start_ticks: u64,
    /// Inode of the process's pid namespace.
    pub pid_namespace: u64,
    /// This run of the machine: `/proc/sys/kernel/random/boot_id`, in binary.
    pub boot: [u8; 16],
    /// When counting began.
    pub began_ns: u64,
    /// The same in ns since 1970, by which the clocks of different nodes are compared.
    pub began_unix_ns: u64,
    /// When the process left by `exit`, `_exit` or one of their kind; 0: it has not.
    pub ended_ns: u64,
    /// Thread slots that have been used.
    pub threads: u64,
    /// Statistics entries that have been used.
    pub stats: u64,
    /// Flows and communicators that have been made.
    pub flows: u64,
    pub communicators: u64,
    /// Bytes of the list of what is mapped where.
    pub code: u64,
    /// What counting a call costs here, and the part of it that is within measured durations: ns, times 1024. 0: not measured.
    pub call_cost: u64,
    pub inside_cost: u64,
    pub host: [u8; HOST],
    /// What the process runs.
    pub executable: [u8; PATH],
    /// The MPI library: its file, and what it calls itself.
    pub library: [u8; PATH],
    pub implementation: [u8; TEXT],
    /// Those variables of the environment that launchers tell ranks and jobs by, as `execve` has them.
    pub environment: [u8; ENVIRONMENT],
    /// Until then calls are written to the ring of recent ones, ns; an observer that looks at them puts it off again and again, and
    /// when he does not any more, nobody has to be told. Observers write no other words of the file but this one, the next but one and
    /// [`RingHead::tail`].
    pub recent_until_ns: u64,
    /// Functions of the table that the library has, of whatever name; 0: not known.
    pub library_functions: u64,
    /// Until then calls are written to rings, ns; put off by observers in the same way.
    pub trace_until_ns: u64,
    /// When the program has had itself replaced by another one (`execve` and its kind); 0: it has not, or that has failed.
    pub execed_ns: u64,
    /// The exit status with which it has left, plus 1; 0: it has not, or by `quick_exit`, or its C library does not tell (`on_exit`).
    pub exit_status_plus_1: u64,
    pub reserved: [u64; 59],
}

impl Header {
    /// When the program was replaced by another one, if that was the last that it did, ns.
    pub const fn replaced_ns(&self) -> Option<u64> {
        if self.execed_ns > self.ended_ns { Some(self.execed_ns) } else { None }
    }

    /// The exit status that its parent is told, if the program has said so.
    #[expect(clippy::cast_possible_truncation, reason = "that is what a parent is told")]
    pub const fn exit_status(&self) -> Option<u8> {
        match self.exit_status_plus_1.checked_sub(1) {
            Some(status) => Some(status as u8),
            None => None,
        }
    }
}

/// Bits of [`Header::flags`].
pub mod flags {
    /// Times are read from the processor's time stamp counter.
    pub const TSC: u32 = 1 << 0;
    /// `MPI_Pcontrol` has switched counting off at least once.
    pub const WAS_OFF: u32 = 1 << 1;
}

const _: () = assert!(size_of::<Header>() as u64 <= HEADER_ROOM && size_of::<Header>().is_multiple_of(8));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_do_not_overlap() {
        let mut end = size_of::<Header>() as u64;
        for (extent, at_start) in REGIONS {
            assert!(extent.offset >= end && extent.offset.is_multiple_of(PAGE), "{extent:?}");
            assert_eq!(extent.at(extent.capacity), None);
            assert_eq!(extent.at(extent.capacity - 1), Some(extent.end() - extent.entry));
            assert!((1..=extent.capacity).contains(at_start), "{extent:?}");
            end = extent.end();
        }
        assert!(FILE_SIZE >= end);
    }
}
