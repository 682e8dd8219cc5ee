//! Calls of tools, which stand between the program and the library: timed at their own entry, so that each layer's cost is known.
//!
//! The library's calls are counted as if there were no tools. What they are to the tools around them is noted here besides, by the
//! frames of these: a tool's call is open as long as its return probe is armed.

use aya_ebpf::{
    EbpfContext,
    helpers::{
        bpf_ktime_get_ns,
        generated::{bpf_get_attach_cookie, bpf_get_func_ip},
    },
};
use mpiprobe_common::{
    Loss, ThreadState, ToolCallKey, ToolCallStats, ToolCookie, ToolFrame, ToolFrames, ToolKey, ToolStats, process::entries_only,
    tool::{Inside, TOOL_DEPTH, frame_flags},
};

use crate::{
    current,
    apart::given,
    armed,
    atomic::{add, from_here_on},
    call::{self, Outcome, StackPosition, may_return_to_kernel},
    maps::{TOOL_CALLS, TOOL_FRAMES, TOOL_STATS},
    phases,
    registers::{RETURN_ADDRESS_BYTES, Registers},
    statistics::count_loss,
    thread,
};

/// A hit of a session program, which runs at the entry and at the return.
#[inline(always)]
pub fn hit(context: &impl EbpfContext) -> Outcome {
    // SAFETY: takes no arguments.
    let now = unsafe { bpf_ktime_get_ns() };
    // SAFETY: the helper takes the program's own context.
    let function_address = unsafe { bpf_get_func_ip(context.as_ptr()) };
    // At the return the instruction pointer is in the caller.
    if Registers::of(context.as_ptr()).instruction_pointer() == function_address {
        return enter::<true>(context);
    }
    close(context, now);
    Outcome::Return
}

/// A tool's function returns.
#[inline(always)]
pub fn leave(context: &impl EbpfContext) {
    // SAFETY: takes no arguments.
    close(context, unsafe { bpf_ktime_get_ns() });
}

/// A tool's function is entered.
#[inline(always)]
pub fn entry(context: &impl EbpfContext) -> Outcome {
    enter::<false>(context)
}

/// The same. `IS_ASKED`: the kernel asks whether the return is to be seen.
#[inline(always)]
fn enter<const IS_ASKED: bool>(context: &impl EbpfContext) -> Outcome {
    let (id, cookie, registers) = (current::id(), cookie(context), Registers::of(context.as_ptr()));
    let Some(thread) = thread::state(id, Loss::ToolCallLost) else { return Outcome::NoReturn };
    // SAFETY: map value pointer; only this thread writes it while it runs.
    let thread = unsafe { &mut *thread };
    let (function, stack_pointer) = (u32::from(cookie.function()), registers.stack_pointer());
    if thread.open.function_plus_1 != 0 {
        if call::place(thread, function, stack_pointer) != StackPosition::Outside {
            count(thread.process, cookie, Count::ByMpi);
            return Outcome::NoReturn;
        }
        // Now, because later the return probe of this call would stand where that of the open one was.
        call::abandon(thread);
    }
    if phases::is_off(thread.process) && !phases::is_control(function) {
        return Outcome::NoReturn;
    }
    if phases::entries_only(thread.process) & entries_only::ALL != 0 {
        count_loss(thread.process, Loss::ToolCallLost);
        return Outcome::NoReturn;
    }
    if IS_ASKED && armed::is_in_the_way(stack_pointer) {
        count_loss(thread.process, Loss::ToolCallLost);
        return Outcome::NoReturn;
    }
    let Some(frames) = frames(id).or_else(|| make_frames(id)) else {
        count_loss(thread.process, Loss::ToolCallLost);
        return Outcome::NoReturn;
    };
    let Some(depth) = drop_left(thread, frames, stack_pointer) else {
        count_loss(thread.process, Loss::ToolCallLost);
        return Outcome::NoReturn;
    };
    let flags = if depth == 0 { 0 } else { passed_on(frames, depth, cookie) };
    let Some(frame) = innermost(frames, depth + 1) else {
        count_loss(thread.process, Loss::ToolCallLost);
        return Outcome::NoReturn;
    };
    *frame = ToolFrame {
        function: cookie.function(),
        tool: cookie.tool(),
        flags,
        stack_pointer,
        frame_pointer: registers.frame_pointer(),
        call_site: 0,
        started_ns: 0,
        inside: Inside::NONE,
    };
    if depth == 0 {
        frame.call_site = call::read_return_address(thread.process, stack_pointer);
        if !call::is_made_by_mpi(id, thread, frame.call_site, stack_pointer) {
            frame.flags = frame_flags::OF_PROGRAM;
        }
    }
    thread.tools_open = depth as u16 + 1;
    // Last, so that as little as possible of this program is in the measured time.
    // SAFETY: takes no arguments.
    frame.started_ns = unsafe { bpf_ktime_get_ns() };
    Outcome::Return
}

/// The flags of a call made inside `depth` others: whether it is the program's, which the innermost of them passes on.
#[inline(always)]
fn passed_on(frames: &mut ToolFrames, depth: u64, cookie: ToolCookie) -> u32 {
    let Some(outer) = innermost(frames, depth) else { return 0 };
    if outer.tool == cookie.tool() || !outer.passes_on(cookie.function()) {
        return 0;
    }
    outer.flags |= frame_flags::PASSED_ON;
    frame_flags::OF_PROGRAM
}

#[inline(always)]
fn close(context: &impl EbpfContext, now: u64) {
    let id = current::id();
    let Some(thread) = thread::known(id) else { return };
    // SAFETY: as in `entry`.
    let thread = unsafe { &mut *thread };
    if thread.tools_open != 0 {
        let stack_pointer = Registers::of(context.as_ptr()).stack_pointer() - RETURN_ADDRESS_BYTES;
        close_tool_call(thread, id, cookie(context).0, stack_pointer, now);
    }
}

/// Answers 0; a function that is not inlined has to answer.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn close_tool_call(thread: *mut ThreadState, id: u64, cookie: u64, stack_pointer: u64, now: u64) -> u32 {
    given!(thread);
    let cookie = ToolCookie(cookie);
    let Some(frames) = frames(id) else { return 0 };
    let mut depth = thread.tools_open as u64;
    // Frames below this one were left without a return.
    for _ in 0..TOOL_DEPTH {
        match innermost(frames, depth) {
            Some(frame) if frame.stack_pointer < stack_pointer => {
                count(thread.process, ToolCookie::new(frame.function as u32, frame.tool), Count::Left);
                depth -= 1;
            }
            _ => break,
        }
    }
    thread.tools_open = depth as u16;
    let Some(frame) = innermost(frames, depth) else { return 0 };
    // Not one that is kept: too deep, already counted as such, or entered before it was probed.
    if frame.stack_pointer != stack_pointer || ToolCookie::new(frame.function as u32, frame.tool) != cookie {
        return 0;
    }
    thread.tools_open = depth as u16 - 1;
    if frame.is_of_program() {
        let ns = now - frame.started_ns;
        record(thread.process, frame, ns);
        if let Some(outer) = innermost(frames, depth - 1) {
            outer.inside.passed_on += 1;
            outer.inside.passed_on_ns += ns;
        }
    } else if depth > 1 {
        count(thread.process, cookie, Count::ByTools);
    }
    0
}

/// Answer of [`enter_library`]: no tool's call is around this one.
pub const NONE: u32 = 0;
/// Calls of tools are around it.
pub const AROUND: u32 = 1;
/// Calls of tools are open on another stack, or were left.
pub const ELSEWHERE: u32 = 2;

/// The library is entered by a thread with open calls of tools. Gives whether they are around this call; then the thread's state
/// says where the user has called the outermost.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn enter_library(thread: *mut ThreadState, id: u64, function: u32, stack_pointer: u64) -> u32 {
    given!(thread);
    let Some(frames) = frames(id) else {
        thread.tools_open = 0;
        return NONE;
    };
    let Some(depth) = drop_left(thread, frames, stack_pointer) else { return ELSEWHERE };
    let Some(innermost) = innermost(frames, depth) else { return NONE };
    let passes_on = innermost.passes_on(function as u16);
    if passes_on {
        innermost.flags |= frame_flags::PASSED_ON;
    }
    frames.is_passed_on = passes_on as u64;
    let outermost = &frames.frames[0];
    thread.frame_pointer = outermost.frame_pointer;
    thread.return_address = outermost.call_site;
    thread.open.to_user = outermost.stack_pointer.wrapping_sub(stack_pointer) as u32;
    AROUND
}

/// Where the tool that passes a call on to the library was called; 0 if it is no tool's.
#[inline(always)]
pub fn caller(thread: &ThreadState, function: u32) -> u64 {
    let depth = u64::from(thread.tools_open);
    if depth == 0 {
        return 0;
    }
    let innermost = frames(thread.id).and_then(|frames| innermost(frames, depth));
    innermost.map_or(0, |frame| if u32::from(frame.function) == function { frame.call_site } else { 0 })
}

/// A call of the library inside calls of tools is complete. Answers 0.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn leave_library(thread: *const ThreadState, id: u64, function: u32, ns: u64) -> u32 {
    given!(thread);
    let Some(frames) = frames(id) else { return 0 };
    let mut depth = thread.tools_open as u64;
    if frames.is_passed_on != 0 {
        if let Some(innermost) = innermost(frames, depth) {
            let inside = &mut innermost.inside;
            inside.passed_on += 1;
            inside.passed_on_ns += ns;
            inside.to_library += 1;
            inside.to_library_ns += ns;
        }
        return 0;
    }
    // Whatever tools call among themselves, it is done for a call of the program.
    for _ in 0..TOOL_DEPTH {
        let Some(frame) = innermost(frames, depth) else { break };
        if frame.is_of_program() {
            frame.inside.own_calls += 1;
            frame.inside.own_calls_ns += ns;
            count_own(thread.process, frame, function, ns);
            break;
        }
        depth -= 1;
    }
    0
}

/// Takes those calls out that were left without a return, by where the stack is now. Gives how many are open; `None` if one may be
/// open on another stack, so that no return probe may be armed on this one (see [`call::place`]).
#[inline(always)]
fn drop_left(thread: &mut ThreadState, frames: &mut ToolFrames, stack_pointer: u64) -> Option<u64> {
    if drop_left_tool_calls(thread, frames, stack_pointer) != 0 {
        return None;
    }
    Some(thread.tools_open.into())
}

/// Not 0: one may be open on another stack.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn drop_left_tool_calls(thread: *mut ThreadState, frames: *mut ToolFrames, stack_pointer: u64) -> u32 {
    given!(thread, frames);
    let mut depth = thread.tools_open as u64;
    for _ in 0..TOOL_DEPTH {
        let Some(frame) = innermost(frames, depth) else { break };
        if may_return_to_kernel(frame.stack_pointer) {
            if frame.stack_pointer < stack_pointer {
                return 1;
            }
            break;
        }
        count(thread.process, ToolCookie::new(frame.function as u32, frame.tool), Count::Left);
        depth -= 1;
    }
    thread.tools_open = depth as u16;
    0
}

#[inline(always)]
fn record(process: u32, frame: &ToolFrame, ns: u64) {
    let Some(stats) = stats(process, ToolCookie::new(frame.function as u32, frame.tool)) else { return };
    let inside = &frame.inside;
    // SAFETY: map value pointer; threads of a process share it.
    unsafe {
        add(&raw mut (*stats).calls, 1);
        add(&raw mut (*stats).time_ns, ns);
        add(&raw mut (*stats).passed_on, inside.passed_on);
        add(&raw mut (*stats).passed_on_ns, inside.passed_on_ns);
        add(&raw mut (*stats).to_library, inside.to_library);
        add(&raw mut (*stats).to_library_ns, inside.to_library_ns);
        add(&raw mut (*stats).own_calls, inside.own_calls);
        add(&raw mut (*stats).own_calls_ns, inside.own_calls_ns);
    }
}

/// Calls of tools that have no duration of their own.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Count {
    ByTools,
    ByMpi,
    Left,
}

#[inline(never)]
fn count(process: u32, cookie: ToolCookie, what: Count) -> u32 {
    let Some(stats) = stats(process, cookie) else { return 0 };
    // SAFETY: as above.
    unsafe {
        match what {
            Count::ByTools => add(&raw mut (*stats).by_tools, 1),
            Count::ByMpi => add(&raw mut (*stats).by_mpi, 1),
            Count::Left => add(&raw mut (*stats).left, 1),
        }
    }
    0
}

#[inline(always)]
fn count_own(process: u32, frame: &ToolFrame, function: u32, ns: u64) {
    let key = ToolCallKey { process, tool: frame.tool, inside: frame.function, function: function as u16, reserved: 0 };
    if TOOL_CALLS.get_ptr_mut(&key).is_none() {
        // BPF_NOEXIST: another thread may have made it meanwhile; what counts is that it is there now.
        let _ = TOOL_CALLS.insert(&key, ToolCallStats { calls: 0, time_ns: 0 }, 1);
    }
    let Some(stats) = TOOL_CALLS.get_ptr_mut(&key) else {
        count_loss(process, Loss::ToolCallLost);
        return;
    };
    // SAFETY: as above.
    unsafe {
        add(&raw mut (*stats).calls, 1);
        add(&raw mut (*stats).time_ns, ns);
    }
}

/// The statistics of a tool's function, made on first use; `None` if there is no room, which is counted.
#[inline(always)]
fn stats(process: u32, cookie: ToolCookie) -> Option<*mut ToolStats> {
    let key = ToolKey { process, tool: cookie.tool(), function: cookie.function() };
    if let Some(known) = TOOL_STATS.get_ptr_mut(&key) {
        return Some(known);
    }
    // BPF_NOEXIST: as above.
    let _ = TOOL_STATS.insert(&key, ToolStats::ZERO, 1);
    let made = TOOL_STATS.get_ptr_mut(&key);
    if made.is_none() {
        count_loss(process, Loss::ToolCallLost);
    }
    made
}

/// The last of so many frames; `None` if there is none, or no room for it.
#[inline(always)]
fn innermost(frames: &mut ToolFrames, depth: u64) -> Option<&mut ToolFrame> {
    // Such that what is compared is the very register that becomes the index.
    let index = from_here_on(depth.wrapping_sub(1));
    if index >= TOOL_DEPTH as u64 {
        return None;
    }
    // SAFETY: the index is within the array.
    Some(unsafe { &mut *frames.frames.as_mut_ptr().add(index as usize) })
}

#[inline(always)]
fn frames(id: u64) -> Option<&'static mut ToolFrames> {
    // SAFETY: map value pointer; only the thread itself uses it, and it goes when the thread ends.
    TOOL_FRAMES.get_ptr_mut(&id).map(|frames| unsafe { &mut *frames })
}

#[inline(never)]
fn make_frames(id: u64) -> Option<&'static mut ToolFrames> {
    // Not from the stack, of which a program and all that it calls have 512 bytes (kernels before 6.13).
    static NONE: ToolFrames = ToolFrames::NONE;
    let _ = TOOL_FRAMES.insert(&id, &NONE, 0);
    frames(id)
}

/// A thread ends.
#[inline(always)]
pub fn forget(id: u64) {
    // One that has not called a tool has none.
    let _ = TOOL_FRAMES.remove(&id);
}

/// What was given as cookie when the probe was attached.
#[inline(always)]
fn cookie(context: &impl EbpfContext) -> ToolCookie {
    // SAFETY: the helper takes the program's own context.
    ToolCookie(unsafe { bpf_get_attach_cookie(context.as_ptr()) })
}
