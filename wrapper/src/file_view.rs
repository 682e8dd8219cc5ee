//! A file, mapped to be read: by whoever looks into something before the dynamic linker does.

use core::ffi::CStr;

use crate::system;

/// Larger files are not looked at, bytes.
const MOST: u64 = 1 << 32;

/// The file's content, for as long as this lives. A file that is cut short meanwhile would be the dynamic linker's own end.
pub(crate) struct View {
    start: *const u8,
    length: usize,
}

impl View {
    pub(crate) fn open(path: &CStr) -> Option<Self> {
        let file = system::open(path, libc::O_RDONLY | libc::O_NONBLOCK, 0).ok()?;
        let status = file.status().ok()?;
        if status.st_mode & libc::S_IFMT != libc::S_IFREG || !(1..MOST).contains(&(status.st_size as u64)) {
            return None;
        }
        let length = status.st_size as usize;
        file.map(length, libc::PROT_READ, libc::MAP_PRIVATE).ok().map(|start| Self { start, length })
    }

    fn all(&self) -> &[u8] {
        // SAFETY: the mapping, which lives as long as this.
        unsafe { core::slice::from_raw_parts(self.start, self.length) }
    }

    /// So many bytes from `offset` on.
    pub(crate) fn bytes(&self, offset: u64, length: usize) -> Option<&[u8]> {
        let start = offset as usize;
        self.all().get(start..start.checked_add(length)?)
    }

    /// The same, or as many as there are.
    pub(crate) fn at_most(&self, offset: u64, length: usize) -> Option<&[u8]> {
        let rest = self.all().get(offset as usize..)?;
        Some(rest.get(..length).unwrap_or(rest))
    }

    /// A little-endian number of so many bytes, eight at most.
    pub(crate) fn number(&self, offset: u64, bytes: usize) -> Option<u64> {
        let bytes = self.bytes(offset, bytes)?;
        Some(bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)))
    }
}

impl Drop for View {
    fn drop(&mut self) {
        // SAFETY: the mapping that `open` has made.
        unsafe { system::unmap(self.start.cast_mut(), self.length) };
    }
}
