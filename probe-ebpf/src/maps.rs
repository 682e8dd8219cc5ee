//! The tables. Names and sizes here are defaults: the daemon sets sizes when it loads the object.

use aya_ebpf::{
    bindings::{BPF_F_MMAPABLE, BPF_F_NO_PREALLOC},
    macros::map,
    maps::{Array, HashMap, PerCpuArray, ProgramArray, RingBuf, Stack},
};
use mpiprobe_common::{
    COMMUNICATOR_SLOTS, Communicator, CommunicatorKey, CommunicatorName, Config, CacheKey, Descriptor, ENDED_THREAD_RECORDS, EndedThread, EndedThreadKey, ExecNotice, FLOW_SLOTS, FUNCTION_SLOTS, Flow, FlowKey, LIBRARIES as MOST_LIBRARIES, LIBRARY_PROBES,
    FunctionStats, HANDLE_STORES, Handles, InnerKey, InnerStats, JOB_MEMBERS, LayerFrame, Layout, PROCESS_SLOTS, ProcessCounters, ProcessLayers, CALL_CACHE_SLOTS, CallCache, RecentCall,
    PHASE_SLOTS, Phase, PhaseKey, REQUEST_SLOTS, Request, RequestKey, STATS_ENTRIES, THREAD_CACHE, THREAD_SLOTS, Target,
    ThreadState, ToolCallKey, ToolCallStats, ToolFrames, ToolKey, ToolStats, config::{CONTROL_WORDS, EVENTS_BYTES}, flow::{Origin, Scope}, layer::LAYER_CALLS, layout::Template,
    recent::RECENT_CALLS,
};

/// Set by the daemon before load.
#[unsafe(no_mangle)]
static CONFIG: Config = Config::DEFAULT;

/// Fields of the configuration as the loader has set them: read volatile, because the loader rewrites the section behind
/// the compiler's back, so that initial values must not be folded in.
pub mod configured {
    use core::ptr::read_volatile;

    use mpiprobe_common::{EnvironmentFields, OpenCalls, config::COMM_LENGTH};

    use super::CONFIG;

    macro_rules! fields {
        ($($field:ident: $type:ty),* $(,)?) => {$(
            #[inline(always)]
            pub fn $field() -> $type {
                // SAFETY: a field of a live static, aligned and initialised.
                unsafe { read_volatile(&raw const CONFIG.$field) }
            }
        )*};
    }

    fields! {
        exec_name: [u8; COMM_LENGTH],
        exec_uid: u32,
        nested: u32,
        open_calls: OpenCalls,
        pcontrol_plus_1: u32,
        process_slots: u32,
        read_call_sites: u32,
        read_stack: u32,
        recent: u32,
        stats_entries: u32,
        thread_slots: u32,
        trace: u32,
        flow_slots: u32,
        traffic: u32,
        communicator_slots: u32,
        handle_stores: u32,
        call_cache_slots: u32,
        job: u32,
        environment: EnvironmentFields,
    }
}

/// Thread groups that are observed.
#[map]
pub static TARGETS: HashMap<u32, Target> = HashMap::with_max_entries(PROCESS_SLOTS, 0);

/// Processes of the job that the daemon has started: what they execute becomes a target, whatever it is called.
#[map]
pub static JOB: HashMap<u32, u32> = HashMap::with_max_entries(JOB_MEMBERS, BPF_F_NO_PREALLOC);

/// Threads that have entered MPI. A slot belongs to one thread until it ends.
#[map]
pub static THREADS: Array<ThreadState> = Array::with_max_entries(THREAD_SLOTS, BPF_F_MMAPABLE);

/// A thread's slot, by `bpf_get_current_pid_tgid()`.
#[map]
pub static THREAD_SLOT: HashMap<u64, u32> = HashMap::with_max_entries(THREAD_SLOTS, 0);

/// The same for the thread that used the entry last: a look-up in an array is a few instructions, in a hash table a call.
/// What it says is believed only if the slot bears the thread's id.
#[map]
pub static RECENT_SLOT: Array<u32> = Array::with_max_entries(THREAD_CACHE, 0);

/// Slots of threads that have ended.
#[map]
pub static FREE_SLOTS: Stack<u32> = Stack::with_max_entries(THREAD_SLOTS, 0);

/// What threads have done that have ended, as far as there is room; all of them are in their processes' counters.
#[map]
pub static ENDED_THREADS: HashMap<EndedThreadKey, EndedThread> = HashMap::with_max_entries(ENDED_THREAD_RECORDS, BPF_F_NO_PREALLOC);

/// Where arguments stand, by function id.
#[map]
pub static DESCRIPTORS: Array<Descriptor> = Array::with_max_entries(FUNCTION_SLOTS, 0);

/// Which of them decide what a call is, by function id.
#[map]
pub static CACHE_KEYS: Array<CacheKey> = Array::with_max_entries(FUNCTION_SLOTS, 0);

/// Statistics entry plus one of (row × `FUNCTION_SLOTS` + function id); 0: none yet. Rows are by process slot, of calls in no
/// phase, and behind those by number of phase.
#[map]
pub static STATS_INDEX: Array<u64> = Array::with_max_entries((PROCESS_SLOTS + PHASE_SLOTS) * FUNCTION_SLOTS, BPF_F_MMAPABLE);

/// Phases, handed out in the order of first use.
#[map]
pub static PHASES: Array<Phase> = Array::with_max_entries(PHASE_SLOTS, BPF_F_MMAPABLE);

/// The number of the phase with a key.
#[map]
pub static PHASE_OF: HashMap<PhaseKey, u32> = HashMap::with_max_entries(PHASE_SLOTS, BPF_F_NO_PREALLOC);

/// Statistics, handed out in the order of first use.
#[map]
pub static STATS: Array<FunctionStats> = Array::with_max_entries(STATS_ENTRIES, BPF_F_MMAPABLE);

/// How each process's MPI library lays out its objects, by process slot; zeroed where nothing is known (yet).
#[map]
pub static LAYOUTS: Array<Layout> = Array::with_max_entries(PROCESS_SLOTS, BPF_F_MMAPABLE);

/// What is known of the layout of libraries before a process is looked at, by number.
#[map]
pub static LIBRARIES: Array<Template> = Array::with_max_entries(MOST_LIBRARIES, 0);

/// The number of the library that a probe is in, by the probe's cookie.
#[map]
pub static LIBRARY_OF: HashMap<u64, u32> = HashMap::with_max_entries(LIBRARY_PROBES, BPF_F_NO_PREALLOC);

/// Where each process has language layers, by process slot.
#[map]
pub static LAYERS: Array<ProcessLayers> = Array::with_max_entries(PROCESS_SLOTS, BPF_F_MMAPABLE);

/// The ways out of them, by `layer::call_key`.
#[map]
pub static LAYER_FRAMES: HashMap<u64, LayerFrame> = HashMap::with_max_entries(LAYER_CALLS, BPF_F_NO_PREALLOC);

/// Programs that are called by others.
#[map]
pub static STAGES: ProgramArray = ProgramArray::with_max_entries(mpiprobe_common::config::STAGES, 0);

/// Communicators, handed out in the order of first use; 0 is nobody's.
#[map]
pub static COMMUNICATORS: Array<Communicator> = Array::with_max_entries(COMMUNICATOR_SLOTS, BPF_F_MMAPABLE);

/// What programs call them.
#[map]
pub static COMMUNICATOR_NAMES: Array<CommunicatorName> = Array::with_max_entries(COMMUNICATOR_SLOTS, BPF_F_MMAPABLE);

/// Where communicators come from that have not been looked at.
#[map]
pub static ORIGINS: HashMap<CommunicatorKey, Origin> = HashMap::with_max_entries(COMMUNICATOR_SLOTS, 0);

/// Numbers of communicators that are not told apart, and have been freed.
#[map]
pub static SHARED_NUMBERS: Stack<u32> = Stack::with_max_entries(COMMUNICATOR_SLOTS, 0);

/// The communicator that a handle stands for.
#[map]
pub static COMMUNICATOR_OF: HashMap<CommunicatorKey, u32> = HashMap::with_max_entries(COMMUNICATOR_SLOTS, 0);

/// The communicator of each window and file.
#[map]
pub static SCOPES: HashMap<CommunicatorKey, Scope> = HashMap::with_max_entries(COMMUNICATOR_SLOTS, 0);

/// Flows, handed out in the order of first use.
#[map]
pub static FLOWS: Array<Flow> = Array::with_max_entries(FLOW_SLOTS, BPF_F_MMAPABLE);

/// The flow with a key.
#[map]
pub static FLOW_OF: HashMap<FlowKey, u32> = HashMap::with_max_entries(FLOW_SLOTS, 0);

/// The latest operation of each request handle; complete ones stay, for the next one.
#[map]
pub static REQUESTS: HashMap<RequestKey, Request> = HashMap::with_max_entries(REQUEST_SLOTS, 0);

/// Where threads keep the handles that their open call was given, handed out in the order of first use.
#[map]
pub static HANDLES: Array<Handles> = Array::with_max_entries(HANDLE_STORES, 0);

/// The latest calls of threads, handed out in the order of first use.
#[map]
pub static CALL_CACHES: Array<CallCache> = Array::with_max_entries(CALL_CACHE_SLOTS, 0);

/// Counters by process slot.
#[map]
pub static PROCESSES: Array<ProcessCounters> = Array::with_max_entries(PROCESS_SLOTS, BPF_F_MMAPABLE);

/// The last calls, a ring for each process slot.
#[map]
pub static RECENT: Array<RecentCall> = Array::with_max_entries(RECENT_CALLS, BPF_F_MMAPABLE);

/// Inner calls by process, outer and inner function (`--nested`).
#[map]
pub static INNER: HashMap<InnerKey, InnerStats> = HashMap::with_max_entries(STATS_ENTRIES, 0);

/// Open calls of tools, by thread as in `THREAD_SLOT`: only threads that have called one have an entry.
#[map]
pub static TOOL_FRAMES: HashMap<u64, ToolFrames> = HashMap::with_max_entries(THREAD_SLOTS, BPF_F_NO_PREALLOC);

/// Calls that have entered tools.
#[map]
pub static TOOL_STATS: HashMap<ToolKey, ToolStats> = HashMap::with_max_entries(STATS_ENTRIES, BPF_F_NO_PREALLOC);

/// Calls that tools have made themselves.
#[map]
pub static TOOL_CALLS: HashMap<ToolCallKey, ToolCallStats> = HashMap::with_max_entries(STATS_ENTRIES, BPF_F_NO_PREALLOC);

/// Words that BPF and daemon both take numbers from.
#[map]
pub static CONTROL: Array<u64> = Array::with_max_entries(CONTROL_WORDS, BPF_F_MMAPABLE);

/// Notices of exec, of calls cut short, and of wishes to see results.
#[map]
pub static EVENTS: RingBuf = RingBuf::with_byte_size(EVENTS_BYTES, 0);

/// Where a notice of an exec is put together: too large for the stack.
#[map]
pub static EXEC_NOTICE: PerCpuArray<ExecNotice> = PerCpuArray::with_max_entries(1, 0);
