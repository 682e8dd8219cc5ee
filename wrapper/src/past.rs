//! Programs that find MPI's functions past this library, one by one in a library that they open themselves: nothing of that can be counted,
//! but that there is something is told, by a number in a file that all processes of a run share.
//!
//! The file is opened when the program opens MPI, and written to at its end: by then the program may have confined itself.

use core::{
    ffi::c_int,
    mem::transmute,
    ptr,
    sync::atomic::{AtomicPtr, AtomicU64, Ordering},
};

use mpiprobe_common::file::{PAST_BYTES, PAST_NAME};

use crate::{
    environment,
    file::{DIRECTORY_VARIABLE, PATH},
    loading, system,
    text::Text,
};

/// The shared file in memory; null: there is none.
static NUMBER: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());

/// The program is about to open MPI in a way that is not seen through.
pub(crate) fn prepare() {
    let Some(directory) = environment::get(DIRECTORY_VARIABLE) else { return };
    if !NUMBER.load(Ordering::Acquire).is_null() {
        return;
    }
    let path = Text::<PATH>::new().with(directory.to_bytes()).with(b"/").with(PAST_NAME.as_bytes());
    if !path.is_whole() {
        return;
    }
    let file = system::open(path.as_c_str(), libc::O_RDWR | libc::O_NOFOLLOW, 0);
    let mapped = file.and_then(|file| file.map(PAST_BYTES, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED));
    if let Ok(mapped) = mapped {
        NUMBER.store(mapped, Ordering::Release);
    }
}

/// This is a child that was forked, which is not the rank.
pub(crate) fn forget() {
    NUMBER.store(ptr::null_mut(), Ordering::Release);
}

/// A program ends of which no call was counted.
pub(crate) fn note_end() {
    let number = NUMBER.load(Ordering::Acquire);
    if number.is_null() {
        return;
    }
    let Some(function) = loading::in_loaded(c"PMPI_Initialized") else { return };
    let mut is_initialised: c_int = 0;
    // SAFETY: the function has this type, and may be called at any time.
    let answer = unsafe {
        let ask: unsafe extern "C" fn(*mut c_int) -> c_int = transmute(function);
        ask(&raw mut is_initialised)
    };
    // Where the file has been cut short meanwhile, there is nothing to be written to.
    // SAFETY: the mapping, which stays.
    if answer == 0 && is_initialised != 0 && unsafe { system::populate(number, PAST_BYTES) } != Err(libc::EFAULT) {
        // SAFETY: an aligned word of the mapping.
        unsafe { AtomicU64::from_ptr(number.cast()) }.fetch_add(1, Ordering::AcqRel);
    }
}
