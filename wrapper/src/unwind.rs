//! How a function keeps its caller's return address, by the rules that compilers write for exceptions (.eh_frame; Linux Standard Base
//! Core, "Exception Frames"; DWARF 5, 6.4).
//!
//! Only what compilers write for C and Fortran functions is understood. The rules are read as bytes: what is not as it should be gives
//! no answer, and never a wrong access.

use mpiprobe_common::{LayerFrame, layer::layer_flags};

/// Version and encodings of the table, as every linker for x86-64 writes them.
const ENCODINGS: [u8; 4] = [1, 0x1b, 0x03, 0x3b];
/// Before the entries, in bytes.
const HEADER: u64 = 12;
/// Relative to its place, of 32 bits with a sign.
const RELATIVE: u8 = 0x1b;
/// Registers by their numbers in the rules.
const RBP: u64 = 6;
const RSP: u64 = 7;
const RETURN_ADDRESS: u64 = 16;
/// States that are put aside at once.
const DEPTH: usize = 4;
/// No function has more instructions for this.
const MOST_STEPS: usize = 4096;

/// A loaded part of a file.
#[derive(Clone, Copy)]
pub(crate) struct Part<'a> {
    /// Where it is loaded.
    pub(crate) address: u64,
    pub(crate) bytes: &'a [u8],
}

/// Reads forwards.
struct Reader<'a> {
    bytes: &'a [u8],
    /// Address of the next byte.
    at: u64,
}

impl<'a> Part<'a> {
    fn from(self, address: u64) -> Option<Reader<'a>> {
        let offset = usize::try_from(address.checked_sub(self.address)?).ok()?;
        Some(Reader { bytes: self.bytes.get(offset..)?, at: address })
    }

    fn relative(self, address: u64) -> Option<i32> {
        self.from(address)?.u32().map(|word| word as i32)
    }
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: u64) -> Option<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(usize::try_from(count).ok()?)?;
        self.bytes = rest;
        self.at = self.at.wrapping_add(count);
        Some(taken)
    }

    /// What follows, as far as so many bytes.
    fn part(&mut self, count: u64) -> Option<Self> {
        let at = self.at;
        self.take(count).map(|bytes| Self { bytes, at })
    }

    fn u8(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    fn u16(&mut self) -> Option<u16> {
        self.take(2)?.first_chunk().copied().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take(4)?.first_chunk().copied().map(u32::from_le_bytes)
    }

    /// LEB128. Numbers in rules are small.
    fn unsigned(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in [0, 7, 14, 21, 28, 35, 42, 49, 56] {
            let byte = self.u8()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn signed(&mut self) -> Option<i64> {
        let mut value = 0;
        for shift in [0, 7, 14, 21, 28, 35, 42, 49, 56] {
            let byte = self.u8()?;
            value |= i64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                let sign = if byte & 0x40 == 0 { 0 } else { -1 << (shift + 7) };
                return Some(value | sign);
            }
        }
        None
    }
}

/// What holds at an instruction.
#[derive(Clone, Copy)]
struct State {
    /// The register that the canonical frame address is counted from, and how far it is.
    base: u64,
    to_cfa: i64,
    frame_pointer: Kept,
    /// From the frame address.
    return_address: Option<i64>,
}

#[derive(Clone, Copy)]
enum Kept {
    InPlace,
    /// From the frame address.
    OnStack(i64),
    Lost,
}

/// What the rules of several functions have in common.
struct Common<'a> {
    code_factor: u64,
    data_factor: i64,
    instructions: Reader<'a>,
}

/// The way from a call that returns to `return_address` to the caller of the function that makes it. `index` is where the table of rules
/// (.eh_frame_hdr) is loaded, in a part of the file that has the rules too.
pub(crate) fn frame_at(part: Part<'_>, index: u64, return_address: u64) -> Option<LayerFrame> {
    // A call may be the last instruction of its function.
    let place = return_address.checked_sub(1)?;
    let mut rules = part.from(find(part, index, place)?)?;
    let length = rules.u32()?;
    let mut rules = rules.part(length.into())?;
    let common = rules.at.checked_sub(rules.u32()?.into())?;
    let common = common_rules(part, common)?;
    let start = rules.at;
    let start = start.wrapping_add_signed((rules.u32()? as i32).into());
    let size = u64::from(rules.u32()?);
    if place.wrapping_sub(start) >= size {
        return None;
    }
    let augmentation = rules.unsigned()?;
    rules.take(augmentation)?;
    let nothing = State { base: 0, to_cfa: 0, frame_pointer: Kept::InPlace, return_address: None };
    let factors = (common.code_factor, common.data_factor);
    let initial = run(common.instructions, factors, nothing, nothing, start, u64::MAX)?;
    let state = run(rules, factors, initial, initial, start, place)?;
    layer_frame(&state)
}

fn layer_frame(state: &State) -> Option<LayerFrame> {
    let by = match state.base {
        RSP => 0,
        RBP => layer_flags::BY_FRAME_POINTER,
        _ => return None,
    };
    if state.return_address != Some(-8) {
        return None;
    }
    let (to_frame_pointer, lost) = match state.frame_pointer {
        Kept::InPlace => (0, 0),
        Kept::OnStack(offset) => (offset, 0),
        Kept::Lost => (0, layer_flags::FRAME_POINTER_LOST),
    };
    Some(LayerFrame { to_cfa: state.to_cfa, to_frame_pointer, flags: by | lost, question: 0 })
}

/// The address of the rules that an address may have: those of the last function that starts before.
fn find(part: Part<'_>, index: u64, address: u64) -> Option<u64> {
    let mut header = part.from(index)?;
    if header.take(4)? != ENCODINGS {
        return None;
    }
    let _rules = header.u32()?;
    let count = u64::from(header.u32()?);
    let field = |entry: u64, place: u64| {
        let relative = part.relative(index.wrapping_add(HEADER).wrapping_add(entry * 8).wrapping_add(place))?;
        Some(index.wrapping_add_signed(relative.into()))
    };
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        if field(middle, 0)? <= address { low = middle + 1 } else { high = middle }
    }
    field(low.checked_sub(1)?, 4)
}

fn common_rules(part: Part<'_>, address: u64) -> Option<Common<'_>> {
    let mut rules = part.from(address)?;
    let length = rules.u32()?;
    let mut rules = rules.part(length.into())?;
    if rules.u32()? != 0 || rules.u8()? != 1 {
        return None;
    }
    let mut letters = [0u8; 8];
    for letter in &mut letters {
        *letter = rules.u8()?;
        if *letter == 0 {
            break;
        }
    }
    let [b'z', letters @ ..] = letters else { return None };
    let code_factor = rules.unsigned()?;
    let data_factor = rules.signed()?;
    if u64::from(rules.u8()?) != RETURN_ADDRESS {
        return None;
    }
    let length = rules.unsigned()?;
    let mut augmentation = rules.part(length)?;
    let mut is_relative = false;
    for letter in letters {
        match letter {
            0 => break,
            b'R' => is_relative = augmentation.u8()? == RELATIVE,
            b'L' => drop(augmentation.u8()?),
            b'P' => {
                let size = match augmentation.u8()? & 0x0f {
                    0x02 | 0x0a => 2,
                    0x03 | 0x0b => 4,
                    0x00 | 0x04 | 0x0c => 8,
                    _ => return None,
                };
                augmentation.take(size)?;
            }
            // The frame of a signal handler, or something new.
            _ => return None,
        }
    }
    is_relative.then_some(Common { code_factor, data_factor, instructions: rules })
}

/// Follows instructions that begin at an address of code as far as they hold at `place`.
fn run(
    mut instructions: Reader<'_>,
    (code_factor, data_factor): (u64, i64),
    initial: State,
    from: State,
    start: u64,
    place: u64,
) -> Option<State> {
    let (mut state, mut location) = (from, start);
    let mut aside = [from; DEPTH];
    let mut depth = 0usize;
    let scaled = |number: u64| (number as i64).wrapping_mul(data_factor);
    for _ in 0..MOST_STEPS {
        let Some(code) = instructions.u8() else { return Some(state) };
        let low = u64::from(code & 0x3f);
        let mut advance = 0;
        match (code & 0xc0, code) {
            (0x40, _) => advance = low,
            (0x80, _) => {
                let offset = scaled(instructions.unsigned()?);
                state.keep(low, Kept::OnStack(offset));
            }
            (0xc0, _) => state.restore(low, &initial),
            // nop
            (_, 0x00) => {}
            (_, 0x02) => advance = instructions.u8()?.into(),
            (_, 0x03) => advance = instructions.u16()?.into(),
            (_, 0x04) => advance = instructions.u32()?.into(),
            // offset_extended
            (_, 0x05) => {
                let register = instructions.unsigned()?;
                let offset = scaled(instructions.unsigned()?);
                state.keep(register, Kept::OnStack(offset));
            }
            (_, 0x06) => state.restore(instructions.unsigned()?, &initial),
            // undefined
            (_, 0x07) => state.keep(instructions.unsigned()?, Kept::Lost),
            // same_value
            (_, 0x08) => state.keep(instructions.unsigned()?, Kept::InPlace),
            // register
            (_, 0x09) => {
                state.keep(instructions.unsigned()?, Kept::Lost);
                instructions.unsigned()?;
            }
            // remember_state, restore_state
            (_, 0x0a) => {
                *aside.get_mut(depth)? = state;
                depth += 1;
            }
            (_, 0x0b) => {
                depth = depth.checked_sub(1)?;
                state = *aside.get(depth)?;
            }
            (_, 0x0c) => (state.base, state.to_cfa) = (instructions.unsigned()?, instructions.unsigned()? as i64),
            (_, 0x0d) => state.base = instructions.unsigned()?,
            (_, 0x0e) => state.to_cfa = instructions.unsigned()? as i64,
            // expression, val_expression
            (_, 0x10 | 0x16) => {
                state.keep(instructions.unsigned()?, Kept::Lost);
                let length = instructions.unsigned()?;
                instructions.take(length)?;
            }
            // offset_extended_sf
            (_, 0x11) => {
                let register = instructions.unsigned()?;
                state.keep(register, Kept::OnStack(instructions.signed()?.wrapping_mul(data_factor)));
            }
            // GNU_args_size
            (_, 0x2e) => drop(instructions.unsigned()?),
            // The frame address by an expression, for instance: a stack that the function has aligned.
            _ => return None,
        }
        location = location.wrapping_add(advance.wrapping_mul(code_factor));
        if location > place {
            return Some(state);
        }
    }
    None
}

impl State {
    fn keep(&mut self, register: u64, kept: Kept) {
        match register {
            RBP => self.frame_pointer = kept,
            RETURN_ADDRESS => self.return_address = if let Kept::OnStack(offset) = kept { Some(offset) } else { None },
            _ => {}
        }
    }

    fn restore(&mut self, register: u64, initial: &Self) {
        match register {
            RBP => self.frame_pointer = initial.frame_pointer,
            RETURN_ADDRESS => self.return_address = initial.return_address,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use super::*;

    const BASE: u64 = 0x1000;
    const INDEX: u64 = BASE;
    const CODE: u64 = 0x8000;

    /// A table of one function of 0x40 bytes with these instructions.
    fn part(instructions: &[u8]) -> Vec<u8> {
        let mut rules = Vec::new();
        // Common: version 1, "zR", factors 1 and -8, return address in 16; CFA is RSP + 8, the return address at -8.
        let common = [&[0u8; 4][..], &[1, b'z', b'R', 0, 1, 0x78, 16, 1, RELATIVE, 0x0c, 7, 8, 0x90, 1, 0, 0]].concat();
        rules.extend((common.len() as u32).to_le_bytes());
        rules.extend(&common);
        let at = BASE + 20 + rules.len() as u64;
        let mut own = Vec::new();
        own.extend(((at + 4 - (BASE + 20)) as u32).to_le_bytes());
        own.extend((CODE.wrapping_sub(at + 8) as i32).to_le_bytes());
        own.extend(0x40u32.to_le_bytes());
        own.push(0);
        own.extend(instructions);
        rules.extend((own.len() as u32).to_le_bytes());
        rules.extend(&own);
        let mut bytes = ENCODINGS.to_vec();
        bytes.extend(16i32.to_le_bytes());
        bytes.extend(1u32.to_le_bytes());
        bytes.extend(((CODE - INDEX) as i32).to_le_bytes());
        bytes.extend(((at - INDEX) as i32).to_le_bytes());
        bytes.extend(&rules);
        bytes
    }

    fn at(instructions: &[u8], offset: u64) -> Option<(i64, i64, u32)> {
        let bytes = part(instructions);
        let found = frame_at(Part { address: BASE, bytes: &bytes }, INDEX, CODE + offset)?;
        Some((found.to_cfa, found.to_frame_pointer, found.flags))
    }

    #[test]
    fn the_rules_that_hold_at_a_call_are_those_before_it() {
        // sub rsp, 24 at 4; push rbp; mov rbp, rsp.
        let plain = [0x44, 0x0e, 0x20];
        assert_eq!(at(&plain, 4), Some((8, 0, 0)));
        assert_eq!(at(&plain, 5), Some((32, 0, 0)));
        let framed = [0x41, 0x0e, 0x10, 0x86, 2, 0x43, 0x0d, 6, 0x0a, 0x50, 0xc6, 0x0c, 7, 8, 0x41, 0x0b];
        assert_eq!(at(&framed, 3), Some((16, -16, 0)));
        assert_eq!(at(&framed, 0x10), Some((16, -16, layer_flags::BY_FRAME_POINTER)));
        assert_eq!(at(&framed, 0x15), Some((8, 0, 0)));
        assert_eq!(at(&framed, 0x20), Some((16, -16, layer_flags::BY_FRAME_POINTER)));
        // An expression, and addresses of no function.
        assert_eq!(at(&[0x0f, 1, 0x30], 8), None);
        assert_eq!((at(&plain, 0), at(&plain, 0x41)), (None, None));
    }

    #[test]
    fn rules_that_end_anywhere_give_no_answer_and_no_harm() {
        let bytes =
            part(&[0x41, 0x0e, 0x10, 0x86, 2, 0x43, 0x0d, 6, 0x05, 6, 2, 0x11, 6, 2, 0x2e, 1, 0x04, 1, 0, 0, 0]);
        for length in 0..bytes.len() {
            let cut = Part { address: BASE, bytes: bytes.get(..length).unwrap_or_default() };
            let _ = frame_at(cut, INDEX, CODE + 0x20);
        }
        for place in 0..bytes.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut hostile = bytes.clone();
                hostile[place] = value;
                let _ = frame_at(Part { address: BASE, bytes: &hostile }, INDEX, CODE + 0x20);
            }
        }
    }
}
