//! What was not counted, by cause. Nothing is lost without one of these counters going up.

/// Cause of a loss; the value is the index into [`crate::ProcessCounters::losses`].
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// A call was not counted: no room for its thread's state.
    ThreadTableFull = 0,
    /// A completed call was not counted: no room for statistics of this process and function.
    StatsTableFull = 1,
    /// A return was seen whose entry was not: the call began before attach.
    ReturnWithoutEntry = 2,
    /// An entry was seen whose return was not: `longjmp`, an exception or a dropped return probe.
    EntryWithoutReturn = 3,
    /// The call site or stack arguments could not be read (the page was not in memory); the call itself is counted.
    StackUnreadable = 4,
    /// An inner call was not timed: more of them were open at once than are kept (`--nested`).
    InnerTooDeep = 5,
    /// An inner call was not counted: no room in the table of inner calls (`--nested`).
    InnerTableFull = 6,
    /// A process that matched was not observed: all process slots are taken. Counted in the calibration's slot.
    ProcessTableFull = 7,
    /// A notice of exec or exit did not fit into its ring buffer; the counters it would announce are right all the same.
    EventDropped = 8,
    /// A call's flow was not recorded: no room for another flow.
    FlowTableFull = 9,
    /// A communicator could not be told from others: no room for another one.
    CommunicatorTableFull = 10,
    /// An operation was not followed from post to completion: no room for another request.
    RequestTableFull = 11,
    /// The requests of a call were not looked at, or not all: more than are remembered of one call, or no room to remember them.
    RequestsNotFollowed = 12,
    /// A phase was opened that is not told apart from the one it was opened in: too many, or open at once.
    PhaseTableFull = 13,
    /// A call of a tool was not counted: more of them open at once than are kept, or no room in a table.
    ToolCallLost = 14,
    /// It is not known what a call has moved, with whom or over which communicator, or which requests it has completed: the layout of
    /// the process's MPI library was not known (yet).
    LayoutUnknown = 15,
}

/// Number of loss counters.
pub const LOSSES: usize = 16;

impl Loss {
    pub const ALL: [Self; LOSSES] = [
        Self::ThreadTableFull,
        Self::StatsTableFull,
        Self::ReturnWithoutEntry,
        Self::EntryWithoutReturn,
        Self::StackUnreadable,
        Self::InnerTooDeep,
        Self::InnerTableFull,
        Self::ProcessTableFull,
        Self::EventDropped,
        Self::FlowTableFull,
        Self::CommunicatorTableFull,
        Self::RequestTableFull,
        Self::RequestsNotFollowed,
        Self::PhaseTableFull,
        Self::ToolCallLost,
        Self::LayoutUnknown,
    ];
}
