//! All that holds at one instruction, for whole stacks: where the caller's value of every register is.

use gimli::{CfaRule, Reader as _, Register, RegisterRule, UnwindExpression, X86_64};

use super::module::Module;

/// Registers that are told of: DWARF's numbers of x86-64 up to the return address, 16.
pub const RULED_REGISTERS: usize = 17;
/// Compilers make expressions of some ten bytes.
const MAX_EXPRESSION: usize = 128;

/// The rules at one instruction. The canonical frame address (CFA) is the stack pointer's value before the function's return
/// address was pushed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameRules {
    pub cfa: Cfa,
    /// By DWARF's number; the last one is the return address.
    pub registers: [Rule; RULED_REGISTERS],
    /// What the kernel has made to handle a signal: the caller is at an instruction, not behind a call.
    pub is_signal: bool,
}

/// Where the CFA is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cfa {
    /// So many bytes from what is in a register.
    Register { register: u16, offset: i64 },
    /// The value of an expression of DWARF's.
    Expression(Vec<u8>),
}

/// Where the caller's value of a register is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rule {
    /// Nothing is said.
    Unsaid,
    /// It is lost; of the return address: there is no caller.
    Lost,
    /// Still there.
    Same,
    /// In memory, so many bytes from the CFA.
    At(i64),
    /// So many bytes from the CFA, itself.
    Offset(i64),
    /// In another register.
    Register(u16),
    /// In memory, where an expression says.
    AtExpression(Vec<u8>),
    /// What an expression says.
    Expression(Vec<u8>),
}

impl Module {
    /// The rules for the instruction at `address` of the file; `None` if there are none, or none that can be read.
    pub fn frame_rules(&self, address: u64) -> Option<FrameRules> {
        let frames = self.call_frames()?;
        frames.with_row(address, |description, row, section| {
            let bytes = |expression: &UnwindExpression<usize>| -> Option<Vec<u8>> {
                let bytes = expression.get(section).ok()?.0.to_slice().ok()?.into_owned();
                (bytes.len() <= MAX_EXPRESSION).then_some(bytes)
            };
            let cfa = match row.cfa() {
                CfaRule::RegisterAndOffset { register, offset } => {
                    Cfa::Register { register: register.0, offset: *offset }
                }
                CfaRule::Expression(expression) => Cfa::Expression(bytes(expression)?),
            };
            let mut registers = [const { Rule::Unsaid }; RULED_REGISTERS];
            for (rule, number) in registers.iter_mut().zip(0..) {
                let register = Register(number);
                *rule = match row.register(register) {
                    None => Rule::Unsaid,
                    Some(RegisterRule::SameValue) => Rule::Same,
                    Some(RegisterRule::Offset(offset)) => Rule::At(offset),
                    Some(RegisterRule::ValOffset(offset)) => Rule::Offset(offset),
                    Some(RegisterRule::Register(other)) => Rule::Register(other.0),
                    Some(RegisterRule::Expression(expression)) => Rule::AtExpression(bytes(&expression)?),
                    Some(RegisterRule::ValExpression(expression)) => Rule::Expression(bytes(&expression)?),
                    // Or a value, for other architectures.
                    Some(_) => Rule::Lost,
                };
            }
            debug_assert_eq!(X86_64::RA.0, 16);
            Some(FrameRules { cfa, registers, is_signal: description.is_signal_trampoline() })
        })
    }
}
