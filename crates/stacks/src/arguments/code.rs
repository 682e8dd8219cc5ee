//! A function's instructions, and where it can be entered otherwise than from the instruction before.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use crate::callsites::Module;
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, OpKind, Register};

/// Parts of a function that the compiler has put elsewhere (`.cold`), and functions that it ends in.
const MAX_PARTS: usize = 32;
/// Of one table of jumps, bytes.
const MAX_TABLE: u64 = 16 << 10;
/// Tables of jumps that one function may have.
const MAX_TABLES: usize = 256;

/// One function, decoded as its process has it.
#[derive(Debug)]
pub(super) struct Code {
    /// Of the part that was asked for, in their order.
    pub(super) instructions: Vec<Instruction>,
    /// Instructions of other parts that come back into this one.
    pub(super) others: Vec<Instruction>,
    /// Addresses that jumps lead to.
    joins: BTreeMap<u64, Join>,
}

/// How an instruction is jumped to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Join {
    /// By one jump only, which is at this place among the instructions.
    From(usize),
    /// By several, or from elsewhere.
    Open,
}

/// Pieces of code that one way through a function is put together of.
const MAX_PIECES: usize = 64;

impl Code {
    /// The function around `address` of the file, which is `bias` bytes further in the process. `None` if it cannot be read, or it
    /// is not certain what leads where in it.
    pub(super) fn of(module: &Module, address: u64, bias: u64) -> Option<Self> {
        let range = module.function_range(address)?;
        let instructions = decoded(module, &range, bias)?;
        let own = range.start.wrapping_add(bias)..range.end.wrapping_add(bias);
        let mut joins = BTreeMap::new();
        let mut elsewhere = BTreeSet::new();
        for (place, instruction) in instructions.iter().enumerate() {
            let Some(target) = jump_target(instruction) else { continue };
            if own.contains(&target) {
                joins.entry(target).and_modify(|join| *join = Join::Open).or_insert(Join::From(place));
            } else {
                elsewhere.insert(target);
            }
        }
        let mut parts: BTreeMap<u64, Range<u64>> = BTreeMap::new();
        for target in elsewhere {
            let Some(part) = module.function_range(target.wrapping_sub(bias)) else { continue };
            parts.insert(part.start, part);
            if parts.len() > MAX_PARTS {
                return None;
            }
        }
        let mut all = vec![instructions];
        let mut others = Vec::new();
        for part in parts.values() {
            let part = decoded(module, part, bias)?;
            let back: Vec<u64> = part.iter().filter_map(jump_target).filter(|target| own.contains(target)).collect();
            if !back.is_empty() {
                joins.extend(back.into_iter().map(|target| (target, Join::Open)));
                others.extend(part.iter().copied());
                all.push(part);
            }
        }
        for part in &all {
            if part.iter().any(is_switch) {
                joins.extend(tables(module, part, &own, bias)?.into_iter().map(|target| (target, Join::Open)));
            }
        }
        let instructions = all.swap_remove(0);
        Some(Self { instructions, others, joins })
    }

    /// The instructions that are run one after the other up to the one that ends at `end`, however the function got there.
    pub(super) fn leading_to(&self, end: u64) -> Option<Vec<Instruction>> {
        let mut last = self.instructions.binary_search_by_key(&end, Instruction::next_ip).ok()?;
        let mut pieces = Vec::new();
        while pieces.len() < MAX_PIECES {
            let first = self.start_of_piece(last)?;
            pieces.push(self.instructions.get(first..=last)?);
            let start = self.instructions.get(first)?.ip();
            let earlier = first.checked_sub(1).and_then(|earlier| self.instructions.get(earlier));
            match self.joins.get(&start) {
                // From nowhere else than there: it goes on with what was before the jump.
                Some(Join::From(jump)) if earlier.is_some_and(ends_flow) => last = *jump,
                _ => break,
            }
        }
        Some(pieces.into_iter().rev().flatten().copied().collect())
    }

    /// Where the piece of code begins that ends with the instruction at `last`.
    fn start_of_piece(&self, last: usize) -> Option<usize> {
        let before = self.instructions.get(..=last)?;
        before.iter().enumerate().rev().find_map(|(place, instruction)| {
            let earlier = place.checked_sub(1).and_then(|earlier| before.get(earlier));
            let begins = self.joins.contains_key(&instruction.ip()) || earlier.is_none_or(ends_flow);
            begins.then_some(place)
        })
    }

    /// The instructions that are run before anything else can be.
    pub(super) fn entry(&self) -> &[Instruction] {
        let length = self.instructions.iter().enumerate().position(|(place, instruction)| {
            let is_entered = place > 0 && self.joins.contains_key(&instruction.ip());
            is_entered || ends_flow(instruction)
        });
        length.and_then(|length| self.instructions.get(..length)).unwrap_or(&self.instructions)
    }
}

fn decoded(module: &Module, range: &Range<u64>, bias: u64) -> Option<Vec<Instruction>> {
    let bytes = module.code(range)?;
    let decoder = Decoder::try_with_ip(64, &bytes, range.start.wrapping_add(bias), DecoderOptions::NONE).ok()?;
    let instructions: Vec<_> = decoder.into_iter().collect();
    // Data in the midst of code: what follows may be out of step.
    (!instructions.iter().any(Instruction::is_invalid)).then_some(instructions)
}

/// Whether the next instruction is not run after this one.
fn ends_flow(instruction: &Instruction) -> bool {
    matches!(
        instruction.flow_control(),
        FlowControl::UnconditionalBranch
            | FlowControl::IndirectBranch
            | FlowControl::Return
            | FlowControl::Interrupt
            | FlowControl::Exception
            | FlowControl::XbeginXabortXend
    )
}

fn jump_target(instruction: &Instruction) -> Option<u64> {
    let jumps = matches!(
        instruction.flow_control(),
        FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch | FlowControl::XbeginXabortXend
    );
    (jumps && instruction.op0_kind() == OpKind::NearBranch64).then(|| instruction.near_branch_target())
}

/// Whether it may go on somewhere in the same function, by a table. One by an entry of the linker's own table does not.
fn is_switch(instruction: &Instruction) -> bool {
    instruction.flow_control() == FlowControl::IndirectBranch
        && !(instruction.op0_kind() == OpKind::Memory && instruction.is_ip_rel_memory_operand())
}

/// Where tables of jumps lead, of which addresses are in `part`: rather more than that. `None` if there are none.
fn tables(module: &Module, part: &[Instruction], own: &Range<u64>, bias: u64) -> Option<BTreeSet<u64>> {
    let mut targets = BTreeSet::new();
    let mut places = BTreeSet::new();
    for instruction in part {
        let has_memory = (0..instruction.op_count()).any(|operand| instruction.op_kind(operand) == OpKind::Memory);
        if has_memory && instruction.is_ip_rel_memory_operand() {
            places.insert(instruction.ip_rel_memory_address());
        } else if has_memory && instruction.memory_index() != Register::None {
            places.insert(instruction.memory_displacement64());
        }
    }
    if places.len() > MAX_TABLES {
        return None;
    }
    for place in places {
        let Some(bytes) = module.bytes_from(place.wrapping_sub(bias), MAX_TABLE) else { continue };
        // Distances from the table's own address, as position-independent code has them, or addresses.
        let (distances, _) = bytes.as_chunks();
        let near = distances.iter().map(|entry| place.wrapping_add_signed(i32::from_le_bytes(*entry).into()));
        targets.extend(near.take_while(|target| own.contains(target)));
        let (addresses, _) = bytes.as_chunks();
        let far = addresses.iter().map(|entry| u64::from_le_bytes(*entry));
        targets.extend(far.take_while(|target| own.contains(target)));
    }
    (!targets.is_empty()).then_some(targets)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nothing jumps into it but what is said.
    fn code(bytes: &[u8], joins: &[(u64, Join)]) -> Code {
        let instructions = Decoder::with_ip(64, bytes, 0, DecoderOptions::NONE).into_iter().collect();
        Code { instructions, others: Vec::new(), joins: joins.iter().copied().collect() }
    }

    fn path(code: &Code, end: u64) -> Vec<u64> {
        code.leading_to(end).unwrap().iter().map(Instruction::ip).collect()
    }

    #[test]
    fn a_way_is_followed_back_as_long_as_there_is_only_one() {
        // 0: nop; 1: je 5; 3: jmp 0; 5: nop; 6: call
        let bytes = [0x90, 0x74, 0x02, 0xeb, 0xfb, 0x90, 0xe8, 0, 0, 0, 0];
        let one = code(&bytes, &[(5, Join::From(1)), (0, Join::Open)]);
        assert_eq!(path(&one, 11), [0, 1, 5, 6]);
        let several = code(&bytes, &[(5, Join::Open)]);
        assert_eq!(path(&several, 11), [5, 6]);
        assert!(one.leading_to(7).is_none(), "no instruction ends there");
        assert_eq!(one.entry().len(), 2, "up to the jump that does not go on");
    }

    #[test]
    fn a_way_round_in_circles_ends() {
        // 0: nop; 1: jmp 0
        let bytes = [0x90, 0xeb, 0xfd];
        let code = code(&bytes, &[(0, Join::From(1))]);
        assert!(path(&code, 3).len() <= 2 * MAX_PIECES);
    }
}
