//! Processes come and go: what the kernel tells, so that nothing depends on how fast user space looks.

use aya_ebpf::{
    EbpfContext as _,
    helpers::{
        bpf_get_current_comm, bpf_get_current_task, bpf_get_current_uid_gid, bpf_ktime_get_ns,
    },
    programs::RawTracePointContext,
};
use mpiprobe_common::{
    CALIBRATION_SLOT, EndedInCall, EndedThread, EndedThreadKey, Event, Loss, Target, ThreadState,
    config::COMM_LENGTH, tables::Word,
    event::EventKind,
    process::target_flags,
};

use crate::{
    atomic::{add, fetch_add},
    call::{self, target},
    current, earlier, environment,
    maps::{ENDED_THREADS, EVENTS, JOB, TARGETS, configured},
    open_calls,
    statistics::{count_loss, process_counters, take_number},
    thread, tools,
};

/// Says what happens, if somebody wants to know. Not for what a call runs through: it costs.
macro_rules! trace {
    ($context:expr, $($argument:tt)*) => {
        if configured::trace() != 0 {
            aya_log_ebpf::info!($context, $($argument)*);
        }
    };
}

/// The current thread ends.
pub fn thread_exit(context: &RawTracePointContext) {
    let id = current::id();
    if id == current::ELSEWHERE {
        return;
    }
    if configured::trace() != 0 && target(id).is_some() {
        aya_log_ebpf::info!(context, "thread {} of process {} ends", id as u32, (id >> 32) as u32);
    }
    end_thread(id);
    if let Some(target) = target(id) {
        note_end(target.process);
    }
}

/// The current thread has started another one, or a process: those that members of the job start are members.
pub fn process_fork(context: &RawTracePointContext) {
    // SAFETY: argument 1 of this tracepoint is the new `task_struct` (include/trace/events/sched.h).
    let child = unsafe { *context.as_ptr().cast::<u64>().add(1) };
    let parent = current::id();
    if parent == current::ELSEWHERE {
        return;
    }
    let (child, parent) = (current::process_of(child), (parent >> 32) as u32);
    if child == parent {
        return;
    }
    // SAFETY: nothing is read of the value.
    if unsafe { JOB.get(parent) }.is_none() {
        // A member that has ended may have had its number.
        let _ = JOB.remove(child);
    } else if JOB.insert(child, 0, 0).is_err() {
        count_loss(CALIBRATION_SLOT, Loss::ProcessTableFull);
    } else {
        trace!(context, "process {} belongs to the job: process {} has started it", child, parent);
    }
}

/// The current process has got a new program. Its other threads have ended before.
pub fn process_exec(context: &RawTracePointContext) {
    let id = current::id();
    if id == current::ELSEWHERE {
        return;
    }
    let tgid = (id >> 32) as u32;
    // A thread that execs takes over its leader's id: its state is still kept under the old one. The kernel tells that of the initial
    // namespace; within another one the state of a thread which is not the leader stays, and is counted with the process that was.
    if current::is_initial() {
        // SAFETY: argument 1 of this tracepoint is `pid_t old_pid` (include/trace/events/sched.h).
        let old_tid = unsafe { *context.as_ptr().cast::<u64>().add(1) } as u32;
        end_thread((id & !0xffff_ffff) | u64::from(old_tid));
    }
    end_thread(id);

    let known = target(id);
    if let Some(target) = known {
        note_end(target.process);
    }
    let follows = known.is_some_and(|target| target.flags & target_flags::FOLLOW_EXEC != 0);
    if follows || is_member(tgid) || name_matches() {
        trace!(context, "process {} has become a target by exec", tgid);
        adopt(id, tgid, known.map_or(0, |target| target.flags));
    } else if let Some(target) = known {
        trace!(context, "process {} is no target any more: it has another program", tgid);
        let _ = TARGETS.remove(tgid);
        notify(&event(EventKind::ExecAway, id, target.process));
    }
}

/// The current process begins to use MPI: told if it is no target, which anybody may do as often as he likes.
pub fn tell_of_newcomer() {
    let id = current::id();
    if id != current::ELSEWHERE && target(id).is_none() && environment::has_room() {
        notify(&event(EventKind::Newcomer, id, CALIBRATION_SLOT));
    }
}

/// Remembers when a process image was last alive.
#[inline(always)]
fn note_end(process: u32) {
    if let Some(counters) = process_counters(process) {
        // SAFETY: map value pointer, and a helper without arguments. Threads that end at once write nearly equal times.
        unsafe { (*counters).last_end_ns = bpf_ktime_get_ns() };
    }
}

/// Gives the process a slot of its own and puts it on the allow-list.
#[inline(always)]
fn adopt(id: u64, tgid: u32, flags: u32) {
    let Some(process) = take_number(Word::NextProcess, configured::process_slots()) else {
        let _ = TARGETS.remove(tgid);
        count_loss(CALIBRATION_SLOT, Loss::ProcessTableFull);
        return;
    };
    let mut notice = event(EventKind::Exec, id, process);
    if let Some(counters) = process_counters(process) {
        // SAFETY: map value pointer to a slot that nobody else has.
        unsafe {
            (*counters).tgid = tgid;
            (*counters).exec_ns = notice.time_ns;
        }
    }
    let target = Target { process, flags, library_start: 0, library_end: 0 };
    if TARGETS.insert(tgid, target, 0).is_err() {
        count_loss(CALIBRATION_SLOT, Loss::ProcessTableFull);
        return;
    }
    notice.process = process;
    environment::tell(&notice);
}

#[inline(always)]
fn is_member(tgid: u32) -> bool {
    // SAFETY: nothing is read of the value.
    configured::job() != 0 && unsafe { JOB.get(tgid) }.is_some()
}

/// Whether the current process has the name, and the user, that make it a target.
#[inline(always)]
fn name_matches() -> bool {
    let wanted: [u8; COMM_LENGTH] = configured::exec_name();
    if wanted[0] == 0 {
        return false;
    }
    let uid = configured::exec_uid();
    if uid != u32::MAX && uid != bpf_get_current_uid_gid() as u32 {
        return false;
    }
    bpf_get_current_comm().is_ok_and(|name| name == wanted)
}

/// Folds a thread's counts into its process and forgets the thread.
#[inline(always)]
fn end_thread(id: u64) {
    earlier::forget(id);
    let Some(thread) = thread::known(id) else { return };
    // SAFETY: map value pointer, and a helper without arguments; the thread does not run MPI calls any more.
    unsafe {
        if (*thread).open.function_plus_1 != 0 && (*thread).unsure_calls != 0 {
            // It was left without a return, and nothing has overwritten its return address since.
            call::abandon(&mut *thread);
        }
        if (*thread).open.function_plus_1 != 0 && (*thread).call_site().is_none() {
            // Since Linux 6.16 the task still has its return probes.
            open_calls::locate(bpf_get_current_task());
        }
        fold(&*thread, id);
    }
    thread::forget(id);
    tools::forget(id);
}

#[inline(always)]
fn fold(thread: &ThreadState, id: u64) {
    let Some(counters) = process_counters(thread.process) else { return };
    // SAFETY: takes no arguments.
    let ended = EndedThread::of(thread, unsafe { bpf_ktime_get_ns() });
    let is_inside = thread.open.function_plus_1 != 0;
    // SAFETY: map value pointer.
    let number = unsafe {
        add(&raw mut (*counters).ended_threads_span_ns, ended.span_ns());
        add(&raw mut (*counters).ended_threads_calls, ended.calls);
        add(&raw mut (*counters).ended_threads_time_ns, ended.time_ns);
        add(&raw mut (*counters).inner_calls, thread.inner_calls);
        if is_inside {
            add(&raw mut (*counters).open_at_end, 1);
            add(&raw mut (*counters).open_at_end_ns, ended.open_ns);
        }
        fetch_add(&raw mut (*counters).ended_threads, 1)
    };
    if let Some(place) = EndedThread::place(thread.id, number) {
        // Where there is no room, the thread is in the sums only.
        let _ = ENDED_THREADS.insert(EndedThreadKey { process: thread.process, place }, ended, 0);
    }
    if is_inside {
        let mut notice = event(EventKind::EndedInCall, id, thread.process);
        notice.time_ns = ended.ended_ns;
        notice.function_plus_1 = thread.open.function_plus_1;
        notice.has_stack = thread.has_stack.into();
        notice.started_ns = thread.open.started_ns;
        notice.call_site = thread.call_site().unwrap_or(0);
        let Some(mut place) = EVENTS.reserve::<EndedInCall>(0) else {
            return count_loss(thread.process, Loss::EventDropped);
        };
        place.write(EndedInCall { event: notice, arguments: thread.arguments });
        place.submit(0);
    }
}

#[inline(always)]
pub fn event(kind: EventKind, id: u64, process: u32) -> Event {
    Event {
        kind: kind as u32,
        tgid: (id >> 32) as u32,
        tid: id as u32,
        process,
        // SAFETY: takes no arguments.
        time_ns: unsafe { bpf_ktime_get_ns() },
        function_plus_1: 0,
        has_stack: 0,
        started_ns: 0,
        call_site: 0,
    }
}

#[inline(always)]
pub fn notify(event: &Event) {
    if EVENTS.output::<Event>(event, 0).is_err() {
        count_loss(event.process, Loss::EventDropped);
    }
}
