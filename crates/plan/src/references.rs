//! The variables that a function refers to, and the sizes of the elements that it looks up in tables.

use std::collections::BTreeSet;

use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic};

use super::{Library, lookup::Definition};

/// How much of a function is read, bytes: those that look objects up have some hundred.
const MAX_READ: u64 = 4096;

/// What the code of some functions tells.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct References {
    /// Addresses in writable data, in ascending order. An entry of the global offset table counts as a variable: it leads to one.
    pub(super) variables: Vec<u64>,
    /// What an index is multiplied by, in ascending order.
    pub(super) factors: Vec<u64>,
}

impl Library<'_> {
    /// What the code of the functions with these names refers to, as far as it is linear.
    pub(super) fn references(&self, names: &[&str]) -> References {
        let found = self.look_up(names);
        let (mut variables, mut factors) = (BTreeSet::new(), BTreeSet::new());
        for found in names.iter().filter_map(|name| found.get(name)) {
            let Definition::Function { address, .. } = found else { continue };
            let Ok(decoder) = Decoder::try_with_ip(64, self.bytes_of(found, MAX_READ), address, DecoderOptions::NONE)
            else {
                continue;
            };
            // What is decoded out of step may refer to anything: whoever reads there has to check what he finds.
            for instruction in decoder {
                if instruction.is_ip_rel_memory_operand() {
                    variables.insert(instruction.ip_rel_memory_address());
                }
                factors.extend(factor(&instruction));
            }
        }
        let is_data = |address: &u64| self.elf.segments.writable().any(|(all, _)| all.contains(address));
        References {
            variables: variables.into_iter().filter(is_data).collect(),
            factors: factors.into_iter().collect(),
        }
    }
}

/// The constant that an instruction multiplies by.
fn factor(instruction: &Instruction) -> Option<u64> {
    (instruction.mnemonic() == Mnemonic::Imul && instruction.op_count() == 3).then(|| instruction.immediate(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multiplications_by_constants_are_told() {
        let factors = |code: &[u8]| {
            Decoder::new(64, code, DecoderOptions::NONE).iter().filter_map(|i| factor(&i)).collect::<Vec<_>>()
        };
        // imul rax, rax, 808; imul eax, ecx, 1832; imul rax, rcx; imul rcx.
        let code = [
            &[0x48, 0x69, 0xc0, 0x28, 0x03, 0, 0][..],
            &[0x69, 0xc1, 0x28, 0x07, 0, 0],
            &[0x48, 0x0f, 0xaf, 0xc1],
            &[0x48, 0xf7, 0xe9],
        ];
        assert_eq!(factors(&code.concat()), [808, 1832]);
    }
}
