//! What a function still has of its arguments: in registers, and in places of its stack, that it has put them into before it did anything
//! else and not written to since; and in the words that it was passed on the stack.

use std::{
    cell::RefCell,
    collections::{BTreeSet, HashMap},
};

use iced_x86::{Instruction, InstructionInfoFactory, Mnemonic, OpKind, Register};
use mpiprobe_functions::Function;

use super::{
    IN_REGISTERS, KEPT, Place,
    code::Flow,
    execution::{Execution, STACK_POINTER, Store, number, writes},
    is_number,
    value::{KnownValue, Source, Value},
};
use crate::{
    callsites::{Cfa, Rule},
    memory::Memory,
};

/// By registers and places of its stack that the function has put its arguments into before it did anything else, and that it has not
/// written to since; and by the words that it was passed on the stack, if it has left them alone.
pub(super) fn from_inner(
    inner: &Place<'_>,
    cfa: Option<u64>,
    function: &Function,
    memory: &mut Memory<'_>,
) -> Option<Vec<Option<KnownValue>>> {
    let arguments = function.arguments.len();
    let rules = inner.module.frame_rules(inner.address)?;
    let code = inner.code()?;
    let mut execution = Execution::new();
    let top = execution.register(STACK_POINTER)?;
    let mut given: Vec<Value> = IN_REGISTERS.into_iter().filter_map(|register| execution.register(register)).collect();
    for argument in 0..arguments.saturating_sub(IN_REGISTERS.len()) as u64 {
        given.push(execution.given(top.plus(WORD + WORD * argument)?));
    }
    let passed = execution.stores.len();
    let entry = code.entry();
    for instruction in entry {
        execution.step(instruction);
    }
    let flow = code.flow()?;
    let now = inner.address.wrapping_add(inner.bias);
    let factory = RefCell::new(InstructionInfoFactory::new());
    let is_of_entry = |last: &BTreeSet<usize>| last.len() == 1 && last.iter().all(|place| *place < entry.len());
    for (register, dwarf) in KEPT {
        let is_saved = matches!(rules.registers.get(usize::from(dwarf)), Some(Rule::At(_)));
        if !is_saved {
            continue;
        }
        let changes = |_: usize, instruction: &Instruction| {
            let mut factory = factory.borrow_mut();
            let mut written = factory.info(instruction).used_registers().iter().filter(|used| writes(used.access()));
            written.any(|used| number(used.register()) == Some(register))
        };
        // What it had at the entry's end is what it has now, if nothing else has changed it on the way here.
        let is_unchanged = flow.last(now, changes).is_some_and(|last| {
            let of_entry = entry.iter().enumerate().rev().find(|(place, instruction)| changes(*place, instruction));
            is_of_entry(&last) && of_entry.is_some_and(|(place, _)| last.contains(&place))
        });
        if let (true, Some(value), Some(known)) =
            (is_unchanged, execution.register(register), inner.frame.registers.get(dwarf))
            && !execution.symbols.solve(value, known)
        {
            return None;
        }
    }
    let known = |value: &Value| execution.symbols.resolve(*value, &mut |_, _, _, _| None);
    let mut found: Vec<Option<KnownValue>> = given.iter().take(arguments).map(known).collect();
    if let Some(cfa) = cfa
        && let Some(frame) = FrameUse::of(inner, &flow)
    {
        let own = execution.stores.get(passed..)?;
        for (argument, place) in found.iter_mut().enumerate().filter(|(_, known)| known.is_none()) {
            let slot = match argument.checked_sub(IN_REGISTERS.len()) {
                Some(number) => frame.passed(number),
                None => saved(own, *given.get(argument)?, top).filter(|slot| {
                    let by = |place: usize, _: &Instruction| frame.writes_at(place, *slot);
                    flow.last(now, by).is_some_and(|last| is_of_entry(&last)) && frame.is_read(*slot)
                }),
            };
            let is_number = function.arguments.get(argument).is_some_and(is_number);
            let known = slot.and_then(|slot| in_frame(cfa, slot, memory));
            // Of an `int` that is passed, the upper half may be anything.
            *place = known.map(|known| KnownValue { low_half_only: known.low_half_only || is_number, ..known });
        }
    }
    Some(found)
}

/// Bytes of a word.
const WORD: u64 = 8;

/// A place in a frame: where it begins, from the CFA, and how long it is.
type Slot = (i64, u64);

/// Where a value was saved to before anything else was done, if that was one place only. `top`: the stack pointer then.
fn saved(stores: &[Store], value: Value, top: Value) -> Option<Slot> {
    let mut own = stores.iter().filter(|store| store.holds(value));
    let store = own.next().filter(|_| own.next().is_none())?;
    // The CFA is behind the return address.
    let offset = store.address?.distance_from(top)?.checked_sub(WORD.cast_signed())?;
    Some((offset, store.size))
}

/// What is in memory at a place relative to the CFA.
fn in_frame(cfa: u64, (offset, size): Slot, memory: &mut Memory<'_>) -> Option<KnownValue> {
    let address = cfa.checked_add_signed(offset)?;
    let word = memory.word(address & !7)?;
    match (size, address & 7) {
        (8, 0) => Some(KnownValue { value: word, low_half_only: false, source: Source::Stack }),
        (4, 0) => Some(KnownValue { value: word & 0xffff_ffff, low_half_only: true, source: Source::Stack }),
        (4, 4) => Some(KnownValue { value: word >> 32, low_half_only: true, source: Source::Stack }),
        _ => None,
    }
}

/// What a function does with places of its stack that it names by the stack pointer or frame pointer. Offsets are from the CFA.
struct FrameUse {
    /// By instruction: where it writes, where it reads, and the address that it takes; start and length.
    writes: HashMap<usize, Slot>,
    reads: Vec<Slot>,
    taken: Vec<i64>,
    /// It takes addresses where its caller has passed words.
    passes_addresses: bool,
}

impl FrameUse {
    /// `None` if it is not certain what some instruction does.
    fn of(inner: &Place<'_>, flow: &Flow<'_>) -> Option<Self> {
        let mut found = Self { writes: HashMap::new(), reads: Vec::new(), taken: Vec::new(), passes_addresses: false };
        let mut factory = InstructionInfoFactory::new();
        for (place, instruction) in flow.nodes().enumerate() {
            let base = instruction.memory_base();
            let has_memory = (0..instruction.op_count()).any(|operand| instruction.op_kind(operand) == OpKind::Memory);
            let dwarf = match base {
                Register::RSP => crate::registers::RSP,
                Register::RBP => crate::registers::RBP,
                _ => continue,
            };
            if !has_memory {
                continue;
            }
            let rules = inner.module.frame_rules(instruction.ip().wrapping_sub(inner.bias))?;
            let Cfa::Register { register, offset: to_cfa } = rules.cfa else { return None };
            if register != dwarf {
                // A frame pointer that is none, or the stack pointer where it moves.
                if base == Register::RSP {
                    return None;
                }
                continue;
            }
            let offset = instruction.memory_displacement64().cast_signed().checked_sub(to_cfa)?;
            let size = instruction.memory_size().size() as u64;
            if instruction.mnemonic() == Mnemonic::Lea || instruction.memory_index() != Register::None {
                found.taken.push(offset);
                found.passes_addresses |= offset >= 0;
                continue;
            }
            let accesses = factory.info(instruction).used_memory();
            if accesses.iter().any(|used| writes(used.access())) {
                found.writes.insert(place, (offset, size));
            } else {
                found.reads.push((offset, size));
            }
        }
        Some(found)
    }

    /// Where the caller has put a word, if the function leaves it alone.
    fn passed(&self, number: usize) -> Option<Slot> {
        let slot = (i64::try_from(number).ok()?.checked_mul(WORD.cast_signed())?, WORD);
        let is_written = self.writes.values().any(|write| meets(*write, slot));
        (!is_written && !self.passes_addresses).then_some(slot)
    }

    fn is_taken(&self, slot: Slot) -> bool {
        self.taken.iter().any(|taken| meets((*taken, 1), slot))
    }

    fn writes_at(&self, place: usize, slot: Slot) -> bool {
        self.writes.get(&place).is_some_and(|write| meets(*write, slot))
    }

    /// Whether it reads just that, as it does with what it has saved, and leaves no address of it anywhere.
    fn is_read(&self, slot: Slot) -> bool {
        self.reads.contains(&slot) && !self.is_taken(slot)
    }
}

fn meets((one, length): Slot, (other, other_length): Slot) -> bool {
    let end = |start: i64, length: u64| start.saturating_add_unsigned(length);
    one < end(other, other_length) && other < end(one, length)
}
