//! Chunks: a head of 64 bytes with checksums, and what it describes.

use super::wire::Malformed;

/// Bytes of the head of a file.
pub(super) const FILE_HEAD: usize = 16;
/// Bytes of the head of a chunk.
pub(super) const HEAD: usize = 64;
const MAGIC: [u8; 4] = *b"MPTC";
/// What no chunk is longer than, whatever its head says, bytes.
pub(super) const LONGEST: u32 = 64 << 20;
/// Most events that a chunk may say that it has.
pub(super) const MOST_EVENTS: u32 = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Definitions,
    Events,
}

/// The head of a chunk, in the order in which it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) kind: Kind,
    /// Bytes of the payload in the file, compressed by zstd, and after that.
    pub(super) stored: u32,
    pub(super) raw: u32,
    /// CRC-32 of the payload as it is in the file.
    pub(super) checksum: u32,
    /// Of events: the location, and how many they are.
    pub(super) location: u32,
    pub(super) count: u32,
    /// Number of the chunk in the file.
    pub(super) sequence: u32,
    /// Of events: the first entry and the last return, ns.
    pub(super) from_ns: u64,
    pub(super) until_ns: u64,
    /// Number of the first call.
    pub(super) first_number: u64,
}

impl Head {
    pub(super) fn bytes(&self) -> [u8; HEAD] {
        let mut bytes = Vec::with_capacity(HEAD);
        bytes.extend(MAGIC);
        bytes.extend([if self.kind == Kind::Definitions { 1 } else { 2 }, 0, 0, 0]);
        for word in [self.stored, self.raw, self.checksum, self.location, self.count, self.sequence] {
            bytes.extend(word.to_le_bytes());
        }
        for word in [self.from_ns, self.until_ns, self.first_number] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend([0; 4]);
        let checksum = crc32fast::hash(&bytes);
        bytes.extend(checksum.to_le_bytes());
        bytes.try_into().unwrap_or([0; HEAD])
    }

    pub(super) fn read(bytes: &[u8; HEAD]) -> Result<Self, Malformed> {
        let word =
            |at: usize| bytes.get(at..at + 4).and_then(|word| word.try_into().ok()).map_or(0, u32::from_le_bytes);
        let long =
            |at: usize| bytes.get(at..at + 8).and_then(|word| word.try_into().ok()).map_or(0, u64::from_le_bytes);
        if !bytes.starts_with(&MAGIC) || crc32fast::hash(bytes.get(..HEAD - 4).unwrap_or_default()) != word(60) {
            return Err(Malformed("no chunk begins there"));
        }
        let kind = match bytes.get(4) {
            Some(1) => Kind::Definitions,
            Some(2) => Kind::Events,
            _ => return Err(Malformed("it is of an unknown kind")),
        };
        let head = Self {
            kind,
            stored: word(8),
            raw: word(12),
            checksum: word(16),
            location: word(20),
            count: word(24),
            sequence: word(28),
            from_ns: long(32),
            until_ns: long(40),
            first_number: long(48),
        };
        if head.stored > LONGEST || head.raw > LONGEST || head.count > MOST_EVENTS {
            return Err(Malformed("it is too long"));
        }
        Ok(head)
    }

    /// The payload of these bytes, which are `stored` long.
    pub(super) fn payload(&self, stored: &[u8]) -> Result<Vec<u8>, Malformed> {
        if crc32fast::hash(stored) != self.checksum {
            return Err(Malformed("its checksum is another one"));
        }
        let raw = zstd::bulk::decompress(stored, self.raw as usize).map_err(|_| Malformed("it does not decompress"))?;
        if raw.len() == self.raw as usize { Ok(raw) } else { Err(Malformed("its length is another one")) }
    }
}

/// Where a chunk may begin in these bytes, behind the first one.
pub(super) fn next_magic(bytes: &[u8]) -> Option<usize> {
    let found = bytes.get(1..)?.windows(MAGIC.len()).position(|window| window == MAGIC)?;
    Some(found + 1)
}
