//! From registers and a stack to frames, by the rules that compilers write for exceptions (.eh_frame).
//!
//! Stacks and rules belong to others: there are limits to frames, to steps of expressions and to memory that is read, and every
//! frame must be above the one before.

use std::{collections::HashMap, sync::Arc};

use mpiprobe_common::trampoline::is_return_trampoline;

use crate::callsites::{Cfa, FrameRules, Module, ModuleAddress, Rule};
use gimli::{EndianSlice, Evaluation, EvaluationResult, Expression, Location, Value};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    memory::Memory,
    registers::{COUNT, RBP, RIP, RSP, Registers},
};

/// Frames of one thread. Interpreters have some hundred.
pub const MAX_FRAMES: usize = 512;
/// Rules that are remembered.
const MAX_RULES: usize = 64 << 10;
/// What the kernel calls its page for probes (kernel/events/uprobes.c).
const TRAMPOLINE: &str = "[uprobes]";
/// Operations of one expression; compilers make some ten.
const MAX_OPERATIONS: u32 = 256;

/// One function that has been entered and not been left.
#[derive(Debug, Clone)]
pub struct Frame {
    /// Where it goes on, as an offset into its file; of the innermost frame the byte behind where it is, so that the byte before
    /// is what runs in all of them.
    pub at: ModuleAddress,
    /// As they are in this function, where known.
    pub registers: Registers,
    /// How it was found.
    pub by: FoundBy,
}

/// How a frame was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FoundBy {
    /// The thread's own registers.
    Registers,
    /// The rules of the function that it has called.
    Rules,
    /// That one has no rules: by the chain of frame pointers, which may leave functions out.
    FramePointer,
}

/// Why there are no further frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The thread began here.
    Beginning,
    /// There are more frames than are followed.
    Limit,
    /// There are no rules, and no frame pointers.
    NoRules,
    /// The stack, or what the rules need besides, could not be read.
    Unread,
    /// A return probe of somebody's is armed, or is handled: only the kernel knows where it goes on.
    Hidden,
    /// What was found cannot be a stack.
    Nonsense,
}

/// The frames of one thread, innermost first.
#[derive(Debug, Clone)]
pub struct Unwound {
    pub frames: Vec<Frame>,
    pub end: End,
    /// Words were read after the registers were copied.
    pub read_later: bool,
}

/// By address in the file; `None` where there are none.
type RulesOfFile = HashMap<u64, Option<Arc<FrameRules>>>;

/// Unwinds, and remembers rules by file.
#[derive(Debug, Default)]
pub struct Unwinder {
    /// By the module's address, which stays as long as it is kept here.
    rules: HashMap<usize, (Arc<Module>, RulesOfFile)>,
    remembered: usize,
}

impl Unwinder {
    /// `locate` says what a return address belongs to.
    pub fn unwind(
        &mut self,
        registers: Registers,
        memory: &mut Memory<'_>,
        mut locate: impl FnMut(u64) -> ModuleAddress,
    ) -> Unwound {
        let mut frames = Vec::new();
        let mut registers = registers;
        // Of the innermost frame, and of one that a signal has interrupted: this very instruction.
        let mut is_exact = true;
        let mut by = FoundBy::Registers;
        let end = loop {
            let Some(ip) = registers.ip() else { break End::Unread };
            let at = locate(if is_exact { ip.wrapping_add(1) } else { ip });
            if !is_exact && is_return_trampoline(ip) && at.module.path().starts_with('[') {
                break End::Hidden;
            }
            frames.push(Frame { at: at.clone(), registers, by });
            if frames.len() >= MAX_FRAMES {
                break End::Limit;
            }
            if is_exact && at.module.path() == TRAMPOLINE {
                let caller = behind_trampoline(ip, &registers, memory).filter(|caller| {
                    // Of a thread that was copied in its system call it may be what the function has returned.
                    let back = caller.ip().map(&mut locate);
                    let is_code = |back: ModuleAddress| self.rules(&back.module, back.offset.checked_sub(1)?);
                    back.and_then(is_code).is_some()
                });
                let Some(caller) = caller else { break End::Hidden };
                (by, is_exact, registers) = (FoundBy::Rules, false, caller);
                continue;
            }
            let rules = at.offset.checked_sub(1).and_then(|address| self.rules(&at.module, address));
            match caller(rules.as_deref(), &registers, memory) {
                Ok((caller, is_signal)) => {
                    by = if rules.is_some() { FoundBy::Rules } else { FoundBy::FramePointer };
                    is_exact = is_signal;
                    registers = caller;
                }
                Err(end) => break end,
            }
        };
        Unwound { frames, end, read_later: memory.was_read_later() }
    }

    fn rules(&mut self, module: &Arc<Module>, address: u64) -> Option<Arc<FrameRules>> {
        if self.remembered >= MAX_RULES {
            self.rules.clear();
            self.remembered = 0;
        }
        let key = Arc::as_ptr(module).addr();
        let (_, of_module) = self.rules.entry(key).or_insert_with(|| (Arc::clone(module), HashMap::new()));
        let remembered = &mut self.remembered;
        let rules = of_module.entry(address).or_insert_with(|| {
            *remembered += 1;
            module.frame_rules(address).map(Arc::new)
        });
        rules.clone()
    }
}

/// The caller's registers, and whether it was interrupted by a signal.
fn caller(
    rules: Option<&FrameRules>,
    registers: &Registers,
    memory: &mut Memory<'_>,
) -> Result<(Registers, bool), End> {
    let Some(rules) = rules else { return by_frame_pointer(registers, memory).map(|caller| (caller, false)) };
    let cfa = match &rules.cfa {
        Cfa::Register { register, offset } => {
            registers.get(*register).and_then(|base| base.checked_add_signed(*offset)).ok_or(End::Unread)?
        }
        Cfa::Expression(expression) => evaluate(expression, None, registers, memory).ok_or(End::Unread)?,
    };
    if rules.registers.get(usize::from(RIP)) == Some(&Rule::Lost) {
        return Err(End::Beginning);
    }
    // The stack grows downwards: a caller's frame is above. A signal may have its own stack.
    if !rules.is_signal && registers.sp().is_none_or(|sp| cfa <= sp) {
        return Err(End::Nonsense);
    }
    let mut caller = Registers::default();
    for (number, rule) in (0..).zip(&rules.registers).take(COUNT) {
        let value = match rule {
            Rule::Unsaid if number == RSP => Some(cfa),
            // What a function must leave as it was; all others are its own.
            Rule::Unsaid if matches!(number, 3 | 6 | 12..=15) => registers.get(number),
            Rule::Unsaid | Rule::Lost => None,
            Rule::Same => registers.get(number),
            Rule::At(offset) => cfa.checked_add_signed(*offset).and_then(|address| memory.word(address)),
            Rule::Offset(offset) => cfa.checked_add_signed(*offset),
            Rule::Register(other) => registers.get(*other),
            Rule::AtExpression(expression) => {
                evaluate(expression, Some(cfa), registers, memory).and_then(|address| memory.word(address))
            }
            Rule::Expression(expression) => evaluate(expression, Some(cfa), registers, memory),
        };
        caller.set(number, value);
    }
    match caller.ip() {
        // What threads and programs begin with, where nobody has written it into the rules.
        Some(0) => Err(End::Beginning),
        Some(_) => Ok((caller, rules.is_signal)),
        None => Err(End::Unread),
    }
}

/// The caller of a function whose return probe has just been handled (arch/x86/kernel/uprobes.c, `uretprobe_trampoline_entry`, from Linux 6.11
/// on): behind its system call the trampoline has three words on the stack, of which the third is where the function returns to by now.
/// `None`: it has not been handled yet.
fn behind_trampoline(ip: u64, registers: &Registers, memory: &mut Memory<'_>) -> Option<Registers> {
    const PAGE: u64 = 4096;
    let (sp, pushed) = match ip % PAGE {
        0x0d => (registers.sp()?, 16),
        0x0f => (registers.sp()?, 8),
        0x10 => (registers.sp()?, 0),
        _ => return None,
    };
    let place = sp.checked_add(pushed)?;
    let mut caller = *registers;
    caller.set(RIP, Some(memory.word(place)?));
    caller.set(RSP, Some(place.checked_add(8)?));
    Some(caller)
}

/// A function without rules: assembly, or made while the program runs. Its caller by the frame pointer, if it looks like one.
fn by_frame_pointer(registers: &Registers, memory: &mut Memory<'_>) -> Result<Registers, End> {
    let (Some(sp), Some(bp)) = (registers.sp(), registers.get(RBP)) else { return Err(End::NoRules) };
    if bp < sp || !bp.is_multiple_of(8) || bp - sp > 1 << 20 {
        return Err(End::NoRules);
    }
    let (next, ip) = (memory.word(bp).ok_or(End::NoRules)?, memory.word(bp + 8).ok_or(End::NoRules)?);
    if ip < 4096 {
        return Err(if ip == 0 { End::Beginning } else { End::NoRules });
    }
    let mut caller = Registers::default();
    caller.set(RIP, Some(ip));
    caller.set(RSP, bp.checked_add(16));
    caller.set(RBP, Some(next));
    Ok(caller)
}

/// The value of an expression, on whose stack `first` is.
fn evaluate(expression: &[u8], first: Option<u64>, registers: &Registers, memory: &mut Memory<'_>) -> Option<u64> {
    let encoding = gimli::Encoding { address_size: 8, format: gimli::Format::Dwarf32, version: 4 };
    let bytes = EndianSlice::new(expression, gimli::LittleEndian);
    let mut evaluation: Evaluation<EndianSlice<'_, gimli::LittleEndian>> = Expression(bytes).evaluation(encoding);
    evaluation.set_max_iterations(MAX_OPERATIONS);
    if let Some(first) = first {
        evaluation.set_initial_value(first);
    }
    let mut result = evaluation.evaluate().ok()?;
    for _ in 0..MAX_OPERATIONS {
        result = match result {
            EvaluationResult::Complete => {
                return match evaluation.as_result().last()?.location {
                    Location::Address { address } => Some(address),
                    Location::Value { value: Value::Generic(value) } => Some(value),
                    _ => None,
                };
            }
            EvaluationResult::RequiresRegister { register, .. } => {
                evaluation.resume_with_register(Value::Generic(registers.get(register.0)?)).ok()?
            }
            EvaluationResult::RequiresMemory { address, size: 8, space: None, .. } => {
                evaluation.resume_with_memory(Value::Generic(memory.word(address)?)).ok()?
            }
            // Nothing else is in rules for unwinding.
            _ => return None,
        };
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::copy::Stack;

    fn registers(sp: u64, bp: u64, ip: u64) -> Registers {
        let mut registers = Registers::default();
        for (register, value) in [(RSP, sp), (RBP, bp), (RIP, ip), (3, 33), (0, 1)] {
            registers.set(register, Some(value));
        }
        registers
    }

    fn stack(words: &[u64]) -> Stack {
        Stack::new(0x1000, words.iter().flat_map(|word| word.to_le_bytes()).collect())
    }

    fn rules(cfa: Cfa, special: &[(u16, Rule)]) -> FrameRules {
        let mut registers = [const { Rule::Unsaid }; COUNT];
        for (register, rule) in special {
            registers[usize::from(*register)] = rule.clone();
        }
        FrameRules { cfa, registers, is_signal: false }
    }

    #[test]
    fn registers_are_followed_to_the_caller() {
        let stack = stack(&[10, 20, 0x4000]);
        let by_sp = rules(Cfa::Register { register: RSP, offset: 24 }, &[(RIP, Rule::At(-8)), (RBP, Rule::At(-16))]);
        let (caller, is_signal) =
            caller(Some(&by_sp), &registers(0x1000, 7, 1), &mut Memory::new(&stack, None)).unwrap();
        let values = [RIP, RSP, RBP, 3, 0].map(|register| caller.get(register));
        assert_eq!(values, [Some(0x4000), Some(0x1018), Some(20), Some(33), None]);
        assert!(!is_signal);
    }

    #[test]
    fn a_return_that_was_just_handled_is_on_the_stack() {
        let stack = stack(&[11, 22, 0x4000, 0x5000]);
        let after = |sp: u64, offset: u64| {
            let caller =
                behind_trampoline(0x7fff_ffff_e000 + offset, &registers(sp, 7, 1), &mut Memory::new(&stack, None))?;
            Some([RIP, RSP, RBP].map(|register| caller.get(register)))
        };
        let expected = Some([Some(0x4000), Some(0x1018), Some(7)]);
        assert_eq!([after(0x1000, 0xd), after(0x1008, 0xf), after(0x1010, 0x10)], [expected; 3]);
        // Before its system call, in it, and in a place for an instruction of a program.
        assert_eq!([after(0x1000, 0), after(0x1000, 0xb), after(0x1000, 0x8d)], [None; 3]);
    }

    #[test]
    fn expressions_of_procedure_linkage_tables_and_realigned_frames_are_understood() {
        let stack = stack(&[0x1010, 0, 0x5000, 0]);
        // DW_OP_breg6 0, DW_OP_deref: the CFA is where the word at the frame pointer says.
        let realigned = rules(Cfa::Expression(vec![0x76, 0, 0x06]), &[(RIP, Rule::At(0))]);
        let (caller, _) =
            caller(Some(&realigned), &registers(0xff0, 0x1000, 1), &mut Memory::new(&stack, None)).unwrap();
        assert_eq!((caller.ip(), caller.sp()), (Some(0x5000), Some(0x1010)));
        // breg7 8; breg16 0; lit15; and; lit11; ge; lit3; shl; plus: in the second half of an entry, one word more is pushed.
        let table = [0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22];
        let cfa = |ip| evaluate(&table, None, &registers(0x1000, 0, ip), &mut Memory::new(&stack, None));
        assert_eq!([cfa(0x40), cfa(0x4b)], [Some(0x1008), Some(0x1010)]);
    }

    /// Invariant STACKS-ARE-BOUNDED.
    #[test]
    fn stacks_that_lead_nowhere_end() {
        let stack = stack(&[0; 8]);
        let end = |rules: &FrameRules| {
            caller(Some(rules), &registers(0x1000, 0x1000, 1), &mut Memory::new(&stack, None)).unwrap_err()
        };
        let cfa = |offset| Cfa::Register { register: RSP, offset };
        assert_eq!(end(&rules(cfa(0), &[(RIP, Rule::At(-8))])), End::Nonsense);
        assert_eq!(end(&rules(cfa(8), &[(RIP, Rule::Lost)])), End::Beginning);
        assert_eq!(end(&rules(cfa(8), &[(RIP, Rule::At(-8))])), End::Beginning);
        assert_eq!(end(&rules(cfa(8 << 20), &[(RIP, Rule::At(-8))])), End::Unread);
        assert_eq!(end(&rules(Cfa::Register { register: 40, offset: 0 }, &[])), End::Unread);
        // DW_OP_skip -3: for ever.
        assert_eq!(end(&rules(Cfa::Expression(vec![0x2f, 0xfd, 0xff]), &[])), End::Unread);
        assert_eq!(end(&rules(Cfa::Expression(vec![0x06]), &[])), End::Unread);
    }
}
