//! Entry and return of a call: pairing, timing, the thread's state.

use aya_ebpf::{
    EbpfContext,
    helpers::{
        bpf_ktime_get_ns,
        generated::{bpf_get_attach_cookie, bpf_get_func_ip, bpf_probe_read_user},
    },
    programs::ProbeContext,
};
use mpiprobe_common::{
    Cookie, Loss, OpenCall, Target, ThreadState, process::entries_only, trampoline::is_return_trampoline,
};

use crate::{
    armed,
    atomic::{add, barrier},
    current, earlier,
    entries, inner, layers,
    maps::{TARGETS, configured},
    semantics::{self, Returned},
    phases, recent,
    registers::{RETURN_ADDRESS_BYTES, Registers},
    statistics::{chosen, count_loss, process_counters, record},
    thread, tools, unsure,
};

/// What becomes of a hit. The kernel knows the first two, what a session program answers; so does whoever calls a function that
/// answers whether the return is to be seen.
#[repr(u32)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing is left to be done; at an entry: the return is to be seen.
    Return = 0,
    /// The return need not be seen.
    NoReturn = 1,
    /// A call has been completed, of which other programs are to find out what it meant.
    Completed = 2,
    /// The same: they are to find out what it has moved.
    Measures = 3,
    /// The same: they are to remember the operation that it has posted.
    Posts = 4,
    /// The same: they are to find out which operations it has completed.
    Settles = 5,
    /// The same, and all is known: it is to be written down.
    Told = 6,
}

/// A hit of a session program, which runs at the entry and at the return.
#[inline(always)]
pub fn hit<const TRACED: bool>(context: &ProbeContext) -> Outcome {
    let registers = Registers::of(context.as_ptr());
    let id = current::id();
    let Some(thread) = thread::recent(id) else { return unsure_hit::<TRACED>(context, id) };
    // SAFETY: `thread` points to a live map value; only this thread writes it while it runs.
    let thread = unsafe { &mut *thread };
    // Each helper called costs a fortieth of all that a probe costs: the answer to "entry or return?" is taken from what is
    // known already wherever that makes it certain.
    if is_return_of_open_call(thread, &registers) {
        // SAFETY: takes no arguments.
        return complete::<TRACED, true>(thread, &registers, unsafe { bpf_ktime_get_ns() });
    }
    let cookie = cookie(context);
    if thread.text_base != 0 && registers.instruction_pointer() == thread.text_base.wrapping_add(cookie.offset()) {
        return enter::<true, TRACED>(thread, id, &registers, cookie);
    }
    unsure_hit::<TRACED>(context, id)
}

/// The same where only the kernel can tell an entry from a return.
#[inline(never)]
fn unsure_hit<const TRACED: bool>(context: &ProbeContext, id: u64) -> Outcome {
    let registers = Registers::of(context.as_ptr());
    // SAFETY: the helper takes the program's own context.
    let function_address = unsafe { bpf_get_func_ip(context.as_ptr()) };
    // At the return the instruction pointer is in the caller.
    if registers.instruction_pointer() != function_address {
        return leave::<TRACED, false>(context, id);
    }
    let cookie = cookie(context);
    let Some(thread) = thread::state(id, Loss::ThreadTableFull) else { return Outcome::NoReturn };
    // SAFETY: as in `hit`.
    let thread = unsafe { &mut *thread };
    thread.text_base = function_address.wrapping_sub(cookie.offset());
    thread.text_size = cookie.text_end();
    enter::<true, TRACED>(thread, id, &registers, cookie)
}

/// Whether this hit can be nothing but the return of the thread's open call: its frame has just been left, and control is outside
/// the library, where no entry is.
#[inline(always)]
fn is_return_of_open_call(thread: &ThreadState, registers: &Registers) -> bool {
    // Return probes of inner calls are not armed; they might end in the same frame, after a tail jump.
    !nested()
        && thread.open.function_plus_1 != 0
        && thread.text_base != 0
        && registers.stack_pointer() - RETURN_ADDRESS_BYTES == thread.open.stack_pointer
        && registers.instruction_pointer().wrapping_sub(thread.text_base) >= thread.text_size
}

/// A function is entered: a probe that is not told apart from a return.
#[inline(always)]
pub fn entry<const TRACED: bool>(context: &ProbeContext) {
    let id = current::id();
    let Some(thread) = thread::state(id, Loss::ThreadTableFull) else { return };
    let (registers, cookie) = (Registers::of(context.as_ptr()), cookie(context));
    // SAFETY: as in `hit`.
    let thread = unsafe { &mut *thread };
    if configured::traffic() != 0 && cookie.offset() != 0 {
        thread.text_base = registers.instruction_pointer().wrapping_sub(cookie.offset());
    }
    enter::<false, TRACED>(thread, id, &registers, cookie);
}

/// A function is entered. `IS_ASKED`: the kernel asks whether the return is to be seen.
#[inline(always)]
fn enter<const IS_ASKED: bool, const TRACED: bool>(thread: &mut ThreadState, id: u64, registers: &Registers, cookie: Cookie) -> Outcome {
    let function = cookie.function();
    let stack_pointer = registers.stack_pointer();

    if cookie.is_query() && layers::is_own_call(thread, function, stack_pointer) {
        return Outcome::NoReturn;
    }
    if thread.open.function_plus_1 != 0 {
        match place(thread, function, stack_pointer) {
            StackPosition::Outside => note_left(thread),
            inside => {
                heed(thread, function, registers);
                if inside == StackPosition::Inside {
                    return inner::enter(thread, function, stack_pointer);
                }
                unsure::enter_unsure_call(thread, function);
                return Outcome::NoReturn;
            }
        }
    }
    if phases::is_off(thread.process) && !phases::is_control(function) {
        return pass_over(thread, function, registers);
    }
    let entries_only = phases::entries_only(thread.process);
    if entries_only != 0 {
        if entries::is_counted_by_entry(entries_only, function) {
            heed(thread, function, registers);
            entries::count_entry(thread, function, stack_pointer);
            return Outcome::NoReturn;
        }
        if entries::enter_unseen_inner_call(thread, stack_pointer) != 0 {
            heed(thread, function, registers);
            return Outcome::NoReturn;
        }
    }

    begin_change(thread);
    for (to, from) in thread.arguments.iter_mut().zip(registers.arguments()) {
        *to = from;
    }
    thread.frame_pointer = registers.frame_pointer();
    thread.has_stack = 0;
    if configured::read_stack() != 0 {
        thread.has_stack = semantics::read_stack(thread, cookie, stack_pointer) as u8;
    }
    if configured::traffic() != 0 {
        semantics::at_entry::<TRACED>(thread, function);
    }
    thread.open.to_user = 0;
    // The first call of a thread may be MPI's own; of all others it is enough to find the call site when somebody asks for it.
    let tools = if thread.tools_open != 0 { tools::enter_library(thread, id, function, stack_pointer) } else { 0 };
    if tools == tools::AROUND {
        // The return address is in the tool; the user's is known already.
    } else if thread.calls == 0 || configured::unseen_outer() != 0 || (configured::read_call_sites() != 0 && !cookie.is_brief()) {
        thread.return_address = read_return_address(thread.process, stack_pointer);
    } else {
        thread.return_address = 0;
    }
    if is_made_by_unseen_call(id, thread, stack_pointer) {
        thread.open.function_plus_1 = 0;
        end_change(thread);
        heed(thread, function, registers);
        return Outcome::NoReturn;
    }
    if tools == tools::ELSEWHERE || IS_ASKED && armed::is_in_the_way(stack_pointer) {
        // The return probe of a tool's call, or another observer's, would be lost by one on this stack.
        thread.open.function_plus_1 = 0;
        end_change(thread);
        unsure::count_unsure_call(thread, function);
        return Outcome::NoReturn;
    }
    thread.inner_depth = 0;
    thread.unsure_calls = 0;
    thread.open.function_plus_1 = function + 1;
    thread.open.stack_pointer = stack_pointer;
    // Last, so that as little as possible of this program is in the measured time.
    // SAFETY: takes no arguments.
    let now = unsafe { bpf_ktime_get_ns() };
    if thread.first_entry_ns == 0 {
        thread.first_entry_ns = now;
    }
    thread.open.started_ns = now;
    end_change(thread);
    Outcome::Return
}

/// A function is entered of whose return nothing is seen: what it asks for is done at once.
#[inline(always)]
fn heed(thread: &ThreadState, function: u32, registers: &Registers) {
    let [first, second, ..] = registers.arguments();
    if configured::traffic() != 0 {
        semantics::note_uncounted_entry(thread, function, first, second);
    }
    if phases::is_control(function) {
        phases::control_phases(thread.process, first as u32, second);
    }
}

/// A function is entered that is not to be counted.
#[inline(always)]
fn pass_over(thread: &mut ThreadState, function: u32, registers: &Registers) -> Outcome {
    phases::count_off(thread.process);
    if thread.open.function_plus_1 != 0 {
        begin_change(thread);
        thread.open.function_plus_1 = 0;
        end_change(thread);
    }
    if configured::traffic() != 0 {
        // Its handles may mean other objects when counting is on again.
        let [first, second, ..] = registers.arguments();
        semantics::note_uncounted_entry(thread, function, first, second);
    }
    Outcome::NoReturn
}

/// A function returns. `IS_USUAL`: as most do.
#[inline(always)]
pub fn leave<const TRACED: bool, const IS_USUAL: bool>(context: &impl EbpfContext, id: u64) -> Outcome {
    // First, for the same reason.
    // SAFETY: takes no arguments.
    let now = unsafe { bpf_ktime_get_ns() };
    let Some(thread) = thread::known(id) else {
        // The first that is seen of this thread is a return.
        count_unpaired_return(id);
        return Outcome::Return;
    };
    // SAFETY: as in `hit`.
    let thread = unsafe { &mut *thread };
    let cookie = cookie(context);
    let function = cookie.function();
    let registers = Registers::of(context.as_ptr());
    let entry_stack_pointer = registers.stack_pointer() - RETURN_ADDRESS_BYTES;

    if thread.open.function_plus_1 == function + 1 && thread.open.stack_pointer == entry_stack_pointer {
        return complete::<TRACED, IS_USUAL>(thread, &registers, now);
    }
    if thread.open.function_plus_1 != 0 && entry_stack_pointer <= thread.open.stack_pointer {
        inner::leave(thread, function, entry_stack_pointer, now);
    } else if !phases::is_off(thread.process)
        // What was counted at its entry may return when its function is timed again, where returns have probes of their own.
        && phases::entries_only(thread.process) & entries_only::REDUCED == 0
        // Where entries and returns have probes of their own.
        && !(cookie.is_query() && layers::is_return_of_own_call(thread, function, registers.instruction_pointer()))
    {
        count_loss(thread.process, Loss::ReturnWithoutEntry);
    }
    Outcome::Return
}

/// The open call has returned. `IS_USUAL`: as most do.
#[inline(always)]
fn complete<const TRACED: bool, const IS_USUAL: bool>(thread: &mut ThreadState, registers: &Registers, now: u64) -> Outcome {
    let ns = now - thread.open.started_ns;
    let function = thread.open.function_plus_1 - 1;
    let Some(chosen) = chosen(function) else { return Outcome::Return };
    // Slot 0 is mpiprobe's own: nobody asks what was counted there.
    let stats_plus_1 = record(thread.process & chosen as u32, function, ns);
    if thread.tools_open != 0 {
        tools::leave_library(thread, thread.id, function, ns);
    }
    begin_change(thread);
    thread.open.function_plus_1 = 0;
    thread.calls += chosen & 1;
    thread.time_ns += ns & chosen;
    thread.last_return_ns = now;
    end_change(thread);
    if TRACED {
        semantics::decide(thread, chosen != 0);
    }
    if recent::is_on() && chosen != 0 {
        recent::note(thread, function, registers, ns);
    }
    // What it asks for is done from its return on.
    if phases::is_control(function) {
        phases::control_phases(thread.process, thread.arguments[0] as u32, thread.arguments[1]);
    }
    if configured::traffic() == 0 {
        return Outcome::Return;
    }
    if semantics::is_given_up() {
        semantics::pass_over(function, stats_plus_1);
        return Outcome::Return;
    }
    let call_site = registers.instruction_pointer();
    let result = registers.result() as i32;
    let succeeded = result == 0;
    let call = Returned { function, call_site, ns, result, succeeded, stats_plus_1 };
    if succeeded {
        let left = semantics::look_up::<TRACED, IS_USUAL>(thread, call);
        if left != Outcome::Completed {
            return left;
        }
    }
    semantics::keep(thread, call);
    Outcome::Completed
}

/// What was given as cookie when the probe was attached.
#[inline(always)]
fn cookie(context: &impl EbpfContext) -> Cookie {
    // SAFETY: the helper takes the program's own context.
    Cookie(unsafe { bpf_get_attach_cookie(context.as_ptr()) })
}

/// A copy taken from now on may be torn.
#[inline(always)]
pub fn begin_change(thread: &mut ThreadState) {
    thread.sequence += 1;
    barrier();
}

/// Until now.
#[inline(always)]
pub fn end_change(thread: &mut ThreadState) {
    barrier();
    thread.sequence += 1;
}

/// The allow-list's entry for the process of a thread.
#[inline(always)]
pub fn target(id: u64) -> Option<Target> {
    let tgid = (id >> 32) as u32;
    // SAFETY: the value is copied at once; the daemon replaces it as a whole.
    unsafe { TARGETS.get(tgid) }.copied()
}

/// Where a call is made, seen from the thread's open call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum StackPosition {
    /// In it.
    Inside,
    /// After the open call's frame was left by other ways than a return (`longjmp`, an exception).
    Outside,
    /// In it, but on another stack; or outside, where what was on the stack has not been overwritten yet.
    Unsure,
}

/// Where a call is made, by where its frame is: a stack grows down.
///
/// The kernel keeps return probes in the order of the stack: one that is armed drops those that are armed below, and whoever returns
/// to one that was dropped is killed. So nothing is armed while the open call may live: as long as its return address is there.
#[inline(always)]
pub fn place(thread: &ThreadState, function: u32, stack_pointer: u64) -> StackPosition {
    let outer = &thread.open;
    if !may_return_to_kernel(outer.stack_pointer) {
        StackPosition::Outside
    } else if stack_pointer < outer.stack_pointer {
        StackPosition::Inside
    } else if stack_pointer > outer.stack_pointer {
        StackPosition::Unsure
    } else if outer.function_plus_1 != function + 1 {
        // Same frame: a tail jump from one MPI function into another.
        StackPosition::Inside
    } else {
        StackPosition::Outside
    }
}

/// Whether the return address at `stack_pointer` is the kernel's trampoline: that of a call whose return probe is armed, or of
/// a function entered from such a call by a jump.
#[inline(always)]
pub fn returns_to_kernel(stack_pointer: u64) -> bool {
    let mut address = 0u64;
    // SAFETY: reads user memory by the helper made for that, into a local of the size given; 0 if it cannot be read.
    unsafe { bpf_probe_read_user((&raw mut address).cast(), 8, stack_pointer as *const _) };
    is_return_trampoline(address)
}

/// The same where it must not be missed: also if the word cannot be read now, because its page is not in memory.
#[inline(always)]
pub fn may_return_to_kernel(stack_pointer: u64) -> bool {
    let mut address = 0u64;
    // SAFETY: as above.
    let failed = unsafe { bpf_probe_read_user((&raw mut address).cast(), 8, stack_pointer as *const _) } != 0;
    failed || is_return_trampoline(address)
}

/// The word at the stack pointer; 0 if it cannot be read, which is counted.
#[inline(always)]
pub fn read_return_address(process: u32, stack_pointer: u64) -> u64 {
    // Not straight into the thread's state: a hardened kernel looks up what kind of memory it copies user data to, which takes as
    // long again as the copy unless it is the stack.
    let mut address = 0u64;
    // SAFETY: reads user memory by the helper made for that, into a local of the size given.
    if unsafe { bpf_probe_read_user((&raw mut address).cast(), 8, stack_pointer as *const _) } != 0 {
        count_loss(process, Loss::StackUnreadable);
        return 0;
    }
    address
}

/// Whether the call is made inside another one although none was seen: that one began before attach.
#[inline(always)]
fn is_made_by_unseen_call(id: u64, thread: &ThreadState, stack_pointer: u64) -> bool {
    let inside = is_made_by_mpi(id, thread, thread.return_address, stack_pointer);
    if inside && let Some(counters) = process_counters(thread.process) {
        // SAFETY: map value pointer.
        unsafe { add(&raw mut (*counters).inner_calls_of_unseen, 1) };
    }
    inside
}

/// The same by a return address and the stack pointer at the entry, and without counting: it comes from inside the MPI library, or it
/// is known that the thread is in a call.
#[inline(always)]
pub fn is_made_by_mpi(id: u64, thread: &ThreadState, return_address: u64, stack_pointer: u64) -> bool {
    // Once a call has been completed by the thread, every later outer call is seen, if it is probed.
    if thread.calls != 0 {
        return configured::unseen_outer() != 0 && is_in_library(id, return_address);
    }
    is_in_library(id, return_address) || earlier::is_inside_earlier_call(thread, stack_pointer) != 0
}

/// Whether an address is in the MPI library of a thread's process, as far as it is known where that is.
#[inline(always)]
pub fn is_in_library(id: u64, address: u64) -> bool {
    target(id).is_some_and(|target| address >= target.library_start && address < target.library_end)
}

/// The open call's frame is gone without a return.
#[inline(always)]
fn note_left(thread: &mut ThreadState) {
    count_loss(thread.process, Loss::EntryWithoutReturn);
    unsure::settle(thread);
    thread.left = thread.left.wrapping_add(1);
}

/// The same, and no other call begins now.
#[inline(always)]
pub fn abandon(thread: &mut ThreadState) {
    note_left(thread);
    begin_change(thread);
    thread.open.function_plus_1 = 0;
    end_change(thread);
}

/// Counts a return of a thread without a state, if its process is a target.
#[inline(never)]
fn count_unpaired_return(id: u64) {
    if let Some(target) = target(id) {
        count_loss(target.process, Loss::ReturnWithoutEntry);
    }
}

/// Whether inner calls are timed.
#[inline(always)]
pub fn nested() -> bool {
    configured::nested() != 0
}

/// An open call.
#[inline(always)]
pub fn opened(function: u32, started_ns: u64, stack_pointer: u64) -> OpenCall {
    OpenCall { function_plus_1: function + 1, to_user: 0, started_ns, stack_pointer }
}
