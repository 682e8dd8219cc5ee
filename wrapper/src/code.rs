//! Where the process has code, kept beside the counts: return addresses mean something only together with what was mapped there,
//! which nobody can ask a process that has ended.
//!
//! Noted when counting begins, and again when more has been loaded: when new functions are called, and at the end. Where nothing has been
//! loaded since, nothing is opened: the program may have confined itself, and what it has not reckoned with would be its end.

use core::{
    ffi::{c_int, c_void},
    sync::atomic::{AtomicU64, Ordering},
};

use mpiprobe_common::file::CODE_REGION;

use crate::{file, header, imports, layers, system, text::Text};

/// Longest line that is kept: addresses and a path.
const LINE: usize = 1200;

/// How many objects had been loaded, ever, when they were noted last.
static LOADED: AtomicU64 = AtomicU64::new(0);

/// Notes what there is if more has been loaded since the last time.
pub(crate) fn note_new() {
    let mut loaded = 0u64;
    // The callback gets the place of the number.
    imports::each_object(count, (&raw mut loaded).cast());
    if loaded != LOADED.swap(loaded, Ordering::Relaxed) {
        layers::note();
        note();
    }
}

unsafe extern "C" fn count(object: *mut libc::dl_phdr_info, size: usize, loaded: *mut c_void) -> c_int {
    // SAFETY: by contract of `dl_iterate_phdr`, which says how much of the structure there is, and of the caller.
    unsafe {
        if size >= core::mem::offset_of!(libc::dl_phdr_info, dlpi_subs) {
            *loaded.cast::<u64>() = (*object).dlpi_adds;
        }
    }
    1
}

/// Copies the lines of `/proc/self/maps` about executable parts of files.
fn note() {
    let Some(used) = header::code() else { return };
    let mut line = Text::<LINE>::new();
    let mut length = 0;
    let Ok(maps) = system::open(c"/proc/self/maps", libc::O_RDONLY, 0) else { return };
    let mut chunk = [0u8; 4096];
    while let Ok(read @ 1..) = maps.read(&mut chunk) {
        for &byte in chunk.get(..read).unwrap_or_default() {
            line.push(&[byte]);
            if byte == b'\n' {
                length += if is_code(line.as_bytes()) { keep(line.as_bytes(), length) } else { 0 };
                line = Text::new();
            }
        }
    }
    used.store(length.into(), Ordering::Release);
}

/// `start-end r-xp offset device inode path`. A line that was too long has no end.
fn is_code(line: &[u8]) -> bool {
    let permissions = line.split(|&byte| byte == b' ').nth(1).unwrap_or_default();
    permissions.get(2) == Some(&b'x') && line.contains(&b'/') && line.ends_with(b"\n")
}

/// Adds a line to the table; gives the bytes that this took, 0 if there is no room.
fn keep(line: &[u8], at: u32) -> u32 {
    let length = line.len() as u32;
    let Some(last) = at.checked_add(length - 1) else { return 0 };
    // A line is shorter than the parts that room is asked for in.
    let (Some(to), Some(_)) = (file::place(CODE_REGION, at), file::place(CODE_REGION, last)) else {
        return 0;
    };
    // SAFETY: from its first to its last byte the line is within the table, and there is room for it.
    unsafe { core::ptr::copy_nonoverlapping(line.as_ptr(), to.as_ptr(), line.len()) };
    length
}

#[cfg(test)]
mod tests {
    use super::is_code;

    #[test]
    fn only_code_of_files_is_kept() {
        assert!(is_code(b"1000-2000 r-xp 00001000 08:01 12   /usr/bin/ring\n"));
        assert!(!is_code(b"1000-2000 r--p 00001000 08:01 12   /usr/bin/ring\n"));
        assert!(!is_code(b"1000-2000 r-xp 00000000 00:00 0   [vdso]\n"));
        assert!(!is_code(b"1000-2000 r-xp 00001000 08:01 12   /cut/sho"));
        assert!(!is_code(b"\n"));
    }
}
