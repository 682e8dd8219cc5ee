//! The tables of the BPF programs: one list of what each is called, what is in it, and how many entries it has. The programs
//! declare their tables by it, and whoever loads them sizes and reads them by it. Those of the wrapper are in [`crate::file`].

use core::marker::PhantomData;

use crate::Config;

/// A table: `Kind` is one of the kinds below, with what is in it.
#[derive(Debug)]
pub struct Table<Kind> {
    /// As the object has it.
    pub name: &'static str,
    size: fn(&Config) -> u32,
    kind: PhantomData<fn() -> Kind>,
}

impl<Kind> Table<Kind> {
    pub const fn new(name: &'static str, size: fn(&Config) -> u32) -> Self {
        Self { name, size, kind: PhantomData }
    }

    /// Entries that it has room for; of a [`Ring`], bytes.
    pub fn size(self, config: &Config) -> u32 {
        (self.size)(config)
    }
}

impl<Kind> Clone for Table<Kind> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<Kind> Copy for Table<Kind> {}

/// An array.
#[derive(Debug)]
pub struct Array<V>(PhantomData<V>);
/// An array that its readers map.
#[derive(Debug)]
pub struct Mapped<V>(PhantomData<V>);
/// An array with an element for each processor.
#[derive(Debug)]
pub struct PerProcessor<V>(PhantomData<V>);
/// A hash table whose room is taken when it is made.
#[derive(Debug)]
pub struct Hash<K, V>(PhantomData<(K, V)>);
/// A hash table that takes room for each entry as it comes.
#[derive(Debug)]
pub struct GrowingHash<K, V>(PhantomData<(K, V)>);
/// Values that are taken off in the opposite order.
#[derive(Debug)]
pub struct Stack<V>(PhantomData<V>);
/// Programs, to be called at the end of others.
#[derive(Debug)]
pub struct Programs;
/// Messages to whoever has loaded the programs.
#[derive(Debug)]
pub struct Ring;

/// About how much room a table takes.
pub trait Room {
    /// For each entry, bytes.
    const ENTRY: u64;
}

/// What the kernel keeps for each entry of a hash table (kernel/bpf/hashtab.c, `struct htab_elem` and its bucket), bytes.
const HASH_ENTRY: u64 = 64;

/// Not all of these can be converted at this place otherwise.
const fn size<T>() -> u64 {
    size_of::<T>() as u64
}

impl<V> Room for Array<V> {
    const ENTRY: u64 = size::<V>();
}

impl<V> Room for Mapped<V> {
    const ENTRY: u64 = size::<V>();
}

impl<V> Room for PerProcessor<V> {
    /// On a machine with many processors.
    const ENTRY: u64 = size::<V>() * 64;
}

impl<K, V> Room for Hash<K, V> {
    const ENTRY: u64 = size::<K>() + size::<V>() + HASH_ENTRY;
}

impl<K, V> Room for GrowingHash<K, V> {
    /// As if it had grown.
    const ENTRY: u64 = size::<K>() + size::<V>() + HASH_ENTRY;
}

impl<V> Room for Stack<V> {
    const ENTRY: u64 = size::<V>();
}

impl Room for Programs {
    const ENTRY: u64 = 8;
}

impl Room for Ring {
    /// Its entries are bytes.
    const ENTRY: u64 = 1;
}

impl<Kind: Room> Table<Kind> {
    /// How much room it takes at most, bytes.
    fn bytes(self, config: &Config) -> u64 {
        Kind::ENTRY.saturating_mul(self.size(config).into())
    }
}

/// A hash table of either kind.
pub trait KeyValue {
    type Key;
    type Value;
}

impl<K, V> KeyValue for Hash<K, V> {
    type Key = K;
    type Value = V;
}

impl<K, V> KeyValue for GrowingHash<K, V> {
    type Key = K;
    type Value = V;
}

/// An array of either kind.
pub trait Indexed {
    type Value;
}

impl<V> Indexed for Array<V> {
    type Value = V;
}

impl<V> Indexed for Mapped<V> {
    type Value = V;
}

/// Has a macro declare all tables: documentation, `NAME: Kind<types> = entries;`, the latter by a [`Config`] of the name that comes first.
#[macro_export]
macro_rules! with_every_table {
    ($declare:ident) => {
        $declare! { config;
            /// Thread groups that are observed.
            TARGETS: Hash<u32, $crate::Target> = config.process_slots;

            /// Processes of the job that the daemon has started: what they execute becomes a target, whatever it is called.
            JOB: GrowingHash<u32, u32> = if config.job == 0 { 1 } else { $crate::JOB_MEMBERS };

            /// Threads that have entered MPI. A slot belongs to one thread until it ends.
            THREADS: Mapped<$crate::ThreadState> = config.thread_slots;

            /// A thread's slot, by `bpf_get_current_pid_tgid()`.
            THREAD_SLOT: Hash<u64, u32> = config.thread_slots;

            /// The same for the thread that used the entry last: a look-up in an array is a few instructions, in a hash table a
            /// call. What it says is believed only if the slot bears the thread's id.
            RECENT_SLOT: Array<u32> = $crate::THREAD_CACHE;

            /// Calls that had begun before their process was observed, by thread as in `THREAD_SLOT`. Written by the daemon alone, and
            /// taken out besides when the thread ends: its number may be another thread's then.
            EARLIER_CALLS: GrowingHash<u64, $crate::EarlierCall> =
                if config.thread_slots < $crate::earlier::EARLIER_CALLS {
                    config.thread_slots
                } else {
                    $crate::earlier::EARLIER_CALLS
                };

            /// When such calls have returned, ns; 0: they have not. The daemon makes the entries, so that there is room for what is noted.
            EARLIER_RETURNS: GrowingHash<u64, u64> =
                if config.thread_slots < $crate::earlier::EARLIER_CALLS {
                    config.thread_slots
                } else {
                    $crate::earlier::EARLIER_CALLS
                };

            /// Slots of threads that have ended.
            FREE_SLOTS: Stack<u32> = config.thread_slots;

            /// What threads have done that have ended, as far as there is room; all of them are in their processes' counters.
            ENDED_THREADS: GrowingHash<$crate::EndedThreadKey, $crate::EndedThread> =
                if config.thread_slots < $crate::ENDED_THREAD_RECORDS / 4 {
                    config.thread_slots.saturating_mul(4)
                } else {
                    $crate::ENDED_THREAD_RECORDS
                };

            /// Where arguments stand, by function id.
            DESCRIPTORS: Array<$crate::Descriptor> = $crate::FUNCTION_SLOTS;

            /// Which of them decide what a call is, by function id.
            CACHE_KEYS: Array<$crate::CacheKey> = $crate::FUNCTION_SLOTS;

            /// Statistics entry plus one of (row × `FUNCTION_SLOTS` + function id); 0: none yet. Rows are by process slot, of calls
            /// in no phase, and behind those by number of phase.
            STATS_INDEX: Mapped<u64> = config.stats_rows().saturating_mul($crate::FUNCTION_SLOTS);

            /// How calls of a function are counted: of [`level`](crate::level), by function id. Looked at in processes with a reduced
            /// function only.
            LEVELS: Mapped<u64> = $crate::FUNCTION_SLOTS;

            /// Phases, handed out in the order of first use.
            PHASES: Mapped<$crate::Phase> = config.phase_slots;

            /// The number of the phase with a key.
            PHASE_OF: GrowingHash<$crate::PhaseKey, u32> = config.phase_slots;

            /// Statistics, handed out in the order of first use.
            STATS: Mapped<$crate::FunctionStats> = config.stats_entries;

            /// How each process's MPI library lays out its objects, by process slot; zeroed where nothing is known (yet).
            LAYOUTS: Mapped<$crate::Layout> = config.process_slots;

            /// What is known of the layout of libraries before a process is looked at, by number.
            LIBRARIES: Array<$crate::layout::Template> = if config.traffic == 0 { 1 } else { $crate::LIBRARIES };

            /// The number of the library that a probe is in, by the probe's cookie.
            LIBRARY_OF: GrowingHash<u64, u32> = if config.traffic == 0 { 1 } else { $crate::LIBRARY_PROBES };

            /// Where each process has language layers, by process slot.
            LAYERS: Mapped<$crate::ProcessLayers> = config.process_slots;

            /// The ways out of them, by `layer::call_key`.
            LAYER_FRAMES: GrowingHash<u64, $crate::LayerFrame> =
                if config.layers == 0 { 1 } else { $crate::layer::LAYER_CALLS };

            /// Programs that are called by others, by [`Stage`](crate::tables::Stage).
            STAGES: Programs<> = $crate::tables::Stage::COUNT;

            /// Communicators, handed out in the order of first use; 0 is nobody's.
            COMMUNICATORS: Mapped<$crate::Communicator> = config.communicator_slots;

            /// What programs call them.
            COMMUNICATOR_NAMES: Mapped<$crate::CommunicatorName> = config.communicator_slots;

            /// Who neighbours are, handed out as communicators with topologies are made. Only the course of events needs them.
            TOPOLOGIES: Mapped<$crate::flow::Topology> = if config.rings == 0 { 1 } else { $crate::TOPOLOGIES };

            /// Where communicators come from that have not been looked at.
            ORIGINS: Hash<$crate::CommunicatorKey, $crate::flow::Origin> = config.communicator_slots;

            /// Numbers of communicators that are not told apart, and have been freed.
            SHARED_NUMBERS: Stack<u32> = config.communicator_slots;

            /// The communicator that a handle stands for.
            COMMUNICATOR_OF: Hash<$crate::CommunicatorKey, u32> = config.communicator_slots;

            /// The communicator of each window and file.
            SCOPES: Hash<$crate::CommunicatorKey, $crate::flow::Scope> = config.communicator_slots;

            /// Flows, handed out in the order of first use.
            FLOWS: Mapped<$crate::Flow> = config.flow_slots;

            /// The flow with a key.
            FLOW_OF: Hash<$crate::FlowKey, u32> = config.flow_slots;

            /// The latest operation of each request handle; complete ones stay, for the next one.
            REQUESTS: Hash<$crate::RequestKey, $crate::Request> = config.request_slots;

            /// Where threads keep the handles that their open call was given, handed out in the order of first use.
            HANDLES: Array<$crate::Handles> = config.handle_stores;

            /// The same of calls that were given very many.
            MANY_HANDLES: Array<$crate::ManyHandles> = config.many_handle_stores;

            /// The latest calls of threads, handed out in the order of first use.
            CALL_CACHES: Array<$crate::CallCache> = config.call_cache_slots;

            /// Counters by process slot.
            PROCESSES: Mapped<$crate::ProcessCounters> = config.process_slots;

            /// The last calls, a ring for each process slot.
            RECENT: Mapped<$crate::RecentCall> = {
                let rings = if config.recent == 0 { 1 } else { config.process_slots };
                rings.saturating_mul($crate::recent::RECENT_CALLS)
            };

            /// How far each ring is written and read.
            RINGS: Mapped<$crate::trace::RingHead> = if config.rings == 0 { 1 } else { config.rings };

            /// The lines of all rings, one ring after the other.
            LINES: Mapped<$crate::trace::Line> =
                if config.rings == 0 { 1 } else { config.rings.saturating_mul(config.ring_lines) };

            /// Inner calls by process, outer and inner function (`--nested`).
            INNER: Hash<$crate::InnerKey, $crate::InnerStats> = config.stats_entries;

            /// Open calls of tools, by thread as in `THREAD_SLOT`: only threads that have called one have an entry.
            TOOL_FRAMES: GrowingHash<u64, $crate::ToolFrames> = config.thread_slots;

            /// Calls that have entered tools.
            TOOL_STATS: GrowingHash<$crate::ToolKey, $crate::ToolStats> = config.stats_entries;

            /// Calls that tools have made themselves.
            TOOL_CALLS: GrowingHash<$crate::ToolCallKey, $crate::ToolCallStats> = config.stats_entries;

            /// Words that BPF and daemon both write, by [`Word`](crate::tables::Word).
            CONTROL: Mapped<u64> = $crate::tables::Word::COUNT;

            /// Notices of exec, of calls cut short, and of wishes to see results. At most half of it is taken by environments.
            EVENTS: Ring<> = $crate::config::EVENTS_BYTES;

            /// Where a notice of an exec is put together: too large for the stack.
            EXEC_NOTICE: PerProcessor<$crate::ExecNotice> = 1;
        }
    };
}

macro_rules! list {
    ($config:ident; $($(#[$doc:meta])* $name:ident: $kind:ident<$($type:ty),*> = $size:expr;)*) => {
        $(
            $(#[$doc])*
            pub const $name: Table<$kind<$($type),*>> = Table::new(stringify!($name), |$config| {
                // Some are of one size whatever is asked for.
                let _ = $config;
                $size
            });
        )*

        /// Names and sizes of all.
        pub fn sizes(config: &Config) -> impl Iterator<Item = (&'static str, u32)> {
            [$(($name.name, $name.size)),*].into_iter().map(|(name, size)| (name, size(config)))
        }

        /// How much room all of them take at most, bytes.
        pub fn bytes(config: &Config) -> u64 {
            [$($name.bytes(config)),*].into_iter().fold(0, u64::saturating_add)
        }
    };
}

with_every_table!(list);

macro_rules! stages {
    ($($(#[$doc:meta])* $stage:ident = $program:literal, traced: $traced:literal;)*) => {
        /// A program that is called at the end of others: its place in [`STAGES`].
        #[repr(u32)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Stage {
            $($(#[$doc])* $stage,)*
        }

        impl Stage {
            pub const ALL: &[Self] = &[$(Self::$stage),*];
            pub const COUNT: u32 = 0 $(+ { let _ = Self::$stage; 1 })*;

            /// The program's name: of the one that writes calls down besides, or of the one that knows nothing of it.
            pub const fn program(self, is_traced: bool) -> &'static str {
                match self {
                    $(Self::$stage => if is_traced { $traced } else { $program },)*
                }
            }

            /// Those that there are.
            pub fn all(is_traced: bool) -> impl Iterator<Item = Self> {
                Self::ALL.iter().copied().filter(move |&stage| is_traced || stage != Self::WriteDown)
            }
        }
    };
}

stages! {
    /// Finds the flows of a completed call.
    Attribute = "attribute", traced: "traced_attribute";
    /// Adds up what it has moved.
    Measure = "measure", traced: "traced_measure";
    /// Remembers the operation that a call has posted.
    Post = "post", traced: "traced_post";
    /// Finds out which requests a call has completed.
    Settle = "settle", traced: "traced_settle";
    /// Goes through them.
    Follow = "follow", traced: "traced_follow";
    /// Adds up arrays of counts.
    Sum = "sum", traced: "traced_sum";
    /// Goes through requests whose true source is to be found out.
    FollowAny = "follow_any", traced: "traced_follow_any";
    /// Goes through requests that are started.
    Start = "start", traced: "traced_start";
    /// Notes where communicators come from.
    Relate = "relate", traced: "relate";
    /// Looks at members of a new one.
    Look = "look", traced: "look";
    /// Finds the layout of a process's library by what is known of others.
    Prepare = "prepare", traced: "prepare";
    /// Writes the call down, after all others.
    WriteDown = "write_down", traced: "write_down";
}

/// A word of [`CONTROL`]. Those that begin with `Next` are taken from by atomic addition.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// Free process slot; the observer takes them, too.
    NextProcess,
    /// Free statistics entry.
    NextStats,
    /// Thread slot that was never used.
    NextThread,
    NextFlow,
    /// Counts from 0, which is nobody's number.
    NextCommunicator,
    /// Place for a communicator that is not told apart, above those that are.
    NextShared,
    /// Store of handles.
    NextHandles,
    /// Store of very many handles.
    NextManyHandles,
    NextPhase,
    NextTopology,
    /// Not 0 while somebody looks at the last calls. Written by the observer.
    Recent,
    /// Store of latest calls.
    NextCallCache,
    /// Not 0 while calls are written to rings. Written by the observer.
    Record,
    /// Not 0: it is not found out any more what calls move, and never will be again. Written by the observer.
    NoTraffic,
}

impl Word {
    pub const COUNT: u32 = Self::NoTraffic as u32 + 1;
}
