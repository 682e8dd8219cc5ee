//! Fortran and C++ libraries between the program and MPI's C functions: calls that they make are the program's, where it called them.
//!
//! They are known by what they define, never by their names. The way out of them is told by their own unwinding rules, looked up once
//! for each place that calls.

use core::{
    cell::UnsafeCell,
    ffi::{CStr, c_int, c_void},
    sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering},
};

use mpiprobe_common::{
    LayerFrame,
    layer::{LAYER_DEPTH, LAYER_RANGES, bound_function, layer_flags},
};

use crate::{
    entry::{DESCRIPTORS, Entry, FUNCTIONS, Frame},
    imports,
    unwind::{Part, frame_at},
};

/// What layers define and nothing else does: the Fortran procedures, and of the C++ bindings of Open MPI and MPICH what is not inlined.
const MARKS: [&CStr; 5] =
    [c"mpi_init_", c"mpi_init_f08_", c"pmpi_init_f08_", c"_ZN3MPI4CommC2Ev", c"_ZN3MPI11Get_versionERiS0_"];
/// The first ones are Fortran's.
const FORTRAN_MARKS: usize = 3;
/// What they do not define.
const C_FUNCTIONS: [&CStr; 2] = [c"PMPI_Init", c"MPI_Init"];

/// One layer's library.
#[derive(Clone, Copy)]
struct Layer {
    /// Its code, all of it.
    start: u64,
    end: u64,
    /// The part with the unwinding rules, and where in it their table is.
    rules_start: u64,
    rules_end: u64,
    index: u64,
    is_fortran: bool,
}

const NONE: Layer = Layer { start: 0, end: 0, rules_start: 0, rules_end: 0, index: 0, is_fortran: false };

struct Layers(UnsafeCell<[Layer; LAYER_RANGES]>);

// SAFETY: an entry is written once, before `USED` says that it is there, by whoever has `IS_WRITTEN`.
unsafe impl Sync for Layers {}

static LAYERS: Layers = Layers(UnsafeCell::new([NONE; LAYER_RANGES]));
static USED: AtomicUsize = AtomicUsize::new(0);
static IS_WRITTEN: AtomicUsize = AtomicUsize::new(0);
/// From the first to the last, whatever is between: most programs have none, and their calls are not looked up.
static START: AtomicU64 = AtomicU64::new(u64::MAX);
static END: AtomicU64 = AtomicU64::new(0);

/// Notes which layers are loaded. To be called whenever something has been.
pub(crate) fn note() {
    if IS_WRITTEN.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed).is_err() {
        return;
    }
    let of_c = C_FUNCTIONS.map(address);
    for (mark, address) in MARKS.map(address).into_iter().enumerate().filter(|&(_, address)| address != 0) {
        if layer_of(address).is_some() {
            continue;
        }
        let layer = Layer { is_fortran: mark < FORTRAN_MARKS, ..NONE };
        let mut sought = Sought { address, layer, has_code: false };
        // The callback gets its place.
        imports::each_object(look, (&raw mut sought).cast());
        // Tools that intercept both languages define both.
        let found = sought.layer;
        if sought.has_code && found.index != 0 && !of_c.iter().any(|&of_c| of_c >= found.start && of_c < found.end) {
            add(found);
        }
    }
    IS_WRITTEN.store(0, Ordering::Release);
}

fn add(layer: Layer) {
    let used = USED.load(Ordering::Acquire);
    if used < LAYER_RANGES {
        // SAFETY: see `Layers`; within the array.
        unsafe { LAYERS.0.get().cast::<Layer>().add(used).write(layer) };
        USED.store(used + 1, Ordering::Release);
        START.fetch_min(layer.start, Ordering::AcqRel);
        END.fetch_max(layer.end, Ordering::AcqRel);
    }
}

fn address(name: &CStr) -> u64 {
    // SAFETY: a handle that stands for all objects that the program sees.
    let found = unsafe { imports::dlsym(libc::RTLD_DEFAULT, name) };
    imports::forget_error();
    found as u64
}

struct Sought {
    address: u64,
    layer: Layer,
    has_code: bool,
}

unsafe extern "C" fn look(object: *mut libc::dl_phdr_info, _size: usize, sought: *mut c_void) -> c_int {
    // SAFETY: by contract of `dl_iterate_phdr` and of the caller.
    let (object, sought) = unsafe { (&*object, &mut *sought.cast::<Sought>()) };
    if object.dlpi_phdr.is_null() {
        return 0;
    }
    // SAFETY: the object's program headers, of which there are so many.
    let headers = unsafe { core::slice::from_raw_parts(object.dlpi_phdr, object.dlpi_phnum.into()) };
    let range = |header: &libc::Elf64_Phdr| {
        let start = object.dlpi_addr.wrapping_add(header.p_vaddr);
        (start, start.wrapping_add(header.p_memsz))
    };
    let is_code = |header: &&libc::Elf64_Phdr| header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_X != 0;
    let contains = |(start, end): (u64, u64), address: u64| address >= start && address < end;
    let Some(code) = headers.iter().filter(is_code).map(range).find(|&code| contains(code, sought.address)) else {
        return 0;
    };
    sought.has_code = true;
    (sought.layer.start, sought.layer.end) = code;
    let index = headers.iter().find(|header| header.p_type == libc::PT_GNU_EH_FRAME).map(range);
    if let Some((index, _)) = index
        && let Some((start, end)) = headers
            .iter()
            .filter(|header| header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_R != 0)
            .map(range)
            .find(|&part| contains(part, index))
    {
        (sought.layer.rules_start, sought.layer.rules_end, sought.layer.index) = (start, end, index);
    }
    1
}

/// The layer that makes the call which returns to an address.
fn layer_of(return_address: u64) -> Option<Layer> {
    let used = USED.load(Ordering::Acquire);
    // SAFETY: see `Layers`; entries within the array, which are not written any more.
    let used = unsafe { core::slice::from_raw_parts(LAYERS.0.get().cast::<Layer>(), used) };
    used.iter().find(|layer| return_address > layer.start && return_address <= layer.end).copied()
}

/// The place in the program that a call was made from by way of `frame`: its return address, unless that is in a layer whose caller
/// can be found.
#[inline]
pub(crate) fn user_site(frame: *mut Frame) -> u64 {
    // SAFETY: the trampoline's frame.
    let site = unsafe { (*frame).return_address };
    if site > START.load(Ordering::Relaxed) && site <= END.load(Ordering::Relaxed) { follow(frame, site) } else { site }
}

/// Whether a call that begins, of a local question, is made by a layer on its own account: not by the program.
#[inline]
pub(crate) fn is_own_call(frame: *mut Frame, function: u32) -> bool {
    let Some(descriptor) = DESCRIPTORS.get(function as usize) else { return false };
    // SAFETY: the trampoline's frame.
    let site = unsafe { (*frame).return_address };
    descriptor.own_of_layers != 0
        && site > START.load(Ordering::Relaxed)
        && site <= END.load(Ordering::Relaxed)
        && rule_at(site).is_some_and(|rule| rule.is_own(descriptor.own_of_layers, descriptor.question))
}

/// What the layer's function that makes the call which returns to `site` asks on its own account, by [`LayerFrame::flags`] and
/// [`LayerFrame::question`].
fn own_calls(layer: &Layer, site: u64) -> LayerFrame {
    if !layer.is_fortran {
        return LayerFrame::default();
    }
    let symbol = imports::symbol_of((site - 1) as *const c_void);
    let bound = symbol.and_then(|symbol| bound_function(symbol.to_bytes()));
    let is_it = |entry: Entry, bound: &[u8]| {
        entry.name().to_bytes().strip_prefix(b"MPI_").is_some_and(|name| name.eq_ignore_ascii_case(bound))
    };
    let descriptor = |bound: &[u8]| {
        let mut all = (0..FUNCTIONS as u32).filter_map(Entry::new);
        DESCRIPTORS.get(all.find(|&entry| is_it(entry, bound))?.function() as usize)
    };
    LayerFrame::asked_by(bound.and_then(descriptor))
}

#[cold]
fn follow(frame: *mut Frame, site: u64) -> u64 {
    /// No frame of a layer is larger, and what is further away may be no stack.
    const LARGEST: u64 = 1 << 20;
    // SAFETY: the trampoline's frame: the caller's registers after the return.
    let (mut stack_pointer, mut frame_pointer) =
        unsafe { ((&raw const (*frame).return_address).add(1) as u64, Some((*frame).callers)) };
    let mut site = site;
    for _ in 0..LAYER_DEPTH {
        let Some(rule) = rule_at(site) else { break };
        let near = stack_pointer..stack_pointer.wrapping_add(LARGEST);
        let word = |address: u64| {
            if !near.contains(&address) || !address.is_multiple_of(8) {
                return None;
            }
            // SAFETY: a word of the stack in the frame of a function that is open, as its own rules say.
            Some(unsafe { (address as *const u64).read() })
        };
        let Some(caller) = rule.caller(stack_pointer, frame_pointer, word) else { break };
        (site, stack_pointer, frame_pointer) = (caller.return_address, caller.stack_pointer, caller.frame_pointer);
    }
    site
}

/// Rules that have been looked up, by return address.
struct CachedRule {
    /// 0: free; 1: being written.
    site: AtomicU64,
    /// See [`packed`].
    rule: AtomicU64,
    /// [`LayerFrame::question`].
    question: AtomicU32,
}

const PLACES: usize = 2048;
/// Places that one may be at.
const ROW: usize = 8;
const WRITING: u64 = 1;
static RULES: [CachedRule; PLACES] =
    [const { CachedRule { site: AtomicU64::new(0), rule: AtomicU64::new(0), question: AtomicU32::new(0) } }; PLACES];

fn rule_at(site: u64) -> Option<LayerFrame> {
    let layer = layer_of(site)?;
    let first = (site.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 53) as usize;
    let row = || (first..first + ROW).filter_map(|place| RULES.get(place % PLACES));
    if let Some(known) = row().find(|known| known.site.load(Ordering::Acquire) == site) {
        return unpacked(known.rule.load(Ordering::Relaxed), known.question.load(Ordering::Relaxed));
    }
    // SAFETY: a part of a loaded file, which nobody writes to; a layer that is unloaded takes its callers with it.
    let bytes = unsafe {
        core::slice::from_raw_parts(layer.rules_start as *const u8, (layer.rules_end - layer.rules_start) as usize)
    };
    let rule = frame_at(Part { address: layer.rules_start, bytes }, layer.index, site);
    let own = own_calls(&layer, site);
    let rule = match rule {
        None => own.may_be_own().then_some(own),
        Some(rule) => Some(LayerFrame { flags: rule.flags | own.flags, ..rule }),
    };
    let rule = packed(rule);
    // Where there is no room, it is looked up again each time.
    for known in row() {
        if known.site.compare_exchange(0, WRITING, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            known.rule.store(rule, Ordering::Relaxed);
            known.question.store(own.question, Ordering::Relaxed);
            known.site.store(site, Ordering::Release);
            break;
        }
    }
    unpacked(rule, own.question)
}

/// Distance to the frame address in 32 bits, that of the frame pointer in 16, flags, and that there is something.
fn packed(rule: Option<LayerFrame>) -> u64 {
    let Some(rule) = rule else { return 0 };
    let (Ok(to_cfa), Ok(to_frame_pointer)) = (i32::try_from(rule.to_cfa), i16::try_from(rule.to_frame_pointer)) else {
        return 0;
    };
    u64::from(to_cfa as u32) | u64::from(to_frame_pointer as u16) << 32 | u64::from(rule.flags & 0xff) << 48 | 1 << 63
}

fn unpacked(rule: u64, question: u32) -> Option<LayerFrame> {
    const FLAGS: u32 = layer_flags::BY_FRAME_POINTER
        | layer_flags::FRAME_POINTER_LOST
        | (layer_flags::OWN_CONVERSIONS | layer_flags::OWN_QUERIES) as u32;
    (rule >> 63 != 0).then_some(LayerFrame {
        to_cfa: (rule as u32 as i32).into(),
        to_frame_pointer: ((rule >> 32) as u16 as i16).into(),
        flags: (rule >> 48) as u32 & FLAGS,
        question,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_kept_as_they_are() {
        let rule =
            LayerFrame { to_cfa: 0x1238, to_frame_pointer: -16, flags: layer_flags::FRAME_POINTER_LOST, question: 9 };
        assert_eq!(unpacked(packed(Some(rule)), 9), Some(rule));
        assert_eq!(unpacked(packed(None), 0), None);
        assert_eq!(unpacked(packed(Some(LayerFrame { to_frame_pointer: 1 << 20, ..rule })), 9), None);
    }
}
