//! A function's instructions, and where it can be entered otherwise than from the instruction before.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
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
    /// It may be left by a jump, and so be come back to by one from anywhere, with other words in registers than it was called with.
    pub(super) leaves: bool,
    /// Where jumps by tables may lead; `None`: there are such jumps in other parts, too.
    by_tables: Option<BTreeSet<u64>>,
}

/// Which instruction may be run right before which other one.
#[derive(Debug)]
pub(super) struct Flow<'a> {
    nodes: Vec<&'a Instruction>,
    before: Vec<Vec<usize>>,
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
        let mut leaves = false;
        for target in elsewhere {
            let Some(part) = module.function_range(target.wrapping_sub(bias)) else {
                leaves = true;
                continue;
            };
            parts.insert(part.start, part);
            if parts.len() > MAX_PARTS {
                return None;
            }
        }
        let mut all = vec![instructions];
        let mut others = Vec::new();
        let is_indirect = |instruction: &Instruction| instruction.flow_control() == FlowControl::IndirectBranch;
        leaves |= all.iter().flatten().any(is_indirect);
        let is_inside = |target: u64| {
            let address = target.wrapping_sub(bias);
            own.contains(&target) || parts.values().any(|part| part.contains(&address))
        };
        for part in parts.values() {
            let part = decoded(module, part, bias)?;
            leaves |= part.iter().any(is_indirect) || !part.iter().filter_map(jump_target).all(is_inside);
            let back: Vec<u64> = part.iter().filter_map(jump_target).filter(|target| own.contains(target)).collect();
            if !back.is_empty() {
                joins.extend(back.into_iter().map(|target| (target, Join::Open)));
                others.extend(part.iter().copied());
                all.push(part);
            }
        }
        let mut by_tables = Some(BTreeSet::new());
        for (number, part) in all.iter().enumerate() {
            if part.iter().any(is_switch) {
                let targets = tables(module, part, &own, bias)?;
                by_tables = by_tables.filter(|_| number == 0).map(|known| &known | &targets);
                joins.extend(targets.into_iter().map(|target| (target, Join::Open)));
            }
        }
        let instructions = all.swap_remove(0);
        Some(Self { instructions, others, joins, leaves, by_tables })
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

    /// `None` where it is not certain what leads where.
    pub(super) fn flow(&self) -> Option<Flow<'_>> {
        let by_tables = self.by_tables.as_ref()?;
        let nodes: Vec<&Instruction> = self.all().collect();
        let places: HashMap<u64, usize> = nodes.iter().enumerate().map(|(place, node)| (node.ip(), place)).collect();
        let mut before = vec![Vec::new(); nodes.len()];
        for (place, node) in nodes.iter().enumerate() {
            let next = (!ends_flow(node)).then(|| node.next_ip());
            let tables = by_tables.iter().copied().filter(|_| is_switch(node));
            for target in next.into_iter().chain(jump_target(node)).chain(tables) {
                if let Some(before) = places.get(&target).and_then(|target| before.get_mut(*target)) {
                    before.push(place);
                }
            }
        }
        Some(Flow { nodes, before })
    }

    /// All of them that belong together.
    pub(super) fn all(&self) -> impl Iterator<Item = &Instruction> {
        self.instructions.iter().chain(&self.others)
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

impl Flow<'_> {
    /// The instructions of those that `defines` says yes to of which one has been run last when the one around `address` is, by
    /// their places; `None`: it may be that none has, or there is no such instruction.
    pub(super) fn last(&self, address: u64, defines: impl Fn(usize, &Instruction) -> bool) -> Option<BTreeSet<usize>> {
        let start = self.nodes.iter().position(|node| (node.ip()..node.next_ip()).contains(&address))?;
        let mut found = BTreeSet::new();
        let mut seen = BTreeSet::from([start]);
        let mut next = vec![start];
        while let Some(place) = next.pop() {
            // The first instruction can be the first that is run.
            if place == 0 {
                return None;
            }
            for &before in self.before.get(place)? {
                if self.nodes.get(before).is_some_and(|node| defines(before, node)) {
                    found.insert(before);
                } else if seen.insert(before) {
                    next.push(before);
                }
            }
        }
        Some(found)
    }

    /// Whether none of those that `defines` says yes to can have been run before the one at `address` is, since the function has begun.
    pub(super) fn never(&self, address: u64, defines: impl Fn(usize, &Instruction) -> bool) -> bool {
        let Some(start) = self.nodes.iter().position(|node| node.ip() == address) else { return false };
        let mut seen = BTreeSet::from([start]);
        let mut next = vec![start];
        while let Some(place) = next.pop() {
            let Some(before) = self.before.get(place) else { return false };
            // Exceptions lead to where nothing else does.
            if before.is_empty() && place > 0 {
                return false;
            }
            for &before in before {
                if self.nodes.get(before).is_none_or(|node| defines(before, node)) {
                    return false;
                }
                if seen.insert(before) {
                    next.push(before);
                }
            }
        }
        true
    }

    pub(super) fn nodes(&self) -> impl Iterator<Item = &Instruction> {
        self.nodes.iter().copied()
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

/// Where it may go on behind an instruction; `None` where that is not certain.
pub(super) fn next(instruction: &Instruction) -> Option<Vec<u64>> {
    if matches!(instruction.flow_control(), FlowControl::IndirectBranch | FlowControl::XbeginXabortXend) {
        return None;
    }
    let next = (!ends_flow(instruction)).then(|| instruction.next_ip());
    Some(next.into_iter().chain(jump_target(instruction)).collect())
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
        Code {
            instructions,
            others: Vec::new(),
            joins: joins.iter().copied().collect(),
            leaves: false,
            by_tables: Some(BTreeSet::new()),
        }
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

    /// Whether what the instruction at `defined` does is what was done last where the one at `address` is.
    fn is_last(code: &Code, defined: u64, address: u64) -> bool {
        let flow = code.flow().unwrap();
        let last = flow.last(address, |_, node| node.mnemonic() == iced_x86::Mnemonic::Mov);
        last.is_some_and(|last| last.iter().all(|place| flow.nodes[*place].ip() == defined))
    }

    #[test]
    fn what_was_done_last_is_known_on_all_ways() {
        // 0: push rbx; 1: mov ebx, esi; 3: test eax, eax; 5: je 9; 7: mov ebx, edi; 9: call; 14: ret
        let code_of = |bytes: &[u8]| code(bytes, &[(9, Join::Open)]);
        let one_way = code_of(&[0x53, 0x89, 0xf3, 0x85, 0xc0, 0x74, 0x02, 0x89, 0xfb, 0xe8, 0, 0, 0, 0, 0xc3]);
        assert!(is_last(&one_way, 1, 5) && !is_last(&one_way, 1, 9), "or the second");
        // The same with a return behind the second one: it is not on the way.
        let bytes = [0x53, 0x89, 0xf3, 0x85, 0xc0, 0x74, 0x03, 0x89, 0xfb, 0xc3, 0xe8, 0, 0, 0, 0, 0xc3];
        assert!(is_last(&code(&bytes, &[(10, Join::Open)]), 1, 10));
        // 0: test; 2: je 6; 4: mov; 6: call: perhaps it was not done at all.
        let perhaps = code(&[0x85, 0xc0, 0x74, 0x02, 0x89, 0xf3, 0xe8, 0, 0, 0, 0], &[(6, Join::Open)]);
        assert!(perhaps.flow().unwrap().last(6, |_, node| node.ip() == 4).is_none());
        // 0: mov; 2: call; 7: mov; 9: jmp 2: by the second from the second time on.
        let again = code(&[0x89, 0xf3, 0xe8, 0, 0, 0, 0, 0x89, 0xfb, 0xeb, 0xf7], &[(2, Join::Open)]);
        assert!(!is_last(&again, 0, 2));
    }

    #[test]
    fn what_was_never_done_is_known_on_all_ways() {
        let never = |bytes: &[u8], address| {
            let code = code(bytes, &[(9, Join::Open)]);
            let is_mov = |_: usize, node: &Instruction| node.mnemonic() == iced_x86::Mnemonic::Mov;
            code.flow().unwrap().never(address, is_mov)
        };
        // 0: push rbx; 1: nop; 3: test eax, eax; 5: je 9; 7: mov ebx, edi; 9: call; 14: ret
        let bytes = [0x53, 0x66, 0x90, 0x85, 0xc0, 0x74, 0x02, 0x89, 0xfb, 0xe8, 0, 0, 0, 0, 0xc3];
        assert!(never(&bytes, 0) && never(&bytes, 7));
        assert!(!never(&bytes, 9), "perhaps it was");
        assert!(!never(&bytes, 2), "no instruction begins there");
        // 0: jmp 4; 2: nop; 3: nop; 4: ret: what leads to 2 is not seen.
        assert!(!never(&[0xeb, 2, 0x90, 0x90, 0xc3], 4));
        // 0: nop; 1: mov; 3: jmp 0: from the second time on.
        assert!(!never(&[0x90, 0x89, 0xf3, 0xeb, 0xfb], 0));
    }

    #[test]
    fn a_way_round_in_circles_ends() {
        // 0: nop; 1: jmp 0
        let bytes = [0x90, 0xeb, 0xfd];
        let code = code(&bytes, &[(0, Join::From(1))]);
        assert!(path(&code, 3).len() <= 2 * MAX_PIECES);
    }
}
