//! A reader of DWARF that gives up in time.
//!
//! Sizes alone do not bound the work: a file of a megabyte can have ten thousand units that share one list of ten
//! thousand ranges, or inlined functions nested so deeply that a recursive parser runs out of stack. So every read is paid for
//! from a budget, and is refused where the parser has gone too deep.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use gimli::{Error, LittleEndian, ReaderOffsetId, Result};

/// Reads that remain, and where the stack began. Used by one thread at a time: the atomics only make it shareable.
#[derive(Debug)]
pub(super) struct Budget {
    left: AtomicU64,
    stack: AtomicUsize,
}

impl Budget {
    /// Stack that parsers may use below [`Self::enter`], in bytes: a quarter of the smallest thread's.
    const STACK: usize = 512 << 10;

    pub(super) fn new(reads: u64) -> Self {
        Self { left: AtomicU64::new(reads), stack: AtomicUsize::new(0) }
    }

    /// To be called where the parser is called.
    pub(super) fn enter(&self) {
        self.stack.store(stack_pointer(), Relaxed);
    }

    /// Grants as much for what comes next.
    pub(super) fn refill(&self, reads: u64) {
        self.left.store(reads, Relaxed);
    }

    #[cfg(test)]
    pub(super) fn left(&self) -> u64 {
        self.left.load(Relaxed)
    }

    #[inline]
    fn pay(&self, reads: u64) -> Result<()> {
        let left = self.left.load(Relaxed);
        if left < reads || self.stack.load(Relaxed).abs_diff(stack_pointer()) > Self::STACK {
            self.left.store(0, Relaxed);
            return Err(Error::Io);
        }
        self.left.store(left - reads, Relaxed);
        Ok(())
    }
}

/// About where the stack ends now.
#[inline]
fn stack_pointer() -> usize {
    let marker = 0_u8;
    std::ptr::from_ref(std::hint::black_box(&marker)).addr()
}

struct Content {
    bytes: Vec<u8>,
    budget: Arc<Budget>,
}

/// A part of a section.
#[derive(Clone)]
pub(super) struct Slice {
    content: Arc<Content>,
    start: usize,
    end: usize,
}

impl Slice {
    pub(super) fn new(bytes: Vec<u8>, budget: Arc<Budget>) -> Self {
        let end = bytes.len();
        Self { content: Arc::new(Content { bytes, budget }), start: 0, end }
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        self.content.bytes.get(self.start..self.end).unwrap_or_default()
    }

    fn end_of_input(&self) -> Error {
        Error::UnexpectedEof(self.offset_id())
    }

    fn offset_id(&self) -> ReaderOffsetId {
        ReaderOffsetId(self.content.bytes.as_ptr().addr().wrapping_add(self.start) as u64)
    }
}

impl fmt::Debug for Slice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Slice({}..{})", self.start, self.end)
    }
}

impl gimli::Reader for Slice {
    type Endian = LittleEndian;
    type Offset = usize;

    fn endian(&self) -> LittleEndian {
        LittleEndian
    }

    #[inline]
    fn len(&self) -> usize {
        self.end - self.start
    }

    fn empty(&mut self) {
        self.end = self.start;
    }

    fn truncate(&mut self, len: usize) -> Result<()> {
        if len > self.len() {
            return Err(self.end_of_input());
        }
        self.end = self.start + len;
        Ok(())
    }

    fn offset_from(&self, base: &Self) -> usize {
        self.start.saturating_sub(base.start)
    }

    fn offset_id(&self) -> ReaderOffsetId {
        Slice::offset_id(self)
    }

    fn lookup_offset_id(&self, id: ReaderOffsetId) -> Option<usize> {
        let offset = usize::try_from(id.0.checked_sub(Slice::offset_id(self).0)?).ok()?;
        (offset <= self.len()).then_some(offset)
    }

    fn find(&self, byte: u8) -> Result<usize> {
        let found = memchr::memchr(byte, self.bytes());
        // A search is quick, but a string without an end could be searched a million times.
        self.content.budget.pay(1 + found.unwrap_or(self.len()) as u64 / 32)?;
        found.ok_or_else(|| self.end_of_input())
    }

    #[inline]
    fn skip(&mut self, len: usize) -> Result<()> {
        self.content.budget.pay(1)?;
        if len > self.len() {
            return Err(self.end_of_input());
        }
        self.start += len;
        Ok(())
    }

    fn split(&mut self, len: usize) -> Result<Self> {
        let mut head = self.clone();
        self.skip(len)?;
        head.end = self.start;
        Ok(head)
    }

    fn to_slice(&self) -> Result<Cow<'_, [u8]>> {
        self.content.budget.pay(1 + self.len() as u64 / 32)?;
        Ok(Cow::Borrowed(self.bytes()))
    }

    fn to_string(&self) -> Result<Cow<'_, str>> {
        self.content.budget.pay(1 + self.len() as u64 / 32)?;
        std::str::from_utf8(self.bytes()).map(Cow::Borrowed).map_err(|_| Error::BadUtf8)
    }

    fn to_string_lossy(&self) -> Result<Cow<'_, str>> {
        self.content.budget.pay(1 + self.len() as u64 / 8)?;
        Ok(String::from_utf8_lossy(self.bytes()))
    }

    #[inline]
    fn read_slice(&mut self, buffer: &mut [u8]) -> Result<()> {
        self.content.budget.pay(1)?;
        let end = self.start.wrapping_add(buffer.len());
        match self.content.bytes.get(self.start..end) {
            Some(bytes) if end <= self.end => {
                buffer.copy_from_slice(bytes);
                self.start = end;
                Ok(())
            }
            _ => Err(self.end_of_input()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gimli::Reader as _;

    fn slice(bytes: &[u8], reads: u64) -> (Slice, Arc<Budget>) {
        let budget = Arc::new(Budget::new(reads));
        budget.enter();
        (Slice::new(bytes.to_vec(), Arc::clone(&budget)), budget)
    }

    #[test]
    fn reads_are_within_bounds_and_paid_for() {
        let (mut reader, budget) = slice(b"\x01\x02\x03\x04abc\0rest", 4);
        assert_eq!(reader.read_u32().unwrap(), 0x0403_0201);
        assert_eq!(budget.left(), 3);
        let mut text = reader.read_null_terminated_slice().unwrap();
        assert_eq!((text.len(), reader.len(), budget.left()), (3, 4, 0));
        assert!(text.read_u8().is_err());
        assert!(reader.read_u8().is_err());
    }

    #[test]
    fn nothing_beyond_a_part_is_read() {
        let (mut reader, _) = slice(b"abcdef", 100);
        let mut head = reader.split(2).unwrap();
        assert!(head.read_u32().is_err());
        assert_eq!(head.read_u16().unwrap(), 0x6261);
        assert!(head.read_u8().is_err());
        assert!(reader.skip(5).is_err());
        assert_eq!(reader.read_u32().unwrap(), 0x6665_6463);
    }

    #[test]
    fn recursion_ends_before_the_stack_does() {
        fn descend(mut reader: Slice, depth: u32) -> u32 {
            let padding = std::hint::black_box([0_u8; 256]);
            if reader.skip(0).is_err() { depth } else { descend(reader, depth + 1) + u32::from(padding[0]) }
        }
        let (reader, _) = slice(b"", u64::MAX);
        let depth = descend(reader, 0);
        assert!((100..5000).contains(&depth), "{depth}");
    }
}
