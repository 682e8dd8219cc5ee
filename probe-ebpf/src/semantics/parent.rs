//! Where communicators come from, who is in them, and what programs call them.
//!
//! To be in a program of its own, which reads one member at a time: more is more than the kernel's verifier goes through.

use aya_ebpf::helpers::generated::bpf_probe_read_user_str;
use mpiprobe_common::{
    Communicator, CommunicatorKey, Descriptor, Layout, ThreadState,
    descriptor::NONE,
    flow::{Completed, Degrees, NAME_LENGTH, Origin, communicator_kind, handle_of, peer},
    layout::member_world_rank,
    rules::communicators::{self, Communicators},
};

use super::{arguments, communicator, scope, topology, user::User};
use crate::maps::{COMMUNICATOR_NAMES, COMMUNICATOR_OF, COMMUNICATORS, ORIGINS};

/// Whether a function makes or names communicators, or makes windows or files with them.
#[inline(always)]
pub fn is_concerned(descriptor: &Descriptor) -> bool {
    descriptor.new_communicator & descriptor.communicator_name & descriptor.new_scope != NONE
}

/// The communicator itself if its members have not been looked at, else 0.
#[inline(always)]
pub fn if_new(number: u32) -> u32 {
    match communicator::facts(number) {
        Some(known) if known.kind == communicator_kind::NOT_YET => number,
        _ => 0,
    }
}

/// Notes what the thread's completed call has done to communicators.
#[inline(always)]
pub fn note(thread: &mut ThreadState, descriptor: &Descriptor, layout: &Layout) {
    let call = arguments::call(thread, descriptor, layout);
    if descriptor.communicator_name != NONE {
        named(thread.completed.communicator, call.word(descriptor.communicator_name));
    }
    if descriptor.new_communicator != NONE {
        let degrees = topology::degrees(thread, descriptor, layout);
        let mut communicators = InKernel { process: thread.process, layout, degrees };
        let Completed { function, communicator: parent, .. } = thread.completed;
        thread.completed.made = communicators::made(&call, function, parent, thread.last_return_ns, &mut communicators);
        topology::note(thread, descriptor, layout);
    }
    if descriptor.new_scope != NONE {
        scope::made(thread, &call);
    }
}

/// The communicators of a process.
struct InKernel<'a> {
    process: u32,
    layout: &'a Layout,
    /// In the one that is made.
    degrees: Degrees,
}

impl InKernel<'_> {
    #[inline(always)]
    fn key(&self, handle: u64) -> CommunicatorKey {
        CommunicatorKey { process: self.process, kind: handle_of::COMMUNICATOR, handle }
    }
}

impl Communicators for InKernel<'_> {
    #[inline(always)]
    fn release(&mut self, handle: u64) {
        let key = self.key(handle);
        // SAFETY: the value is not used.
        if unsafe { COMMUNICATOR_OF.get(&key) }.is_some() {
            communicator::release(key);
        }
    }

    #[inline(always)]
    fn keep_origin(&mut self, handle: u64, origin: Origin) {
        // If there is no room, it is one of unknown origin.
        let _ = ORIGINS.insert(&self.key(handle), Origin { degrees: self.degrees, ..origin }, 0);
    }

    #[inline(always)]
    fn number(&mut self, handle: u64) -> u32 {
        communicator::communicator_number(self.process, self.layout, handle)
    }

    /// Those that come last share numbers.
    #[inline(always)]
    fn has_room_for_unused(&self) -> bool {
        true
    }
}

#[inline(always)]
fn named(number: u32, address: u64) {
    if number == 0 {
        return;
    }
    let Some(name) = COMMUNICATOR_NAMES.get_ptr_mut(number) else { return };
    // SAFETY: map value pointer; reads user memory by the helper made for that, no more than there is room for.
    unsafe { bpf_probe_read_user_str((&raw mut (*name).text).cast(), NAME_LENGTH as u32, address as *const _) };
}

/// Looks at one more member of a communicator. Gives the number of the next one to be looked at.
#[inline(always)]
pub fn look(thread: &mut ThreadState, layout: &Layout) {
    let number = thread.completed.looked_at;
    let step = thread.completed.step;
    let Some(entry) = COMMUNICATORS.get_ptr_mut(number) else {
        return proceed(thread);
    };
    // SAFETY: map value pointer; if two threads are here at once, they write the same.
    let entry: &mut Communicator = unsafe { &mut *entry };
    let (side, rank) = communicators::member(step, entry.size, entry.is_inter != 0);
    let member = member_world_rank(layout, entry.key.handle, side, rank, &User);
    let member = member.map_or(peer::UNKNOWN, |rank| rank as i32);
    match step {
        0 => entry.first = member,
        1 => entry.middle = member,
        _ => {
            entry.last = member;
            finish(entry, layout);
            return proceed(thread);
        }
    }
    thread.completed.step = step + 1;
}

/// To the next communicator.
#[inline(always)]
fn proceed(thread: &mut ThreadState) {
    thread.completed.looked_at = thread.completed.made;
    thread.completed.made = 0;
    thread.completed.step = 0;
}

/// What else is to be known of a communicator that is new.
#[inline(always)]
fn finish(entry: &mut Communicator, layout: &Layout) {
    // SAFETY: the value is copied at once.
    if let Some(&origin) = unsafe { ORIGINS.get(&entry.key) } {
        entry.made_by_plus_1 = origin.made_by_plus_1;
        entry.parent = origin.parent;
        entry.first_ns = origin.made_ns;
        if origin.degrees.indegree != Degrees::NO_NUMBER {
            entry.degrees = origin.degrees;
        }
        let _ = ORIGINS.remove(&entry.key);
    }
    entry.kind = communicators::kind(&layout.constants, entry.key.handle);
}
