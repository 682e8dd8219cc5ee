//! What a completed call means: how much data it moved, with whom, over which communicator, called from where.
//!
//! In programs of their own, one calling the next: together they are more than the kernel's verifier goes through.

mod amount;
mod arguments;
mod communicator;
mod flow;
mod handles;
mod message;
mod operation;
mod parent;
mod prepare;
mod recording;
mod call_cache;
mod requests;
mod scope;
mod store;
mod sum;
mod tables;
mod topology;
mod user;

use core::arch::asm;

use aya_ebpf::EbpfContext;
use mpiprobe_common::{
    Amount, Descriptor, FUNCTION_SLOTS, Layout, Loss, ThreadState, Volume,
    tables::{Stage, Word},
    descriptor::{NONE, completion},
    flow::{Completed, RecentFlow, peer},
    layout::capability,
    request::certainty,
    rules::{
        self,
        counting::{self, Moved},
        handles::Release,
        partner::{Partners, completed_source},
    },
    stats::{SIZES, size_bucket},
};

use crate::{
    current,
    apart::given,
    atomic::{self, add, from_here_on, raise},
    call::Outcome,
    layers,
    maps::{CONTROL, DESCRIPTORS, LAYOUTS, STAGES, STATS, configured},
    registers::Registers,
    statistics::count_loss,
    thread,
};
pub use arguments::read_stack;
pub use operation::post;
pub use prepare::prepare;
pub use recording::{decide, write_down};
pub use call_cache::look_up;
pub use requests::{follow, follow_any, settle, start};
pub use sum::sum;
use tables::InKernel;
pub use user::User;

/// A call that has returned.
#[derive(Clone, Copy)]
pub struct Returned {
    pub function: u32,
    /// Return address.
    pub call_site: u64,
    /// Duration, ns.
    pub ns: u64,
    /// What it returned, and whether that was `MPI_SUCCESS`.
    pub result: i32,
    pub succeeded: bool,
    /// Its entry in the statistics plus one; 0: there was no room.
    pub stats_plus_1: u32,
}

/// Keeps a completed call for the programs that find out what it meant.
#[inline(always)]
pub fn keep(thread: &mut ThreadState, call: Returned) {
    thread.completed = Completed {
        call_site: call.call_site,
        ns: call.ns,
        function: call.function,
        succeeded: call.succeeded as u32,
        result: call.result,
        destination: peer::NONE,
        source: peer::NONE,
        stats_plus_1: call.stats_plus_1,
        ..Completed::NONE
    };
}

/// A function is entered: what will not be there any more when it returns.
#[inline(always)]
pub fn at_entry<const TRACED: bool>(thread: &mut ThreadState, function: u32) {
    let Some(descriptor) = DESCRIPTORS.get_ptr(function & (FUNCTION_SLOTS - 1)) else { return };
    // SAFETY: map value pointer, written before anything is attached.
    let descriptor: &Descriptor = unsafe { &*descriptor };
    if descriptor.frees != 0 || rules::handles::looked_at(descriptor) != NONE {
        if TRACED {
            recording::note_freed(thread, descriptor);
        }
        note_handles(thread, descriptor);
    }
}

/// Answers 0.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn note_handles(thread: *mut ThreadState, descriptor: *const Descriptor) -> u32 {
    given!(thread, descriptor);
    let release = rules::handles::release(descriptor);
    forget_freed(thread.process, release, thread.arguments[0]);
    let position = rules::handles::looked_at(descriptor);
    if position != NONE {
        handles::remember(thread, descriptor, position);
    }
    if release == Release::Request && thread.following.handles != 0 {
        store::give_up(thread, thread.following.handle);
    }
    0
}

/// A function is entered whose call is not counted, while counting is off or inside another call: handles that it is given may mean other
/// objects later all the same. `first` and `second` are its arguments.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn note_uncounted_entry(thread: *const ThreadState, function: u32, first: u64, second: u64) -> u32 {
    given!(thread);
    let Some(descriptor) = DESCRIPTORS.get_ptr(function & (FUNCTION_SLOTS - 1)) else { return 0 };
    // SAFETY: as above.
    let descriptor: &Descriptor = unsafe { &*descriptor };
    match rules::handles::release(descriptor) {
        Release::Request => requests::give_up(thread, first),
        Release::Nothing if rules::handles::completes_all(descriptor) && !completes_requests(thread) => {
            let (address, count) = rules::handles::completed(descriptor, first, second);
            requests::complete_unseen(thread, address, count);
        }
        other => forget_freed(thread.process, other, first),
    }
    0
}

/// Whether the thread's open call completes requests itself: then one inside it may be the library's, for the same requests.
#[inline(always)]
fn completes_requests(thread: &ThreadState) -> bool {
    let open = thread.open.function_plus_1;
    let Some(descriptor) = DESCRIPTORS.get_ptr(open.wrapping_sub(1) & (FUNCTION_SLOTS - 1)) else { return true };
    // SAFETY: as above.
    open != 0 && unsafe { &*descriptor }.settles_requests()
}

/// The handle at the address means another object from now on. Sizes of datatypes are not remembered by their handles.
#[inline(always)]
fn forget_freed(process: u32, what: Release, handle_address: u64) {
    match what {
        Release::Communicator => {
            communicator::forget_communicator(process, handle_address);
        }
        Release::Window | Release::File => scope::forget(process, what == Release::File, handle_address),
        Release::Nothing | Release::Request | Release::Datatype => {}
    }
}

/// Whether it is not found out any more what calls move. Handles that are freed are still forgotten.
#[inline(always)]
pub fn is_given_up() -> bool {
    // SAFETY: map value pointer.
    configured::budget() != 0
        && CONTROL.get_ptr(Word::NoTraffic as u32).is_some_and(|word| unsafe { atomic::load(word) } != 0)
}

/// A call has returned of which it is not found out what it has moved. Answers 0.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn pass_over(function: u32, stats_plus_1: u32) -> u32 {
    if let Some(stats) = STATS.get_ptr_mut(stats_plus_1.wrapping_sub(1))
        && moves_data(function)
    {
        // SAFETY: map value pointer.
        unsafe { add(&raw mut (*stats).unknown, 1) };
    }
    0
}

/// Whether calls of a function move data, or begin to.
#[inline(always)]
pub fn moves_data(function: u32) -> bool {
    // SAFETY: map value pointer, written before anything is attached.
    DESCRIPTORS.get_ptr(function & (FUNCTION_SLOTS - 1)).is_some_and(|descriptor| moves(unsafe { &*descriptor }))
}

/// Hands the thread's completed call over to those programs, by what is left to be done (see [`crate::call`]). To be called by the
/// program itself, not by a function that is not inlined: the kernel allows that with type information only.
#[inline(always)]
pub fn go_on(context: &impl EbpfContext, left: Outcome) {
    match left {
        Outcome::Return | Outcome::NoReturn => {}
        Outcome::Completed => next(context, Stage::Attribute),
        Outcome::Measures => next(context, Stage::Measure),
        Outcome::Posts => next(context, Stage::Post),
        Outcome::Settles => next(context, Stage::Settle),
        Outcome::Told => next(context, Stage::WriteDown),
    }
}

/// Does not come back, unless there is no such program. There is a call for each: one whose number is known when the program is loaded
/// becomes a jump, and any other an indirect one, which costs 14 ns where the processor has to be protected.
#[inline(always)]
fn next(context: &impl EbpfContext, stage: Stage) {
    macro_rules! call_one_of {
        ($($stage:ident)*) => {
            match stage {$(
                // SAFETY: the program called is of the same kind, and uses nothing of this one.
                Stage::$stage => unsafe {
                    STAGES.tail_call(context, Stage::$stage as u32);
                    // What is behind the calls is different: the compiler does not make one of them.
                    asm!(concat!("/* ", stringify!($stage), " */"), options(nostack, preserves_flags));
                },
            )*}
        };
    }
    call_one_of!(Attribute Measure Post Settle Follow Sum FollowAny Start Relate Look Prepare WriteDown);
}

/// Nothing is left to be found out about the thread's completed call.
#[inline(always)]
fn conclude<const TRACED: bool>(context: &impl EbpfContext, thread: &ThreadState) {
    if TRACED && thread.is_traced != 0 {
        if let Some(place) = thread.completed.recalled_from()
            && recording::write_recalled_call(thread, place) != 0
        {
            return;
        }
        next(context, Stage::WriteDown);
    }
}

/// Finds the flows of the thread's completed call.
#[inline(always)]
pub fn attribute<const TRACED: bool>(context: &impl EbpfContext) {
    let Some((thread, descriptor, layout)) = completed() else { return };
    if prepare::is_wanted(thread, layout) {
        next(context, Stage::Prepare);
    }
    thread.completed.call_site = layers::user_site(thread, &Registers::of(context.as_ptr()));
    // Before the communicator is looked up: what another thread frees from now on makes what is found out of date.
    thread.completed.epoch = call_cache::epoch(thread.process);
    let call = arguments::call(thread, descriptor, layout);
    let mut partners = Partners::given(&call);
    let mut has_communicator = descriptor.communicator != NONE;
    if has_communicator {
        thread.completed.communicator_handle = call.handle(descriptor.communicator);
    }
    let receives = descriptor.receive_amount != 0 && thread.completed.succeeded != 0;
    let mut is_over_freed = false;
    if receives && rules::handles::receives_message(descriptor) {
        if TRACED {
            recording::write_taken_message(thread, layout);
        }
        partners.source = message::take_message(thread, layout);
        has_communicator = thread.completed.communicator_handle != 0;
        is_over_freed = !has_communicator && thread.completed.communicator != 0;
    }
    let mut number = thread.completed.communicator;
    if descriptor.window & descriptor.file != NONE && !has_communicator && scope::find_scope(thread, descriptor, layout) != 0 {
        number = thread.completed.communicator;
        // The members of a communicator cannot be found any more when it has been freed.
        if partners.destination >= 0 && !communicator::is_alive(number, thread.completed.communicator_handle) {
            partners.destination = peer::UNKNOWN;
        }
    }
    if receives {
        partners.source = completed_source(&call, partners.source);
        // As with windows: whom ranks are of cannot be found any more.
        if is_over_freed && partners.source >= 0 {
            partners.source = peer::UNKNOWN;
        }
    }
    thread.completed.destination = partners.destination;
    thread.completed.source = partners.source;
    let handle = thread.completed.communicator_handle;
    if descriptor.unchosen != 0 {
        // It is in no flow; what it makes out of a communicator is to be known all the same.
        if has_communicator {
            number = communicator::communicator_number(thread.process, layout, handle);
        }
        thread.completed.communicator = number;
        thread.completed.looked_at = parent::if_new(number);
        next(context, if parent::is_concerned(descriptor) { Stage::Relate } else { look_or_measure(thread) });
        return;
    }
    let handle = if is_over_freed { RecentFlow::freed(number) } else { handle };
    let in_which = flow::In { has_communicator, handle, number };
    thread.completed.flow_plus_1 = flow::find(thread, layout, in_which, partners.first());
    if partners.are_two() {
        thread.completed.second_flow_plus_1 = flow::find(thread, layout, in_which, partners.source);
    }
    thread.completed.communicator = flow::communicator(thread.completed.flow_plus_1);
    thread.completed.looked_at = parent::if_new(thread.completed.communicator);
    let stage = if parent::is_concerned(descriptor) { Stage::Relate } else { look_or_measure(thread) };
    if stage == Stage::Measure && !moves(descriptor) {
        // Each program that is called costs as much as ten additions: there is nothing to be measured.
        let call = &thread.completed;
        add_calls(call.flow_plus_1, call.second_flow_plus_1, call.ns);
        if layout.is_lacking() {
            note_lacking(thread, descriptor, layout);
        }
        learn::<TRACED>(context, thread, descriptor, layout);
        if let Some(stage) = stage_after(thread, descriptor, layout) {
            next(context, stage);
        }
        conclude::<TRACED>(context, thread);
        return;
    }
    next(context, stage);
}

/// Whether calls of a function move data, or begin to.
#[inline(always)]
fn moves(descriptor: &Descriptor) -> bool {
    descriptor.send_amount | descriptor.receive_amount != 0
}

/// Notes what the thread's completed call has done to communicators.
#[inline(always)]
pub fn relate(context: &impl EbpfContext) {
    let Some((thread, descriptor, layout)) = completed() else { return };
    if thread.completed.succeeded != 0 {
        parent::note(thread, descriptor, layout);
    }
    next(context, look_or_measure(thread));
}

/// Looks at one more member of the communicators that are new.
#[inline(always)]
pub fn look(context: &impl EbpfContext) {
    let Some((thread, _, layout)) = completed() else { return };
    parent::look(thread, layout);
    next(context, look_or_measure(thread));
}

#[inline(always)]
fn look_or_measure(thread: &ThreadState) -> Stage {
    if thread.completed.looked_at | thread.completed.made != 0 { Stage::Look } else { Stage::Measure }
}

/// Finds out what the thread's completed call has moved.
#[inline(always)]
pub fn measure<const TRACED: bool>(context: &impl EbpfContext) {
    let Some((thread, descriptor, layout)) = completed() else { return };
    if moves(descriptor) && thread.completed.succeeded != 0 && descriptor.unchosen == 0 {
        if can_follow(layout) {
            thread.summing.clear();
            amount::find(thread, descriptor, layout);
            if sum::is_left(&thread.summing) {
                next(context, Stage::Sum);
            }
        } else {
            (thread.completed.sent, thread.completed.received) = (Amount::UNKNOWN, Amount::UNKNOWN);
        }
    }
    learn::<TRACED>(context, thread, descriptor, layout);
    account::<TRACED>(context, thread, descriptor, layout);
}

/// The thread's completed call has been found out about.
#[inline(always)]
fn learn<const TRACED: bool>(context: &impl EbpfContext, thread: &mut ThreadState, descriptor: &Descriptor, layout: &Layout) {
    let return_address = Registers::of(context.as_ptr()).instruction_pointer();
    let place_plus_1 = call_cache::learn(thread, descriptor, layout, return_address);
    if TRACED && place_plus_1 != 0 {
        recording::learn_line(thread, descriptor, layout, place_plus_1 - 1);
    }
}

/// Adds what the thread's completed call has moved to the statistics of its function and to its flows.
#[inline(always)]
fn account<const TRACED: bool>(context: &impl EbpfContext, thread: &ThreadState, descriptor: &Descriptor, layout: &Layout) {
    account_for_call(thread, descriptor, layout);
    if let Some(stage) = stage_after(thread, descriptor, layout) {
        next(context, stage);
    }
    conclude::<TRACED>(context, thread);
}

/// Answers 0.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn account_for_call(thread: *const ThreadState, descriptor: *const Descriptor, layout: *const Layout) -> u32 {
    given!(thread, descriptor, layout);
    let call = &thread.completed;
    let succeeded = call.succeeded != 0;
    let begins = descriptor.begins_operation() && succeeded && can_follow(layout);
    let moved = Moved {
        flow_plus_1: call.flow_plus_1,
        second_flow_plus_1: call.second_flow_plus_1,
        sent: call.sent,
        received: call.received,
    };
    let mut tables = InKernel::<false, false>::of(thread, thread.process, layout);
    counting::account(&mut tables, descriptor, begins, call.stats_plus_1, call.ns, &moved);
    if layout.is_lacking() {
        note_lacking(thread, descriptor, layout);
    }
    0
}

/// Counts the thread's completed call if it is not known what it was, for want of a layout.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn note_lacking(thread: *const ThreadState, descriptor: *const Descriptor, layout: *const Layout) -> u32 {
    given!(thread, descriptor, layout);
    let call = &thread.completed;
    let has_partner = call.destination != peer::NONE || call.source != peer::NONE;
    let is_nowhere = descriptor.communicator != NONE && call.communicator == 0 && (moves(descriptor) || has_partner);
    let is_unmeasured =
        call.sent.certainty == certainty::UNKNOWN || call.received.certainty == certainty::UNKNOWN;
    let is_lost = descriptor.begins_operation() && !can_follow(layout);
    if call.succeeded != 0 && (is_nowhere || is_unmeasured || is_lost) {
        count_loss(thread.process, Loss::LayoutUnknown);
    }
    0
}

/// Adds a call to its flow, and to the second one if it has two partners; both by index plus one.
#[inline(always)]
fn add_calls(flow_plus_1: u32, second_flow_plus_1: u32, ns: u64) {
    flow::add_calls(flow_plus_1, 1, ns);
    if second_flow_plus_1 != 0 {
        flow::add_calls(second_flow_plus_1, 1, 0);
    }
}

/// The program that comes when the thread's completed call is accounted for.
#[inline(always)]
fn stage_after(thread: &ThreadState, descriptor: &Descriptor, layout: &Layout) -> Option<Stage> {
    let succeeded = thread.completed.succeeded != 0;
    let is_kept = (descriptor.completion == completion::MATCHES || descriptor.begins_operation()) && descriptor.unchosen == 0;
    if is_kept && can_follow(layout) {
        if succeeded { Some(Stage::Post) } else { None }
    } else if descriptor.settles_requests() && thread.following.handles != 0 || descriptor.completion == completion::ENDS {
        // A call that failed may have completed some of them all the same.
        Some(Stage::Settle)
    } else {
        None
    }
}

/// Whether the layout tells enough to understand what a call moves, and to follow requests.
#[inline(always)]
fn can_follow(layout: &Layout) -> bool {
    layout.known & capability::CONSTANTS != 0
}

/// Adds bytes that have left, if that is how much is known, to a function's statistics and a flow, both by index plus one.
#[inline(never)]
fn add_sent(stats_plus_1: u32, flow_plus_1: u32, amount: Amount) {
    if amount.certainty == certainty::UNKNOWN {
        return;
    }
    if let Some(stats) = STATS.get_ptr_mut(stats_plus_1.wrapping_sub(1)) {
        // SAFETY: map value pointer.
        unsafe { add_to_volume(&raw mut (*stats).sent, amount.bytes) };
    }
    flow::add_sent(flow_plus_1, amount.bytes);
}

/// The same of bytes that have arrived.
#[inline(never)]
fn add_received(stats_plus_1: u32, flow_plus_1: u32, amount: Amount) {
    if amount.certainty == certainty::UNKNOWN {
        return;
    }
    let at_most = if amount.certainty == certainty::AT_MOST { amount.bytes } else { 0 };
    if let Some(stats) = STATS.get_ptr_mut(stats_plus_1.wrapping_sub(1)) {
        // SAFETY: map value pointers.
        unsafe {
            add_to_volume(&raw mut (*stats).received, amount.bytes);
            if at_most != 0 {
                add(&raw mut (*stats).received_at_most, at_most);
            }
        }
    }
    flow::add_received(flow_plus_1, amount.bytes, at_most);
}

/// A call or an operation of which it is not known what it has moved.
#[inline(always)]
fn add_unknown(stats_plus_1: u32, flow_plus_1: u32) {
    if let Some(stats) = STATS.get_ptr_mut(stats_plus_1.wrapping_sub(1)) {
        // SAFETY: map value pointer.
        unsafe { add(&raw mut (*stats).unknown, 1) };
    }
    flow::add_unknown(flow_plus_1);
}

/// The current thread, and what its completed call is to be understood by.
#[inline(always)]
fn completed() -> Option<(&'static mut ThreadState, &'static Descriptor, &'static Layout)> {
    let thread = thread::known(current::id())?;
    // SAFETY: map value pointers. Only the thread itself writes its state while it runs; the daemon writes descriptors before
    // anything is attached, and a layout as a whole.
    unsafe {
        let descriptor = &*DESCRIPTORS.get_ptr((*thread).completed.function & (FUNCTION_SLOTS - 1))?;
        let layout = &*LAYOUTS.get_ptr((*thread).process)?;
        Some((&mut *thread, descriptor, layout))
    }
}

/// # Safety
/// `volume` must point into a live map value.
#[inline(always)]
unsafe fn add_to_volume(volume: *mut Volume, bytes: u64) {
    // SAFETY: by contract.
    unsafe {
        add(&raw mut (*volume).bytes, bytes);
        raise(&raw mut (*volume).min_complement, u64::MAX - bytes);
        raise(&raw mut (*volume).max, bytes);
        // Last: there is a way through it for each bucket, and the verifier goes all the rest once for each.
        let bucket = from_here_on(size_bucket(from_here_on(bytes)) as u64) as usize;
        if bucket < SIZES {
            add((&raw mut (*volume).sizes).cast::<u64>().add(bucket), 1);
        }
    }
}
