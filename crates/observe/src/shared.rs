//! A table mapped into this process: reading it is no system call, and what the kernel writes is seen at once.
#![expect(unsafe_code, reason = "shared memory that somebody else writes")]

use std::{
    io,
    marker::PhantomData,
    os::fd::BorrowedFd,
    ptr::{self, NonNull},
    sync::atomic::{AtomicU64, Ordering},
};

use bytemuck::Pod;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// An array of plain values in shared memory, all of whose fields are whole 64-bit words or pairs of 32-bit ones.
#[derive(Debug)]
pub struct SharedArray<T> {
    start: NonNull<AtomicU64>,
    length: usize,
    bytes: usize,
    element: PhantomData<T>,
}

// SAFETY: the memory is only accessed by atomic operations on its words.
unsafe impl<T> Send for SharedArray<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for SharedArray<T> {}

impl<T: Pod> SharedArray<T> {
    const WORDS: usize = size_of::<T>() / size_of::<u64>();

    /// Maps a BPF array of `length` values (made with `BPF_F_MMAPABLE`), to be read and written.
    pub fn map(table: BorrowedFd<'_>, length: usize) -> io::Result<Self> {
        const {
            assert!(size_of::<T>().is_multiple_of(size_of::<u64>()), "values are read and written by whole words");
        }
        let bytes = length.checked_mul(size_of::<T>()).filter(|&bytes| bytes > 0).ok_or(io::ErrorKind::InvalidInput)?;
        // SAFETY: a new mapping at an address of the kernel's choice; the kernel refuses more bytes than the map has.
        let start =
            unsafe { mmap(ptr::null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, table, 0)? };
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Self { start, length, bytes, element: PhantomData })
    }

    #[expect(clippy::len_without_is_empty, reason = "no table is empty")]
    pub fn len(&self) -> usize {
        self.length
    }

    /// The value at `index`, each word as it is at some moment during the call.
    pub fn read(&self, index: usize) -> Option<T> {
        if index >= self.length {
            return None;
        }
        let mut value = T::zeroed();
        for (word, bytes) in bytemuck::bytes_of_mut(&mut value).chunks_exact_mut(size_of::<u64>()).enumerate() {
            let now = self.word(index * Self::WORDS + word).load(Ordering::Acquire);
            bytes.copy_from_slice(&now.to_ne_bytes());
        }
        Some(value)
    }

    /// Replaces the value at `index`, its first word last.
    pub fn write(&self, index: usize, value: &T) {
        if index >= self.length {
            return;
        }
        for (word, bytes) in bytemuck::bytes_of(value).chunks_exact(size_of::<u64>()).enumerate().rev() {
            let new = bytes.try_into().map_or(0, u64::from_ne_bytes);
            self.word(index * Self::WORDS + word).store(new, Ordering::Release);
        }
    }

    /// Word `word` of the value at `index`.
    pub fn word_of(&self, index: usize, word: usize) -> Option<&AtomicU64> {
        (index < self.length && word < Self::WORDS).then(|| self.word(index * Self::WORDS + word))
    }

    fn word(&self, word: usize) -> &AtomicU64 {
        debug_assert!(word < self.length * Self::WORDS, "the callers check the index");
        // SAFETY: inside the mapping, which lives as long as `self`; aligned, because mappings begin at a page.
        unsafe { self.start.add(word).as_ref() }
    }
}

impl<T> Drop for SharedArray<T> {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `map`; no reference into it outlives `self`.
        if let Err(error) = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) } {
            tracing::warn!("cannot unmap a table: {error}");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs::File, os::fd::AsFd as _};

    use mpiprobe_common::FunctionStats;

    use super::*;

    fn file(length: u64) -> File {
        let file = tempfile::tempfile().unwrap();
        file.set_len(length).unwrap();
        file
    }

    /// Invariant TABLES-SHARED.
    #[test]
    fn words_written_are_read_back_in_their_value() {
        let file = file(3 * size_of::<FunctionStats>() as u64);
        let array = SharedArray::<FunctionStats>::map(file.as_fd(), 3).unwrap();
        array.word_of(1, 0).unwrap().store(7, Ordering::Relaxed);
        array.word_of(1, 4).unwrap().store(9, Ordering::Relaxed);
        let value = array.read(1).unwrap();
        assert_eq!((value.calls, value.histogram[0]), (7, 9));
        assert_eq!(array.read(0).unwrap().calls, 0);
    }

    #[test]
    fn nothing_outside_can_be_reached() {
        let file = file(size_of::<FunctionStats>() as u64);
        let array = SharedArray::<FunctionStats>::map(file.as_fd(), 1).unwrap();
        assert!(array.read(1).is_none());
        assert!(array.word_of(0, SharedArray::<FunctionStats>::WORDS).is_none());
        assert!(SharedArray::<FunctionStats>::map(file.as_fd(), usize::MAX).is_err());
        assert!(SharedArray::<FunctionStats>::map(file.as_fd(), 0).is_err());
    }
}
