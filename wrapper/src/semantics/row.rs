//! Small tables without locks: rows of places where what has a key may be.

/// Places of a row.
const ROW: usize = 16;

/// The places of a key in a table of so many, a power of two.
#[inline]
pub(super) fn row(key: u64, table: usize) -> impl Iterator<Item = usize> {
    // Handles are numbers in blocks, or addresses: what tells them apart may be in any bits. Fibonacci hashing spreads all of them.
    let start = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize;
    (0..ROW).map(move |step| start.wrapping_add(step) & (table - 1))
}
