//! Looking for a structure in a library's data by what it must look like.

use std::ops::Range;

use super::Target;

/// How much of a library's data is searched, in bytes. MPICH has 4 MB; what has more is not stripped.
const MAX_SEARCHED: u64 = 32 << 20;
/// Read at once; a multiple of 8.
const CHUNK: u64 = 1 << 20;

/// The first structure of `size` bytes, at a multiple of 8 in `ranges` (in addresses of the file), that `recognise` takes for
/// what is wanted. It gets the address in the process, and the bytes.
pub(super) fn find<T>(
    target: &Target<'_>,
    ranges: &[Range<u64>],
    size: u64,
    mut recognise: impl FnMut(u64, &[u8]) -> Option<T>,
) -> Option<T> {
    let mut left = MAX_SEARCHED;
    for range in ranges {
        let mut start = range.start.wrapping_add(target.bias).next_multiple_of(8);
        let end = range.end.wrapping_add(target.bias).min(start.saturating_add(left));
        left -= end.saturating_sub(start);
        while start.saturating_add(size) <= end {
            let length = CHUNK.saturating_add(size).min(end - start);
            let bytes = target.memory.bytes(start..start + length).unwrap_or_default();
            let width = usize::try_from(size).ok()?;
            let windows = (0usize..).step_by(8).map_while(|at| bytes.get(at..at.checked_add(width)?));
            let mut places = (start..).step_by(8).zip(windows);
            if let Some(found) = places.find_map(|(address, window)| recognise(address, window)) {
                return Some(found);
            }
            start = start.saturating_add(CHUNK);
        }
    }
    None
}
