//! The code of functions, as their file has it: without what debuggers and probes have put into memory.

use std::ops::Range;

use mpiprobe_discover::foreign::charged;

use super::module::Module;

/// The largest function that is read, in bytes; generated ones have some hundred thousand.
const MAX_FUNCTION: u64 = 1 << 20;

impl Module {
    /// The addresses of the function, or the part of one, that the instruction at `address` belongs to, as its rules for unwinding
    /// tell them.
    pub fn function_range(&self, address: u64) -> Option<Range<u64>> {
        self.call_frames()?.function(address)
    }

    /// The bytes of the file at these addresses; `None` if not all of them are there, or there are very many.
    pub fn code(&self, addresses: &Range<u64>) -> Option<Vec<u8>> {
        let length = addresses.end.checked_sub(addresses.start).filter(|&length| length <= MAX_FUNCTION)?;
        self.bytes_from(addresses.start, length).filter(|bytes| bytes.len() as u64 == length)
    }

    /// As many bytes of the file from `address` on as its segment has, and no more than `most`.
    pub fn bytes_from(&self, address: u64, most: u64) -> Option<Vec<u8>> {
        let image = self.image.as_ref()?;
        let (offset, available) = image.segments().offset_of(address)?;
        let bytes = charged(self.user, || image.bytes(offset, most.min(available)))?;
        image.is_unchanged().then_some(bytes)
    }
}
