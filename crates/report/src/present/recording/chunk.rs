//! The head of a chunk. All numbers are little-endian.

/// Begins every head, so that they are found again behind a damaged part; no UTF-8 contains its first byte.
pub(super) const MARKER: [u8; 4] = *b"\xf5MPR";
/// Bytes of a head.
pub(super) const HEAD: usize = 32;
/// Of those, the ones that its own checksum is of.
const CHECKED: usize = 28;

/// What a chunk holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChunkKind {
    Header,
    Frame,
    End,
    /// Of the frame before it.
    Sums,
    /// Of a later version: left out.
    Unknown(u32),
}

/// What comes behind the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) kind: ChunkKind,
    /// Bytes behind the head, compressed.
    pub(super) stored: u32,
    /// Bytes of the same, not compressed.
    pub(super) length: u32,
    /// Time since the beginning of observation, ns; of a frame.
    pub(super) at_ns: u64,
    /// CRC-32 of the bytes behind the head.
    pub(super) checksum: u32,
}

impl ChunkKind {
    fn number(self) -> u32 {
        match self {
            Self::Header => 1,
            Self::Frame => 2,
            Self::End => 3,
            Self::Sums => 4,
            Self::Unknown(number) => number,
        }
    }

    fn of(number: u32) -> Self {
        match number {
            1 => Self::Header,
            2 => Self::Frame,
            3 => Self::End,
            4 => Self::Sums,
            other => Self::Unknown(other),
        }
    }
}

impl Head {
    pub(super) fn bytes(self) -> [u8; HEAD] {
        let words = [self.kind.number(), self.stored, self.length];
        let mut bytes = Vec::with_capacity(HEAD);
        bytes.extend(MARKER);
        bytes.extend(words.into_iter().flat_map(u32::to_le_bytes));
        bytes.extend(self.at_ns.to_le_bytes());
        bytes.extend(self.checksum.to_le_bytes());
        bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
        bytes.try_into().unwrap_or([0; HEAD])
    }

    /// `None`: this is no head, or a damaged one.
    pub(super) fn of(bytes: &[u8; HEAD]) -> Option<Self> {
        let (checked, checksum) = bytes.split_first_chunk::<CHECKED>()?;
        if crc32fast::hash(checked) != u32::from_le_bytes(checksum.try_into().ok()?) {
            return None;
        }
        let rest = checked.strip_prefix(&MARKER)?;
        let word = |at: usize| Some(u32::from_le_bytes(*rest.get(at..)?.first_chunk()?));
        Some(Self {
            kind: ChunkKind::of(word(0)?),
            stored: word(4)?,
            length: word(8)?,
            at_ns: u64::from_le_bytes(*rest.get(12..)?.first_chunk()?),
            checksum: word(20)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_back_and_no_bit_of_it_may_change() {
        let head =
            Head { kind: ChunkKind::Frame, stored: 1000, length: 9000, at_ns: 12_000_000_123, checksum: 0xdead_beef };
        let bytes = head.bytes();
        assert_eq!(Head::of(&bytes), Some(head));
        for bit in 0..HEAD * 8 {
            let mut changed = bytes;
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Head::of(&changed), None, "bit {bit}");
        }
    }
}
