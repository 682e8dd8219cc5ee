//! Every call that a layer can make, before it makes any.

use iced_x86::{Decoder, DecoderOptions, FlowControl};
use mpiprobe_common::LayerFrame;

use super::{call_frames::CallFrame, layer::own_calls, module::Module, symbols::Symbols};

/// A call instruction of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayerCall {
    /// The return address, as in [`ModuleAddress`](super::ModuleAddress).
    pub offset: u64,
    /// Where the layer's own return address is, if that is at a constant distance, and what it asks here on its own account.
    pub frame: LayerFrame,
}

/// Of one file. The largest Fortran library has some ten thousand.
const MAX_CALLS: usize = 1 << 16;
/// Of the code of one file, in bytes.
const MAX_CODE: u64 = 64 << 20;

/// The calls of the functions of a module that belong to a layer, in ascending order; empty for one that has none.
///
/// With these the caller of the layer can be found in the kernel, by one read for each layer: where a call returns to `offset`,
/// the word at the known distance is the next return address.
pub fn calls_of_layer(module: &Module) -> Vec<LayerCall> {
    let (Some(image), Some(code)) = (module.image.as_ref(), module.layer_code()) else { return Vec::new() };
    let Some(frames) = module.call_frames() else { return Vec::new() };
    let functions: Vec<_> = frames.functions().filter(|function| code.contains(function.start)).collect();
    let exported = Symbols::read_dynamic(image);
    let own_calls = |start: u64| {
        let symbol = exported.find(start).filter(|&(_, address)| address == start);
        module.layer_at(start).map(|layer| own_calls(layer, symbol.map(|(name, _)| name))).unwrap_or_default()
    };
    let mut calls = Vec::new();
    let mut left = MAX_CODE;
    for function in functions {
        let length = function.end.saturating_sub(function.start).min(left);
        left -= length;
        let code = image
            .segments()
            .offset_of(function.start)
            .and_then(|(offset, available)| image.bytes(offset, length.min(available)));
        let code = code.unwrap_or_default();
        let own = own_calls(function.start);
        for instruction in &mut Decoder::with_ip(64, &code, function.start, DecoderOptions::NONE) {
            if matches!(instruction.flow_control(), FlowControl::Call | FlowControl::IndirectCall) {
                let frame = frames.at(instruction.ip());
                let frame = frame.as_ref().and_then(CallFrame::of_layer).unwrap_or_default();
                let frame = LayerFrame { flags: frame.flags | own.flags, question: own.question, ..frame };
                calls.push(LayerCall { offset: instruction.next_ip(), frame });
            }
        }
        if left == 0 || calls.len() >= MAX_CALLS {
            break;
        }
    }
    calls.truncate(MAX_CALLS);
    calls.sort_by_key(|call| call.offset);
    calls
}
