//! Tools on MPI's profiling interface: libraries, or parts of the program, whose `MPI_X` is called instead of the MPI library's and
//! calls `PMPI_X` of it, or the next tool's `MPI_X`.
//!
//! Each is a layer between the program and the library, with probes of its own.

use bytemuck::{Pod, Zeroable};

/// Files with tools that are told apart.
pub const TOOLS: usize = 16;

/// Calls of tools that may be open in one another in a thread; deeper ones are counted as lost.
pub const TOOL_DEPTH: usize = 4;

/// What the kernel hands to the programs with each hit of a tool's probe: which function of which tool.
///
/// | bits  | meaning |
/// |-------|---------|
/// | 0–9   | function id |
/// | 10–15 | number of the tool |
/// | 16    | whether a process begins to use MPI by it |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolCookie(pub u64);

const FUNCTION_MASK: u64 = (1 << 10) - 1;
const TOOL_SHIFT: u32 = 10;
const TOOL_MASK: u64 = (1 << 6) - 1;
const BEGINNING: u64 = 1 << 16;

const _: () = assert!(crate::FUNCTION_SLOTS as u64 == FUNCTION_MASK + 1 && TOOLS as u64 <= TOOL_MASK + 1);

impl ToolCookie {
    /// Of a function by its id, in a tool by its number.
    pub const fn new(function: u32, tool: u16) -> Self {
        Self(function as u64 & FUNCTION_MASK | (tool as u64 & TOOL_MASK) << TOOL_SHIFT)
    }

    /// Of a function by which a process begins to use MPI.
    #[must_use]
    pub const fn of_beginning(self) -> Self {
        Self(self.0 | BEGINNING)
    }

    /// Whether a process begins to use MPI by it.
    pub const fn is_beginning(self) -> bool {
        self.0 & BEGINNING != 0
    }

    /// Function id.
    #[inline]
    pub const fn function(self) -> u16 {
        (self.0 & FUNCTION_MASK) as u16
    }

    /// Number of the tool.
    #[inline]
    pub const fn tool(self) -> u16 {
        (self.0 >> TOOL_SHIFT & TOOL_MASK) as u16
    }
}

/// What is counted together: the calls of one function that enter one tool in one process image.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Pod, Zeroable)]
pub struct ToolKey {
    /// Process slot.
    pub process: u32,
    pub tool: u16,
    /// Function id.
    pub function: u16,
}

/// What they came to. All but the last three are of the program's calls, and of those that have returned.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct ToolStats {
    /// Completed calls of the program: made by it, or passed on by the tool before this one.
    pub calls: u64,
    /// From their entries to their returns, ns.
    pub time_ns: u64,
    /// Of them, those that the tool has passed on: its first call of the same function inside, to the next tool or the library.
    pub passed_on: u64,
    /// From the entries there to the returns, ns.
    pub passed_on_ns: u64,
    /// Of those passed on, the ones that went to the library, and the time in them, ns.
    pub to_library: u64,
    pub to_library_ns: u64,
    /// All other calls of the library inside them: the tool's own; and the time in them, ns.
    pub own_calls: u64,
    pub own_calls_ns: u64,
    /// Calls that a tool has made, this one or another one.
    pub by_tools: u64,
    /// Calls that MPI has made inside a call of its own.
    pub by_mpi: u64,
    /// Calls that were left without a return (`longjmp`, an exception).
    pub left: u64,
}

/// Which calls that a tool has made itself are counted together.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Pod, Zeroable)]
pub struct ToolCallKey {
    /// Process slot.
    pub process: u32,
    pub tool: u16,
    /// Function id of the program's call that the tool was in.
    pub inside: u16,
    /// Function id of the library's function that it has called.
    pub function: u16,
    /// Padding, zero.
    pub reserved: u16,
}

/// What they came to.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct ToolCallStats {
    /// Completed calls.
    pub calls: u64,
    /// Time in them, ns.
    pub time_ns: u64,
}

/// A tool's call that has not returned.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct ToolFrame {
    pub function: u16,
    pub tool: u16,
    /// [`frame_flags`], ORed.
    pub flags: u32,
    /// Stack pointer at the entry: where the return address is.
    pub stack_pointer: u64,
    /// Frame pointer (RBP) at the entry: the caller's.
    pub frame_pointer: u64,
    /// Return address. Of the outermost only; 0: it could not be read.
    pub call_site: u64,
    /// Entry, ns.
    pub started_ns: u64,
    /// What has been done inside, as in [`ToolStats`].
    pub inside: Inside,
}

/// What has been done in a call of a tool: see [`ToolStats`].
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Inside {
    pub passed_on: u64,
    pub passed_on_ns: u64,
    pub to_library: u64,
    pub to_library_ns: u64,
    pub own_calls: u64,
    pub own_calls_ns: u64,
}

/// Bits of [`ToolFrame::flags`].
pub mod frame_flags {
    /// The program's call: made by it, or passed on by the tool before.
    pub const OF_PROGRAM: u32 = 1 << 0;
    /// It has been passed on.
    pub const PASSED_ON: u32 = 1 << 1;
}

impl ToolStats {
    pub const ZERO: Self = Self {
        calls: 0,
        time_ns: 0,
        passed_on: 0,
        passed_on_ns: 0,
        to_library: 0,
        to_library_ns: 0,
        own_calls: 0,
        own_calls_ns: 0,
        by_tools: 0,
        by_mpi: 0,
        left: 0,
    };

    /// Adds another one's calls.
    pub fn merge(&mut self, other: &Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.time_ns = self.time_ns.saturating_add(other.time_ns);
        self.passed_on = self.passed_on.saturating_add(other.passed_on);
        self.passed_on_ns = self.passed_on_ns.saturating_add(other.passed_on_ns);
        self.to_library = self.to_library.saturating_add(other.to_library);
        self.to_library_ns = self.to_library_ns.saturating_add(other.to_library_ns);
        self.own_calls = self.own_calls.saturating_add(other.own_calls);
        self.own_calls_ns = self.own_calls_ns.saturating_add(other.own_calls_ns);
        self.by_tools = self.by_tools.saturating_add(other.by_tools);
        self.by_mpi = self.by_mpi.saturating_add(other.by_mpi);
        self.left = self.left.saturating_add(other.left);
    }
}

impl ToolCallStats {
    /// Adds another one's calls.
    pub fn merge(&mut self, other: &Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.time_ns = self.time_ns.saturating_add(other.time_ns);
    }
}

impl Inside {
    pub const NONE: Self =
        Self { passed_on: 0, passed_on_ns: 0, to_library: 0, to_library_ns: 0, own_calls: 0, own_calls_ns: 0 };
}

impl ToolFrame {
    pub const NONE: Self = Self {
        function: 0,
        tool: 0,
        flags: 0,
        stack_pointer: 0,
        frame_pointer: 0,
        call_site: 0,
        started_ns: 0,
        inside: Inside::NONE,
    };

    /// Whether a call of a function made inside is the program's call, passed on.
    #[inline]
    pub const fn passes_on(&self, function: u16) -> bool {
        self.flags & (frame_flags::OF_PROGRAM | frame_flags::PASSED_ON) == frame_flags::OF_PROGRAM
            && self.function == function
    }

    /// Whether it is the program's call.
    #[inline]
    pub const fn is_of_program(&self) -> bool {
        self.flags & frame_flags::OF_PROGRAM != 0
    }
}

/// The open calls of a thread's tools, outermost first; how many says [`crate::ThreadState::tools_open`].
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct ToolFrames {
    /// Not 0: the thread's open call of the library is the program's, passed on by the innermost.
    pub is_passed_on: u64,
    pub frames: [ToolFrame; TOOL_DEPTH],
}

impl ToolFrames {
    pub const NONE: Self = Self { is_passed_on: 0, frames: [ToolFrame::NONE; TOOL_DEPTH] };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_cookie_are_told_apart() {
        let cookie = ToolCookie::new(1023, 15);
        assert_eq!((cookie.function(), cookie.tool()), (1023, 15));
        let cookie = ToolCookie::new(7, 0);
        assert_eq!((cookie.function(), cookie.tool()), (7, 0));
    }

    #[test]
    fn a_call_is_passed_on_once_and_by_its_own_function() {
        let mut frame = ToolFrame { function: 3, flags: frame_flags::OF_PROGRAM, ..ToolFrame::NONE };
        assert!(frame.passes_on(3) && !frame.passes_on(4));
        frame.flags |= frame_flags::PASSED_ON;
        assert!(!frame.passes_on(3) && frame.is_of_program());
        assert!(!ToolFrame { function: 3, ..ToolFrame::NONE }.passes_on(3));
    }
}
