//! What is fixed when the BPF programs are loaded.

use bytemuck::{Pod, Zeroable};

/// Length of a process name in the kernel (`TASK_COMM_LEN`), the final NUL included.
pub const COMM_LENGTH: usize = 16;

/// Read-only configuration: constants for the verifier, which drops the code that they switch off.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct Config {
    /// Name of programs that become targets by exec, NUL-padded; empty: none do.
    pub exec_name: [u8; COMM_LENGTH],
    /// Only processes of this real user id become targets by exec; `u32::MAX`: of any user.
    pub exec_uid: u32,
    /// Not 0: some functions are probed that are not counted, see [`crate::Descriptor::unchosen`].
    pub has_unchosen: u32,
    /// Not 0: inner calls are timed (`--nested`).
    pub nested: u32,
    /// Number of process slots; at most the size of the tables.
    pub process_slots: u32,
    /// Number of statistics entries; at most the size of the table.
    pub stats_entries: u32,
    /// Number of thread slots; at most the size of the table.
    pub thread_slots: u32,
    /// Not 0: it is found out what completed calls have moved (`--traffic`).
    pub traffic: u32,
    /// Not 0: arguments on the stack are read at each entry, for traffic or for whoever looks at open calls.
    pub read_stack: u32,
    /// Id plus one of the function by which programs control what is counted; 0: they do not.
    pub pcontrol_plus_1: u32,
    /// Number of flows; at most the size of the table.
    pub flow_slots: u32,
    /// Number of communicators; at most the size of the table.
    pub communicator_slots: u32,
    /// Number of requests, and of stores of handles; at most the sizes of the tables.
    pub request_slots: u32,
    pub handle_stores: u32,
    pub many_handle_stores: u32,
    /// Number of phases; at most the size of the table.
    pub phase_slots: u32,
    /// Number of threads whose latest calls are remembered; at most the size of the table.
    pub call_cache_slots: u32,
    /// Not 0: the call site is read at the entry of every call that may wait. 0: [`OpenCalls`] says where to find it when it
    /// is asked for.
    pub read_call_sites: u32,
    /// Not 0: functions that make calls inside MPI may not be probed, so that such calls are told by where they come from.
    pub unseen_outer: u32,
    /// Not 0: there is a job whose processes become targets by exec, and all that they start with them.
    pub job: u32,
    /// Not 0: somebody may want to see the last calls; whether he does now says [`CONTROL_RECENT`].
    pub recent: u32,
    /// Not 0: calls of language layers are to be told from the program's, or charged to it.
    pub layers: u32,
    /// Not 0: what happens to processes is written to the log of the programs (`--trace-bpf`).
    pub trace: u32,
    /// Rings that calls are written to as they return: a power of two; 0: none, and the programs know nothing of it.
    pub rings: u32,
    /// Lines of each: a power of two.
    pub ring_lines: u32,
    /// Not 0: it may end that it is found out what calls have moved, see [`Word::NoTraffic`](crate::tables::Word::NoTraffic).
    pub budget: u32,
    pub open_calls: OpenCalls,
    pub environment: EnvironmentFields,
    pub namespace: Namespace,
}

/// The pid namespace whose numbers processes and threads have in the tables, and where the kernel keeps those numbers: offsets in its
/// structures, bytes. All 0: the initial one, whose numbers the kernel itself uses.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Namespace {
    /// Number of its inode.
    pub inode: u32,
    /// Device of the inode, as the kernel counts devices (include/linux/kdev_t.h).
    pub device: u32,
    /// `task_struct.thread_pid`
    pub task_thread_pid: u32,
    /// `task_struct.group_leader`
    pub task_group_leader: u32,
    /// `pid.level`
    pub pid_level: u32,
    /// `pid.numbers`: of each namespace that the process is in, outermost first, [`Namespace::NUMBER_BYTES`].
    pub pid_numbers: u32,
}

impl Namespace {
    pub const INITIAL: Self =
        Self { inode: 0, device: 0, task_thread_pid: 0, task_group_leader: 0, pid_level: 0, pid_numbers: 0 };
    /// Size of `struct upid`, which begins with the number (include/linux/pid.h).
    pub const NUMBER_BYTES: u32 = 16;
}

/// Where the kernel keeps the return addresses of calls whose return probe is armed: offsets in its structures, bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct OpenCalls {
    /// `task_struct.tgid`
    pub task_tgid: u32,
    /// `task_struct.pid`
    pub task_pid: u32,
    /// `task_struct.utask`
    pub task_utask: u32,
    /// `uprobe_task.return_instances`
    pub utask_return_instances: u32,
    /// `return_instance.stack`
    pub instance_stack: u32,
    /// `return_instance.orig_ret_vaddr`
    pub instance_return_address: u32,
    /// `return_instance.next`
    pub instance_next: u32,
    /// Padding, zero.
    pub reserved: u32,
}

impl OpenCalls {
    pub const UNKNOWN: Self = Self {
        task_tgid: 0,
        task_pid: 0,
        task_utask: 0,
        utask_return_instances: 0,
        instance_stack: 0,
        instance_return_address: 0,
        instance_next: 0,
        reserved: 0,
    };
}

/// Where the kernel keeps the environment of a process image, and who started it: offsets in its structures, bytes. All 0: not known.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct EnvironmentFields {
    /// `task_struct.mm`
    pub task_mm: u32,
    /// `mm_struct.env_start`
    pub env_start: u32,
    /// `mm_struct.env_end`
    pub env_end: u32,
    /// `task_struct.real_parent`
    pub task_real_parent: u32,
}

impl EnvironmentFields {
    pub const UNKNOWN: Self = Self { task_mm: 0, env_start: 0, env_end: 0, task_real_parent: 0 };
}

impl Config {
    pub const DEFAULT: Self = Self {
        exec_name: [0; COMM_LENGTH],
        exec_uid: u32::MAX,
        has_unchosen: 1,
        nested: 0,
        process_slots: crate::PROCESS_SLOTS,
        stats_entries: crate::STATS_ENTRIES,
        thread_slots: crate::THREAD_SLOTS,
        traffic: 0,
        read_stack: 0,
        pcontrol_plus_1: 0,
        flow_slots: crate::FLOW_SLOTS,
        communicator_slots: crate::COMMUNICATOR_SLOTS,
        request_slots: crate::REQUEST_SLOTS,
        handle_stores: crate::HANDLE_STORES,
        many_handle_stores: crate::MANY_HANDLE_STORES,
        phase_slots: crate::PHASE_SLOTS,
        call_cache_slots: crate::CALL_CACHE_SLOTS,
        read_call_sites: 1,
        unseen_outer: 0,
        job: 0,
        recent: 0,
        layers: 0,
        trace: 0,
        rings: 0,
        ring_lines: 0,
        budget: 0,
        open_calls: OpenCalls::UNKNOWN,
        environment: EnvironmentFields::UNKNOWN,
        namespace: Namespace::INITIAL,
    };

    /// Rows of the index of statistics: one for each process, and one for each phase if there can be any.
    pub const fn stats_rows(&self) -> u32 {
        let phases = if self.pcontrol_plus_1 == 0 { 0 } else { self.phase_slots };
        self.process_slots.saturating_add(phases)
    }
}

/// Size of the ring buffer of notices, bytes.
pub const EVENTS_BYTES: u32 = 2 << 20;
