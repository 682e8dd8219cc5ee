//! Jumps of a function back into its own first instructions: a probe there would fire again within one call.

use iced_x86::{Decoder, DecoderOptions, FlowControl, OpKind};

/// How much of a function is searched, in bytes: MPI functions have a few hundred.
const MAX_SEARCHED: usize = 4096;

/// Where a function's direct jumps lead, near its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct JumpsBack {
    pub(super) to_entry: bool,
    /// To an instruction after the entry, up to and including the site.
    pub(super) into_prologue: bool,
}

/// Searches `code`, a function at `address`, for jumps to at most `site` bytes after its entry.
///
/// Linear decoding may run out of step at data within the code. Jumps read out of step can only make the answer more careful.
/// Calls do not count: a function that calls itself is called again.
pub(super) fn jumps_back(code: &[u8], address: u64, site: u64) -> JumpsBack {
    let mut found = JumpsBack { to_entry: false, into_prologue: false };
    let searched = code.get(..MAX_SEARCHED).unwrap_or(code);
    let Ok(mut decoder) = Decoder::try_with_ip(64, searched, address, DecoderOptions::NONE) else { return found };
    for instruction in &mut decoder {
        let jumps =
            matches!(instruction.flow_control(), FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch);
        if instruction.is_invalid() || !jumps || instruction.op0_kind() != OpKind::NearBranch64 {
            continue;
        }
        match instruction.near_branch_target().wrapping_sub(address) {
            0 => found.to_entry = true,
            after if after <= site => found.into_prologue = true,
            _ => {}
        }
    }
    found
}
