//! Where communicators come from, who is in them, and what programs call them.
//!
//! To be in a program of its own, which reads one member at a time: more is more than the kernel's verifier goes through.

use aya_ebpf::helpers::generated::bpf_probe_read_user_str;
use mpiprobe_common::{
    Communicator, CommunicatorKey, Descriptor, Layout, ThreadState,
    descriptor::{NONE, flags},
    flow::{NAME_LENGTH, Origin, communicator_kind, handle_of, peer},
    layout::{Side, member_world_rank},
};

use super::{
    arguments,
    communicator, scope, topology,
    user::{User, handle_at},
};
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
        let address = call.word(descriptor.new_communicator);
        thread.completed.made = made(thread, descriptor, layout, address);
        topology::note(thread, descriptor, layout);
    }
    if descriptor.new_scope != NONE {
        scope::made(thread, descriptor, layout, call.word(descriptor.new_scope));
    }
}

/// The number of the communicator that the call has made, if it is ready.
#[inline(always)]
fn made(thread: &ThreadState, descriptor: &Descriptor, layout: &Layout, address: u64) -> u32 {
    let Some(handle) = handle_at(layout, address) else { return 0 };
    if handle == layout.constants.comm_null {
        return 0;
    }
    let key = CommunicatorKey { process: thread.process, kind: handle_of::COMMUNICATOR, handle };
    // It was freed where nobody has seen it, inside another call: the handle has been given to a new one.
    // SAFETY: the value is not used.
    if unsafe { COMMUNICATOR_OF.get(&key) }.is_some() {
        communicator::release(key);
    }
    let origin = Origin {
        made_by_plus_1: thread.completed.function + 1,
        parent: thread.completed.communicator,
        made_ns: thread.last_return_ns,
    };
    // If there is no room, it is one of unknown origin.
    let _ = ORIGINS.insert(&key, origin, 0);
    if descriptor.flags & flags::NONBLOCKING != 0 {
        // Looked at when it is used.
        return 0;
    }
    communicator::communicator_number(thread.process, layout, handle)
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
    let is_remote = entry.is_inter != 0 && step == LAST;
    let (side, rank) = match step {
        0 => (Side::Local, 0),
        1 => (Side::Local, entry.size / 2),
        _ if is_remote => (Side::Remote, 0),
        _ => (Side::Local, entry.size - 1),
    };
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

/// The last of the members looked at, counted from 0.
const LAST: u32 = 2;

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
        let _ = ORIGINS.remove(&entry.key);
    }
    entry.kind = if entry.key.handle == layout.constants.comm_world {
        communicator_kind::WORLD
    } else if entry.key.handle == layout.constants.comm_self {
        communicator_kind::OWN
    } else {
        communicator_kind::MADE
    };
}
