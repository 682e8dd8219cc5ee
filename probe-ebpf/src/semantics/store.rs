//! The operations that are under way, by handle.

use mpiprobe_common::{
    Loss, Request, RequestKey, ThreadState,
    request::{key_kind, state},
};

use crate::{
    atomic::{barrier, compare_exchange},
    maps::REQUESTS,
    statistics::count_loss,
};

/// Makes `request` the latest operation of a handle.
#[inline(never)]
pub fn keep(key: &RequestKey, request: &Request) {
    let Some(known) = REQUESTS.get_ptr_mut(key) else {
        if REQUESTS.insert(key, request, 0).is_err() {
            count_loss(key.process, Loss::RequestTableFull);
        }
        return;
    };
    make_room(key, known);
    // SAFETY: map value pointer; since the earlier operation is not active, only the thread that has got the handle writes.
    unsafe {
        let state = request.state;
        *known = Request { state: 0, ..*request };
        barrier();
        (&raw mut (*known).state).write_volatile(state);
    }
}

/// Puts an operation aside whose completing call has not returned yet although its handle is in use again.
#[inline(always)]
fn make_room(key: &RequestKey, known: *mut Request) {
    // SAFETY: map value pointer.
    let earlier = unsafe { *known };
    if earlier.state & state::ACTIVE == 0 {
        return;
    }
    let mut aside = RequestKey { kind: key_kind::DISPLACED, ..*key };
    if posted(&aside, u64::MAX) != 0 {
        aside.kind = key_kind::DISPLACED_TOO;
        if posted(&aside, u64::MAX) != 0 {
            count_loss(key.process, Loss::RequestsNotFollowed);
        }
    }
    if REQUESTS.insert(&aside, &earlier, 0).is_err() {
        count_loss(key.process, Loss::RequestTableFull);
    }
    // SAFETY: map value pointer to an aligned word.
    let found = unsafe { compare_exchange(&raw mut (*known).state, earlier.state, 0) };
    if found != earlier.state {
        // The other thread was quicker.
        let _ = REQUESTS.remove(&aside);
    }
}

/// Takes an operation out of a handle, to account for it; `false` if there is none that is active since before `started_ns`.
#[inline(always)]
pub fn take(key: &RequestKey, started_ns: u64, request: &mut Request) -> bool {
    if claim(key, started_ns, request) {
        return true;
    }
    // A persistent request that is not active: what is active under its handle is another thread's.
    if request.posted_ns <= started_ns && request.state & (state::PERSISTENT | state::ACTIVE) == state::PERSISTENT {
        return false;
    }
    let displaced = RequestKey { kind: key_kind::DISPLACED, ..*key };
    let too = RequestKey { kind: key_kind::DISPLACED_TOO, ..*key };
    // The latest that was there when the call began is its own.
    if posted(&too, started_ns) > posted(&displaced, started_ns) {
        claim(&too, started_ns, request)
    } else {
        claim(&displaced, started_ns, request)
    }
}

/// Where the persistent operation is that the thread's open call gives up.
#[inline(always)]
pub fn given_up(thread: &ThreadState) -> RequestKey {
    RequestKey { process: thread.process, kind: key_kind::GIVEN_UP, handle: thread.id }
}

/// The thread's call is about to give up a handle. A persistent operation that is not active is kept as the thread's own: as soon as the
/// library has done so, the handle may be another thread's.
#[inline(always)]
pub fn give_up(thread: &ThreadState, handle: u64) {
    let key = RequestKey { process: thread.process, kind: key_kind::REQUEST, handle };
    let Some(known) = REQUESTS.get_ptr_mut(&key) else { return };
    // SAFETY: map value pointer; while the handle is this call's, nobody else writes.
    unsafe {
        if (*known).state & (state::PERSISTENT | state::ACTIVE) == state::PERSISTENT
            && REQUESTS.insert(&given_up(thread), &*known, 0).is_ok()
        {
            (&raw mut (*known).state).write_volatile(0);
        }
    }
}

/// When the active operation of a key was posted, if not after `latest_ns`; else 0.
#[inline(never)]
fn posted(key: &RequestKey, latest_ns: u64) -> u64 {
    let Some(known) = REQUESTS.get_ptr(key) else { return 0 };
    // SAFETY: map value pointer.
    let (state, posted_ns) = unsafe { ((*known).state, (*known).posted_ns) };
    if state & state::ACTIVE != 0 && posted_ns <= latest_ns { posted_ns } else { 0 }
}

#[inline(always)]
fn claim(key: &RequestKey, started_ns: u64, request: &mut Request) -> bool {
    let Some(known) = REQUESTS.get_ptr_mut(key) else { return false };
    // SAFETY: map value pointers.
    unsafe {
        *request = *known;
        barrier();
        let active = request.state & state::ACTIVE != 0 && request.posted_ns <= started_ns;
        active && compare_exchange(&raw mut (*known).state, request.state, request.state & !state::ACTIVE) == request.state
    }
}
