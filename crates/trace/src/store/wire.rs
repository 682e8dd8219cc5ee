//! Numbers as bytes: the seven lower bits first, the highest bit says that there are more.

/// What is not as it must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed(pub(super) &'static str);

#[expect(clippy::cast_possible_truncation, reason = "the lower bits are what is wanted")]
pub(super) fn put(to: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        to.push(value as u8 | 0x80);
        value >>= 7;
    }
    to.push(value as u8);
}

/// Small differences in either direction are small numbers: 0, -1, 1, -2…
pub(super) const fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63).cast_unsigned()
}

pub(super) const fn unzigzag(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ -(value & 1).cast_signed()
}

/// Bytes that anybody may have written.
#[derive(Clone, Debug)]
pub(super) struct Input<'a>(pub(super) &'a [u8]);

impl<'a> Input<'a> {
    pub(super) fn byte(&mut self) -> Result<u8, Malformed> {
        let (&first, rest) = self.0.split_first().ok_or(Malformed("it ends too soon"))?;
        self.0 = rest;
        Ok(first)
    }

    #[inline]
    pub(super) fn number(&mut self) -> Result<u64, Malformed> {
        if let Some((&first, rest)) = self.0.split_first().filter(|&(&first, _)| first < 0x80) {
            self.0 = rest;
            return Ok(first.into());
        }
        self.long_number()
    }

    /// One of several bytes.
    #[inline]
    fn long_number(&mut self) -> Result<u64, Malformed> {
        const LAST: u64 = 0x8080_8080_8080_8080;
        let Some(bytes) = self.0.first_chunk() else { return self.longest_number() };
        let word = u64::from_le_bytes(*bytes);
        let last = !word & LAST;
        if last == 0 {
            return self.longest_number();
        }
        // All bits up to the one that says that there are no more. Then the sevens of them move together: two, four, eight at a time.
        let bits = word & (last ^ last.wrapping_sub(1)) & !LAST;
        let pairs = bits & 0x007f_007f_007f_007f | (bits & 0x7f00_7f00_7f00_7f00) >> 1;
        let fours = pairs & 0x0000_3fff_0000_3fff | (pairs & 0x3fff_0000_3fff_0000) >> 2;
        let length = last.trailing_zeros() / 8 + 1;
        self.0 = self.0.get(length as usize..).unwrap_or_default();
        Ok(fours & 0x0fff_ffff | (fours >> 32) << 28)
    }

    /// One of more than eight bytes, or at the end of a column.
    #[cold]
    fn longest_number(&mut self) -> Result<u64, Malformed> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let part = u64::from(byte & 0x7f);
            if shift == 63 && part > 1 {
                break;
            }
            value |= part << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Malformed("a number has more than 64 bits"))
    }

    #[inline]
    pub(super) fn signed(&mut self) -> Result<i64, Malformed> {
        self.number().map(unzigzag)
    }

    #[inline]
    pub(super) fn word(&mut self) -> Result<u32, Malformed> {
        u32::try_from(self.number()?).map_err(|_| Malformed("a number has more than 32 bits"))
    }

    pub(super) fn int(&mut self) -> Result<i32, Malformed> {
        i32::try_from(self.signed()?).map_err(|_| Malformed("a number has more than 32 bits"))
    }

    /// So many bytes.
    pub(super) fn take(&mut self, length: u64) -> Result<&'a [u8], Malformed> {
        let length = usize::try_from(length).map_err(|_| Malformed("it ends too soon"))?;
        let (taken, rest) = self.0.split_at_checked(length).ok_or(Malformed("it ends too soon"))?;
        self.0 = rest;
        Ok(taken)
    }

    /// A column: its length, and that many bytes.
    pub(super) fn column(&mut self) -> Result<Self, Malformed> {
        let length = self.number()?;
        self.take(length).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_are_read_as_they_were_written(wide: Vec<(u64, u8)>, signed: Vec<i64>) {
            // Of all lengths, in all places.
            let numbers: Vec<u64> = wide.into_iter().map(|(number, by)| number >> (by % 64)).collect();
            let mut bytes = Vec::new();
            for &number in &numbers {
                put(&mut bytes, number);
            }
            for &number in &signed {
                put(&mut bytes, zigzag(number));
            }
            let mut input = Input(&bytes);
            for number in numbers {
                prop_assert_eq!(input.number(), Ok(number));
            }
            for number in signed {
                prop_assert_eq!(input.signed(), Ok(number));
            }
            prop_assert!(input.number().is_err());
        }
    }

    #[test]
    fn what_is_too_long_is_refused() {
        assert!(Input(&[0xff; 10]).number().is_err());
        assert!(Input(&[0xff; 3]).number().is_err());
        assert_eq!(Input(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]).number(), Ok(u64::MAX));
    }
}
