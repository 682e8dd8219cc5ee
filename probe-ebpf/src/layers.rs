//! Calls that come through a Fortran or C++ layer: who has called the layer.

use mpiprobe_common::{
    FUNCTION_SLOTS, LayerFrame, ProcessLayers, ThreadState,
    layer::{EARLY_QUERIES, EarlyQuery, LAYER_DEPTH, call_key},
    layout::Memory as _,
};

use crate::{
    atomic::{add, compare_exchange, from_here_on, load},
    call::read_return_address,
    maps::{DESCRIPTORS, LAYER_FRAMES, LAYERS},
    semantics::User,
    registers::{RETURN_ADDRESS_BYTES, Registers},
    statistics::{is_chosen, process_counters},
    tools,
};

/// The place in the user's code that a call which has just returned was made from: its own call site, unless that is in a layer or
/// a tool. As far as the way out is known.
#[inline(always)]
pub fn user_site(thread: &ThreadState, registers: &Registers) -> u64 {
    let process = thread.process;
    // Read in any case: the verifier wants to see where in the registers, not which of two words.
    let mut site = from_here_on(registers.instruction_pointer());
    let mut stack_pointer = from_here_on(registers.stack_pointer());
    let mut frame_pointer = from_here_on(registers.frame_pointer());
    if thread.tools_open != 0 {
        // As it was when the outermost tool was called.
        site = thread.return_address;
        stack_pointer = thread.open.stack_pointer + u64::from(thread.open.to_user) + RETURN_ADDRESS_BYTES;
        frame_pointer = thread.frame_pointer;
    }
    if may_be_in_layer(process, site) { follow_layers(process, site, stack_pointer, frame_pointer) } else { site }
}

/// Whether a call site is somewhere among the layers of a process.
#[inline(always)]
pub fn may_be_in_layer(process: u32, site: u64) -> bool {
    // SAFETY: map value pointer; the daemon writes what it has found before the process calls, or a word at a time.
    LAYERS.get_ptr(process).is_some_and(|layers| unsafe { (*layers).around.contains(site) })
}

/// Whether a function that is entered, a local question, is called by a layer on its own account: not by the program.
#[inline(never)]
pub fn is_own_call(thread: &ThreadState, function: u32, stack_pointer: u64) -> bool {
    let Some(layers) = LAYERS.get_ptr(thread.process) else { return false };
    // SAFETY: as in `may_be_in_layer`.
    let layers = unsafe { &*layers };
    let is_known = layers.around.start != 0;
    if layers.around.end == 0 && (is_known || !is_chosen(function)) {
        return false;
    }
    let caller = match tools::caller(thread, function) {
        0 => read_return_address(thread.process, stack_pointer),
        caller => caller,
    };
    if !is_known {
        note_early(thread.process, function, caller);
        return false;
    }
    is_own(layers, function, caller)
}

/// Remembers from where a local question is asked as long as it is not known whether that is in a layer.
#[inline(never)]
fn note_early(process: u32, function: u32, caller: u64) {
    let Some(counters) = process_counters(process) else { return };
    let Some(descriptor) = DESCRIPTORS.get_ptr(function & (FUNCTION_SLOTS - 1)) else { return };
    // SAFETY: map value pointers; the first was written before anything is attached; the index is below the array's length.
    unsafe {
        let query = EarlyQuery::new(caller, (*descriptor).own_of_layers, (*descriptor).question).0;
        let places = (&raw mut (*counters).early_queries).cast::<u64>();
        for index in 0..EARLY_QUERIES {
            let place = places.add(index);
            let known = load(place);
            if known == query || (known == 0 && compare_exchange(place, 0, query) == 0) {
                return;
            }
        }
        add(&raw mut (*counters).more_early_queries, 1);
    }
}

/// Whether it returns from such a call.
#[inline(never)]
pub fn is_return_of_own_call(thread: &ThreadState, function: u32, return_address: u64) -> bool {
    let caller = match tools::caller(thread, function) {
        0 => return_address,
        caller => caller,
    };
    // SAFETY: as in `may_be_in_layer`.
    LAYERS.get_ptr(thread.process).is_some_and(|layers| is_own(unsafe { &*layers }, function, caller))
}

#[inline(always)]
fn is_own(layers: &ProcessLayers, function: u32, site: u64) -> bool {
    if !layers.around.contains(site) {
        return false;
    }
    let Some(descriptor) = DESCRIPTORS.get_ptr(function & (FUNCTION_SLOTS - 1)) else { return false };
    // SAFETY: map value pointer, written before anything is attached.
    let (own, question) = unsafe { ((*descriptor).own_of_layers, (*descriptor).question) };
    let Some(frame) = frame_at(layers, site) else { return false };
    // As a number that is there in any case: the verifier would see a register that nothing was written to.
    from_here_on(frame.is_own(own, question) as u64) != 0
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn follow_layers(process: u32, site: u64, stack_pointer: u64, frame_pointer: u64) -> u64 {
    let Some(layers) = LAYERS.get_ptr(process) else { return site };
    // SAFETY: as above.
    let layers = unsafe { &*layers };
    let (mut site, mut stack_pointer, mut frame_pointer) = (site, stack_pointer, Some(frame_pointer));
    for _ in 0..LAYER_DEPTH {
        let Some(frame) = frame_at(layers, site) else { break };
        let Some(caller) = frame.caller(stack_pointer, frame_pointer, |address| User.word(address)) else { break };
        (site, stack_pointer, frame_pointer) = (caller.return_address, caller.stack_pointer, caller.frame_pointer);
    }
    site
}

/// The way out of the layer that makes the call which returns to `site`; `None` if that is the user's.
#[inline(always)]
fn frame_at(layers: &ProcessLayers, site: u64) -> Option<LayerFrame> {
    for range in &layers.ranges {
        if range.contains(site) {
            let key = call_key(range.module, site.wrapping_sub(range.bias));
            // SAFETY: the value is copied at once, and never changed.
            return unsafe { LAYER_FRAMES.get(&key) }.copied();
        }
    }
    None
}
