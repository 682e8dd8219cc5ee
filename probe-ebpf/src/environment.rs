//! The environment of a new process image, which tells its rank, and who has started it, which tells its job: told with the exec, because
//! a short process is gone before user space can read them.

use core::{mem::offset_of, slice::from_raw_parts};

use aya_ebpf::{
    bindings::BPF_RB_AVAIL_DATA,
    helpers::{bpf_get_current_task, generated::bpf_probe_read_user},
};
use mpiprobe_common::{Event, ExecNotice, config::EVENTS_BYTES, event::ENVIRONMENT_BYTES};

use crate::{
    current,
    lifecycle::notify,
    maps::{EVENTS, EXEC_NOTICE, configured},
    open_calls::word,
};

/// Gives notice of the exec of the current process, with its environment if that can be read and there is room.
#[inline(always)]
pub fn tell(notice: &Event) {
    if !has_room() || !tell_with_environment(notice) {
        notify(notice);
    }
}

/// Whether there is room for what other notices may not be lost for.
#[inline(always)]
pub fn has_room() -> bool {
    EVENTS.query(u64::from(BPF_RB_AVAIL_DATA)) < u64::from(EVENTS_BYTES / 2)
}

#[inline(always)]
fn tell_with_environment(notice: &Event) -> bool {
    let fields = configured::environment();
    if fields.task_mm == 0 {
        return false;
    }
    let Some(place) = EXEC_NOTICE.get_ptr_mut(0) else { return false };
    // SAFETY: takes no arguments.
    let task = unsafe { bpf_get_current_task() };
    let memory = word(task, fields.task_mm);
    let (start, end) = (word(memory, fields.env_start), word(memory, fields.env_end));
    if start == 0 || end < start {
        return false;
    }
    let whole = end - start;
    // Its end, where launchers append.
    let length = whole.min(ENVIRONMENT_BYTES as u64);
    // SAFETY: an entry of a per-CPU table whose only user is this program, which the kernel runs once at a time on a CPU; the
    // helper writes no more than the field has bytes, and what is handed on is within the entry.
    unsafe {
        (*place).event = *notice;
        (*place).cut = (whole > ENVIRONMENT_BYTES as u64).into();
        (*place).parent = current::process_of(word(task, fields.task_real_parent));
        let to = (&raw mut (*place).environment).cast();
        if bpf_probe_read_user(to, length as u32, (end - length) as *const _) != 0 {
            return false;
        }
        let bytes = offset_of!(ExecNotice, environment) + length as usize;
        EVENTS.output::<[u8]>(from_raw_parts(place.cast::<u8>(), bytes), 0).is_ok()
    }
}
