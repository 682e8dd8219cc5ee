//! Where the fields are that the iterator reads, from the kernel's own types.

use std::{fs::File, io::Read as _};

use mpiprobe_common::stacks::field;

use crate::CaptureError;
use mpiprobe_attach::btf::{self, Wanted};

const KERNEL_TYPES: &str = "/sys/kernel/btf/vmlinux";
/// The kernel's types are 4 to 8 MB.
const MAX_TYPES_BYTES: u64 = 64 << 20;

/// Offsets by [`field`], in bytes.
pub(crate) type Fields = [u32; field::COUNT];

pub(crate) fn read() -> Result<Fields, CaptureError> {
    let file = File::open(KERNEL_TYPES).map_err(CaptureError::Types)?;
    let mut bytes = Vec::new();
    file.take(MAX_TYPES_BYTES).read_to_end(&mut bytes).map_err(CaptureError::Types)?;
    parse(&bytes).ok_or(CaptureError::UnknownTypes)
}

fn parse(bytes: &[u8]) -> Option<Fields> {
    let of = |structure, field| Wanted::Field { structure, field };
    let task = |field| of("task_struct", field);
    let [
        leader,
        thread_pid,
        level,
        numbers,
        state,
        old_state,
        mm,
        voluntary,
        involuntary,
        entity,
        run,
        on_cpu,
        thread,
        fs_base,
        stack,
        utask,
        instances,
        instance_stack,
        instance_return_address,
        instance_next,
    ] = btf::find(
        bytes,
        [
            task("group_leader"),
            task("thread_pid"),
            of("pid", "level"),
            of("pid", "numbers"),
            task("__state"),
            task("state"),
            task("mm"),
            task("nvcsw"),
            task("nivcsw"),
            task("se"),
            of("sched_entity", "sum_exec_runtime"),
            task("on_cpu"),
            task("thread"),
            of("thread_struct", "fsbase"),
            of("mm_struct", "start_stack"),
            task("utask"),
            of("uprobe_task", "return_instances"),
            of("return_instance", "stack"),
            of("return_instance", "orig_ret_vaddr"),
            of("return_instance", "next"),
        ],
    )?;
    let mut fields = [0; field::COUNT];
    let found = [
        (field::TASK_GROUP_LEADER, leader),
        (field::TASK_THREAD_PID, thread_pid),
        (field::PID_LEVEL, level),
        (field::PID_NUMBERS, numbers),
        // Its name until kernel 5.14.
        (field::TASK_STATE, state.or(old_state)),
        (field::TASK_MM, mm),
        (field::TASK_VOLUNTARY, voluntary),
        (field::TASK_INVOLUNTARY, involuntary),
        (field::TASK_RUN_NS, entity.zip(run).and_then(|(entity, run)| entity.checked_add(run))),
        (field::TASK_ON_CPU, on_cpu),
        (field::TASK_FS_BASE, thread.zip(fs_base).and_then(|(thread, base)| thread.checked_add(base))),
        (field::MM_START_STACK, stack),
    ];
    for (place, offset) in found {
        *fields.get_mut(place)? = offset?;
    }
    let returns = [
        (field::TASK_UTASK, utask),
        (field::UTASK_RETURN_INSTANCES, instances),
        (field::INSTANCE_STACK, instance_stack),
        (field::INSTANCE_RETURN_ADDRESS, instance_return_address),
        (field::INSTANCE_NEXT, instance_next),
    ];
    if returns.iter().all(|(_, offset)| offset.is_some()) {
        for (place, offset) in returns {
            *fields.get_mut(place)? = offset?;
        }
    }
    Some(fields)
}
