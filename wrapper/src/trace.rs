//! Calls as they return, written to rings while an observer wants the course of events.

use core::{
    arch::asm,
    ffi::CStr,
    sync::atomic::{AtomicU64, Ordering, compiler_fence},
};

use mpiprobe_common::{
    file::{LINES_REGION, RING_LINES, RINGS, RINGS_REGION},
    trace::{
        CallRecord, ChangeRecord, CommonLine, Line, Origin, OwnLine, PhaseRecord, RingHead, Room, Words, kind, room,
    },
};

use crate::{environment, file, header, thread::Local};

/// Set by whoever wants all calls from the first one on; then nobody has to put the end off.
const VARIABLE: &CStr = c"MPIPROBE_TRACE";

const LINES: u64 = RING_LINES as u64;
/// Threads with the first slots have a ring for themselves; the others share the rest.
const OWN_RINGS: u32 = RINGS / 2;
/// So many lines before they are written to, they are brought into the cache.
const SOON: u64 = 8;
/// So many lines before they are written to there is memory or disk for them, whoever else writes meanwhile.
const AHEAD: u64 = 256;
/// A thread with a ring for itself looks after so many lines whether there is room.
const UNLOOKED: u64 = 64;

const _: () = assert!(RING_LINES.is_power_of_two() && RINGS.is_power_of_two() && OWN_RINGS < RINGS);

/// Until when calls are written from the beginning on, ns.
pub(crate) fn wanted_until_ns() -> u64 {
    if environment::get(VARIABLE).is_none_or(CStr::is_empty) { 0 } else { u64::MAX }
}

/// Whether somebody wants it now. Nobody has to say that he does not any more: he may have been killed.
#[inline]
pub(crate) fn is_on(now_ns: u64) -> bool {
    header::trace_until().is_some_and(|until| now_ns < until.load(Ordering::Relaxed))
}

/// A call has returned, and there is an entry for it in the statistics or not. `found_nothing`: it has only asked, in vain, whether something
/// has happened. `changes`: how many changes of requests had not been written before it.
///
/// # Safety
/// `local` must be the thread's own.
#[inline]
pub(crate) unsafe fn call(local: *mut Local, record: &CallRecord, found_nothing: impl FnOnce() -> bool, changes: u64) {
    // SAFETY: by contract.
    let (ring, unwritten) = unsafe { (Ring::of(local), &mut (*(*local).state).unwritten) };
    let room = ring.map_or(Room::None, Ring::room);
    match (ring, room) {
        (Some(_), Room::Little) if found_nothing() => unwritten.idle += 1,
        (Some(ring), Room::Enough | Room::Little) => {
            let has_more = record.needs_more();
            let first = ring.take(1 + u64::from(has_more));
            if has_more {
                ring.write(first, kind::MORE, |words| record.write_more(words));
            }
            let record = CallRecord { lacks_changes: unwritten.changes != changes, ..*record };
            ring.write(first.wrapping_add(u64::from(has_more)), kind::CALL, |words| record.write(has_more, words));
        }
        _ => {
            unwritten.lost += 1;
            // It is missing with all that it has done.
            unwritten.changes = changes;
        }
    }
}

/// A call has returned that is the same as others, of which the `common` part of the line is known. Gives whether that was all: where there is
/// not room enough, or nobody who reads it, it is not.
///
/// # Safety
/// As [`call`].
#[inline]
pub(crate) unsafe fn same_call(local: *mut Local, common: &CommonLine, own: impl FnOnce() -> OwnLine) -> bool {
    // SAFETY: by contract.
    let Some(ring) = (unsafe { Ring::of(local) }).filter(|ring| ring.room() == Room::Enough) else { return false };
    ring.write(ring.take(1), kind::CALL, |words| common.write(&own(), words));
    true
}

/// A call that is about to be written down has done something to a request.
///
/// # Safety
/// As [`call`].
#[inline]
pub(crate) unsafe fn change(local: *mut Local, record: &ChangeRecord) {
    // SAFETY: by contract.
    unsafe {
        match Ring::of(local).filter(|ring| ring.room() != Room::None) {
            Some(ring) => ring.write(ring.take(1), kind::CHANGE, |words| record.write(words)),
            None => (*(*local).state).unwritten.changes += 1,
        }
    }
}

/// The process is in another phase. Where there is no room, it is seen by the next one.
///
/// # Safety
/// As [`call`].
#[cold]
pub(crate) unsafe fn phase(local: *mut Local, at_ns: u64, current: u64) {
    // SAFETY: by contract.
    unsafe {
        let (id, calls) = ((*(*local).state).id, (*(*local).state).numbered_calls());
        let record = PhaseRecord { tid: id as u32, number: calls as u32, at_ns, current };
        if let Some(ring) = Ring::of(local).filter(|ring| ring.room() != Room::None) {
            ring.write(ring.take(1), kind::PHASE, |words| record.write(words));
        }
    }
}

/// Which ring a thread writes to, by its slot.
const fn ring_of(slot: u32) -> u32 {
    if slot < OWN_RINGS { slot } else { OWN_RINGS + slot % (RINGS - OWN_RINGS) }
}

/// The ring of a thread.
#[derive(Clone, Copy)]
struct Ring {
    local: *mut Local,
    head: *mut RingHead,
    /// The number of its first line among those of all rings.
    first: u32,
    /// Nobody else writes to it.
    is_own: bool,
}

impl Ring {
    /// `None`: there is no file any more.
    #[inline]
    unsafe fn of(local: *mut Local) -> Option<Self> {
        // SAFETY: by contract the thread's own.
        let slot = unsafe { (*local).number };
        let index = ring_of(slot);
        // Those are there from the beginning.
        let head = file::place(RINGS_REGION, index)?.as_ptr();
        Some(Self { local, head, first: index * RING_LINES, is_own: slot < OWN_RINGS })
    }

    #[inline]
    fn head(&self) -> &AtomicU64 {
        // SAFETY: an aligned word of the file, which is never unmapped.
        unsafe { AtomicU64::from_ptr(&raw mut (*self.head).head) }
    }

    #[inline]
    fn room(self) -> Room {
        let head = self.head().load(Ordering::Relaxed);
        // SAFETY: by contract of whoever made it, the thread's own.
        if self.is_own && head < unsafe { (*self.local).room_until } {
            return Room::Enough;
        }
        self.look(head)
    }

    #[inline(never)]
    fn look(self, head: u64) -> Room {
        // SAFETY: as above.
        let tail = unsafe { AtomicU64::from_ptr(&raw mut (*self.head).tail) }.load(Ordering::Acquire);
        // Whoever takes a number must be able to write the line.
        if [0, AHEAD, AHEAD + UNLOOKED].iter().any(|ahead| self.line(head.wrapping_add(*ahead)).is_none()) {
            return Room::None;
        }
        let room = room(LINES, head, tail);
        if room == Room::Enough && self.is_own {
            // SAFETY: as in `room`.
            unsafe { (*self.local).room_until = head.wrapping_add(UNLOOKED) };
        }
        room
    }

    /// Takes numbers of lines that are to be written.
    #[inline]
    fn take(&self, lines: u64) -> u64 {
        if !self.is_own {
            return self.head().fetch_add(lines, Ordering::Relaxed);
        }
        // One instruction, since a signal handler may write, too; without the lock that other processors would need, which takes longer than the rest.
        let mut first = lines;
        // SAFETY: an aligned word of the file, which is never unmapped, and no other thread writes.
        unsafe { asm!("xadd [{}], {}", in(reg) &raw mut (*self.head).head, inout(reg) first, options(nostack)) };
        first
    }

    /// Where the line of a number is, once it is certain that there is room for it.
    #[inline]
    fn line(&self, number: u64) -> Option<*mut Line> {
        Some(file::place(LINES_REGION, self.index(number))?.as_ptr())
    }

    /// The number of a line of the ring among those of all rings.
    #[inline]
    fn index(&self, number: u64) -> u32 {
        self.first + (number as u32 & (RING_LINES - 1))
    }

    #[inline]
    fn write(&self, number: u64, kind: u8, words: impl FnOnce(&mut Words)) {
        // One without is passed over by the reader after some time.
        let Some(line) = self.line(number) else { return };
        let origin = Origin { process: 0, kind };
        // SAFETY: a line of the file that is ours while it says so.
        unsafe {
            let state = AtomicU64::from_ptr(&raw mut (*line).state);
            state.store(Origin::WRITING, Ordering::Relaxed);
            compiler_fence(Ordering::SeqCst);
            words(&mut (*line).words);
            state.store(origin.state(number), Ordering::Release);
        }
        // Where there is no room for it, nothing comes of it.
        if let Some(later) = file::known_place(LINES_REGION, self.index(number.wrapping_add(SOON))) {
            fetch(later.as_ptr());
        }
    }
}

/// Has a cache line brought here that will be written to: the reader's processor has it since it was read.
#[inline]
fn fetch(line: *mut Line) {
    // SAFETY: a hint, which does nothing to what is there, and nothing at all where the processor does not know it.
    unsafe { asm!("prefetchw [{}]", in(reg) line, options(nostack, preserves_flags)) };
}
