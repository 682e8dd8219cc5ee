//! Entry and return of a call: pairing, timing, the thread's state.

use core::{
    ffi::c_void,
    ptr,
    sync::atomic::{Ordering, compiler_fence},
};

use mpiprobe_common::{
    Loss, OpenCall, ThreadState,
    thread::{ARGUMENT_WORDS, REGISTER_ARGUMENTS},
};

use crate::{
    clock::monotonic_ns,
    entry::{DESCRIPTORS, Entry, Frame},
    header, layers, left, local,
    message::SavedErrno,
    next::{self, Resolved},
    own_status, phases, process, recent, semantics, statistics,
    thread::{self, Local},
    trace,
};

/// What a trampoline is to do.
#[repr(C)]
pub(crate) struct Next {
    /// The next definition of the function.
    function: *mut c_void,
    /// Whether [`leave`] is to be told when it has returned.
    is_counted: bool,
}

/// Before the call.
///
/// Called by the trampolines, with the current thread's [`Local`] or null.
pub(crate) unsafe extern "C" fn enter(local: *mut Local, frame: *mut Frame, index: u32) -> Next {
    let Some(entry) = Entry::new(index) else { return Next { function: ptr::null_mut(), is_counted: false } };
    let function = match next::known(entry) {
        Some(next) => next,
        None => match next::find(entry) {
            Resolved::Counted(next) => next,
            Resolved::NotCounted(function) => return Next { function, is_counted: false },
        },
    };
    // SAFETY: by contract.
    let is_counted = unsafe {
        if !local.is_null() && (*(*local).state).open.function_plus_1 == 0 {
            begin(local, frame, entry.function())
        } else {
            enter_seldom(local, frame, entry)
        }
    };
    Next { function, is_counted }
}

/// After the call.
///
/// As [`enter`].
pub(crate) unsafe extern "C" fn leave(local: *mut Local, frame: *mut Frame) {
    // SAFETY: by contract.
    unsafe {
        if local != (*frame).local {
            returned_elsewhere(frame);
        } else if !local.is_null() && (*(*local).state).open.stack_pointer == stack_pointer(frame) {
            complete(local, frame);
        }
    }
}

/// A user-level thread has gone on in another thread inside the call. What that one has open is another call, and what is the first
/// one's is its alone: the call is lost, and the first one is told.
#[cold]
unsafe fn returned_elsewhere(frame: *mut Frame) {
    process::count_loss(Loss::EntryWithoutReturn);
    // SAFETY: what a slot's thread uses stays when the thread has ended.
    unsafe { (*(*frame).local).returned_elsewhere.store(stack_pointer(frame), Ordering::Release) };
}

/// Where the return address of a call is: what identifies it while it is open.
#[inline]
fn stack_pointer(frame: *mut Frame) -> u64 {
    // SAFETY: of a frame on the stack; nothing is read.
    unsafe { &raw mut (*frame).return_address as u64 }
}

/// An outermost call is entered: whether it is counted.
#[inline]
unsafe fn begin(local: *mut Local, frame: *mut Frame, function: u32) -> bool {
    if layers::is_own_call(frame, function) {
        return false;
    }
    // SAFETY: as in `open`.
    unsafe {
        if !phases::is_off() || phases::is_control(function) {
            open(local, frame, function);
            return true;
        }
        phases::count_off(local);
        semantics::at_uncounted_entry(local, frame, function);
    }
    false
}

/// A call begins that is counted.
#[inline]
unsafe fn open(local: *mut Local, frame: *mut Frame, function: u32) {
    // SAFETY: the thread's own state; the trampoline's frame.
    unsafe {
        let state = (*local).state;
        (*frame).local = local;
        semantics::at_entry(local, frame, function);
        begin_change(state);
        (*state).return_address = (*frame).return_address;
        let arguments = (&raw mut (*state).arguments).cast::<[u64; 6]>();
        *arguments = (*frame).arguments;
        copy_stack(&mut (*state).arguments, frame, function);
        (*state).has_stack = 1;
        own_status::give(frame, function);
        // Last, so that as little as possible of this is in the measured time.
        let stamp = (*local).clock.stamp();
        (*local).started = stamp;
        let now = (*local).clock.time(stamp);
        (*frame).started_ns = now;
        if (*state).first_entry_ns == 0 {
            (*state).first_entry_ns = now;
        }
        (*state).open = OpenCall {
            function_plus_1: function + 1,
            to_user: 0,
            started_ns: now,
            stack_pointer: stack_pointer(frame),
        };
        end_change(state);
    }
}

/// Takes down the arguments that are not in registers. Most functions that have any have one.
#[inline]
unsafe fn copy_stack(arguments: &mut [u64; ARGUMENT_WORDS], frame: *mut Frame, function: u32) {
    let words = DESCRIPTORS.get(function as usize).map_or(0, |descriptor| descriptor.arguments) as usize;
    let [_, _, _, _, _, _, first, others @ ..] = arguments;
    if let Some(more) = words.checked_sub(REGISTER_ARGUMENTS + 1) {
        // SAFETY: by contract the trampoline's frame, and as many arguments as the function has.
        unsafe {
            let from = Frame::on_stack(frame);
            *first = *from;
            for (position, to) in others.iter_mut().enumerate().take(more) {
                *to = *from.add(1 + position);
            }
        }
    }
}

/// The thread's first call, or one inside another: whether it is counted.
#[cold]
unsafe fn enter_seldom(local: *mut Local, frame: *mut Frame, entry: Entry) -> bool {
    // SAFETY: as in `open`.
    unsafe {
        if local.is_null() {
            return first_of_thread().is_some_and(|local| begin(local, frame, entry.function()));
        }
        let state = (*local).state;
        if (*local).returned_elsewhere.swap(0, Ordering::Acquire) == (*state).open.stack_pointer {
            forget(local);
            return begin(local, frame, entry.function());
        }
        if !left::is_left(&(*state).open, stack_pointer(frame)) {
            // Another tool, or a Fortran library, passing the call on is no call of its own.
            let is_passed_on = entry.is_profiling_name() && (*state).open.function_plus_1 == entry.function() + 1;
            if !is_passed_on {
                (*state).inner_calls += 1;
                if phases::is_control(entry.function()) {
                    phases::control(frame);
                }
            }
            semantics::at_uncounted_entry(local, frame, entry.function());
            return false;
        }
        give_up(local);
        begin(local, frame, entry.function())
    }
}

/// The open call will not return: it was left by longjmp, by an exception, or by a change of stacks.
///
/// # Safety
/// `local` must be the thread's own, with an open call.
pub(crate) unsafe fn give_up(local: *mut Local) {
    process::count_loss(Loss::EntryWithoutReturn);
    // SAFETY: by contract.
    unsafe { forget(local) };
}

/// The open call is none any more, and was not seen to return.
unsafe fn forget(local: *mut Local) {
    // SAFETY: by contract.
    unsafe {
        let state = (*local).state;
        begin_change(state);
        (*state).left = (*state).left.wrapping_add(1);
        close(state);
        end_change(state);
    }
}

unsafe fn first_of_thread() -> Option<*mut Local> {
    let _errno = SavedErrno::save();
    // A signal handler that calls MPI while its thread is in here is not counted.
    if local::begin_slow() {
        return None;
    }
    let taken = if process::is_counting() { thread::take() } else { None };
    local::end_slow();
    taken.map(ptr::NonNull::as_ptr)
}

/// The outermost call has returned.
#[inline]
unsafe fn complete(local: *mut Local, frame: *mut Frame) {
    // SAFETY: as in `open`.
    unsafe {
        let now = (*local).clock.stamp_again();
        let ns = (*local).clock.between((*local).started, now);
        let state = (*local).state;
        let function = (*state).open.function_plus_1.wrapping_sub(1);
        // Others are seen for what they do to requests and handles.
        let is_counted = header::is_selected(function);
        let entry = if is_counted { statistics::of(local, function) } else { ptr::null_mut() };
        // All sums at once: somebody else's MPI_Abort may kill the process at any moment.
        begin_change(state);
        if !entry.is_null() {
            statistics::record(entry, ns);
        }
        if is_counted {
            (*state).calls += 1;
            (*state).time_ns += ns;
        }
        (*state).last_return_ns = (*state).open.started_ns + ns;
        (*state).open.to_user = OpenCall::RETURNED;
        let returned_ns = (*state).open.started_ns + ns;
        let is_traced = is_counted && trace::is_on(returned_ns);
        own_status::look(frame);
        // While the frame is the thread's outermost still, so that whatever the library calls in turn is inside it.
        semantics::account(local, frame, function, ns, entry, is_traced);
        if is_counted && recent::is_on(returned_ns) {
            recent::note(local, frame, function, ns);
        }
        close(state);
        end_change(state);
        // What it asks for is done from its return on.
        if phases::is_control(function) {
            phases::control(frame);
            if is_traced {
                trace::phase(local, monotonic_ns(), phases::now());
            }
        }
    }
}

/// No call is open any more.
#[inline]
unsafe fn close(state: *mut ThreadState) {
    // SAFETY: by contract the thread's own.
    unsafe {
        (*state).open.function_plus_1 = 0;
        (*state).open.stack_pointer = 0;
    }
}

/// A copy taken from now on may be torn.
#[inline]
unsafe fn begin_change(state: *mut ThreadState) {
    // SAFETY: by contract the thread's own.
    unsafe {
        let sequence = &raw mut (*state).sequence;
        sequence.write_volatile(sequence.read_volatile() + 1);
    }
    compiler_fence(Ordering::SeqCst);
}

/// Until now.
#[inline]
unsafe fn end_change(state: *mut ThreadState) {
    compiler_fence(Ordering::SeqCst);
    // SAFETY: by contract the thread's own.
    unsafe {
        let sequence = &raw mut (*state).sequence;
        sequence.write_volatile(sequence.read_volatile() + 1);
    }
}
