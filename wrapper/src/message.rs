//! What the user is told: one line on standard error, from one process of the node.

use crate::{environment::is_spokesman, imports, system, text::Text};

/// Says what is missing. Without buffers or locks.
pub(crate) fn say(what: &[u8], why: &[u8]) {
    if !is_spokesman() {
        return;
    }
    let mut line = Text::<1024>::new().with(b"mpiprobe: ").with(what);
    if !why.is_empty() {
        line = line.with(b": ").with(why);
    }
    system::print(line.with(b"\n").as_bytes());
}

/// The reason that a system call gave.
pub(crate) fn reason(error: i32) -> &'static [u8] {
    match error {
        libc::ENOSPC => b"no space left on the device",
        libc::EDQUOT => b"the quota is used up",
        libc::EACCES | libc::EPERM => b"not permitted",
        libc::EROFS => b"it is read-only",
        libc::ENOENT => b"it does not exist",
        libc::ENOTDIR => b"it is no directory",
        libc::ENOMEM => b"no memory left",
        libc::EMFILE | libc::ENFILE => b"too many open files",
        libc::EEXIST => b"it exists already",
        libc::EFBIG => b"larger than files may be here",
        libc::ENAMETOOLONG => b"the name is too long",
        libc::EIO => b"input/output error",
        _ => b"the system refused",
    }
}

/// `errno`, which whoever is interrupted by us has to find as it was: for what the dynamic linker or MPI does on our behalf.
pub(crate) struct SavedErrno(i32);

impl SavedErrno {
    pub(crate) fn save() -> Self {
        let place = imports::errno();
        // SAFETY: the thread's own variable.
        Self(if place.is_null() { 0 } else { unsafe { *place } })
    }
}

impl Drop for SavedErrno {
    fn drop(&mut self) {
        let place = imports::errno();
        if !place.is_null() {
            // SAFETY: the thread's own variable.
            unsafe { *place = self.0 }
        }
    }
}
