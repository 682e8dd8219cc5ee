//! The operations that are under way, by handle, all threads together: a table of small rows, without locks.
//!
//! An entry's state word says whether it is in use; whoever changes that by compare-and-swap has the right to what is in it.

use core::sync::atomic::{AtomicU64, Ordering};

use mpiprobe_common::{
    Loss, Request, RequestKey,
    file::{FollowedRequest, REQUESTS, REQUESTS_REGION},
    request::state,
};

use crate::{file, process};

/// Entries where the operation of a handle may be.
const ROW: u32 = 16;

/// Somebody is writing the entry. Not among the bits that the others know.
const WRITING: u64 = 1 << (state::BITS - 1);
/// Bits of an entry that is not free.
const IN_USE: u64 = state::ACTIVE | state::PERSISTENT | WRITING;

const _: () = assert!(REQUESTS.is_power_of_two() && WRITING > state::TAGGED);

/// The entries of a handle.
fn row(handle: u64) -> impl Iterator<Item = *mut FollowedRequest> {
    // Handles are numbers in blocks, or addresses: what tells them apart may be in any bits. Fibonacci hashing spreads all of them.
    let start = (handle.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32;
    (0..ROW).filter_map(move |step| {
        let index = start.wrapping_add(step) & (REQUESTS - 1);
        file::place::<FollowedRequest>(REQUESTS_REGION, index).map(core::ptr::NonNull::as_ptr)
    })
}

fn word<'a>(entry: *mut FollowedRequest) -> &'a AtomicU64 {
    // SAFETY: an aligned word of an entry of the file, which is never unmapped.
    unsafe { AtomicU64::from_ptr(&raw mut (*entry).request.state) }
}

/// The entry's key and operation, if it is in use and is not being written.
fn read(entry: *mut FollowedRequest) -> Option<(FollowedRequest, u64)> {
    let before = word(entry).load(Ordering::Acquire);
    if before & IN_USE == 0 || before & WRITING != 0 {
        return None;
    }
    // SAFETY: an entry of the file. What another thread is changing meanwhile is not used: the state is compared.
    let copy = unsafe { entry.read_volatile() };
    if word(entry).load(Ordering::Acquire) == before { Some((copy, before)) } else { None }
}

/// Remembers an operation.
pub(super) fn keep(key: RequestKey, request: &Request) {
    // A persistent request of the same handle has been freed by somebody who was not seen.
    let stale = |entry: &*mut FollowedRequest| {
        read(*entry).is_some_and(|(known, flags)| is_same(&known.key, &key) && flags & state::ACTIVE == 0)
    };
    let free = |entry: &*mut FollowedRequest| word(*entry).load(Ordering::Relaxed) & IN_USE == 0;
    if row(key.handle).filter(stale).any(|entry| write(entry, key, request))
        || row(key.handle).filter(free).any(|entry| write(entry, key, request))
    {
        return;
    }
    // Several under one handle: of those that are left over, the call that has completed them was not seen.
    let same = row(key.handle).filter_map(|entry| read(entry).map(|(known, _)| (entry, known)));
    let oldest = same.filter(|(_, known)| is_same(&known.key, &key)).min_by_key(|(_, known)| known.request.posted_ns);
    if !oldest.is_some_and(|(entry, _)| write(entry, key, request)) {
        process::count_loss(Loss::RequestTableFull);
    }
}

fn is_same(one: &RequestKey, other: &RequestKey) -> bool {
    one.handle == other.handle && one.kind == other.kind
}

/// Whether the entry could be had.
fn write(entry: *mut FollowedRequest, key: RequestKey, request: &Request) -> bool {
    let word = word(entry);
    let before = word.load(Ordering::Relaxed);
    if before & WRITING != 0
        || word.compare_exchange(before, before | WRITING, Ordering::AcqRel, Ordering::Relaxed).is_err()
    {
        return false;
    }
    let writing = Request { state: before | WRITING, ..*request };
    // SAFETY: an entry of the file that is ours while it says so.
    unsafe { entry.write(FollowedRequest { key, request: writing }) };
    word.store(request.state, Ordering::Release);
    true
}

/// The entry of the handle's operation that was active at `started_ns`.
///
/// There may be two: another thread has got the handle again before the call that completes the first one has returned.
fn find(kind: u32, handle: u64, started_ns: u64) -> Option<(*mut FollowedRequest, Request, u64)> {
    let mut best: Option<(*mut FollowedRequest, Request, u64)> = None;
    for entry in row(handle) {
        let Some((known, flags)) = read(entry) else { continue };
        if known.key.handle != handle || known.key.kind != kind || flags & state::ACTIVE == 0 {
            continue;
        }
        let rank = |posted: u64| (posted <= started_ns, if posted <= started_ns { posted } else { u64::MAX - posted });
        if best.as_ref().is_none_or(|(_, other, _)| rank(known.request.posted_ns) > rank(other.posted_ns)) {
            best = Some((entry, known.request, flags));
        }
    }
    best
}

/// Takes an operation out, to account for it.
pub(super) fn take(kind: u32, handle: u64, started_ns: u64) -> Option<Request> {
    // Somebody else may be quicker, in programs that are in error.
    for _ in 0..ROW {
        let (entry, request, flags) = find(kind, handle, started_ns)?;
        let done = word(entry).compare_exchange(flags, flags & !state::ACTIVE, Ordering::AcqRel, Ordering::Relaxed);
        if done.is_ok() {
            return Some(request);
        }
    }
    None
}

/// The persistent operation of a handle, to be started.
pub(super) fn persistent(kind: u32, handle: u64) -> Option<Request> {
    let known = row(handle).filter_map(read);
    let mut known = known.filter(|(known, flags)| {
        known.key.handle == handle && known.key.kind == kind && flags & state::PERSISTENT != 0
    });
    known.next().map(|(known, _)| known.request)
}

/// A request is given up: a persistent one is none any more.
pub(super) fn remove(kind: u32, handle: u64) {
    for entry in row(handle) {
        let Some((known, flags)) = read(entry) else { continue };
        if known.key.handle == handle && known.key.kind == kind && flags & state::PERSISTENT != 0 {
            let _ = word(entry).compare_exchange(flags, flags & !IN_USE, Ordering::AcqRel, Ordering::Relaxed);
        }
    }
}
