//! The operations that are under way, by handle, all threads together: a table of small rows, without locks.
//!
//! An entry's state word says whether it is in use; whoever changes that by compare-and-swap has the right to what is in it.

use core::sync::atomic::{AtomicU16, AtomicU64, Ordering, fence};

use mpiprobe_common::{
    Loss, Request, RequestKey,
    file::{FollowedRequest, REQUESTS, REQUESTS_REGION},
    request::state,
};

use super::row;
use crate::{file, process};

/// So much later than it was may an operation seem to have been posted, ns: threads' clocks differ a little.
const CLOCKS_DIFFER_NS: u64 = 10_000;

/// Attempts to take an operation out: as many as a handle can have.
const ATTEMPTS: usize = 16;

/// Operations of one handle that are kept: with several threads, some may have the handle again before the calls that have completed the
/// others have returned.
const SHARED: u32 = 4;

/// Somebody is writing the entry. Not among the bits that the others know.
const WRITING: u64 = 1 << (state::BITS - 1);
/// Bits of an entry that is not free.
const IN_USE: u64 = state::ACTIVE | state::PERSISTENT | WRITING;

const _: () = assert!(REQUESTS.is_power_of_two() && WRITING > state::TAGGED);

/// By entry: [`tag`] of the handle that is in it; 0: it is free. Side by side, so that a row is two cache lines instead of forty.
/// Only whoever has the right to write the entry changes it.
static TAGS: [AtomicU64; REQUESTS as usize] = [const { AtomicU64::new(0) }; REQUESTS as usize];

/// Handles are numbers of 32 bits, or addresses, of which no program has any with the highest bit.
const fn tag(handle: u64) -> u64 {
    handle | 1 << 63
}

/// The indices of a handle's row.
#[inline]
fn row(handle: u64) -> impl Iterator<Item = u32> {
    row::row(handle, REQUESTS as usize).map(|index| index as u32)
}

#[inline]
fn tag_of(index: u32) -> u64 {
    TAGS.get(index as usize).map_or(0, |tag| tag.load(Ordering::Relaxed))
}

fn set_tag(index: u32, tag: u64) {
    if let Some(place) = TAGS.get(index as usize) {
        place.store(tag, Ordering::Relaxed);
    }
}

/// By index: number of its entry in the file, plus one. They are handed out on first use, so that the file is used from its beginning on.
static NUMBERS: [AtomicU16; REQUESTS as usize] = [const { AtomicU16::new(0) }; REQUESTS as usize];
static USED: AtomicU16 = AtomicU16::new(0);

#[inline]
fn entry(index: u32) -> Option<*mut FollowedRequest> {
    let number = NUMBERS.get(index as usize)?;
    let number = match number.load(Ordering::Relaxed) {
        0 => hand_out(number),
        known => known,
    };
    file::place(REQUESTS_REGION, u32::from(number) - 1).map(core::ptr::NonNull::as_ptr)
}

#[cold]
fn hand_out(number: &AtomicU16) -> u16 {
    let new = USED.fetch_add(1, Ordering::Relaxed).wrapping_add(1).max(1);
    number.compare_exchange(0, new, Ordering::Relaxed, Ordering::Relaxed).map_or_else(|known| known, |_| new)
}

#[inline]
fn word<'a>(entry: *mut FollowedRequest) -> &'a AtomicU64 {
    // SAFETY: an aligned word of an entry of the file, which is never unmapped.
    unsafe { AtomicU64::from_ptr(&raw mut (*entry).request.state) }
}

/// An entry that nobody was writing when it was looked at.
#[derive(Clone, Copy)]
struct Found {
    index: u32,
    entry: *mut FollowedRequest,
    posted_ns: u64,
    /// The state word. It is another one as soon as anything else is.
    state: u64,
}

impl Found {
    #[inline]
    fn has(&self, flags: u64) -> bool {
        self.state & flags != 0
    }

    /// The operation, if it is still the one that was found.
    #[inline]
    fn read(&self) -> Option<Request> {
        // SAFETY: an entry of the file. What another thread is changing meanwhile is not used: the state is compared.
        let request = unsafe { (&raw const (*self.entry).request).read() };
        fence(Ordering::Acquire);
        if word(self.entry).load(Ordering::Relaxed) == self.state { Some(request) } else { None }
    }

    /// Nobody has the entry any more, if it is still as it was found.
    fn free(&self) -> bool {
        let word = word(self.entry);
        let is_ours = word.compare_exchange(self.state, self.state | WRITING, Ordering::AcqRel, Ordering::Relaxed);
        if is_ours.is_ok() {
            set_tag(self.index, 0);
            word.store(self.state & !IN_USE, Ordering::Release);
        }
        is_ours.is_ok()
    }

    /// No operation is active any more; one that can be started again stays. `false`: somebody was quicker.
    fn end(&self) -> bool {
        if !self.has(state::PERSISTENT) {
            return self.free();
        }
        let ended = self.state & !state::ACTIVE;
        word(self.entry).compare_exchange(self.state, ended, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
}

/// The operations of a handle.
#[inline]
fn known(kind: u32, handle: u64) -> impl Iterator<Item = Found> {
    row(handle)
        .filter(move |&index| tag_of(index) == tag(handle))
        .filter_map(move |index| known_at(index, kind, handle))
}

/// The handle's operation in an entry whose tag is the handle's.
#[inline]
fn known_at(index: u32, kind: u32, handle: u64) -> Option<Found> {
    let entry = entry(index)?;
    let before = word(entry).load(Ordering::Acquire);
    if before & IN_USE == 0 || before & WRITING != 0 {
        return None;
    }
    // SAFETY: as in `Found::read`.
    let (known_kind, known_handle, posted_ns) =
        unsafe { ((*entry).key.kind, (*entry).key.handle, (*entry).request.posted_ns) };
    fence(Ordering::Acquire);
    if known_handle == handle && known_kind == kind && word(entry).load(Ordering::Relaxed) == before {
        Some(Found { index, entry, posted_ns, state: before })
    } else {
        None
    }
}

/// Remembers an operation. The answer is one that has had the handle before, and is complete: a handle is given again only then, whoever
/// has seen that.
///
/// Libraries give one handle to many operations that are complete from the start. As many of them as they like must not take
/// the places of others.
pub(super) fn keep(key: RequestKey, request: &Request) -> Option<Request> {
    // Others may be quicker.
    for _ in 0..ATTEMPTS {
        let Some(found) = find_place(key.kind, key.handle) else { break };
        if let Some(earlier) = write(&found, key, request) {
            return Some(earlier).filter(|_| found.has(state::ACTIVE));
        }
    }
    process::count_loss(Loss::RequestTableFull);
    None
}

/// Where an operation of a handle can be put.
#[inline]
fn find_place(kind: u32, handle: u64) -> Option<Found> {
    let (mut free, mut oldest, mut active) = (None, None::<Found>, 0);
    for index in row(handle) {
        let tagged = tag_of(index);
        if tagged == 0 && free.is_none() {
            let unused = |entry| Found { index, entry, posted_ns: 0, state: word(entry).load(Ordering::Relaxed) };
            free = entry(index).map(unused).filter(|found| !found.has(IN_USE));
        } else if tagged == tag(handle)
            && let Some(found) = known_at(index, kind, handle)
        {
            // A persistent request of the same handle has been freed by somebody who was not seen.
            if !found.has(state::ACTIVE) {
                return Some(found);
            }
            active += 1;
            if oldest.is_none_or(|oldest| found.posted_ns < oldest.posted_ns) {
                oldest = Some(found);
            }
        }
    }
    free.filter(|_| active < SHARED).or(oldest)
}

/// What was in the entry; `None`: it is not as it was found, for somebody else's operation may be in it by now.
#[inline]
fn write(found: &Found, key: RequestKey, request: &Request) -> Option<Request> {
    let word = word(found.entry);
    let writing = found.state | WRITING;
    word.compare_exchange(found.state, writing, Ordering::AcqRel, Ordering::Relaxed).ok()?;
    set_tag(found.index, tag(key.handle));
    let being_written = Request { state: writing, ..*request };
    // SAFETY: an entry of the file that is ours while it says so.
    let earlier = unsafe { found.entry.replace(FollowedRequest { key, request: being_written }) };
    word.store(request.state, Ordering::Release);
    Some(Request { state: found.state, ..earlier.request })
}

/// The entry of the handle's operation that was active at `started_ns`.
///
/// There may be two: another thread has got the handle again before the call that completes the first one has returned.
#[inline]
fn find(kind: u32, handle: u64, started_ns: u64) -> Option<Found> {
    let latest_ns = started_ns.saturating_add(CLOCKS_DIFFER_NS);
    // The latest of those that were there, else the earliest. Times have no highest bit.
    let rank = |found: &Found| {
        if found.posted_ns <= started_ns { found.posted_ns | 1 << 63 } else { !found.posted_ns >> 1 }
    };
    let found = known(kind, handle).filter(|found| found.posted_ns <= latest_ns).max_by_key(rank);
    // If it is a persistent request that is not active, then what is active under its handle is another thread's.
    found.filter(|found| found.has(state::ACTIVE))
}

/// Takes an operation out, to account for it.
pub(super) fn take(kind: u32, handle: u64, started_ns: u64) -> Option<Request> {
    // Somebody else may be quicker, in programs that are in error.
    for _ in 0..ATTEMPTS {
        let found = find(kind, handle, started_ns)?;
        if let Some(request) = found.read()
            && found.end()
        {
            return Some(request);
        }
    }
    None
}

/// The persistent operation of a handle, to be started.
pub(super) fn persistent(kind: u32, handle: u64) -> Option<Request> {
    known(kind, handle).filter(|found| found.has(state::PERSISTENT)).max_by_key(|found| found.posted_ns)?.read()
}

/// Takes out what a handle means that is about to be given up, active or not: the latest of its operations. Of earlier ones, the calls that
/// have completed them have not returned yet.
pub(super) fn release(kind: u32, handle: u64) -> Option<Request> {
    for _ in 0..ATTEMPTS {
        let latest = known(kind, handle).max_by_key(|found| found.posted_ns)?;
        if let Some(request) = latest.read()
            && latest.free()
        {
            return Some(request);
        }
    }
    None
}
