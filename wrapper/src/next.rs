//! The next definition of each function: that of another tool, or MPI's own.

use core::{
    ffi::{CStr, c_void},
    ptr,
    sync::atomic::{AtomicPtr, Ordering},
};

use mpiprobe_common::CALIBRATION_FUNCTION;

use crate::{
    calibrate,
    entry::{ENTRIES, Entry, FUNCTIONS},
    imports, loading,
    message::SavedErrno,
    process, system,
    text::Text,
};

/// By entry point; the last one is the calibration's.
static NEXT: [AtomicPtr<c_void>; ENTRIES + 1] = [const { AtomicPtr::new(ptr::null_mut()) }; ENTRIES + 1];

/// What is known when a function is called for the first time.
pub(crate) enum Resolved {
    /// Calls go here, and are counted.
    Counted(*mut c_void),
    /// The user does not want them to be counted: they go here by themselves from now on.
    NotCounted(*mut c_void),
}

/// The next definition, if it has been found already.
#[inline]
pub(crate) fn known(entry: Entry) -> Option<*mut c_void> {
    let known = NEXT.get(entry.index())?.load(Ordering::Acquire);
    if known.is_null() { None } else { Some(known) }
}

/// Finds it.
#[cold]
pub(crate) fn find(entry: Entry) -> Resolved {
    if entry.function() == CALIBRATION_FUNCTION {
        let target = calibrate::target();
        if let Some(next) = NEXT.last() {
            next.store(target, Ordering::Release);
        }
        return Resolved::Counted(target);
    }
    let _errno = SavedErrno::save();
    let Some(found) = look_up(entry.name()) else { fail(entry.name()) };
    if !process::looks_at(entry.function()) {
        entry.bypass(found);
        return Resolved::NotCounted(found);
    }
    if let Some(next) = NEXT.get(entry.index()) {
        next.store(found, Ordering::Release);
    }
    Resolved::Counted(found)
}

/// The definition that would be found if this library were not there. Some libraries have functions under one name only.
pub(crate) fn look_up(name: &CStr) -> Option<*mut c_void> {
    let found = after_this(name).or_else(|| match name.to_bytes_with_nul().strip_prefix(b"P") {
        Some(other) => after_this(CStr::from_bytes_with_nul(other).ok()?),
        None => after_this(Text::<64>::new().with(b"P").with(name.to_bytes()).as_c_str()),
    });
    imports::forget_error();
    found
}

/// The definition of a name in the objects after this library, or in an MPI library that was loaded later.
pub(crate) fn after_this(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: a handle that stands for what comes after this library.
    let found = unsafe { imports::dlsym(libc::RTLD_NEXT, name) };
    if found.is_null() { loading::in_loaded(name) } else { Some(found) }
}

/// How many functions there are besides this library's.
pub(crate) fn count_functions() -> u64 {
    let functions = (0..FUNCTIONS as u32).filter_map(Entry::new);
    functions.filter(|entry| look_up(entry.name()).is_some()).count() as u64
}

/// What the dynamic linker does where a function is missing.
fn fail(name: &CStr) -> ! {
    let line = Text::<256>::new().with(b"mpiprobe: symbol lookup error: undefined symbol: ").with(name.to_bytes());
    system::print(line.with(b"\n").as_bytes());
    system::exit(127)
}
