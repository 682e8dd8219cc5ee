//! Choosing the instruction of a function that carries its probe.
//!
//! Many functions do not begin with an instruction that the kernel emulates (see the `kernel` module), but have one a few bytes on: a
//! `push` after `endbr64`, or after the load of a global variable. A probe there sees the same call, as long as nothing
//! before it touched an argument or the stack pointer. Only instructions reached by decoding from the entry qualify: a
//! breakpoint inside an instruction corrupts the program.

use iced_x86::{Decoder, DecoderOptions, InstructionInfoFactory};

use super::{
    Site, SiteKind, SlowReason, Unprobeable,
    effects::obstacle,
    jumps::jumps_back,
    kernel::{check_probeable, is_emulated},
};

/// How many instructions may stand before the site, and how many bytes. Compilers move a few loads before the first push.
const MAX_SKIPPED: usize = 4;
pub(super) const MAX_DISTANCE: u8 = 24;

/// Chooses the site for the function whose machine code is `code`, from its entry to its end.
///
/// `address` is its address as the code sees it (for jumps), `file_offset` where the code begins in the file. `arguments` is the
/// number of its arguments, or 6 and more if all registers that can carry one have to be kept.
pub fn plan_site(code: &[u8], address: u64, file_offset: u64, arguments: usize) -> Result<Site, Unprobeable> {
    let found = find_emulated(code, address, arguments)?;
    let jumps = jumps_back(code, address, found.map_or(0, u64::from));
    let kind = match found {
        Ok(0) => SiteKind::Fast,
        Ok(_) if jumps.into_prologue => SiteKind::Slow { reason: SlowReason::JumpTarget },
        Ok(by) => SiteKind::Moved { by },
        Err(reason) => SiteKind::Slow { reason },
    };
    let distance = match kind {
        SiteKind::Moved { by } => by,
        SiteKind::Fast => 0,
        SiteKind::Slow { .. } => {
            check_probeable(first_instruction(code, address)?)?;
            0
        }
    };
    Ok(Site { offset: file_offset.saturating_add(distance.into()), kind, reentered: jumps.to_entry })
}

/// How many bytes after the entry the first emulated instruction is, or what stands before it.
fn find_emulated(code: &[u8], address: u64, arguments: usize) -> Result<Result<u8, SlowReason>, Unprobeable> {
    first_instruction(code, address)?;
    let mut decoder = decoder(code, address)?;
    let mut factory = InstructionInfoFactory::new();
    for _ in 0..=MAX_SKIPPED {
        let start = decoder.position();
        let Some(distance) = u8::try_from(start).ok().filter(|&distance| distance <= MAX_DISTANCE) else { break };
        if !decoder.can_decode() {
            return Ok(Err(SlowReason::EndOfFunction));
        }
        let instruction = decoder.decode();
        if instruction.is_invalid() {
            return Ok(Err(SlowReason::Undecodable));
        }
        if code.get(start..decoder.position()).is_some_and(is_emulated) {
            return Ok(Ok(distance));
        }
        if let Some(reason) = obstacle(&instruction, arguments, &mut factory) {
            return Ok(Err(reason));
        }
    }
    Ok(Err(SlowReason::TooFar))
}

fn first_instruction(code: &[u8], address: u64) -> Result<&[u8], Unprobeable> {
    let mut decoder = decoder(code, address)?;
    if decoder.decode().is_invalid() {
        return Err(Unprobeable::Undecodable);
    }
    code.get(..decoder.position()).ok_or(Unprobeable::Undecodable)
}

fn decoder(code: &[u8], address: u64) -> Result<Decoder<'_>, Unprobeable> {
    Decoder::try_with_ip(64, code, address, DecoderOptions::NONE).map_err(|_| Unprobeable::Undecodable)
}
