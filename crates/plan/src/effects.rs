//! May a probe be placed after an instruction instead of before it?

use iced_x86::{FlowControl, Instruction, InstructionInfoFactory, OpAccess, Register, UsedMemory};

use super::{ArgumentRegister, SlowReason};

/// Bytes below the stack pointer that a function may use without moving it (System V AMD64 ABI, section 3.2.2).
const RED_ZONE: u64 = 128;

/// What `instruction` does that a probe placed after it would have needed to see, if anything.
/// The function has so many `arguments`: the registers of further ones are free.
pub(super) fn obstacle(
    instruction: &Instruction,
    arguments: usize,
    factory: &mut InstructionInfoFactory,
) -> Option<SlowReason> {
    if instruction.flow_control() != FlowControl::Next {
        return Some(SlowReason::Branch);
    }
    let info = factory.info(instruction);
    let mut overwritten = None;
    for used in info.used_registers().iter().filter(|used| writes(used.access())) {
        match used.register().full_register() {
            Register::RSP => return Some(SlowReason::StackPointerMoved),
            register => overwritten = overwritten.or(argument(register, arguments)),
        }
    }
    if let Some(register) = overwritten {
        return Some(SlowReason::ArgumentOverwritten(register));
    }
    let harmful = info.used_memory().iter().any(|memory| writes(memory.access()) && !is_in_red_zone(memory));
    harmful.then_some(SlowReason::MemoryWritten)
}

fn writes(access: OpAccess) -> bool {
    matches!(access, OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
}

fn argument(register: Register, arguments: usize) -> Option<ArgumentRegister> {
    let (position, argument) = match register {
        Register::RDI => (0, ArgumentRegister::Rdi),
        Register::RSI => (1, ArgumentRegister::Rsi),
        Register::RDX => (2, ArgumentRegister::Rdx),
        Register::RCX => (3, ArgumentRegister::Rcx),
        Register::R8 => (4, ArgumentRegister::R8),
        Register::R9 => (5, ArgumentRegister::R9),
        _ => return None,
    };
    (position < arguments).then_some(argument)
}

/// Wholly below the stack pointer, where neither arguments nor the return address are.
fn is_in_red_zone(memory: &UsedMemory) -> bool {
    let below = memory.displacement().wrapping_neg();
    let size = memory.memory_size().size() as u64;
    memory.base() == Register::RSP
        && memory.index() == Register::None
        && !matches!(memory.segment(), Register::FS | Register::GS)
        && size > 0
        && (size..=RED_ZONE).contains(&below)
}
