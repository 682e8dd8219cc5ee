//! Memory that is needed for a while only.
#![expect(unsafe_code, reason = "the allocator is told by functions of the C library")]

/// Above this, bytes, what is taken is given back to the system as soon as it is free.
const LARGE: libc::c_int = 128 << 10;

/// Gives what is free back to the system: reading the kernel's types, or a profile of many ranks, takes much more than is kept.
pub fn give_back_memory() {
    // SAFETY: takes a number, and changes nothing that is in use (malloc_trim(3)).
    unsafe { libc::malloc_trim(0) };
}

/// For a process that goes on for months: one heap for all threads, of which all that is free can be given back, and nothing large in it.
pub fn keep_little_memory() {
    // SAFETY: both take numbers, and concern what is taken later (mallopt(3)).
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE);
    }
}
