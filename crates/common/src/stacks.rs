//! What a look at a thread notes of it: registers and counters as words, and the pages of its stack beside them.
//!
//! Words by number instead of a structure, so that they are plain data to every reader of tables.

/// Threads that one run of the iterator can look at.
pub const SLOTS: u32 = 256;
/// Bytes of one page, and pages of stack that are copied of one thread.
pub const PAGE_BYTES: usize = 4096;
pub const PAGES: u32 = 16;

/// Words that are noted of a thread.
pub const WORDS: usize = 64;
/// One thread, as noted.
pub type Record = [u64; WORDS];
/// One page of a stack, in words.
pub type Page = [u64; PAGE_BYTES / 8];

/// `pid << 32 | tid`; 0 as long as the thread has not been looked at.
pub const ID: usize = 0;
/// `task_struct.__state`: 0 if it runs or could.
pub const STATE: usize = 1;
/// Address of the first page that was copied, and how many were.
pub const STACK: usize = 2;
pub const COPIED: usize = 3;
/// The thread's own block of memory, which is above its stack.
pub const FS_BASE: usize = 4;
/// Whether the registers could be read: 1.
pub const HAS_REGISTERS: usize = 5;
/// By the monotonic clock, ns, before the look and after it.
pub const BEGAN: usize = 6;
pub const ENDED: usize = 7;
/// What tells whether it ran meanwhile, before the look and after it: see [`Progress`].
pub const BEFORE: usize = 8;
pub const AFTER: usize = 12;
/// `struct pt_regs`, in the kernel's order.
pub const REGISTERS: usize = 16;
/// Words of that on x86-64.
pub const REGISTER_WORDS: usize = 21;
/// Return addresses that the kernel has replaced on the stack, for return probes of anybody: where each is, and what belongs there; the
/// probe that was armed last comes first. An address of 0 is the end.
pub const RETURNS: usize = 40;
/// Those of MPI calls within each other, of tools before MPI and of functions that call them.
pub const MOST_RETURNS: usize = 12;

/// Places of what tells of progress, from [`BEFORE`] and [`AFTER`].
pub mod progress {
    /// Voluntary and involuntary context switches.
    pub const VOLUNTARY: usize = 0;
    pub const INVOLUNTARY: usize = 1;
    /// Time on a CPU, ns, as of the last tick or switch.
    pub const RUN_NS: usize = 2;
    /// Whether it is on a CPU.
    pub const ON_CPU: usize = 3;
}

/// Places of registers in [`REGISTERS`] (arch/x86/include/asm/ptrace.h).
pub mod register {
    pub const R15: usize = 0;
    pub const R14: usize = 1;
    pub const R13: usize = 2;
    pub const R12: usize = 3;
    pub const BP: usize = 4;
    pub const BX: usize = 5;
    pub const R11: usize = 6;
    pub const R10: usize = 7;
    pub const R9: usize = 8;
    pub const R8: usize = 9;
    pub const AX: usize = 10;
    pub const CX: usize = 11;
    pub const DX: usize = 12;
    pub const SI: usize = 13;
    pub const DI: usize = 14;
    /// The number of the system call, if it is in one.
    pub const ORIGINAL_AX: usize = 15;
    pub const IP: usize = 16;
    pub const FLAGS: usize = 18;
    pub const SP: usize = 19;
}

/// Where fields of kernel structures are, by place in the program's configuration; filled in before load.
pub mod field {
    pub const TASK_GROUP_LEADER: usize = 0;
    pub const TASK_THREAD_PID: usize = 1;
    pub const TASK_STATE: usize = 2;
    pub const TASK_MM: usize = 3;
    pub const TASK_VOLUNTARY: usize = 4;
    pub const TASK_INVOLUNTARY: usize = 5;
    /// Of `se.sum_exec_runtime`.
    pub const TASK_RUN_NS: usize = 6;
    pub const TASK_ON_CPU: usize = 7;
    /// Of `thread.fsbase`.
    pub const TASK_FS_BASE: usize = 8;
    pub const MM_START_STACK: usize = 9;
    /// Of `struct pid`: how deep the namespace is that the process is in, and the numbers that it has in all.
    pub const PID_LEVEL: usize = 10;
    pub const PID_NUMBERS: usize = 11;
    /// Of `struct uprobe_task` and `struct return_instance` (include/linux/uprobes.h); 0, all of them, in a kernel without uprobes.
    pub const TASK_UTASK: usize = 12;
    pub const UTASK_RETURN_INSTANCES: usize = 13;
    pub const INSTANCE_STACK: usize = 14;
    pub const INSTANCE_RETURN_ADDRESS: usize = 15;
    pub const INSTANCE_NEXT: usize = 16;
    pub const COUNT: usize = 17;
}
