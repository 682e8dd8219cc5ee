//! What is fixed when the BPF programs are loaded.

/// Length of a process name in the kernel (`TASK_COMM_LEN`), the final NUL included.
pub const COMM_LENGTH: usize = 16;

/// Read-only configuration: constants for the verifier, which drops the code that they switch off.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Name of programs that become targets by exec, NUL-padded; empty: none do.
    pub exec_name: [u8; COMM_LENGTH],
    /// Only processes of this real user id become targets by exec; `u32::MAX`: of any user.
    pub exec_uid: u32,
    /// Not 0: inner calls are timed (`--nested`).
    pub nested: u32,
    /// Number of process slots; at most the size of the tables.
    pub process_slots: u32,
    /// Number of statistics entries; at most the size of the table.
    pub stats_entries: u32,
}

impl Config {
    pub const DEFAULT: Self = Self {
        exec_name: [0; COMM_LENGTH],
        exec_uid: u32::MAX,
        nested: 0,
        process_slots: crate::PROCESS_SLOTS,
        stats_entries: crate::STATS_ENTRIES,
    };
}

/// Word of the shared control array: next free process slot. Taken by atomic addition, in BPF and in the observer.
pub const CONTROL_NEXT_PROCESS: u32 = 0;
/// Word of the shared control array: next free statistics entry.
pub const CONTROL_NEXT_STATS: u32 = 1;
/// Number of control words.
pub const CONTROL_WORDS: u32 = 2;
