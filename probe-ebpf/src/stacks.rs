//! A look at threads without stopping them: registers, stack and counters, copied by an iterator that may wait for memory.
//!
//! An object of its own beside the one that observes calls: it is loaded for one look, and needs none of the other tables.
#![no_std]
#![no_main]

use core::{ffi::c_void, ptr::read_volatile};

use aya_ebpf::{
    bindings::task_struct,
    helpers::generated::{bpf_copy_from_user_task, bpf_get_current_task, bpf_ktime_get_ns, bpf_probe_read_kernel, bpf_task_pt_regs},
    macros::map,
    maps::{Array, HashMap},
};
use mpiprobe_common::{Namespace, stacks::{
    AFTER, BEFORE, BEGAN, COPIED, ENDED, FS_BASE, HAS_REGISTERS, ID, MOST_RETURNS, PAGE_BYTES, PAGES, Page, REGISTER_WORDS, REGISTERS,
    RETURNS, Record, SLOTS, STACK, STATE, field, progress, register,
}};

/// Where fields of the kernel's structures are; set by the loader, which rewrites it behind the compiler's back.
#[unsafe(no_mangle)]
static FIELDS: [u32; field::COUNT] = [0; field::COUNT];

/// Threads to look at, by their number: the slot that each is noted in.
#[map]
static WANTED: HashMap<u32, u32> = HashMap::with_max_entries(SLOTS, 0);

#[map]
static RECORDS: Array<Record> = Array::with_max_entries(SLOTS, 0);

/// [`PAGES`] for each slot.
#[map]
static STACKS: Array<Page> = Array::with_max_entries(SLOTS * PAGES, 0);

/// Run for every thread of the system when somebody reads the iterator.
#[unsafe(no_mangle)]
#[unsafe(link_section = "iter.s/task")]
pub extern "C" fn look(context: *mut c_void) -> i32 {
    // SAFETY: `struct bpf_iter__task` (kernel/bpf/task_iter.c) is two pointers; the second one is to the task, or null at the end.
    let task = unsafe { *context.cast::<*mut task_struct>().add(1) };
    if !task.is_null() {
        look_at(task);
    }
    0
}

#[inline(always)]
fn look_at(task: *mut task_struct) {
    let thread = number(task as u64);
    // SAFETY: copied at once; only the loader writes there, before the iterator is read.
    let Some(slot) = (unsafe { WANTED.get(&thread) }).copied() else { return };
    let mm = word(task as u64, field::TASK_MM);
    let Some(record) = RECORDS.get_ptr_mut(slot) else { return };
    let record: *mut u64 = record.cast();
    let note = |place: usize, value: u64| {
        // SAFETY: within the record, whose places are all below its length.
        unsafe { record.add(place).write(value) };
    };
    // SAFETY: takes nothing.
    note(BEGAN, unsafe { bpf_ktime_get_ns() });
    note(ID, u64::from(number(word(task as u64, field::TASK_GROUP_LEADER))) << 32 | u64::from(thread));
    note(STATE, word(task as u64, field::TASK_STATE) & 0xffff_ffff);
    note_progress(task, BEFORE, note);
    // A thread on its way out, or of the kernel's.
    if mm != 0 {
        let fs_base = word(task as u64, field::TASK_FS_BASE);
        note(FS_BASE, fs_base);
        // SAFETY: the task is the iterator's; what is returned is read by the helper made for that.
        let read = unsafe {
            let registers = bpf_task_pt_regs(task);
            bpf_probe_read_kernel(record.add(REGISTERS).cast(), (REGISTER_WORDS * 8) as u32, registers as *const c_void)
        };
        if read == 0 {
            note(HAS_REGISTERS, 1);
            // SAFETY: within the record.
            let sp = unsafe { record.add(REGISTERS + register::SP).read() };
            let start = sp & !(PAGE_BYTES as u64 - 1);
            note(STACK, start);
            let above = [fs_base, word(mm, field::MM_START_STACK)];
            note(COPIED, copy(task, slot, start, end(sp, above)).into());
            note_returns(task, note);
        }
    }
    note_progress(task, AFTER, note);
    // SAFETY: takes nothing.
    note(ENDED, unsafe { bpf_ktime_get_ns() });
}

/// A task's number in the pid namespace of whoever reads the iterator, which gives no others.
#[inline(always)]
fn number(task: u64) -> u32 {
    // SAFETY: takes no arguments.
    let reader = unsafe { bpf_get_current_task() };
    let level = word(word(reader, field::TASK_THREAD_PID), field::PID_LEVEL) as u32;
    word_at(word(task, field::TASK_THREAD_PID), offset(field::PID_NUMBERS) + level * Namespace::NUMBER_BYTES) as u32
}

/// What is not to be read any more: behind the thread's own block, or what the first stack began with, if either is near. Other memory
/// may be above a stack.
#[inline(always)]
fn end(sp: u64, above: [u64; 2]) -> u64 {
    let most = sp.wrapping_add(u64::from(PAGES) * PAGE_BYTES as u64);
    let mut end = most;
    for limit in above {
        if limit >= sp && limit < end {
            end = limit + 1;
        }
    }
    end
}

/// Copies pages of the stack; how many there are.
#[inline(always)]
fn copy(task: *mut task_struct, slot: u32, start: u64, end: u64) -> u32 {
    let mut copied = 0;
    for page in 0..PAGES {
        let from = start.wrapping_add(u64::from(page) * PAGE_BYTES as u64);
        if from >= end {
            break;
        }
        let Some(to) = STACKS.get_ptr_mut(slot * PAGES + page) else { break };
        // SAFETY: a page into a page of the table, by the helper made for that.
        let failed = unsafe { bpf_copy_from_user_task(to.cast(), PAGE_BYTES as u32, from as *const c_void, task, 0) };
        if failed != 0 {
            break;
        }
        copied = page + 1;
    }
    copied
}

/// Return addresses that are not on the stack, because return probes are armed.
#[inline(always)]
fn note_returns(task: *mut task_struct, note: impl Fn(usize, u64)) {
    if offset(field::TASK_UTASK) == 0 {
        return;
    }
    let utask = word(task as u64, field::TASK_UTASK);
    if utask == 0 {
        return;
    }
    let mut instance = word(utask, field::UTASK_RETURN_INSTANCES);
    for index in 0..MOST_RETURNS {
        if instance == 0 {
            break;
        }
        note(RETURNS + 2 * index, word(instance, field::INSTANCE_STACK));
        note(RETURNS + 2 * index + 1, word(instance, field::INSTANCE_RETURN_ADDRESS));
        instance = word(instance, field::INSTANCE_NEXT);
    }
}

#[inline(always)]
fn note_progress(task: *mut task_struct, place: usize, note: impl Fn(usize, u64)) {
    note(place + progress::VOLUNTARY, word(task as u64, field::TASK_VOLUNTARY));
    note(place + progress::INVOLUNTARY, word(task as u64, field::TASK_INVOLUNTARY));
    note(place + progress::RUN_NS, word(task as u64, field::TASK_RUN_NS));
    note(place + progress::ON_CPU, word(task as u64, field::TASK_ON_CPU) & 0xffff_ffff);
}

/// A word of kernel memory; 0 if it cannot be read.
#[inline(always)]
fn word(base: u64, field: usize) -> u64 {
    word_at(base, offset(field))
}

#[inline(always)]
fn offset(field: usize) -> u32 {
    // SAFETY: an element of a live static, aligned and initialised.
    unsafe { read_volatile(&raw const FIELDS[field]) }
}

#[inline(always)]
fn word_at(base: u64, offset: u32) -> u64 {
    let mut word = 0u64;
    let address = base + u64::from(offset);
    // SAFETY: reads kernel memory by the helper made for that, into a local of the size given.
    unsafe { bpf_probe_read_kernel((&raw mut word).cast(), 8, address as *const _) };
    word
}

#[panic_handler]
fn panic(_info: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}

// The helpers used are for GPL-compatible programs only.
#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";
