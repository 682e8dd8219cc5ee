//! Text of limited length, without allocation.

use core::ffi::CStr;

/// At most `N - 1` bytes; always ends in a NUL. What does not fit is left out.
pub(crate) struct Text<const N: usize> {
    bytes: [u8; N],
    length: usize,
}

impl<const N: usize> Text<N> {
    pub(crate) const fn new() -> Self {
        Self { bytes: [0; N], length: 0 }
    }

    #[must_use]
    pub(crate) fn with(mut self, part: &[u8]) -> Self {
        self.push(part);
        self
    }

    pub(crate) fn push(&mut self, part: &[u8]) {
        // The last byte stays zero.
        let free = self.bytes.get_mut(self.length..N.saturating_sub(1)).unwrap_or_default();
        for (to, from) in free.iter_mut().zip(part) {
            *to = *from;
        }
        self.length += if part.len() < free.len() { part.len() } else { free.len() };
    }

    /// Decimal.
    #[must_use]
    pub(crate) fn with_number(mut self, number: u64) -> Self {
        let mut digits = [0u8; 20];
        let mut used = 0;
        let mut rest = number;
        for digit in digits.iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
            used += 1;
            if rest == 0 {
                break;
            }
        }
        self.push(digits.get(digits.len() - used..).unwrap_or_default());
        self
    }

    /// Whether everything has fitted, so far as can be told: the room is not used up.
    pub(crate) fn is_whole(&self) -> bool {
        self.length + 1 < N
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    pub(crate) fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or_default()
    }
}

/// Copies as much of a text as fits, with a final NUL.
pub(crate) fn fill(to: &mut [u8], text: &[u8]) {
    let room = to.len().saturating_sub(1);
    for (to, from) in to.iter_mut().zip(text.iter().take(room)) {
        *to = *from;
    }
}

/// A decimal number that is all of the text.
pub(crate) fn number(text: &[u8]) -> Option<u32> {
    if text.is_empty() || text.len() > 9 {
        return None;
    }
    let mut value = 0u32;
    for byte in text {
        if !byte.is_ascii_digit() {
            return None;
        }
        value = value.wrapping_mul(10).wrapping_add((byte - b'0') as u32);
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_at_their_end() {
        let text = Text::<8>::new().with(b"abc").with_number(0).with(b"-").with_number(1234);
        assert_eq!(text.as_bytes(), b"abc0-12");
        assert!(!text.is_whole());
        assert_eq!(Text::<32>::new().with_number(u64::MAX).as_bytes(), b"18446744073709551615");
        let mut room = [1; 4];
        fill(&mut room, b"abcdef");
        assert_eq!(&room, b"abc\x01");
    }

    #[test]
    fn numbers_are_digits_only() {
        assert_eq!(number(b"42"), Some(42));
        for wrong in [&b""[..], b"-1", b"1x", b"1234567890"] {
            assert_eq!(number(wrong), None);
        }
    }
}
