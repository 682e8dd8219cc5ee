//! From a call inside a language layer to the caller of the layer.

use gimli::X86_64;
use mpiprobe_common::LayerFrame;

use super::{
    call_frames::{CallFrame, CallFrames, Kept, SAVED},
    module::{Module, ModuleAddress},
};

/// Callers that are looked through; layers are at most three deep.
const MAX_DEPTH: usize = 16;

/// The registers of x86-64 that a function leaves as they were, after the return from a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Registers {
    /// The stack pointer after the return: the address of the return address plus 8.
    pub sp: u64,
    /// RBX, RBP, R12, R13, R14, R15 as they are known; at the entry of the called function they are still the caller's.
    pub saved: [Option<u64>; 6],
}

impl Registers {
    /// Only the stack pointer is known.
    pub fn at(sp: u64) -> Self {
        Self { sp, saved: [None; 6] }
    }
}

/// A caller: where it will go on, and with what registers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Absolute.
    pub return_address: u64,
    pub at: ModuleAddress,
    pub registers: Registers,
}

/// The way from a call that returns to `at` to the caller of the function that has made it, by a word or two of the stack;
/// `None` where that is not enough or not known.
pub fn layer_frame_at(at: &ModuleAddress) -> Option<LayerFrame> {
    at.module.call_frame(at.offset.checked_sub(1)?)?.of_layer()
}

/// The caller of the language layers that a call was made through, or the call itself if there are none.
///
/// `return_address` is that of the call into MPI (never the word on the stack, which a return probe replaces), `stack` what is
/// in memory from `registers.sp` on. `locate` says what an address belongs to. `None` if the way out cannot be known: rules
/// are missing or too complicated, a register is not known, or too little of the stack is.
pub fn unwind_out_of_layers(
    mut locate: impl FnMut(u64) -> ModuleAddress,
    return_address: u64,
    registers: Registers,
    stack: &[u8],
) -> Option<Frame> {
    let stack = Stack { start: registers.sp, bytes: stack };
    let mut frame = Frame { return_address, at: locate(return_address), registers };
    for _ in 0..MAX_DEPTH {
        if frame.at.layer().is_none_or(|layer| !layer.is_called_by_user()) {
            return Some(frame);
        }
        let (return_address, registers) = caller(&frame, &stack)?;
        frame = Frame { return_address, at: locate(return_address), registers };
    }
    None
}

fn caller(frame: &Frame, stack: &Stack<'_>) -> Option<(u64, Registers)> {
    let rules = frame.at.module.call_frame(frame.at.offset.checked_sub(1)?)?;
    let registers = &frame.registers;
    let base = match SAVED.iter().position(|register| *register == rules.base) {
        Some(place) => *registers.saved.get(place)?,
        None => Some(registers.sp).filter(|_| rules.base == X86_64::RSP),
    };
    let cfa = base?.checked_add_signed(rules.to_cfa)?;
    // The stack grows downwards: a caller's frame is above.
    if cfa <= registers.sp {
        return None;
    }
    let return_address = stack.word(cfa.checked_add_signed(rules.return_address)?)?;
    let mut saved = [None; 6];
    for ((value, kept), before) in saved.iter_mut().zip(rules.saved).zip(registers.saved) {
        *value = match kept {
            Kept::InPlace => before,
            Kept::OnStack(offset) => cfa.checked_add_signed(offset).and_then(|address| stack.word(address)),
            Kept::Lost => None,
        };
    }
    Some((return_address, Registers { sp: cfa, saved }))
}

/// A copy of a part of a stack.
struct Stack<'a> {
    start: u64,
    bytes: &'a [u8],
}

impl Stack<'_> {
    fn word(&self, address: u64) -> Option<u64> {
        let start = usize::try_from(address.checked_sub(self.start)?).ok()?;
        self.bytes.get(start..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
    }
}

impl Module {
    pub(super) fn call_frames(&self) -> Option<&CallFrames> {
        self.frames.get_or_init(|| self.image.as_ref().and_then(CallFrames::read)).as_ref()
    }

    fn call_frame(&self, address: u64) -> Option<CallFrame> {
        self.call_frames()?.at(address)
    }
}
