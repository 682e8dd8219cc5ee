//! What a thread is doing now.

/// Register arguments of the x86-64 System V calling convention.
pub const REGISTER_ARGUMENTS: usize = 6;
/// Longest argument list of an MPI function (`MPI_Ineighbor_alltoallw_init` and kin have 12, `MPI_Dist_graph` 13).
pub const MAX_ARGUMENTS: usize = 13;
/// Words read from the stack at entry: the return address, then the arguments that are not in registers.
pub const STACK_WORDS: usize = 1 + MAX_ARGUMENTS - REGISTER_ARGUMENTS;
/// Inner calls whose entry is remembered at once (`--nested`); deeper ones are counted as lost.
pub const INNER_DEPTH: usize = 8;

/// A call that has not returned.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenCall {
    /// Function id plus one; 0: no call is open.
    pub function_plus_1: u32,
    /// Padding, zero.
    pub reserved: u32,
    /// Entry, ns.
    pub started_ns: u64,
    /// Stack pointer at entry: where the return address is. Identifies the frame, so entry and return are paired exactly.
    pub stack_pointer: u64,
}

/// State of one live thread that has entered MPI since it is observed. One writer: the thread itself.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ThreadState {
    /// Incremented before each change; a copy whose two sequence numbers differ was torn.
    pub sequence_begin: u64,
    /// Process slot.
    pub process: u32,
    /// Calls open inside the outermost one (`--nested` only).
    pub inner_depth: u32,
    /// The outermost open call.
    pub open: OpenCall,
    /// First six arguments of the open (or last) call, as in registers: of an `int` only the low 32 bits count.
    pub registers: [u64; REGISTER_ARGUMENTS],
    /// `[0]`: the return address, that is the call site; then arguments 7 and up.
    pub stack: [u64; STACK_WORDS],
    /// Completed outermost calls of this thread.
    pub calls: u64,
    /// Time in them, ns.
    pub time_ns: u64,
    /// Calls made inside them by MPI itself.
    pub inner_calls: u64,
    /// First entry seen, ns: before that the thread's state is unknown.
    pub first_entry_ns: u64,
    /// Return of the last completed call, ns.
    pub last_return_ns: u64,
    /// Inner calls that have not returned, outermost first.
    pub inner: [OpenCall; INNER_DEPTH],
    pub sequence_end: u64,
}

impl ThreadState {
    pub const ZERO: Self = Self {
        sequence_begin: 0,
        process: 0,
        inner_depth: 0,
        open: OpenCall { function_plus_1: 0, reserved: 0, started_ns: 0, stack_pointer: 0 },
        registers: [0; REGISTER_ARGUMENTS],
        stack: [0; STACK_WORDS],
        calls: 0,
        time_ns: 0,
        inner_calls: 0,
        first_entry_ns: 0,
        last_return_ns: 0,
        inner: [OpenCall { function_plus_1: 0, reserved: 0, started_ns: 0, stack_pointer: 0 }; INNER_DEPTH],
        sequence_end: 0,
    };

    /// Whether this copy was not changed while it was taken.
    pub const fn is_consistent(&self) -> bool {
        self.sequence_begin == self.sequence_end
    }

    /// Function id of the outermost open call.
    pub const fn open_function(&self) -> Option<u32> {
        self.open.function_plus_1.checked_sub(1)
    }
}
