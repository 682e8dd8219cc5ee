//! The variables that a function refers to.

use std::collections::BTreeSet;

use iced_x86::{Decoder, DecoderOptions};

use super::{Library, lookup::Found};

/// How much of a function is read, bytes: those that look objects up have some hundred.
const MAX_READ: u64 = 4096;

impl Library<'_> {
    /// Addresses in writable data that the code of the functions with these names refers to, in ascending order, as far as it is linear.
    /// An entry of the global offset table counts as a variable: it leads to one.
    pub(super) fn references(&self, names: &[&str]) -> Vec<u64> {
        let found = self.look_up(names);
        let mut references = BTreeSet::new();
        for found in names.iter().filter_map(|name| found.get(name)) {
            let Found::Function { address, .. } = found else { continue };
            let Ok(decoder) = Decoder::try_with_ip(64, self.bytes_of(found, MAX_READ), address, DecoderOptions::NONE)
            else {
                continue;
            };
            // What is decoded out of step may refer to anything: whoever reads there has to check what he finds.
            let relative = decoder.into_iter().filter(iced_x86::Instruction::is_ip_rel_memory_operand);
            references.extend(relative.map(|instruction| instruction.ip_rel_memory_address()));
        }
        let is_data = |address: &u64| self.segments.writable().any(|(all, _)| all.contains(address));
        references.into_iter().filter(is_data).collect()
    }
}
