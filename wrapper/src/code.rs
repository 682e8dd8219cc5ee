//! Where the process has code, kept beside the counts: return addresses mean something only together with what was mapped there,
//! which nobody can ask a process that has ended.
//!
//! Noted when counting begins, and once more at the end, when everything has been loaded.

use core::sync::atomic::Ordering;

use mpiprobe_common::file::CODE_REGION;

use crate::{file, header, message::SavedErrno, text::Text};

/// Longest line that is kept: addresses and a path.
const LINE: usize = 1200;

/// Copies the lines of `/proc/self/maps` about executable parts of files.
pub(crate) fn note() {
    let Some(used) = header::code() else { return };
    let _errno = SavedErrno::save();
    let mut line = Text::<LINE>::new();
    let mut length = 0;
    // SAFETY: reads into a local buffer, within its length; the descriptor is ours.
    unsafe {
        let maps = libc::open(c"/proc/self/maps".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        if maps < 0 {
            return;
        }
        let mut chunk = [0u8; 4096];
        while let Ok(read @ 1..) = usize::try_from(libc::read(maps, chunk.as_mut_ptr().cast(), chunk.len())) {
            for &byte in chunk.get(..read).unwrap_or_default() {
                line.push(&[byte]);
                if byte == b'\n' {
                    length += if is_code(line.as_bytes()) { keep(line.as_bytes(), length) } else { 0 };
                    line = Text::new();
                }
            }
        }
        libc::close(maps);
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
    let (Some(to), Some(_)) = (file::place::<u8>(CODE_REGION, at), file::place::<u8>(CODE_REGION, last)) else {
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
