//! The records of [`super::sample`] (include/uapi/linux/perf_event.h).

use crate::{copy::Stack, registers::Registers};

/// `PERF_RECORD_SAMPLE`.
const SAMPLE: u32 = 9;
/// Registers that are asked for, as bits by their numbers (arch/x86/include/uapi/asm/perf_regs.h): AX, BX, CX, DX, SI, DI, BP, SP, IP,
/// R8 to R15.
pub(super) const REGISTERS: u64 = 0x1ff | 0xff << 16;
const REGISTER_COUNT: usize = 17;
/// Places in that order of DWARF's registers.
const DWARF_ORDER: [usize; REGISTER_COUNT] = [0, 3, 2, 1, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15, 16, 8];
const SP: usize = 7;
/// A thread of a program for x86-64.
const ABI_64: u64 = 2;

/// One thread at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sample {
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    pub(crate) registers: Registers,
    pub(crate) stack: Stack,
}

/// The first sample in a ring's content; `None` if there is none, or it is damaged.
pub(super) fn sample(mut ring: &[u8]) -> Option<Sample> {
    loop {
        let (kind, size) = (half(ring, 0)?, usize::from(u16::from_ne_bytes(*ring.get(6..)?.first_chunk()?)));
        if size < 8 {
            return None;
        }
        let record = ring.get(8..size)?;
        if kind == SAMPLE {
            return parse(record);
        }
        ring = ring.get(size..)?;
    }
}

fn parse(record: &[u8]) -> Option<Sample> {
    let word = |place: usize| Some(u64::from_ne_bytes(*record.get(place..)?.first_chunk()?));
    let (pid, tid) = (half(record, 0)?, half(record, 4)?);
    if word(8)? != ABI_64 {
        return None;
    }
    let mut registers = [0; REGISTER_COUNT];
    for (register, place) in registers.iter_mut().zip(DWARF_ORDER) {
        *register = word(16 + 8 * place)?;
    }
    let stack = 16 + 8 * REGISTER_COUNT;
    let size = usize::try_from(word(stack)?).ok()?;
    // What is there of that, behind it.
    let copied = if size == 0 { 0 } else { usize::try_from(word((stack + 8).checked_add(size)?)?).ok()?.min(size) };
    let bytes = record.get(stack + 8..(stack + 8).checked_add(copied)?)?.to_vec();
    Some(Sample { pid, tid, registers: Registers::new(registers), stack: Stack::new(word(16 + 8 * SP)?, bytes) })
}

fn half(bytes: &[u8], place: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(place..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(copied: u64) -> Vec<u8> {
        let mut record: Vec<u8> = [7_u32, 8].iter().flat_map(|half| half.to_ne_bytes()).collect();
        let registers = (100..117_u64).map(|value| if value == 107 { 0x7000 } else { value });
        let words = [ABI_64].into_iter().chain(registers).chain([16, 0xaa, 0xbb, copied]);
        record.extend(words.flat_map(u64::to_ne_bytes));
        let size = u16::try_from(8 + record.len()).unwrap();
        let mut ring = vec![2, 0, 0, 0, 0, 0, 16, 0, 1, 2, 3, 4, 5, 6, 7, 8];
        ring.extend(SAMPLE.to_ne_bytes());
        ring.extend([0, 0]);
        ring.extend(size.to_ne_bytes());
        ring.extend(record);
        ring
    }

    #[test]
    fn a_sample_is_found_behind_other_records() {
        let found = sample(&ring(8)).unwrap();
        assert_eq!((found.pid, found.tid), (7, 8));
        // DWARF's 1 is DX, the fourth of perf's; its 16 the instruction pointer, the ninth.
        let values = [0, 1, 3, 8, 15, 16].map(|register| found.registers.get(register));
        assert_eq!(values, [Some(100), Some(103), Some(101), Some(109), Some(116), Some(108)]);
        // Only what was copied.
        assert_eq!([0x7000, 0x7008].map(|address| found.stack.word(address)), [Some(0xaa), None]);
    }

    #[test]
    fn what_is_cut_off_is_no_sample() {
        let whole = ring(16);
        assert!(sample(&whole).is_some());
        for length in 0..whole.len() {
            assert_eq!(sample(&whole[..length]), None, "{length}");
        }
        // More copied than was asked for, or of no size.
        assert_eq!(sample(&ring(u64::MAX)).unwrap().stack.end(), 0x7010);
        assert_eq!(sample(&[0; 64]), None);
    }
}
