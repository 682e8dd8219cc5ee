//! Where one function's probe goes and what it will cost.

use std::fmt;

/// The instruction to probe. A return probe works there too: the return address is still on top of the stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Site {
    /// In bytes from the start of the file.
    pub offset: u64,
    pub kind: SiteKind,
    /// The function jumps back to its entry (a tail call to itself): one call may hit the probe more than once, each time as
    /// if the function had been called anew.
    pub reentered: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SiteKind {
    /// The first instruction, which the kernel emulates: about half a microsecond a call.
    Fast,
    /// As fast, at an instruction so many bytes after the first.
    Moved { by: u8 },
    /// The first instruction, which the kernel single-steps: two to twenty times dearer.
    Slow { reason: SlowReason },
}

/// What stands between the entry and an instruction that the kernel emulates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlowReason {
    /// Then the return address and the arguments on the stack are not where they are expected.
    StackPointerMoved,
    ArgumentOverwritten(ArgumentRegister),
    /// It could be an argument on the stack, or what an argument points to.
    MemoryWritten,
    /// A branch that the kernel does not emulate (`ret`, `jmp *%rax`, …): not every call gets further.
    Branch,
    /// Nothing suitable within the first few instructions.
    TooFar,
    /// The function ends first.
    EndOfFunction,
    /// The bytes there are no instruction.
    Undecodable,
    /// A suitable instruction exists, but the function jumps back to it or before it.
    JumpTarget,
}

/// The registers that carry arguments (System V AMD64 ABI, section 3.2.3).
///
/// `rax` is not among them: its low byte counts the vector registers of a variadic call, of which MPI has one, MPI_Pcontrol,
/// and nobody asks for those.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgumentRegister {
    Rdi,
    Rsi,
    Rdx,
    Rcx,
    R8,
    R9,
}

impl fmt::Display for ArgumentRegister {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rdi => "rdi",
            Self::Rsi => "rsi",
            Self::Rdx => "rdx",
            Self::Rcx => "rcx",
            Self::R8 => "r8",
            Self::R9 => "r9",
        })
    }
}

impl fmt::Display for SlowReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StackPointerMoved => f.write_str("it moves the stack pointer first"),
            Self::ArgumentOverwritten(register) => write!(f, "it overwrites an argument ({register}) first"),
            Self::MemoryWritten => f.write_str("it writes to memory first"),
            Self::Branch => f.write_str("it branches first"),
            Self::TooFar => f.write_str("its first instructions are all single-stepped"),
            Self::EndOfFunction => f.write_str("it ends before an instruction that is emulated"),
            Self::Undecodable => f.write_str("its first instructions cannot be decoded"),
            Self::JumpTarget => f.write_str("it jumps back into its first instructions"),
        }
    }
}
