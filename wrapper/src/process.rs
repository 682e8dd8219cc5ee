//! The process: when it counts, from its first MPI call to its end.

use core::{
    ptr::NonNull,
    sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
};

use mpiprobe_common::{Loss, ProcessCounters, file::COUNTERS_REGION};

use crate::{
    clock, code, ends, entry::Entry, file, guard, header, imports, left, loading, message::SavedErrno, next, past,
    phases, semantics, system, thread, visibility,
};

/// What has become of the file.
static STATE: AtomicU32 = AtomicU32::new(NEW);
const NEW: u32 = 0;
const STARTING: u32 = 1;
const COUNTING: u32 = 2;
/// There is no file, and never will be, or nothing to make it with.
const OFF: u32 = 3;

/// Whether calls are counted; the first one makes the file.
pub(crate) fn is_counting() -> bool {
    match STATE.compare_exchange(NEW, STARTING, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => {
            let made = !is_privileged() && file::create();
            if made {
                header::write();
                thread::start();
            } else {
                switch_off();
            }
            STATE.store(if made { COUNTING } else { OFF }, Ordering::Release);
            made
        }
        Err(STARTING) => {
            // Another thread is making the file, which takes some tens of microseconds.
            while STATE.load(Ordering::Acquire) == STARTING {
                system::let_others_run();
            }
            STATE.load(Ordering::Acquire) == COUNTING
        }
        Err(state) => state == COUNTING,
    }
}

/// Whether the program has rights that its user has not: then its environment is not to be believed.
fn is_privileged() -> bool {
    imports::is_secure().unwrap_or_else(system::has_others_rights)
}

/// Whether calls of a function have to be seen: to be counted, or because others mean something by them.
pub(crate) fn looks_at(function: u32) -> bool {
    start();
    STATE.load(Ordering::Acquire) != OFF && (header::is_selected(function) || semantics::needs(function))
}

/// From now on calls go straight to MPI.
fn switch_off() {
    for entry in (0..).map_while(Entry::new) {
        if let Some(known) = next::known(entry) {
            entry.bypass(known);
        }
    }
}

/// A function is called that was not before: what has been loaded since is noted, before the program may confine itself.
pub(crate) fn settle() {
    let _errno = SavedErrno::save();
    guard::start();
    code::note_new();
}

pub(crate) fn counters() -> Option<NonNull<ProcessCounters>> {
    file::place(COUNTERS_REGION, 0)
}

pub(crate) fn count_loss(loss: Loss) {
    let Some(counters) = counters() else { return };
    // SAFETY: a word of the mapped counters; the index is below the array's length.
    unsafe {
        let counter = (&raw mut (*counters.as_ptr()).losses).cast::<u64>().add(loss as usize);
        AtomicU64::from_ptr(counter).fetch_add(1, Ordering::Relaxed);
    }
}

/// The number of an entry of a table that nobody has, of so many.
pub(crate) fn take_number(used: Option<&AtomicU64>, capacity: u32) -> Option<u32> {
    let used = used?;
    // Looked at first, so that the counter cannot wrap round however often a full table is asked.
    if used.load(Ordering::Relaxed) >= u64::from(capacity) {
        return None;
    }
    let taken = used.fetch_add(1, Ordering::Relaxed);
    if taken < u64::from(capacity) { Some(taken as u32) } else { None }
}

pub(crate) fn raise_used_threads(used: u32) {
    if let Some(threads) = header::threads() {
        threads.fetch_max(used as u64, Ordering::Release);
    }
}

/// The library has been loaded.
unsafe extern "C" fn loaded() {
    start();
}

/// What is done once, before anything is counted. Those who call MPI when they are loaded (C++ libraries' static objects) may be
/// loaded first.
fn start() {
    static IS_STARTED: AtomicBool = AtomicBool::new(false);
    if IS_STARTED.load(Ordering::Acquire) || IS_STARTED.swap(true, Ordering::AcqRel) {
        return;
    }
    if !imports::are_there() {
        STATE.store(OFF, Ordering::Release);
    }
    visibility::start();
    loading::start();
    left::start();
    ends::start();
    clock::start();
    phases::start();
    header::choose_functions();
    imports::at_fork(forked);
}

/// A forked child is not the rank: it stops counting, or it begins anew if nothing was counted yet.
unsafe extern "C" fn forked() {
    thread::forget();
    phases::forget();
    past::forget();
    if STATE.load(Ordering::Acquire) == NEW {
        return;
    }
    file::forget();
    STATE.store(OFF, Ordering::Release);
    switch_off();
}

/// The program ends by `exit`, or by returning from `main`.
unsafe extern "C" fn exiting() {
    header::note_end();
    if STATE.load(Ordering::Acquire) == NEW {
        past::note_end();
    }
}

// SAFETY: the loader calls what is in these sections, with arguments that are not looked at.
#[used]
#[unsafe(link_section = ".init_array")]
static LOADED: unsafe extern "C" fn() = loaded;
#[used]
#[unsafe(link_section = ".fini_array")]
static EXITING: unsafe extern "C" fn() = exiting;
