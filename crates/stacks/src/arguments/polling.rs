//! Loops that ask MPI again and again, and do nothing else: such a thread waits as it would in the call that blocks.
//!
//! That is told by the caller's instructions. There is one call in the loop; nothing that goes round differs from one time to the next, as it
//! writes to no memory that it reads and to no register that calls leave alone; and whether it ends depends on what MPI has written only.
//! So nothing but MPI's answer ends it, however often it has gone round. A loop that counts, looks at a clock, or at other memory, is none.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use iced_x86::{
    FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register, UsedMemory, UsedRegister,
};
use mpiprobe_functions::{Direction, Function, Role};

use super::{
    KEPT, Place, Word,
    code::next,
    execution::{STACK_POINTER, number, writes},
};
use crate::{registers::RSP, unwind::Frame};

/// A loop in a process's memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PollingLoop {
    /// Where its instructions begin.
    instructions: BTreeSet<u64>,
    /// Where its call returns to.
    pub(crate) returns_to: u64,
    /// Where it leads to when it is left.
    pub(crate) exits: Vec<u64>,
}

impl PollingLoop {
    /// Whether the instruction at an address is part of it.
    pub(crate) fn contains(&self, address: u64) -> bool {
        self.instructions.contains(&address)
    }
}

/// As many as there are breakpoints, of which others may have one.
const MAX_EXITS: usize = 3;
/// Instructions of a loop.
const MAX_LOOP: usize = 256;
/// Ways that lead to a condition.
const MAX_WAYS: usize = 1024;

/// The loop around the call of `function` that the program's frame has made, which was given these words; `None` if there is none, or
/// it is not certain that nothing but MPI's answer ends it.
pub(crate) fn polling_loop(caller: &Frame, function: &Function, words: &[Option<Word>]) -> Option<PollingLoop> {
    let outer = Place::of(caller)?;
    let code = outer.code()?;
    let kept = KEPT.into_iter().chain([(STACK_POINTER, RSP)]);
    let registers = kept.filter_map(|(number, dwarf)| Some((number, caller.registers.get(dwarf)?)));
    around(code.all(), caller.registers.ip()?, &outputs(function, words), &registers.collect())
}

/// Memory that the call writes its answer to: start and length, as far as that is known.
fn outputs(function: &Function, words: &[Option<Word>]) -> Vec<Range> {
    let arguments = function.arguments.iter().zip(words);
    let output = |(argument, word): (&mpiprobe_functions::Argument, &Option<Word>)| {
        let size = match argument.role {
            Role::Flag | Role::Index | Role::Length => 4,
            Role::Request | Role::Message => 8,
            Role::Status => 24,
            _ => return None,
        };
        let word = word.filter(|word| argument.direction != Direction::In && !word.low_half_only)?;
        Some((word.value, size))
    };
    arguments.filter_map(output).collect()
}

type Range = (u64, u64);

fn overlap(one: Range, other: Range) -> bool {
    one.0 < other.0.saturating_add(other.1) && other.0 < one.0.saturating_add(one.1)
}

fn is_within(inner: Range, outer: Range) -> bool {
    inner.0 >= outer.0 && inner.0.saturating_add(inner.1) <= outer.0.saturating_add(outer.1)
}

/// The loop in a function around the call that returns to `returns_to`. `registers`: those that calls leave alone, by the numbers of
/// instructions.
fn around<'a>(
    function: impl Iterator<Item = &'a Instruction>,
    returns_to: u64,
    outputs: &[Range],
    registers: &BTreeMap<usize, u64>,
) -> Option<PollingLoop> {
    let nodes: BTreeMap<u64, &Instruction> = function.map(|node| (node.ip(), node)).collect();
    let call = nodes.values().copied().find(|node| node.next_ip() == returns_to && is_direct_call(node))?;
    let body = body(&nodes, call)?;
    let mut exits = BTreeSet::new();
    let mut conditions = Vec::new();
    let mut before: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for &address in &body {
        let node = nodes.get(&address)?;
        for next in next(node)? {
            if body.contains(&next) {
                before.entry(next).or_default().push(address);
            } else {
                exits.insert(next);
                conditions.push(address);
            }
        }
    }
    // Whatever it is that it does for ever, it does not wait.
    if exits.is_empty() || exits.len() > MAX_EXITS {
        return None;
    }
    let mut inside =
        Inside { factory: InstructionInfoFactory::new(), nodes: &nodes, before: &before, registers, outputs };
    let goes_round_alike = inside.goes_round_alike(&body, call);
    let polls =
        goes_round_alike.is_some() && conditions.into_iter().all(|place| inside.asks_mpi(place, call).is_some());
    polls.then(|| PollingLoop { instructions: body, returns_to, exits: exits.into_iter().collect() })
}

/// The instructions that lead from the call back to it without another one, or anything else of which it is not known what it does.
fn body(nodes: &BTreeMap<u64, &Instruction>, call: &Instruction) -> Option<BTreeSet<u64>> {
    let mut before: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    let mut reached = BTreeSet::from([call.ip()]);
    let mut left = vec![call.ip()];
    while let Some(address) = left.pop() {
        for target in next(nodes.get(&address)?)? {
            let Some(node) = nodes.get(&target) else { continue };
            if target != call.ip() && is_barred(node) {
                continue;
            }
            before.entry(target).or_default().push(address);
            if reached.insert(target) {
                left.push(target);
            }
        }
    }
    let mut body = BTreeSet::new();
    let mut next = vec![call.ip()];
    while let Some(address) = next.pop() {
        for &earlier in before.get(&address).into_iter().flatten() {
            if body.insert(earlier) {
                next.push(earlier);
            }
        }
    }
    (body.contains(&call.ip()) && body.len() <= MAX_LOOP).then_some(body)
}

/// Always the same function.
fn is_direct_call(node: &Instruction) -> bool {
    match node.flow_control() {
        FlowControl::Call => true,
        FlowControl::IndirectCall => node.op0_kind() == OpKind::Memory && node.is_ip_rel_memory_operand(),
        _ => false,
    }
}

/// What a loop that only asks MPI has no use for: other calls, the kernel, clocks.
fn is_barred(node: &Instruction) -> bool {
    let goes_on = matches!(
        node.flow_control(),
        FlowControl::Next | FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch
    );
    let asks_others = matches!(
        node.mnemonic(),
        Mnemonic::Rdtsc
            | Mnemonic::Rdtscp
            | Mnemonic::Rdpmc
            | Mnemonic::Rdrand
            | Mnemonic::Rdseed
            | Mnemonic::Rdpid
            | Mnemonic::Cpuid
            | Mnemonic::Syscall
            | Mnemonic::Sysenter
            | Mnemonic::In
            | Mnemonic::Out
            | Mnemonic::Umwait
            | Mnemonic::Tpause
    );
    !goes_on || asks_others
}

/// What a condition depends on at some place: registers, or the processor's flags.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
struct Needs {
    flags: bool,
    registers: BTreeSet<usize>,
}

/// The instructions of one loop.
struct Inside<'a> {
    factory: InstructionInfoFactory,
    nodes: &'a BTreeMap<u64, &'a Instruction>,
    /// Which may be run right before which one.
    before: &'a BTreeMap<u64, Vec<u64>>,
    /// What those hold that calls leave alone.
    registers: &'a BTreeMap<usize, u64>,
    outputs: &'a [Range],
}

impl Inside<'_> {
    /// Whether each time is like the one before: no register is written that outlasts the call, and no memory that is read.
    fn goes_round_alike(&mut self, body: &BTreeSet<u64>, call: &Instruction) -> Option<()> {
        let mut read = Vec::new();
        let mut written = Vec::new();
        for address in body.iter().filter(|address| **address != call.ip()) {
            let node = self.nodes.get(address)?;
            let info = self.factory.info(node);
            let lasts = |register: Register| {
                let number = number(register);
                number.is_some_and(|number| number == STACK_POINTER || KEPT.iter().any(|(kept, _)| *kept == number))
            };
            if info.used_registers().iter().any(|used| writes(used.access()) && lasts(used.register())) {
                return None;
            }
            let memory: Vec<UsedMemory> = info.used_memory().to_vec();
            for used in memory {
                let range = self.range(node, &used);
                if writes(used.access()) {
                    written.push(range?);
                }
                if !matches!(used.access(), OpAccess::Write) {
                    read.push(range);
                }
            }
        }
        let is_free = |written: &Range| {
            read.iter().all(|read| read.is_some_and(|read| !overlap(read, *written)))
                && !self.outputs.iter().any(|output| overlap(*output, *written))
        };
        written.iter().all(is_free).then_some(())
    }

    /// Whether nothing decides which way the jump at `place` goes but what MPI has answered.
    fn asks_mpi(&mut self, place: u64, call: &Instruction) -> Option<()> {
        let jump = self.nodes.get(&place)?;
        if !jump.is_jcc_short_or_near() {
            return None;
        }
        let mut seen = HashSet::new();
        let mut ways = vec![(place, Needs { flags: true, registers: BTreeSet::new() })];
        while let Some((place, needs)) = ways.pop() {
            for &earlier in self.before.get(&place)? {
                let node = *self.nodes.get(&earlier)?;
                let left = if earlier == call.ip() { behind_call(&needs)? } else { self.step(node, &needs)? };
                let is_done = !left.flags && left.registers.is_empty();
                if !is_done && seen.insert((earlier, left.clone())) {
                    ways.push((earlier, left));
                }
                if seen.len() > MAX_WAYS {
                    return None;
                }
            }
        }
        Some(())
    }

    /// What is needed before an instruction so that what it leaves behind is known.
    fn step(&mut self, node: &Instruction, needs: &Needs) -> Option<Needs> {
        let info = self.factory.info(node);
        let written: Vec<usize> = info
            .used_registers()
            .iter()
            .filter(|used| writes(used.access()))
            .filter_map(|used| number(used.register()))
            .collect();
        let gives_flags = needs.flags && node.rflags_modified() != 0;
        if !gives_flags && !written.iter().any(|register| needs.registers.contains(register)) {
            return Some(needs.clone());
        }
        let is_followed = matches!(
            node.mnemonic(),
            Mnemonic::Mov
                | Mnemonic::Movzx
                | Mnemonic::Movsx
                | Mnemonic::Movsxd
                | Mnemonic::Cmp
                | Mnemonic::Test
                | Mnemonic::And
                | Mnemonic::Or
                | Mnemonic::Xor
                | Mnemonic::Not
        ) || is_setcc(node);
        if !is_followed {
            return None;
        }
        // Of a part of a register that is written the rest stays, and has to be known as well.
        let is_part = |operand: u32| {
            node.op_kind(operand) == OpKind::Register && !matches!(node.op_register(operand).size(), 4 | 8)
        };
        let is_flags_only = matches!(node.mnemonic(), Mnemonic::Cmp | Mnemonic::Test);
        let memory: Vec<UsedMemory> = info.used_memory().to_vec();
        let read: Vec<usize> = info
            .used_registers()
            .iter()
            .filter(|used| !matches!(used.access(), OpAccess::Write))
            .map(UsedRegister::register)
            // Where memory is that is read, is known by itself.
            .filter(|register| {
                let places = |used: &UsedMemory| [used.base(), used.index()].contains(register);
                !memory.iter().any(places)
            })
            .filter_map(number)
            .collect();
        for used in memory.iter().filter(|used| !matches!(used.access(), OpAccess::Write)) {
            let range = self.range(node, used)?;
            if !self.outputs.iter().any(|output| is_within(range, *output)) {
                return None;
            }
        }
        let mut left = needs.clone();
        if gives_flags {
            left.flags = false;
        }
        if is_setcc(node) {
            left.flags = true;
        }
        if !is_flags_only && !is_part(0) {
            left.registers.retain(|register| !written.contains(register));
        }
        left.registers.extend(read);
        Some(left)
    }

    /// Where memory is that an instruction uses; `None` where that is not known.
    fn range(&self, node: &Instruction, used: &UsedMemory) -> Option<Range> {
        let size = u64::try_from(used.memory_size().size()).ok().filter(|size| *size > 0)?;
        if matches!(node.segment_prefix(), Register::FS | Register::GS)
            || node.has_rep_prefix()
            || node.has_repne_prefix()
        {
            return None;
        }
        if node.is_ip_rel_memory_operand() {
            return Some((node.ip_rel_memory_address(), size));
        }
        if used.index() != Register::None {
            return None;
        }
        let base = match used.base() {
            Register::None => 0,
            register if register.size() == 8 => *self.registers.get(&number(register)?)?,
            _ => return None,
        };
        Some((base.wrapping_add(used.displacement()), size))
    }
}

/// Puts into a byte what the processor's flags say.
fn is_setcc(node: &Instruction) -> bool {
    matches!(node.mnemonic(), Mnemonic::Sete | Mnemonic::Setne)
}

/// What is needed before the call: what it returns is MPI's answer, and other registers that calls may change hold nothing behind it.
fn behind_call(needs: &Needs) -> Option<Needs> {
    const RAX: usize = 0;
    let mut left = needs.clone();
    left.registers.remove(&RAX);
    let are_kept = left.registers.iter().all(|register| KEPT.iter().any(|(kept, _)| kept == register));
    (!needs.flags && are_kept).then_some(left)
}

#[cfg(test)]
mod tests {
    use iced_x86::{Decoder, DecoderOptions};

    use super::*;

    const SP: u64 = 0x7000;
    const FLAG: Range = (SP + 8, 4);

    /// The loop around the first call of this code, which begins at 0; what MPI answers is a word at rsp + 8.
    fn found(bytes: &[u8]) -> Option<PollingLoop> {
        let instructions: Vec<_> = Decoder::with_ip(64, bytes, 0, DecoderOptions::NONE).into_iter().collect();
        assert!(!instructions.iter().any(Instruction::is_invalid));
        let call = instructions.iter().find(|node| is_direct_call(node)).unwrap().next_ip();
        around(
            instructions.iter(),
            call,
            &[FLAG],
            &BTreeMap::from([(STACK_POINTER, SP), (3, SP + 0x100), (5, SP + 0x200)]),
        )
    }

    const CALL: [u8; 5] = [0xe8, 0, 0, 0, 0];
    /// mov eax, [rsp+8]; test eax, eax
    const ASK: [u8; 6] = [0x8b, 0x44, 0x24, 8, 0x85, 0xc0];

    /// A loop that begins at 0 with the call, with this behind it, and a jump back if the answer is no; then a return.
    fn going_round(behind: &[u8]) -> Vec<u8> {
        let mut code = [&CALL[..], behind].concat();
        let back = u8::try_from(256 - code.len() - 2).unwrap();
        code.extend([0x74, back, 0xc3]);
        code
    }

    #[test]
    fn a_loop_that_ends_only_by_the_answer_polls() {
        let code = going_round(&ASK);
        let polls = found(&code).unwrap();
        assert_eq!(polls.exits, [code.len() as u64 - 1]);
        assert!(polls.contains(0) && polls.contains(5) && !polls.contains(polls.exits[0]) && !polls.contains(1));
        // cmp dword [rsp+8], 0
        assert!(found(&going_round(&[0x83, 0x7c, 0x24, 8, 0])).is_some());
        // test eax, eax: what the call has returned is its answer, too.
        assert!(found(&going_round(&[0x85, 0xc0])).is_some());
        // mov [rsp+16], eax, which nobody reads, and then the answer
        assert!(found(&going_round(&[&[0x89, 0x44, 0x24, 16], &ASK[..]].concat())).is_some());
        // mov rdi, [rbx]: what it is given is the same each time.
        assert!(found(&going_round(&[&[0x48, 0x8b, 0x3b], &ASK[..]].concat())).is_some());
    }

    /// Invariant ONLY-THE-ANSWER.
    #[test]
    fn a_loop_that_ends_or_does_something_by_itself_is_none() {
        let with = |other: &[u8]| going_round(&[other, &ASK[..]].concat());
        for (code, why) in [
            (vec![0xe8, 0, 0, 0, 0, 0xc3], "no loop"),
            (vec![0xe8, 0, 0, 0, 0, 0xeb, 0xf9], "never ends"),
            (with(&CALL), "another call"),
            (with(&[0x0f, 0x31]), "a clock"),
            (with(&[0x0f, 0x05]), "the kernel"),
            (with(&[0x83, 0xc3, 1]), "counts in ebx"),
            (with(&[0xff, 0x44, 0x24, 16]), "counts on the stack"),
            (with(&[0xff, 0x05, 0, 1, 0, 0]), "counts in memory"),
            (with(&[0x89, 0x01]), "writes somewhere"),
            (with(&[0x89, 0x44, 0x24, 8]), "writes over the answer"),
            (with(&[0x89, 0x44, 0x24, 16, 0x8b, 0x7c, 0x24, 16]), "reads what it has written"),
            (going_round(&[0x8b, 0x44, 0x24, 12, 0x85, 0xc0]), "ends by other memory"),
            (going_round(&[0x83, 0x7c, 0x24, 6, 0]), "of which a part is other memory"),
            (going_round(&[0x85, 0xff]), "ends by a register that calls may change"),
            (going_round(&[]), "ends by flags that calls may change"),
            (going_round(&[0x8b, 0x03, 0x85, 0xc0]), "ends by what a pointer leads to"),
        ] {
            assert_eq!(found(&code), None, "{why}");
        }
    }

    #[test]
    fn both_conditions_of_two_have_to_be_the_answer() {
        // call; cmp [rsp+8], 0; jne out; cmp [rsp+16], 0; je 0; out: ret
        let two = |second: u8| {
            let mut code = CALL.to_vec();
            code.extend([0x83, 0x7c, 0x24, 8, 0, 0x75, 7, 0x83, 0x7c, 0x24, second, 0, 0x74]);
            code.push(u8::try_from(256 - code.len() - 1).unwrap());
            code.push(0xc3);
            code
        };
        assert_eq!(found(&two(16)), None);
        assert_eq!(found(&two(8)).unwrap().exits.len(), 1);
        // A register that the loop leaves as it is decides nothing: cmp [rsp+8], ebx
        assert!(found(&going_round(&[0x3b, 0x5c, 0x24, 8])).is_some());
    }
}
